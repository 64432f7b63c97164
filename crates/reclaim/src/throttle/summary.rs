//! The summary of a throttled deletion.

use std::time::Duration;

use pace::{GoalResult, Observed};
use record::absence::Absent;

use super::decisions::Decisions;

/// The result of a throttled deletion, as measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The time from the start until the debt was paid or written off.
    pub elapsed: Duration,
    /// Bytes freed.
    pub freed: u64,
    /// Freed bytes for which no discard was expected.
    pub exempt: u64,
    /// Bytes that the devices discarded meanwhile, on behalf of any process.
    pub discarded: u64,
    /// The number of these discards.
    pub discards: u64,
    /// Bytes that were discarded a second time, as far as the counters show: btrfs discards
    /// block groups that have become empty whole.
    pub discarded_twice: u64,
    /// Bytes whose discards never came, so that the throttle gave them up.
    pub written_off: u64,
    /// Whether any discards came.
    pub answered: bool,
    /// Whether the devices count; otherwise `discarded` and `discards` are no measurement.
    pub counted: bool,
    /// The most that the foreground may have lost by the discards, as the pacer charged them.
    /// It is no measurement; `None` where the pacer doesn't charge.
    pub charged: Option<Duration>,
    /// The pause after each small discard with which the goal holds; 0 where no commit sends
    /// its discard.
    pub rest: Duration,
    /// The foreground's loss and the canary's waits, as measured; `None` where nothing is
    /// discarded.
    pub observed: Option<Observed>,
    /// Whether each part of the goal was met; empty without a goal.
    pub goals: Vec<GoalResult>,
    /// The pacer's decisions and their reasons.
    pub decisions: Decisions,
    /// Spans in which this process did not run; all figures leave them out.
    pub absences: Vec<Absent>,
}
