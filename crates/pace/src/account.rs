//! Measures what a deletion costs others, whatever paces it.
//!
//! A pacer charges each discard with the most that it may cost, so its own sum is a price and no
//! measurement. An [`Account`] takes in the same [`Feedback`].
//!
//! It compares the drive's readers with themselves: before the deletion, in its pauses, and beside
//! its discards. It compares the canary's slow reads with the discards in service at that moment. A
//! figure that nobody measured is `None`.

mod goals;
mod readers;
#[cfg(test)]
mod tests;
pub(crate) mod waits;

use serde::Serialize;
use std::time::Duration;

use ssd::Time;

use crate::feedback::Feedback;
use crate::goal::Goal;
use crate::meter::{Meter, Reads, Tick};
use crate::pressure::{GroupWait, Pressure};
use crate::quantity::Seconds;

pub use goals::{GoalResult, Kept, Limit, Witness};
pub use readers::{Measured, Quiet, ReaderLoss, Worst};
pub use waits::{Beside, CanaryWaits, LateReads};

use readers::Readers;
use waits::{Look, Waits};

/// The most free space beside a freed extent that is discarded with it, in bytes for each discard.
/// ext4 extends a discard to the next block in use of a block group.
const NEIGHBOURS: u64 = 128 << 20;

/// The least size of our own discards that the account assumes, in bytes.
const SHORT: u64 = 4 << 20;

/// The most that a commit discards of its own blocks, in bytes.
const TREES: u64 = 1 << 20;

/// Measures what a deletion costs others.
#[derive(Debug, Clone)]
pub struct Account {
    meter: Meter,
    readers: Readers,
    flushers: Readers,
    waits: Waits,
    /// Whether freed bytes may be discarded a second time ([`crate::Work::discards_twice`]).
    twice: bool,
    freed: u64,
    exempt: u64,
    /// Bytes freed whose discards haven't come.
    pending: u64,
    /// Bytes freed that may be discarded a second time.
    twice_pending: u64,
    began: Option<Time>,
    ended: Option<Time>,
    pressure: Pressure,
    own: Discarded,
    others: Discarded,
}

/// The discards of one origin: ours, or those of others.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Discarded {
    /// Bytes.
    pub bytes: u64,
    /// The time in which discards were in service, in seconds.
    pub seconds: f64,
}

/// The cost of a deletion for others, as far as it was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// From the first byte freed to the last look, in seconds; 0 if nothing was freed.
    pub seconds: f64,
    /// The loss of the drive's readers. `None`: there were too few reads.
    pub readers: Option<ReaderLoss>,
    /// The same of those who flush. `None`: there were too few flushes.
    pub flushers: Option<ReaderLoss>,
    /// The waits of the canary's reads. `None`: there were none.
    pub canary: Option<CanaryWaits>,
    /// How a protected control group waited. `None`: none is protected, or its waits are unknown.
    pub group: Option<GroupWait>,
    /// Our own discards, as far as they can be distinguished.
    pub own: Discarded,
    /// Discards of others meanwhile, as far as they can be distinguished.
    pub others: Discarded,
}

impl Account {
    /// Creates an account of a deletion. `goal`: the goal that it is judged by. `twice`: whether
    /// the file system may discard everything twice.
    pub fn new(goal: Option<&Goal>, twice: bool) -> Account {
        Account {
            meter: Meter::default(),
            readers: Readers::default(),
            flushers: Readers::default(),
            waits: Waits::new(goal.and_then(|goal| goal.max_latency)),
            twice,
            freed: 0,
            exempt: 0,
            pending: 0,
            twice_pending: 0,
            began: None,
            ended: None,
            pressure: Pressure::new(goal.and_then(|goal| goal.max_pressure)),
            own: Discarded::default(),
            others: Discarded::default(),
        }
    }

    /// Notes that the deletion works in its pauses, too, as btrfs' cleaner does: only the time before it
    /// shows others without it.
    pub fn works_in_pauses(&mut self) {
        (self.readers.against_before, self.flushers.against_before) = (true, true);
    }

    /// Whether only the time before shows others without it.
    pub fn is_against_before(&self) -> bool {
        self.readers.against_before
    }

