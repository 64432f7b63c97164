//! The actors of a run as they begin, for a watcher outside of the run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use record::{Part, PhaseName};

use crate::crew::Crew;

/// The actors of a run with their threads, and its phases. The run adds to it; clones share it.
#[derive(Debug, Clone, Default)]
pub struct Roster(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    members: Vec<Member>,
    phases: Vec<Began>,
}

/// One source of work in a run. Several deletions of a run are a member each, of one name.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name: an actor's, or one of those in [`record::waits`].
    pub name: String,
    /// Its threads and programs.
    pub crew: Crew,
}

/// A phase that began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Began {
    /// When, on the monotonic clock (`CLOCK_MONOTONIC`), in seconds.
    pub monotonic_s: f64,
    /// The phase.
    pub name: PhaseName,
    /// Its part.
    pub part: Part,
}

impl Roster {
    /// The members in the order in which they came, without the first `known`.
    pub fn members(&self, known: usize) -> Vec<Member> {
        self.entries()
            .members
            .get(known..)
            .unwrap_or_default()
            .to_vec()
    }

    /// The phases in order of time, without the first `known`.
    pub fn phases(&self, known: usize) -> Vec<Began> {
        self.entries()
            .phases
            .get(known..)
            .unwrap_or_default()
            .to_vec()
    }

    /// Adds a member.
    pub fn add(&self, name: &str, crew: &Crew) {
        self.entries().members.push(Member {
            name: name.to_owned(),
            crew: crew.clone(),
        });
    }

    /// Adds a phase, which begins after those that it has.
    pub fn begin(&self, phase: Began) {
        self.entries().phases.push(phase);
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::waits::DELETER;

    #[test]
    fn whoever_asks_again_gets_what_is_new() {
        let roster = Roster::default();
        let run = roster.clone();
        run.add("reader", &Crew::default());
        assert_eq!(roster.members(0)[0].name, "reader");
        run.add(DELETER, &Crew::default());
        let fresh = roster.members(1);
        assert_eq!((fresh.len(), fresh[0].name.as_str()), (1, DELETER));
        assert!(roster.members(5).is_empty() && roster.phases(0).is_empty());
    }
}
