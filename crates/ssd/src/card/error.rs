//! Why a card or an override isn't taken.

use std::fmt;

use units::typed::{Place, hint};

/// Why a card or an override isn't taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// It isn't TOML.
    #[error("{at}: {why}")]
    Syntax {
        /// Where.
        at: Place,
        /// The message of TOML's parser.
        why: String,
    },
    /// A key that no card has.
    #[error("{at}unknown key '{key}'{}", hint(.nearest))]
    UnknownKey {
        /// Where; empty for an override.
        at: At,
        /// The key in the text.
        key: String,
        /// A known key with a similar name.
        nearest: Option<String>,
    },
    /// A key's bare name that is in several sections.
    #[error("'{key}' could be {}: give the section too", .candidates.join(" or "))]
    Ambiguous {
        /// The key in the text.
        key: String,
        /// The paths it could stand for.
        candidates: Vec<&'static str>,
    },
    /// A figure that isn't written as value, sure and source.
    #[error("{at}'{key}': {why}")]
    Shape {
        /// Where.
        at: At,
        /// The key.
        key: String,
        /// The expected value.
        why: String,
    },
    /// A value that its key doesn't take.
    #[error("{at}'{key}': {why}")]
    Value {
        /// Where; empty for an override.
        at: At,
        /// The key's path.
        key: &'static str,
        /// The fault of the value.
        why: String,
    },
    /// A figure that every card must give.
    #[error("no '{key}': give it ({about})")]
    Missing {
        /// The key.
        key: &'static str,
        /// The figure's meaning.
        about: &'static str,
    },
    /// An override without `=`.
    #[error("'{text}' is no override: give KEY=VALUE, e.g. a=2ms")]
    NoOverride {
        /// The text of the value.
        text: String,
    },
}

/// A place, if the text has any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At(pub Option<Place>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |place| write!(f, "{place}: "))
    }
}
