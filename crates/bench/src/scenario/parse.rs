//! A scenario's TOML.

use std::str::FromStr;

use record::units::document::{Document, Item};
use record::units::settings::{Section, SetError};
use record::units::typed::{Mistake, hint, nearest};

use super::{Actor, AskedDeletion, Foreground, Judging, Phases, Scenario, ScenarioError, keys};

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
        let document = Document::parse(text)?;
        let items = document.items();
        let mut scenario = Scenario::default();
        for item in &items {
            match item.key {
                Foreground::NAME => scenario.foreground = section(item)?,
                Actor::NAME => scenario.actors = actors(item)?,
                AskedDeletion::NAME => scenario.deletion = section(item)?,
                Phases::NAME => scenario.phases = section(item)?,
                Judging::NAME => scenario.judging = section(item)?,
                _ => set(&mut scenario.general, item)?,
            }
        }
        if let Some((path, need)) = scenario.unused().into_iter().next() {
            let (section, key) = path.split_once('.').unwrap_or(("", path));
            let of = items.iter().find(|item| item.key == section);
            let of = of.map(Item::items).transpose()?;
            idle(of.as_ref().unwrap_or(&items), Some((key, need.to_owned())))?;
        }
        scenario.name_actors()?;
        Ok(scenario)
    }
}

/// A section, in which each key does something.
fn section<S: Section>(item: &Item<'_>) -> Result<S, Mistake> {
    let items = item.items()?;
    let mut section = S::default();
    for item in &items {
        set(&mut section, item)?;
    }
    idle(&items, section.idle().into_iter().next())?;
    Ok(section)
}

fn actors(item: &Item<'_>) -> Result<Vec<Actor>, Mistake> {
    let mut actors: Vec<Actor> = Vec::new();
    for item in item.list() {
        let actor: Actor = section(&item)?;
        if let Some(name) = &actor.name
            && actors.iter().any(|other| other.name == actor.name)
        {
            let why = ScenarioError::SameName { name: name.clone() };
            return Err(item.mistake(why));
        }
        actors.push(actor);
    }
    Ok(actors)
}

/// One key with its value.
fn set<S: Section>(section: &mut S, item: &Item<'_>) -> Result<(), Mistake> {
    item.set(|key, text| {
        section.set(key, text).map_err(|error| match error {
            SetError::Unknown(near) => {
                let sections = SECTIONS.iter().filter(|_| S::NAME.is_empty());
                let near = belongs(key).or(near);
                SetError::Unknown(near.or_else(|| nearest(key, sections.copied())))
            }
            error => error,
        })
    })
}

/// Refuses a key of these that would do nothing.
fn idle(items: &[Item<'_>], key: Option<(&str, String)>) -> Result<(), Mistake> {
    let Some((key, need)) = key else {
        return Ok(());
    };
    let why = format!("it only does something with {need}: leave it out, or change that");
    match items.iter().find(|item| item.key == key) {
        Some(item) => Err(item.mistake(why)),
        None => Ok(()),
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

impl FromStr for Actor {
    type Err = String;

    /// Reads `OP` or `key=value`, separated by commas; `buffered` stands for
    /// `buffered=true`.
    fn from_str(text: &str) -> Result<Actor, String> {
        let mut actor = Actor::default();
        for (index, item) in text.split(',').map(str::trim).enumerate() {
            let (key, value) = match item.split_once('=') {
                Some((key, value)) => (key.trim(), value.trim()),
                None if index == 0 => ("op", item),
                None if item == "buffered" => ("buffered", "true"),
                None => return Err(format!("'{item}': give KEY=VALUE, e.g. rate=100")),
            };
            if actor.given().contains(&key) {
                return Err(format!("'{key}' is given twice"));
            }
            actor.set(key, value).map_err(|error| match error {
                SetError::Unknown(near) => format!("unknown key '{key}'{}", hint(&near)),
                SetError::Value(why) => format!("{key}: {why}"),
            })?;
        }
        if actor.op.is_none() {
            return Err("it says not what the actor does: begin with e.g. read or op=read".into());
        }
        match actor.idle().into_iter().next() {
            Some((key, need)) => Err(format!("{key} only does something with {need}")),
            None => Ok(actor),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ActorOp;

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
        let one: Scenario = "[actor]\ndepth = 0x40".parse().unwrap();
        assert_eq!(one.actors[0].depth, Some(64));
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
                "line 2, column 7: 'how': there is no way to delete 'rm': give unlink, ",
            ),
            ("[deletion]\nhow = [1]", "text, a number"),
            ("[deletion]\nwho = [1]", "unknown key 'who'"),
            ("actor = 1", "'actor': this is a section"),
            ("deletion = 1", "this is a section"),
            (
                "[deletion]\nchunk = \"1M\"",
                "line 2, column 9: 'chunk': it only does something with how = truncate or punch",
            ),
            (
                "[deletion]\nhow = \"unlink\"\ncommand = \"rm\"",
                "line 2, column 7: 'how': it only does something with no command",
            ),
            (
                "[[actor]]\nname = \"a\"\n[[actor]]\nname = \"a\"",
                "line 3, column 1: 'actor': two actors are named 'a'",
            ),
            (
                "settle = \"1s\"",
                "line 1, column 1: unknown key 'settle'; did you mean 'settle in [phases]'?",
            ),
            ("[foreground]\nengine = \"sync\"", "in no section"),
            (
                "canary = 0\n[foreground]\nsize = \"1G\"\n[[actor]]\nop = \"append\"",
                "line 3, column 8: 'size': it only does something with a reader, a writer",
            ),
            (
                "engine = \"sync\"\ncanary = 0\n[[actor]]\nop = \"save\"",
                "line 1, column 10: 'engine': it only does something with a reader",
            ),
            (
                "about = \"two\\nlines\"",
                "line 1, column 9: 'about': give one line",
            ),
            ("[judge]\nlow = \"100%\"", "between 0% and 100%"),
            (
                "control = true",
                "line 1, column 11: 'control': there is no control 'true': give off, second-name or remount",
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

    #[test]
    fn actors_are_read() {
        let save: Actor = "save".parse().unwrap();
        assert_eq!(save.op().name(), "save");
        let mixed: Actor = "mixed,reads=70%,depth=4,buffered".parse().unwrap();
        assert_eq!((mixed.op(), mixed.read_percent), (ActorOp::Mixed, Some(70)));
        assert_eq!((mixed.depth, mixed.buffered), (Some(4), Some(true)));
        let wal: Actor = "name=wal, op=append-fdatasync, rate=100".parse().unwrap();
        assert_eq!(wal.name.as_deref(), Some("wal"));
        assert_eq!(wal.rate_per_s, Some(100.0));
    }

    #[test]
    fn mistakes_are_told() {
        for (text, words) in [
            ("", "there is no operation ''"),
            ("sav", "there is no operation 'sav'; did you mean 'save'?"),
            ("read,100", "KEY=VALUE"),
            ("read,dept=3", "did you mean 'depth'?"),
            ("read,depth=3,depth=4", "twice"),
            ("read,op=write", "twice"),
            ("depth=3", "what the actor does"),
            (
                "read,reads=70%",
                "reads only does something with op = mixed",
            ),
            ("read,rate=fast", "rate: 'fast'"),
        ] {
            let error = text.parse::<Actor>().unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
