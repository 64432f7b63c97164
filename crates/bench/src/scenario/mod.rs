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

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::io::Read;
use std::path::{Path, PathBuf};

use record::units::names;
use record::units::typed::{Mistake, hint, nearest};

pub mod keys;
mod overlay;
mod parse;
mod parts;
mod resolve;
mod uses;
mod words;

pub use load::deleter::{AskedDeletion, How};
pub use overlay::{Idle, Options};
pub use parts::{Actor, Foreground, General, Judging, Phases};
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
        let scenario: Scenario = text.parse().map_err(|e| within(path, e))?;
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

/// Why a scenario, or what the command line adds to it, isn't taken.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A mistake in the text.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// Two actors with one name, on the command line.
    #[error("two actors are named '{name}': give each a name of its own")]
    SameName {
        /// The name.
        name: String,
    },
    /// No actor has this name.
    #[error("there is no actor '{name}'{}", hint(.nearest))]
    NoActor {
        /// The text as it was given.
        name: String,
        /// The nearest actor's name.
        nearest: Option<String>,
    },
    /// No shipped scenario and no file has this name.
    #[error(
        "there is no scenario '{name}'{} (`trimbench scenarios` lists them; a file of your own is \
         named with a slash or .toml)",
        hint(.nearest)
    )]
    Unknown {
        /// The text as it was given.
        name: String,
        /// The nearest allowed name.
        nearest: Option<String>,
    },
    /// A file that can't be read.
    #[error(
        "{}: can't be read: {source}; give a readable file of TOML",
        names::shown(path)
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Something wrong in a file.
    #[error("{}: {source}", names::shown(path))]
    In {
        /// The file.
        path: PathBuf,
        /// The mistake in it.
        source: Box<ScenarioError>,
    },
}

impl ScenarioError {
    /// None of these actors has this name.
    pub(super) fn no_actor(name: String, actors: &[Actor]) -> ScenarioError {
        let names = actors.iter().filter_map(|actor| actor.name.as_deref());
        let nearest = nearest(&name, names);
        ScenarioError::NoActor { name, nearest }
    }
}

/// A scenario that is part of the program.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/shipped_scenarios.rs"));

impl Shipped {
    /// The scenario in its file.
    ///
    /// # Errors
    /// If it isn't a scenario, which a test rules out.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        self.text.parse()
    }
}

/// All of them, by name.
pub fn all() -> &'static [Shipped] {
    SHIPPED
}

/// The one of this name.
///
/// # Errors
/// If there is none.
pub fn by_name(name: &str) -> Result<&'static Shipped, ScenarioError> {
    let found = all().iter().find(|shipped| shipped.name == name);
    found.ok_or_else(|| ScenarioError::Unknown {
        name: name.to_owned(),
        nearest: nearest(name, all().iter().map(|shipped| shipped.name)),
    })
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

    #[test]
    fn each_is_a_scenario_that_says_what_it_stands_for() {
        assert!(all().len() >= 14, "{}", all().len());
        for shipped in all() {
            let name = shipped.name;
            let scenario = shipped.scenario().unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(scenario.general.about.is_some(), "{name}: no about");
            assert!(scenario.general.look_at.is_some(), "{name}: no look-at");
            let comment: Vec<&str> = shipped
                .text
                .lines()
                .take_while(|line| line.starts_with('#'))
                .collect();
            assert!(
                comment.len() >= 3,
                "{name}: a comment first: the case, what is done, the figure"
            );
            assert!(
                comment.iter().any(|line| line.starts_with("# Look at ")),
                "{name}: the comment doesn't say what to look at"
            );
            // Each is over within two minutes or so on a disk that writes 300 MB/s.
            let longest = scenario.phases.settle.expect(name);
            assert!(longest.as_secs() <= 60, "{name}: settles for too long");
            let about = scenario.general.about.unwrap();
            assert!(about.len() <= 76, "{name}: about is longer than a line");
        }
    }

    #[test]
    fn they_are_in_order_and_the_default_is_among_them() {
        assert!(all().is_sorted_by_key(|shipped| shipped.name));
        by_name("big-delete").unwrap();
    }
}
