//! The input of a controller.

use std::time::Duration;

use ssd::Time;

/// The observations of the caller at one moment. Counters count from any start and only rise. If
/// one falls, its change counts as 0.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Feedback<'a> {
    /// When this was read. A time before an earlier feedback's counts as that one.
    pub now: Time,
    /// Bytes that we have freed so far.
    pub freed: u64,
    /// Of them, bytes for which no discard is expected: shared with another file
    /// or a snapshot, in ranges below the granularity, on a layer that takes none.
    pub exempt: u64,
    /// Bytes still to be freed; `None` if nobody knows. `Some(0)` when the last
    /// was freed: then only the debt is waited for.
    pub left: Option<u64>,
    /// Commits that were forced because an [`Advice`](crate::Advice) asked for them.
    pub commits: u64,
    /// Whether the call that sends the discards of all that was freed has returned, and they are
    /// done. Then the pacer doesn't wait for pending bytes. On btrfs an extent is discarded when
    /// the last of it is free, which can be pieces later.
    pub settled: bool,
    /// The device's discards, whoever asked for them.
    pub discards: Discards,
    /// When the commit began that sends the discards of what was freed last: none of them was in
    /// service before. `None`: they may be in service since the call that freed.
    pub sent_since: Option<Time>,
    /// The device's flushes, whoever asked for them; all 0 if nobody knows.
    pub flushes: Flushes,
    /// How often we have committed so far, for whatever reason: some of the flushes are ours.
    pub own_commits: u64,
    /// The canary's reads that completed since the last feedback.
    pub canary: &'a [Canary],
    /// The I/O of others on the device. `None` if nobody knows. Then every discard counts as
    /// slowing others down for all of its time.
    pub others: Option<Others>,
    /// How long the tasks of a protected control group have waited for I/O so far (`some` of its
    /// `io.pressure`); `None` if none is protected, or nobody knows.
    pub pressure: Option<Duration>,
    /// How full the file system is; `None` if nobody knows.
    pub space: Option<Space>,
    /// How many paced deleters besides us work on the drive. All of them divide the goal.
    pub deleters_beside: u32,
    /// The process that frees did not run for a part of the time since the last feedback. The
    /// discards since then pay the debt. Nothing else is learned from that time.
    pub absent: bool,
}

/// A device's discards: fields 12, 14 and 15 of `/sys/block/X/stat` (of the partition, if there is
/// one). For several leaf devices the sums, scaled so that a freed byte is a discarded byte (two
/// mirrors: half of the sum).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Discards {
    /// Commands completed.
    pub commands: u64,
    /// Bytes they discarded.
    pub bytes: u64,
    /// The sum of their times from issue to completion, as fine as it is known (the kernel's is in
    /// milliseconds). `None` where the statistics are off. If bytes were discarded, the pacer then
    /// assumes that the device discarded all the time since the discards before, or since the
    /// freeing call.
    pub busy: Option<Duration>,
}

/// A device's flushes: fields 16 and 17 of its statistics (of the drive, for a partition has none).
/// A commit sends one or two, and a drive may serve nothing else meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flushes {
    /// Flushes completed.
    pub commands: u64,
    /// The sum of their times from issue to completion.
    pub busy: Duration,
}

/// One read of a canary: small reads at fixed times, however the last went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Canary {
    /// When it was meant to start.
    pub intended: Time,
    /// The time from then to its completion.
    pub latency: Duration,
}

/// The I/O of others on the device: fields 1, 4 and 5 of its statistics. They are those of the
/// drive, because discards slow down the users of its other partitions, too.
///
/// The reads show the effect of discards. The writes include the commits of our own deletion, which
/// nothing distinguishes. They only show that another process is there, if they are more than a
/// commit makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Others {
    /// Their reads, without the canary's.
    pub reads: Io,
    /// Writes completed.
    pub writes: u64,
}

/// Reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Io {
    /// How many completed.
    pub ops: u64,
    /// The sum of their times from issue to completion.
    pub wait: Duration,
}

/// How full the file system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes that can be written.
    pub free: u64,
    /// Its size in bytes.
    pub size: u64,
}

impl Space {
    /// Returns how urgent space is, 0 to 1: from 5 % free (at most 16 GiB) down to 1 % (at most 1
    /// GiB).
    pub(crate) fn urgency(&self) -> f64 {
        let begins = (self.size / 20).min(16 << 30) as f64;
        let full = (self.size / 100).min(1 << 30) as f64;
        if begins <= full {
            return 0.0;
        }
        ((begins - self.free as f64) / (begins - full)).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgency_rises_from_one_twentieth_to_one_hundredth() {
        let space = |free| Space {
            free,
            size: 100 << 30,
        };
        assert_eq!(space(5 << 30).urgency(), 0.0);
        assert_eq!(space(1 << 30).urgency(), 1.0);
        assert_eq!(space(0).urgency(), 1.0);
        let half = space(3 << 30).urgency();
        assert!((half - 0.5).abs() < 0.01, "{half}");
        assert_eq!(Space { free: 0, size: 0 }.urgency(), 0.0);
    }
}
