//! An actor in one word, as the command line takes it:
//! `append-fsync,rate=100,block-size=16k`.

use std::str::FromStr;

use record::units::settings::{Section, SetError};
use record::units::typed::hint;

use super::Actor;

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
