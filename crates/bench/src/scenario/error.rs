//! Why a scenario isn't taken.

use std::fmt;
use std::path::PathBuf;

use super::uses::Need;

/// Why a scenario, or what the command line adds to it, isn't taken.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// It isn't TOML.
    #[error("{at}: {why}")]
    Syntax {
        /// Where.
        at: Place,
        /// What TOML's parser says.
        why: String,
    },
    /// A key or section that no scenario has.
    #[error("{at}: unknown key '{key}'{}", hint(.nearest))]
    UnknownKey {
        /// Where.
        at: Place,
        /// What was given.
        key: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// Something that isn't written as its key is.
    #[error("{at}: '{key}': {why}")]
    Shape {
        /// Where.
        at: Place,
        /// The key.
        key: String,
        /// How it is written.
        why: &'static str,
    },
    /// A value that its key doesn't take.
    #[error("{at}: '{key}': {why}")]
    Value {
        /// Where.
        at: Place,
        /// The key.
        key: String,
        /// What is wrong, and what is allowed.
        why: String,
    },
    /// A key that would do nothing.
    #[error("{at}: '{key}' only does something with {}: leave it out, or change that", .need.in_toml())]
    Idle {
        /// Where.
        at: Place,
        /// The key.
        key: &'static str,
        /// What it goes with.
        need: Need,
    },
    /// Two actors with one name, on the command line.
    #[error("two actors are named '{name}': give each a name of its own")]
    SameName {
        /// The name.
        name: String,
    },
    /// No shipped scenario and no file has this name.
    #[error(
        "there is no scenario '{name}'{} (`trimbench scenarios` lists them; a file of your own is \
         named with a slash or .toml)",
        hint(.nearest)
    )]
    Unknown {
        /// What was given.
        name: String,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// A file that can't be read.
    #[error("{}: can't be read: {source}; give a readable file of TOML", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something wrong in a file.
    #[error("{}: {source}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// What.
        source: Box<ScenarioError>,
    },
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl Place {
    /// The place of a byte of a text.
    pub(super) fn of(text: &str, byte: usize) -> Place {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |i| i + 1);
        Place {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Of some names, the one most like a mistyped one, if any is much like it.
pub(super) fn nearest<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    names
        .into_iter()
        .map(|name| (strsim::jaro_winkler(typed, name), name))
        .filter(|&(likeness, _)| likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name.to_owned())
}

/// `; did you mean 'X'?`, where something was near.
pub(super) fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or_else(String::new, |key| format!("; did you mean '{key}'?"))
}
