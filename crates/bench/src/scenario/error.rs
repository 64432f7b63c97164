//! Why a scenario isn't taken.

use std::path::PathBuf;

use units::names;
use units::typed::{Mistake, Place, hint};

use super::uses::Need;

/// Why a scenario, or what the command line adds to it, isn't taken.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// A mistake in the text.
    #[error(transparent)]
    Mistake(#[from] Mistake),
    /// A key that would do nothing.
    #[error("{at}: '{key}' only does something with {}: leave it out, or change that", .need.in_toml())]
    Idle {
        /// Where.
        at: Place,
        /// The key.
        key: &'static str,
        /// The option that it goes with.
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
