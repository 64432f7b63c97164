//! The waits of a run's actors: in a discard of their own, behind discards, for a commit, or for
//! nothing at all.
//!
//! `trimbench run --why` looks at each thread of an actor again and again while it runs. Times are
//! those of threads: two threads that wait for a second each have waited two seconds.

mod cause;

use serde::{Deserialize, Serialize};

use super::{Part, PhaseName};

pub use cause::Cause;

/// The name of those that delete, or that an event is.
pub const DELETER: &str = "deleter";

/// The name of the thread that forces a commit after a deletion.
pub const COMMIT: &str = "commit";

/// The waits of all actors of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// The actors: those of the head, and the threads that delete and commit.
    pub actors: Vec<ActorWaits>,
    /// The same over time, in stretches of one length.
    pub timeline: Timeline,
    /// Looks at threads in a second, where there was time for all.
    pub looks_per_s: f64,
    /// Events of discards that the kernel dropped, so that discards are missing here.
    pub lost_events: u64,
    /// Share of one processor that looking took, 1 for a whole one.
    pub cpu_share: f64,
    /// Facts that could not be found out, each with the reason, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// The waits of one actor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ActorWaits {
    /// Its name: one of the head's, [`DELETER`] or [`COMMIT`].
    pub actor: String,
    /// Its time in each phase in which it was there, in order of time.
    pub phases: Vec<PhaseWaits>,
    /// For each stretch of the timeline the share of it that the actor's threads waited, 0 to 1.
    /// Empty where there was no such wait.
    #[serde(default, skip_serializing_if = "WaitShares::is_empty")]
    pub shares: WaitShares,
}

/// The time of one actor in one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseWaits {
    /// The phase.
    pub phase: PhaseName,
    /// Its part.
    #[serde(default)]
    pub part: Part,
    /// How long its threads were watched, in seconds, added up.
    pub seconds: f64,
    /// Threads that were seen in it.
    pub threads: u64,
    /// The ways in which that time was spent, the longest first. Their seconds add up to `seconds`.
    pub waits: Vec<Wait>,
}

/// Time that was spent in one way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// The cause.
    pub cause: Cause,
    /// The system call; `None` where it isn't known, and outside of calls that wait for storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// How long, in seconds.
    pub seconds: f64,
    /// The same as a share of the threads' time, 0 to 1.
    pub share: f64,
    /// Looks that found a thread there; 0 of waits that only the events of their discards show.
    pub looks: u64,
    /// Discards that it sent itself; 0 of other causes.
    #[serde(default, skip_serializing_if = "is_none")]
    pub discards: u64,
}

/// Waits over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// When the first stretch begins, in seconds since the record's zero.
    pub at_s: f64,
    /// The length of each stretch, in seconds.
    pub stretch_s: f64,
    /// The share of each stretch, 0 to 1, with a discard at least in flight on a device of the
    /// target.
    pub discarding: Vec<f32>,
}

/// Shares of stretches, 0 to 1; each list is empty or has one for each of the timeline's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitShares {
    /// In discards of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<f32>,
    /// Behind discards.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<f32>,
    /// Blocked on anything else: storage or a lock.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub otherwise: Vec<f32>,
}

impl WaitShares {
    /// Whether the actor never waited.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.behind.is_empty() && self.otherwise.is_empty()
    }
}

impl ActorWaits {
    /// Its time in a phase of the deletion under test; `None` if it was not there.
    pub fn phase(&self, name: PhaseName) -> Option<&PhaseWaits> {
        let mut all = self.phases.iter();
        all.find(|one| one.phase == name && one.part == Part::Main)
    }
}

impl PhaseWaits {
    /// How long it waited for some causes, in seconds.
    pub fn sum_s(&self, of: impl Fn(Cause) -> bool) -> f64 {
        let some = self.waits.iter().filter(|wait| of(wait.cause));
        // An empty sum is -0.0.
        some.map(|wait| wait.seconds).sum::<f64>() + 0.0
    }
}

impl Waits {
    /// The same in the time of a drive that is so many times faster.
    pub(crate) fn shorten(&mut self, times: f64) {
        self.timeline.at_s /= times;
        self.timeline.stretch_s /= times;
        self.looks_per_s *= times;
        let phases = self.actors.iter_mut().flat_map(|actor| &mut actor.phases);
        for phase in phases {
            phase.seconds /= times;
            phase
                .waits
                .iter_mut()
                .for_each(|wait| wait.seconds /= times);
        }
    }

    /// All its figures in seconds, with their names.
    pub(crate) fn times(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let phases = self.actors.iter().flat_map(|actor| &actor.phases);
        let waits = phases.clone().flat_map(|phase| &phase.waits);
        let timeline = [self.timeline.at_s, self.timeline.stretch_s].into_iter();
        timeline
            .map(|seconds| ("a stretch of waits in s", seconds))
            .chain(phases.map(|phase| ("the time of an actor in s", phase.seconds)))
            .chain(waits.map(|wait| ("a wait in s", wait.seconds)))
    }
}

fn is_none(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits() -> Waits {
        let wait = |cause, seconds, discards| Wait {
            cause,
            call: None,
            seconds,
            share: seconds / 2.0,
            looks: 7,
            discards,
        };
        let waits = vec![wait(Cause::InDiscards, 1.5, 30), wait(Cause::Cpu, 0.5, 0)];
        Waits {
            actors: vec![ActorWaits {
                actor: "deleter".into(),
                phases: vec![PhaseWaits {
                    phase: PhaseName::Delete,
                    part: Part::Main,
                    seconds: 2.0,
                    threads: 1,
                    waits,
                }],
                shares: WaitShares::default(),
            }],
            timeline: Timeline {
                at_s: 0.5,
                stretch_s: 0.1,
                discarding: vec![0.0, 1.0],
            },
            looks_per_s: 100.0,
            ..Waits::default()
        }
    }

    #[test]
    fn waits_are_written_and_read_again() {
        let text = serde_json::to_string(&waits()).unwrap();
        assert!(text.contains("\"in-discards\""), "{text}");
        // Nothing is written that there was not.
        assert!(
            !text.contains("shares") && !text.contains("\"missing\""),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Waits>(&text).unwrap(), waits());
    }

    #[test]
    fn sums_are_over_the_causes_that_are_asked_for() {
        let waits = waits();
        let phase = waits.actors[0].phase(PhaseName::Delete).unwrap();
        assert_eq!(phase.sum_s(Cause::is_discards), 1.5);
        assert_eq!(phase.sum_s(Cause::is_blocked), 1.5);
        assert_eq!(phase.sum_s(|cause| cause == Cause::Flush), 0.0);
        assert!(waits.actors[0].phase(PhaseName::Recovery).is_none());
    }

    #[test]
    fn times_of_a_slowed_drive_become_shorter_and_shares_stay() {
        let mut waits = waits();
        waits.shorten(10.0);
        let phase = &waits.actors[0].phases[0];
        assert_eq!((phase.seconds, phase.waits[0].seconds), (0.2, 0.15));
        assert_eq!(phase.waits[0].share, 0.75);
        assert_eq!(waits.timeline.stretch_s, 0.01);
    }
}
