//! Scenarios: production cases as files that people read, copy and edit.
//!
//! A scenario is TOML in which every key may be left out. The command line's options
//! override it key by key. `trimbench scenarios keys` lists them all, with their defaults:
//!
//! ```toml
//! about = "A table is dropped beside readers and a log"
//! look-at = "stall of wal: how long commits waited"
//!
//! [[actor]]             # the first is the one that settling waits for
//! op = "read"
//! [[actor]]
//! name = "wal"
//! op = "append-fdatasync"
//! rate = 100
//!
//! [deletion]
//! size = "16G"
//! ```
//!
//! Those that are shipped lie in `scenarios/` and are part of the program;
//! another file there is another scenario, without a line of code.

mod actor_spec;
mod error;
pub mod keys;
mod overlay;
mod parse;
mod parts;
mod resolve;
mod shipped;
mod uses;
mod words;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub use error::ScenarioError;
pub use load::deleter::{AskedDeletion, How};
pub use overlay::{Idle, Options};
pub use parts::{Actor, Foreground, General, Judging, Phases};
pub use shipped::{Shipped, all, by_name};
pub use words::{ActorOp, Arrival, Counters};

/// Most bytes of a scenario's file.
const LARGEST_FILE: u64 = 1 << 20;

/// The content of a scenario. A key that is left out is `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scenario {
    /// The keys outside any section.
    pub general: General,
    /// The file that readers and writers share.
    pub foreground: Foreground,
    /// The foreground's actors, each with a name; the first is the one that
    /// settling waits for.
    pub actors: Vec<Actor>,
    /// The section `[deletion]`.
    pub deletion: AskedDeletion,
    /// How long the phases last.
    pub phases: Phases,
    /// How the record is judged.
    pub judging: Judging,
}

impl Scenario {
    /// Finds a scenario by its name or its file: what has a slash, ends in
    /// `.toml` or is there as a file is a file. Gives its name, too: a file's is
    /// that of the file without its directory and `.toml`.
    ///
    /// # Errors
    /// If there is none of this name, or the file can't be read or isn't a scenario.
    pub fn find(name: &str) -> Result<(String, Scenario), ScenarioError> {
        let path = Path::new(name);
        let is_file = name.contains('/') || name.ends_with(".toml") || path.is_file();
        if !is_file {
            let shipped = by_name(name)?;
            let scenario = shipped.scenario().map_err(|e| within(path, e))?;
            return Ok((shipped.name.to_owned(), scenario));
        }
        let text = read(path).map_err(|source| ScenarioError::Read {
            path: path.to_owned(),
            source,
        })?;
        let mut scenario: Scenario = text.parse().map_err(|e| within(path, e))?;
        if let (Some(fio), Some(beside)) = (&mut scenario.general.fio, path.parent()) {
            *fio = beside.join(&*fio);
        }
        let stem = path.file_stem().unwrap_or(path.as_os_str());
        Ok((stem.to_string_lossy().into_owned(), scenario))
    }

    /// Gives every actor without a name that of what it does, with a number
    /// where that is taken.
    ///
    /// # Errors
    /// If two were given the same name.
    pub(crate) fn name_actors(&mut self) -> Result<(), ScenarioError> {
        let mut taken: HashSet<String> = HashSet::new();
        for name in self.actors.iter().filter_map(|actor| actor.name.as_ref()) {
            if !taken.insert(name.clone()) {
                return Err(ScenarioError::SameName { name: name.clone() });
            }
        }
        let mut last: HashMap<&str, u32> = HashMap::new();
        for actor in &mut self.actors {
            if actor.name.is_some() {
                continue;
            }
            let plain = match actor.op() {
                ActorOp::Read => "reader",
                ActorOp::Write => "writer",
                ActorOp::Append => "appender",
                op => op.name(),
            };
            let last = last.entry(plain).or_default();
            actor.name = Some(loop {
                *last += 1;
                let name = match *last {
                    1 => plain.to_owned(),
                    n => format!("{plain}-{n}"),
                };
                if taken.insert(name.clone()) {
                    break name;
                }
            });
        }
        Ok(())
    }
}

/// Reads a scenario's file, but not a device or an image that was named by mistake.
fn read(path: &Path) -> io::Result<String> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut bytes = Vec::new();
    let file = File::open(path)?;
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(wrong("it is larger than 1 MiB, and no scenario is"));
    }
    String::from_utf8(bytes).map_err(|_| wrong("it is no text in UTF-8"))
}

fn within(path: &Path, error: ScenarioError) -> ScenarioError {
    ScenarioError::In {
        path: path.to_owned(),
        source: Box::new(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actors_without_a_name_get_one_each() {
        let mut scenario = Scenario {
            actors: ["read", "read", "name=reader-2,op=write", "save", "append"]
                .map(|spec| spec.parse().unwrap())
                .to_vec(),
            ..Scenario::default()
        };
        scenario.name_actors().unwrap();
        let names: Vec<_> = scenario
            .actors
            .iter()
            .flat_map(|a| a.name.clone())
            .collect();
        assert_eq!(
            names,
            ["reader", "reader-3", "reader-2", "save", "appender"]
        );
    }

    /// Each name was compared with all others, for each number: minutes for these.
    #[test]
    fn thousands_of_actors_get_names_without_comparing_each_with_all_others() {
        let actor: Actor = "read".parse().unwrap();
        let mut scenario = Scenario {
            actors: vec![actor; 30_000],
            ..Scenario::default()
        };
        scenario.name_actors().unwrap();
        let last = scenario.actors.pop().and_then(|actor| actor.name);
        assert_eq!(last.as_deref(), Some("reader-30000"));
    }

    #[test]
    fn a_file_is_told_from_a_name() {
        let error = Scenario::find("drop-tabel").unwrap_err().to_string();
        assert!(error.contains("did you mean 'drop-table'?"), "{error}");
        for file in ["./none", "none.toml"] {
            let error = Scenario::find(file).unwrap_err();
            assert!(matches!(error, ScenarioError::Read { .. }), "{error}");
        }
        for endless in ["/dev/zero", "/dev/urandom"] {
            let error = Scenario::find(endless).unwrap_err().to_string();
            assert!(error.contains("larger than 1 MiB"), "{error}");
        }
        let (name, scenario) = Scenario::find("big-delete").unwrap();
        assert_eq!(name, "big-delete");
        assert_ne!(scenario, Scenario::default());
    }
}
