//! A scenario's TOML.

use std::ops::Range;
use std::str::FromStr;

use record::units::settings::{Section, SetError};
use record::units::typed::{Mistake, Place, nearest};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Actor, AskedDeletion, Foreground, Judging, Phases, Scenario, ScenarioError, keys};

type Cell<'i> = Spanned<DeValue<'i>>;

/// Names of the sections, as they are written.
const SECTIONS: [&str; 5] = [
    Foreground::NAME,
    Actor::NAME,
    AskedDeletion::NAME,
    Phases::NAME,
    Judging::NAME,
];

impl FromStr for Scenario {
    type Err = ScenarioError;

    /// Reads a scenario from TOML.
    fn from_str(text: &str) -> Result<Scenario, ScenarioError> {
        let document = DeTable::parse(text).map_err(|e| Mistake::Syntax {
            at: Place::of(text, e.span().map_or(0, |s| s.start)),
            why: e.message().to_owned(),
        })?;
        let reader = Reader { text };
        let mut scenario = Scenario::default();
        for (key, span, cell) in in_order(document.get_ref()) {
            match key {
                Foreground::NAME => scenario.foreground = reader.section(cell)?,
                Actor::NAME => scenario.actors = reader.actors(cell)?,
                AskedDeletion::NAME => scenario.deletion = reader.deletion(cell)?,
                Phases::NAME => scenario.phases = reader.section(cell)?,
                Judging::NAME => scenario.judging = reader.section(cell)?,
                _ => reader.value(&mut scenario.general, key, span, cell)?,
            }
        }
        reader.refuse_unused(document.get_ref(), &scenario)?;
        scenario.name_actors()?;
        Ok(scenario)
    }
}

struct Reader<'t> {
    text: &'t str,
}

impl Reader<'_> {
    /// A section, in which each key does something.
    fn section<S: Section>(&self, cell: &Cell<'_>) -> Result<S, ScenarioError> {
        let DeValue::Table(table) = cell.get_ref() else {
            let why = "this is a section: write it in square brackets on a line of its own";
            return Err(self.shape(&cell.span(), S::NAME, why));
        };
        let mut section = S::default();
        for (key, span, cell) in in_order(table) {
            self.value(&mut section, key, span, cell)?;
        }
        match section.idle().into_iter().next() {
            Some((key, need)) => Err(self.idle(&self.key_in(cell, key), key, need)),
            None => Ok(section),
        }
    }

    /// Refuses what does nothing because of another section.
    fn refuse_unused(
        &self,
        document: &DeTable<'_>,
        scenario: &Scenario,
    ) -> Result<(), ScenarioError> {
        let Some((path, need)) = scenario.unused().into_iter().next() else {
            return Ok(());
        };
        let (section, key) = path.split_once('.').unwrap_or(("", path));
        let span = match (document.get(section), document.get_key_value(key)) {
            (Some(cell), _) => self.key_in(cell, key),
            (None, Some((key, _))) => key.span(),
            (None, None) => 0..0,
        };
        Err(self.idle(&span, key, need.to_owned()))
    }

    fn idle(&self, span: &Range<usize>, key: &'static str, need: String) -> ScenarioError {
        let at = self.place(span);
        ScenarioError::Idle { at, key, need }
    }

    fn actors(&self, cell: &Cell<'_>) -> Result<Vec<Actor>, ScenarioError> {
        let DeValue::Array(cells) = cell.get_ref() else {
            let why = "there may be several: write each as [[actor]]";
            return Err(self.shape(&cell.span(), "actor", why));
        };
        let mut actors: Vec<Actor> = Vec::new();
        for cell in cells.iter() {
            let actor: Actor = self.section(cell)?;
            if let Some(name) = &actor.name
                && actors.iter().any(|other| other.name == actor.name)
            {
                let why = ScenarioError::SameName { name: name.clone() }.to_string();
                return Err(self.shape(&self.key_in(cell, "name"), "name", &why));
            }
            actors.push(actor);
        }
        Ok(actors)
    }

    fn deletion(&self, cell: &Cell<'_>) -> Result<AskedDeletion, ScenarioError> {
        let deletion: AskedDeletion = self.section(cell)?;
        if deletion.how.is_some() && deletion.command.is_some() {
            let why = "the program is how: give either how or command";
            return Err(self.shape(&self.key_in(cell, "command"), "command", why));
        }
        Ok(deletion)
    }

    /// One key with its value: a text, a number or a truth value.
    fn value<S: Section>(
        &self,
        section: &mut S,
        key: &str,
        span: Range<usize>,
        cell: &Cell<'_>,
    ) -> Result<(), ScenarioError> {
        let unknown = |near: Option<String>| {
            let sections = SECTIONS.iter().filter(|_| S::NAME.is_empty());
            ScenarioError::Mistake(Mistake::UnknownKey {
                at: self.place(&span),
                key: key.to_owned(),
                nearest: belongs(key)
                    .or(near)
                    .or_else(|| nearest(key, sections.copied())),
            })
        };
        let text = match cell.get_ref() {
            DeValue::String(text) => text.clone().into_owned(),
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::Boolean(truth) => truth.to_string(),
            // An unknown key is reported as such, whatever its value.
            _ => match section.set(key, "") {
                Err(SetError::Unknown(near)) => return Err(unknown(near)),
                _ => {
                    let why = "its value is a text, a number, true or false";
                    return Err(self.shape(&cell.span(), key, why));
                }
            },
        };
        section.set(key, &text).map_err(|error| match error {
            SetError::Unknown(near) => unknown(near),
            SetError::Value(why) => self.shape(&cell.span(), key, &why),
        })
    }

    /// Where a key of a section stands.
    fn key_in(&self, cell: &Cell<'_>, key: &str) -> Range<usize> {
        let DeValue::Table(table) = cell.get_ref() else {
            return cell.span();
        };
        table
            .get_key_value(key)
            .map_or_else(|| cell.span(), |(key, _)| key.span())
    }

    fn place(&self, span: &Range<usize>) -> Place {
        Place::of(self.text, span.start)
    }

    fn shape(&self, span: &Range<usize>, key: &str, why: &str) -> ScenarioError {
        ScenarioError::Mistake(Mistake::Value {
            at: self.place(span),
            key: key.to_owned(),
            why: why.to_owned(),
        })
    }
}

