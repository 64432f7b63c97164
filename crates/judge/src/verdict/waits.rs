//! In what a run's actors waited.

use record::waits::PhaseWaits;
use serde::{Deserialize, Serialize};

/// In what the actors waited, where `run --why` watched them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Waited {
    /// The waits during the deletion, in a sentence; `None` where nobody was there then.
    pub sentence: Option<String>,
    /// The actors: those of the foreground, and `deleter` and `commit`.
    pub actors: Vec<Waiter>,
    /// Facts that could not be found out, each with the reason, in words.
    pub missing: Vec<String>,
}

/// The waits of one actor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Waiter {
    /// Its name.
    pub actor: String,
    /// Its time in each phase in which it was there, in order of time.
    pub phases: Vec<PhaseWaits>,
}
