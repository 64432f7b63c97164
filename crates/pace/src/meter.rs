//! Turns counters into what happened since the last look.

use ssd::Time;

use crate::feedback::{Discards, Feedback, Flushes, Others};
use crate::quantity::Seconds;

/// A commit's block in the journal has a flush before it and one behind it.
const FLUSHES: f64 = 2.0;

/// Returns the share of flushes that are those of our commits.
pub(crate) fn own_flushes(commits: u64, flushes: u64) -> f64 {
    (FLUSHES * commits as f64 / flushes.max(1) as f64).min(1.0)
}

/// The events between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Tick {
    /// How long it was.
    pub(crate) length: Seconds,
    /// For how long the device was at discards, whoever asked for them.
    pub(crate) busy: Seconds,
    /// Discards completed.
    pub(crate) commands: u64,
    /// Bytes they discarded.
    pub(crate) bytes: u64,
    /// Flushes completed, and the sum of their times, whoever asked for them.
    pub(crate) flushes: u64,
    pub(crate) flushing: Seconds,
    /// Commits of ours.
    pub(crate) commits: u64,
    /// The others' I/O, if it is known.
    pub(crate) others: Option<OthersTick>,
}

/// The others' I/O between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct OthersTick {
    /// Reads completed.
    pub(crate) ops: f64,
    /// The sum of their times.
    pub(crate) wait: Seconds,
    /// Writes completed, our own commits' among them.
    pub(crate) writes: f64,
}

/// The others' reads, or flushes, over some time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reads {
    /// The time.
    pub(crate) length: Seconds,
    /// How many completed.
    pub(crate) ops: f64,
    /// The sum of their times.
    pub(crate) wait: Seconds,
}

impl Reads {
    pub(crate) fn of(length: Seconds, others: &OthersTick) -> Reads {
        Reads {
            length,
            ops: others.ops,
            wait: others.wait,
        }
    }

    /// The others' flushes of a tick.
    pub(crate) fn flushes(tick: &Tick) -> Reads {
        let others = 1.0 - own_flushes(tick.commits, tick.flushes);
        Reads {
            length: tick.length,
            ops: tick.flushes as f64 * others,
            wait: tick.flushing * others,
        }
    }

    pub(crate) fn add(&mut self, more: &Reads) {
        self.length += more.length;
        self.ops += more.ops;
        self.wait += more.wait;
    }

    /// Forgets all but this share.
    pub(crate) fn fade(&mut self, share: f64) {
        self.length *= share;
        self.ops *= share;
        self.wait *= share;
    }

    pub(crate) fn per_s(&self) -> f64 {
        self.ops / self.length.0.max(1e-9)
    }

    /// Returns the mean time of a read.
    pub(crate) fn mean_wait(&self) -> Seconds {
        self.wait / self.ops.max(1.0)
    }
}

/// Remembers the last look.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter {
    last: Option<(Time, Discards, Flushes, Option<Others>)>,
    commits: u64,
    /// When the discards' time was last seen to grow.
    grew: Time,
}

impl Meter {
    /// Returns the latest time of any feedback so far; 0 before the first.
    pub(crate) fn now(&self) -> Time {
        self.last.map_or(Time::ZERO, |(now, ..)| now)
    }

    /// Returns the events since the last look. `freed_at`: when we freed last.
    ///
    /// With several discards in flight, the sum of their times is more than the time that they
    /// took. So the time at discards is limited to what has passed since that sum last grew. If we
    /// asked for the discards, it is also limited to what has passed since then.
    pub(crate) fn tick(&mut self, seen: &Feedback<'_>, freed_at: Option<Time>) -> Tick {
        let now = seen.now.max(self.now());
        let last = self
            .last
            .replace((now, seen.discards, seen.flushes, seen.others));
        let commits = seen.own_commits.saturating_sub(self.commits);
        self.commits = seen.own_commits;
        let Some((then, discards, flushes, others)) = last else {
            self.grew = now;
            return Tick::default();
        };
        let commands = seen.discards.commands.saturating_sub(discards.commands);
        let bytes = seen.discards.bytes.saturating_sub(discards.bytes);
        if seen.absent {
            self.grew = now;
            return Tick {
                commands,
                bytes,
                ..Tick::default()
            };
        }
        let asked = freed_at.max(seen.sent_since).unwrap_or(Time::ZERO);
        let since = self.grew.max(asked);
        let passed = Seconds::from(now.since(since));
        let busy = match (discards.busy, seen.discards.busy) {
            (Some(then), Some(now)) => Seconds::from(now.saturating_sub(then)).min(passed),
            _ if bytes > 0 => passed,
            _ => Seconds::ZERO,
        };
        if busy > Seconds::ZERO {
            self.grew = now;
        }
        let others = match (others, seen.others) {
            (Some(then), Some(now)) => Some(OthersTick {
                ops: now.reads.ops.saturating_sub(then.reads.ops) as f64,
                wait: now.reads.wait.saturating_sub(then.reads.wait).into(),
                writes: now.writes.saturating_sub(then.writes) as f64,
            }),
            _ => None,
        };
        Tick {
            length: now.since(then).into(),
            busy,
            commands,
            bytes,
            flushes: seen.flushes.commands.saturating_sub(flushes.commands),
            commits,
            flushing: seen.flushes.busy.saturating_sub(flushes.busy).into(),
            others,
        }
    }
}