    /// Notes that the deletion begins, although nothing may be freed yet.
    pub fn begin(&mut self) {
        self.began.get_or_insert(self.meter.now());
    }

    /// Notes that the deletion has ended. From now on others are seen without it.
    pub fn ends(&mut self) {
        self.ended = Some(self.meter.now());
        self.readers.end();
        self.flushers.end();
    }

    /// Takes in one look. `idle`: the pacer assumes that nobody else uses the drive.
    pub fn take_in(&mut self, seen: &Feedback<'_>, idle: bool) {
        let tick = self.meter.tick(seen, None);
        let now = self.meter.now();
        if self.ended.is_some() {
            // Others' discards are still known only when they are done.
            return self.see_others(&tick, true, true);
        }
        let pending_before = self.pending > 0;
        self.pressure.observe(now, seen);
        self.count_freed(seen);
        let own = self.own_share(&tick);
        self.count_discards(&tick, own);
        if seen.freed > 0 {
            self.begin();
        }
        let begun = self.began.is_some();
        let pending = pending_before || self.pending > 0;
        self.see_others(&tick, begun, pending);
        let quiet = !pending && tick.commands == 0 && tick.busy <= Seconds::ZERO;
        let look = Look::new(now, &tick, own);
        self.waits.observe(look, seen.canary, quiet, begun, idle);
    }

    fn see_others(&mut self, tick: &Tick, begun: bool, pending: bool) {
        if let Some(others) = &tick.others {
            let now = self.meter.now();
            let (reads, flushes) = (Reads::of(tick.length, others), Reads::flushes(tick));
            self.readers.observe(now, tick, reads, begun, pending);
            self.flushers.observe(now, tick, flushes, begun, pending);
        }
    }

    /// Returns the measurements so far. Reads of the canary that just completed count, too.
    pub fn observed(&self) -> Observed {
        let now = self.ended.unwrap_or_else(|| self.meter.now());
        let seconds = self.began.map_or(0.0, |at| now.since(at).as_secs_f64());
        Observed {
            seconds,
            readers: self.readers.loss(),
            flushers: self.flushers.loss(),
            canary: self.waits.result(),
            group: self.pressure.waits(),
            own: self.own,
            others: self.others,
        }
    }

    /// Returns the reads of the drive's readers before anything was freed. If there are some, the
    /// caller waits a little longer for a baseline.
    pub fn reads_before(&self) -> f64 {
        self.readers.before_ops()
    }

    /// Returns how each part of a goal was kept. `elapsed`: how long the whole took.
    pub fn judge(&self, goal: &Goal, elapsed: Duration) -> Vec<GoalResult> {
        let who = [&self.readers, &self.flushers];
        goals::judge(goal, &self.observed(), who, elapsed)
    }

    fn count_freed(&mut self, seen: &Feedback<'_>) {
        let freed = seen.freed.saturating_sub(self.freed);
        let exempt = seen.exempt.saturating_sub(self.exempt).min(freed);
        (self.freed, self.exempt) = (seen.freed, seen.exempt);
        self.pending += freed - exempt;
        if self.twice {
            self.twice_pending += freed - exempt;
        }
        if seen.settled {
            self.pending = 0;
        }
    }

    /// Returns the share of a tick's discards that counts as ours, 0 to 1: at most our pending
    /// bytes, and the free space beside them.
    fn own_share(&self, tick: &Tick) -> f64 {
        if tick.bytes == 0 || self.freed == 0 {
            return if self.pending > 0 { 1.0 } else { 0.0 };
        }
        let due = match self.pending + self.twice_pending {
            0 => TREES,
            due => {
                let discards = tick.commands.min(1 + due / SHORT);
                due + NEIGHBOURS.saturating_mul(discards) + TREES
            }
        };
        (due as f64 / tick.bytes as f64).min(1.0)
    }

    fn count_discards(&mut self, tick: &Tick, share: f64) {
        let own = (tick.bytes as f64 * share) as u64;
        let paid = own.min(self.pending);
        self.pending -= paid;
        self.twice_pending = self.twice_pending.saturating_sub(own - paid);
        self.own.bytes += own;
        self.others.bytes += tick.bytes - own;
        self.own.seconds += (tick.busy * share).0;
        self.others.seconds += (tick.busy * (1.0 - share)).0;
    }
}
