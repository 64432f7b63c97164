//! A scenario's TOML.

use std::ops::Range;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use units::typed::{Mistake, Place, nearest};

use super::section::SetError;
use super::uses::Need;
use super::{Actor, Deletion, Foreground, General, Phases, Scenario, ScenarioError};

type Cell<'i> = Spanned<DeValue<'i>>;

/// Names of the sections, as they are written.
const SECTIONS: [&str; 4] = ["foreground", "actor", "deletion", "phases"];

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
                "foreground" => reader.section(cell, key, Foreground::KEYS, |key, text| {
                    scenario.foreground.set(key, text)
                })?,
                "actor" => scenario.actors = reader.actors(cell)?,
                "deletion" => scenario.deletion = reader.deletion(cell)?,
                "phases" => reader.section(cell, key, Phases::KEYS, |key, text| {
                    scenario.phases.set(key, text)
                })?,
                _ => {
                    let names = General::KEYS.iter().chain(&SECTIONS);
                    reader.value(key, span, cell, names, |text| {
                        scenario.general.set(key, text)
                    })?;
                }
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
    /// Every key of a section.
    fn section(
        &self,
        cell: &Cell<'_>,
        name: &str,
        keys: &[&'static str],
        mut set: impl FnMut(&str, &str) -> Result<(), SetError>,
    ) -> Result<(), ScenarioError> {
        let DeValue::Table(table) = cell.get_ref() else {
            let why = "this is a section: write it in square brackets on a line of its own";
            return Err(self.shape(&cell.span(), name, why));
        };
        for (key, span, cell) in in_order(table) {
            self.value(key, span, cell, keys, |text| set(key, text))?;
        }
        Ok(())
    }

    /// Refuses what does nothing because of another section.
    fn refuse_unused(
        &self,
        document: &DeTable<'_>,
        scenario: &Scenario,
    ) -> Result<(), ScenarioError> {
        let general = &scenario.general;
        let at = |key| document.get_key_value(key);
        if general.remount == Some(true) && general.control != Some(true) {
            let span = at("remount").map_or(0..0, |(key, _)| key.span());
            return Err(self.idle(&span, "remount", Need::Control));
        }
        if general.engine.is_some() && !scenario.uses_engine() {
            let span = at("engine").map_or(0..0, |(key, _)| key.span());
            return Err(self.idle(&span, "engine", Need::AnEngine));
        }
        if scenario.foreground.size_bytes.is_some() && !scenario.uses_file() {
            let span = at("foreground").map_or(0..0, |(_, cell)| self.key_in(cell, "size"));
            return Err(self.idle(&span, "size", Need::TheFile));
        }
        Ok(())
    }

    fn idle(&self, span: &Range<usize>, key: &'static str, need: Need) -> ScenarioError {
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
            let mut actor = Actor::default();
            self.section(cell, "actor", Actor::KEYS, |key, text| actor.set(key, text))?;
            self.refuse_idle(cell, actor.idle())?;
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

    fn deletion(&self, cell: &Cell<'_>) -> Result<Deletion, ScenarioError> {
        let mut deletion = Deletion::default();
        self.section(cell, "deletion", Deletion::KEYS, |key, text| {
            deletion.set(key, text)
        })?;
        if deletion.how.is_some() && deletion.command.is_some() {
            let why = "the program is how: give either how or command";
            return Err(self.shape(&self.key_in(cell, "command"), "command", why));
        }
        self.refuse_idle(cell, deletion.idle())?;
        Ok(deletion)
    }

    fn refuse_idle(
        &self,
        cell: &Cell<'_>,
        idle: Vec<(&'static str, Need)>,
    ) -> Result<(), ScenarioError> {
        match idle.into_iter().next() {
            Some((key, need)) => Err(self.idle(&self.key_in(cell, key), key, need)),
            None => Ok(()),
        }
    }

    /// One key with its value: a text, a number or a truth value.
    fn value<'k>(
        &self,
        key: &str,
        span: Range<usize>,
        cell: &Cell<'_>,
        known: impl IntoIterator<Item = &'k &'static str>,
        set: impl FnOnce(&str) -> Result<(), SetError>,
    ) -> Result<(), ScenarioError> {
        let unknown = || Mistake::UnknownKey {
            at: self.place(&span),
            key: key.to_owned(),
            nearest: match belongs(key) {
                Some(section) => Some(format!("{key} in {section}")),
                None => nearest(key, known.into_iter().copied()),
            },
        };
        let text = match cell.get_ref() {
            DeValue::String(text) => text.clone().into_owned(),
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::Boolean(truth) => truth.to_string(),
            // An unknown key is told as such, whatever its value.
            _ => match set("") {
                Err(SetError::Unknown) => return Err(unknown().into()),
                _ => {
                    let why = "its value is a text, a number, true or false";
                    return Err(self.shape(&cell.span(), key, why));
                }
            },
        };
        set(&text).map_err(|error| match error {
            SetError::Unknown => unknown().into(),
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
    let sections = [
        ("[deletion]", Deletion::KEYS),
        ("[[actor]]", Actor::KEYS),
        ("[phases]", Phases::KEYS),
        ("[foreground]", Foreground::KEYS),
        ("no section, above all of them", General::KEYS),
    ];
    let mut named = sections.iter().filter(|(_, keys)| keys.contains(&key));
    let first = named.next()?.0.to_owned();
    Some(named.fold(first, |all, (section, _)| format!("{all} or {section}")))
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
    use crate::scenario::{ActorOp, How};

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
            low = "30%"
        "#;
        let scenario: Scenario = text.parse().unwrap();
        assert_eq!(scenario.general.canary_per_s, Some(0.0));
        assert_eq!(scenario.foreground.size_bytes, Some(2 << 30));
        assert_eq!(scenario.actors.len(), 2);
        assert_eq!(scenario.actors[0].name.as_deref(), Some("mixed"));
        assert_eq!(scenario.actors[0].read_percent, Some(70));
        assert_eq!(scenario.actors[1].op(), ActorOp::Task("append-fdatasync"));
        assert_eq!(scenario.deletion.how(), Some(How::Unlink));
        assert_eq!(scenario.deletion.no_sync, Some(true));
        assert_eq!(scenario.phases.low, Some(0.3));
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
            ("[phases]\nlow = \"100%\"", "between 0% and 100%"),
            (
                "remount = true",
                "line 1, column 1: 'remount' only does something with control = true",
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
