//! Why a scenario isn't taken.

use std::path::PathBuf;

use record::units::names;
use record::units::typed::{Mistake, hint, nearest};

use super::Actor;

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
