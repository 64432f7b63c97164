//! Commands for a drive, and their completions.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use crate::Time;

/// A command's number, in the order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub(super) u64);

impl Id {
    /// The number: 0 for a drive's first command, and one more for each that it takes.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// A command for a drive. Ranges are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Read a range.
    Read(Range<u64>),
    /// Write a range: it is mapped from its completion on.
    Write(Range<u64>),
    /// Make every write submitted before durable.
    Flush,
    /// Discard some ranges: what the drive takes of them is unmapped from its
    /// completion on.
    Discard(Vec<Range<u64>>),
}

/// A command that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Which.
    pub id: Id,
    /// The command that completed.
    pub command: Command,
    /// When the drive got it.
    pub submitted: Time,
    /// When the drive began to work at it.
    pub started: Time,
    /// When it was done.
    pub completed: Time,
    /// Of a discard: what the drive took, rounded to its granule, without the
    /// ranges that it ignores.
    pub trimmed: Vec<Range<u64>>,
}

/// Why a drive refuses a command at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It takes no discards.
    #[error("this drive takes no discards")]
    NoDiscards,
    /// A discard has too many ranges.
    #[error("{given} ranges in a discard; this drive takes at most {most}: split it")]
    TooManyRanges {
        /// How many it has.
        given: usize,
        /// How many it may have.
        most: u32,
    },
    /// A discard is too large.
    #[error("{given} bytes in a discard; this drive takes at most {most}: split it")]
    TooLarge {
        /// How many bytes it has.
        given: u64,
        /// How many it may have.
        most: u64,
    },
    /// It reaches beyond the drive's end, or ends before it starts.
    #[error("bytes {start} to {end} are not on this drive of {capacity} bytes")]
    OutOfRange {
        /// First byte.
        start: u64,
        /// The byte after the last.
        end: u64,
        /// The drive's size.
        capacity: u64,
    },
}

/// The work of a drive so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Reads completed.
    pub reads: u64,
    /// Writes completed.
    pub writes: u64,
    /// Flushes completed.
    pub flushes: u64,
    /// Discards completed.
    pub discards: u64,
    /// Bytes that the completed discards named.
    pub bytes_discarded: u64,
    /// Of them, bytes that were mapped and are no longer.
    pub bytes_unmapped: u64,
    /// Of them, bytes lost by rounding inwards to the drive's granule.
    pub bytes_lost_to_rounding: u64,
    /// Of them, bytes in ranges too short to be taken.
    pub bytes_ignored: u64,
}

// The way of data into a drive, or out of it: all commands of one direction share it.

/// A command's `latency` includes the transfer of so many bytes.
pub(super) const INCLUDED: u64 = 4096;

/// One direction of the interface. Without it, commands that run at once would each have the
/// drive's whole bandwidth.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Link {
    free_from: Time,
}

impl Link {
    /// Lets a command that starts at `now` transfer its data for `span`, after the data of every
    /// command before it. Returns how long after `now` they have been transferred.
    pub(super) fn transfer(&mut self, now: Time, span: Duration) -> Duration {
        self.free_from = self.free_from.max(now) + span;
        self.free_from.since(now)
    }
}

// Commands of one kind that wait, in order, and how many are under way.

/// A command that has not been begun.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) id: Id,
    pub(super) command: Command,
    pub(super) submitted: Time,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Lane {
    waiting: VecDeque<Waiting>,
    /// Under way.
    pub(super) active: u32,
    /// When places became idle that were not for long, the oldest first. All others were before.
    idle_since: VecDeque<Time>,
}

impl Lane {
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.waiting.push_back(waiting);
    }

    /// The command that waits longest.
    pub(super) fn head(&self) -> Option<Id> {
        self.waiting.front().map(|w| w.id)
    }

    /// When the command came that waits longest.
    pub(super) fn head_came(&self) -> Option<Time> {
        self.waiting.front().map(|w| w.submitted)
    }

    /// Whether one waits that came before this one.
    pub(super) fn has_before(&self, id: Id) -> bool {
        self.head().is_some_and(|head| head < id)
    }

    /// Takes the head out of the queue; it is under way from now on.
    pub(super) fn take(&mut self) -> Option<Waiting> {
        let head = self.waiting.pop_front()?;
        self.active += 1;
        Some(head)
    }

    /// Takes the place that is idle for longest, of so many; returns since when. Called before
    /// [`Lane::take`].
    pub(super) fn take_place(&mut self, places: u32) -> Time {
        if self.idle_since.len() < places.saturating_sub(self.active) as usize {
            return Time::ZERO;
        }
        self.idle_since.pop_front().unwrap_or(Time::ZERO)
    }

    /// Ends a command; its place is idle since `at`. Places that are idle since before `long_ago`
    /// need not be remembered.
    pub(super) fn leave(&mut self, at: Time, long_ago: Time) {
        self.active -= 1;
        while self
            .idle_since
            .front()
            .is_some_and(|&since| since < long_ago)
        {
            self.idle_since.pop_front();
        }
        self.idle_since.push_back(at);
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_follow_each_other_and_idle_time_is_lost() {
        let (us, at) = (Duration::from_micros, |us: u64| Time::from_nanos(us * 1000));
        let mut link = Link::default();
        assert_eq!(link.transfer(at(10), us(5)), us(5));
        assert_eq!(link.transfer(at(10), us(5)), us(10));
        assert_eq!(link.transfer(at(12), us(5)), us(13));
        assert_eq!(link.transfer(at(40), us(5)), us(5));
    }
}