/// Where a key belongs, of whatever section.
fn belongs(key: &str) -> Option<String> {
    let all = keys::all();
    let paths = all.iter().filter(|(_, own)| own.name == key);
    let sections = paths.map(|(path, _)| match path.rsplit_once('.') {
        Some((Actor::NAME, _)) => "[[actor]]".to_owned(),
        Some((section, _)) => format!("[{section}]"),
        None => "no section, above all of them".to_owned(),
    });
    let sections: Vec<String> = sections.collect();
    (!sections.is_empty()).then(|| format!("{key} in {}", sections.join(" or ")))
}

/// A table's keys in the order of the text, so that the first mistake is reported.
fn in_order<'a, 'i>(table: &'a DeTable<'i>) -> Vec<(&'a str, Range<usize>, &'a Cell<'i>)> {
    let mut cells: Vec<_> = table
        .iter()
        .map(|(key, cell)| (key.get_ref().as_ref(), key.span(), cell))
        .collect();
    cells.sort_by_key(|(_, span, _)| span.start);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_is_read() {
        let text = r#"
            about = "a table is dropped"
            canary = 0
            [foreground]
            size = "2G"
            [[actor]]
            op = "mixed"
            reads = "70%"
            [[actor]]
            name = "wal"
            op = "append-fdatasync"
            rate = 100
            [deletion]
            files = 3
            no-sync = true
            [phases]
            settle = "20s"
            [judge]
            low = "30%"
        "#;
        let scenario: Scenario = text.parse().unwrap();
        assert_eq!(scenario.general.canary_per_s, Some(0.0));
        assert_eq!(scenario.foreground.size_bytes, Some(2 << 30));
        assert_eq!(scenario.actors.len(), 2);
        assert_eq!(scenario.actors[0].name.as_deref(), Some("mixed"));
        assert_eq!(scenario.actors[0].read_percent, Some(70));
        assert_eq!(scenario.actors[1].op().name(), "append-fdatasync");
        assert_eq!(scenario.deletion.way().name, "unlink");
        assert_eq!(scenario.deletion.no_sync, Some(true));
        assert_eq!(scenario.judging.low, Some(0.3));
        assert_eq!("".parse::<Scenario>().unwrap(), Scenario::default());
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        for (text, words) in [
            ("about = \n", "line 1, column "),
            (
                "about = \"x\"\nlook_at = \"y\"",
                "line 2, column 1: unknown key 'look_at'; did you mean 'look-at'?",
            ),
            ("[deletoin]\n", "did you mean 'deletion'?"),
            (
                "[[actor]]\n  blocksize = \"4k\"",
                "line 2, column 3: unknown key 'blocksize'; did you mean 'block-size'?",
            ),
            (
                "[phases]\nsettle = 20",
                "line 2, column 10: 'settle': '20' has no unit: a duration needs one",
            ),
            (
                "[deletion]\nhow = \"rm\"",
                "line 2, column 7: 'how': 'rm' is none of unlink, ",
            ),
            ("[deletion]\nhow = [1]", "text, a number"),
            ("[deletion]\nwho = [1]", "unknown key 'who'"),
            ("[actor]\nop = \"read\"", "[[actor]]"),
            ("deletion = 1", "this is a section"),
            (
                "[deletion]\nchunk = \"1M\"",
                "line 2, column 1: 'chunk' only does something with how = truncate or punch",
            ),
            (
                "[deletion]\nhow = \"unlink\"\ncommand = \"rm\"",
                "line 3, column 1: 'command': the program is how",
            ),
            (
                "[[actor]]\nname = \"a\"\n[[actor]]\nname = \"a\"",
                "line 4, column 1: 'name': two actors are named 'a'",
            ),
            (
                "settle = \"1s\"",
                "line 1, column 1: unknown key 'settle'; did you mean 'settle in [phases]'?",
            ),
            ("[foreground]\nengine = \"sync\"", "in no section"),
            (
                "canary = 0\n[foreground]\nsize = \"1G\"\n[[actor]]\nop = \"append\"",
                "line 3, column 1: 'size' only does something with a reader, a writer",
            ),
            (
                "engine = \"sync\"\ncanary = 0\n[[actor]]\nop = \"save\"",
                "line 1, column 1: 'engine' only does something with a reader",
            ),
            (
                "about = \"two\\nlines\"",
                "line 1, column 9: 'about': give one line",
            ),
            ("[judge]\nlow = \"100%\"", "between 0% and 100%"),
            (
                "control = true",
                "line 1, column 11: 'control': 'true' is none of off, second-name, remount",
            ),
            ("[[actor]]\n[[actor]]\nrate = 0", "line 3, column 8: 'rate'"),
        ] {
            let error = text.parse::<Scenario>().unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text: String) {
            let _ = text.parse::<Scenario>();
        }
    }
}
