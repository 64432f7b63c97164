//! From counters to what happened since the last look.

use ssd::Time;

use crate::feedback::{Discards, Feedback, Flushes, Others};

/// What happened between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Tick {
    /// How long it was, in seconds.
    pub(crate) seconds: f64,
    /// For how long the device was at discards, in seconds, whoever wanted them.
    pub(crate) busy: f64,
    /// Discards completed.
    pub(crate) commands: u64,
    /// Bytes they discarded.
    pub(crate) bytes: u64,
    /// Flushes completed, and the sum of their times in seconds, whoever wanted them.
    pub(crate) flushes: u64,
    pub(crate) flushing: f64,
    /// What the others did, if it is known.
    pub(crate) others: Option<OthersTick>,
}

/// What the others did between two looks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct OthersTick {
    /// Reads completed.
    pub(crate) ops: f64,
    /// The sum of their times, in seconds.
    pub(crate) wait: f64,
    /// Writes completed, our own commits' among them.
    pub(crate) writes: f64,
}

/// What the others' reads came to over some time.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reads {
    /// The time, in seconds.
    pub(crate) seconds: f64,
    /// Reads completed.
    pub(crate) ops: f64,
    /// The sum of their times, in seconds.
    pub(crate) wait: f64,
}

impl Reads {
    pub(crate) fn of(seconds: f64, others: &OthersTick) -> Reads {
        Reads {
            seconds,
            ops: others.ops,
            wait: others.wait,
        }
    }

    pub(crate) fn add(&mut self, more: &Reads) {
        self.seconds += more.seconds;
        self.ops += more.ops;
        self.wait += more.wait;
    }

    /// Forgets all but this share.
    pub(crate) fn fade(&mut self, share: f64) {
        self.seconds *= share;
        self.ops *= share;
        self.wait *= share;
    }

    pub(crate) fn per_s(&self) -> f64 {
        self.ops / self.seconds.max(1e-9)
    }

    /// The mean time of a read, in seconds.
    pub(crate) fn mean_wait(&self) -> f64 {
        self.wait / self.ops.max(1.0)
    }
}

/// Remembers the last look.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter {
    last: Option<(Time, Discards, Flushes, Option<Others>)>,
    /// When the discards' time was last seen to grow.
    grew: Time,
}

impl Meter {
    /// The latest time that was told.
    pub(crate) fn now(&self) -> Time {
        self.last.map_or(Time::ZERO, |(now, ..)| now)
    }

    /// What happened since the last look. `freed_at`: when we freed last.
    ///
    /// With several discards in flight the sum of their times is more than the
    /// time that they took: it can't be more than has passed since it last grew,
    /// and not since before they were asked for, if we asked for them.
    pub(crate) fn tick(&mut self, seen: &Feedback<'_>, freed_at: Option<Time>) -> Tick {
        let now = seen.now.max(self.now());
        let last = self
            .last
            .replace((now, seen.discards, seen.flushes, seen.others));
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
        let passed = now.since(since).as_secs_f64();
        let busy = match (discards.busy, seen.discards.busy) {
            (Some(then), Some(now)) => now.saturating_sub(then).as_secs_f64().min(passed),
            _ if bytes > 0 => passed,
            _ => 0.0,
        };
        if busy > 0.0 {
            self.grew = now;
        }
        let others = match (others, seen.others) {
            (Some(then), Some(now)) => Some(OthersTick {
                ops: now.reads.ops.saturating_sub(then.reads.ops) as f64,
                wait: now.reads.wait.saturating_sub(then.reads.wait).as_secs_f64(),
                writes: now.writes.saturating_sub(then.writes) as f64,
            }),
            _ => None,
        };
        Tick {
            seconds: now.since(then).as_secs_f64(),
            busy,
            commands,
            bytes,
            flushes: seen.flushes.commands.saturating_sub(flushes.commands),
            flushing: seen.flushes.busy.saturating_sub(flushes.busy).as_secs_f64(),
            others,
        }
    }
}
