//! Sources of discards: they decide when which range is discarded.

use std::ops::Range;
use std::time::Duration;

use super::Sample;
use ssd::Time;

/// The facts that a source knows when it is asked.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Its last discard.
    pub last_discard: Option<&'a Sample>,
    /// The reads completed since it was asked last, on all drives.
    pub reads: &'a [Sample],
    /// How many have completed in all.
    pub reads_so_far: u64,
    /// The canary's, since it was asked last.
    pub canary: &'a [Sample],
    /// The drive's discards, whoever asked for them.
    pub counters: Counters,
}

/// A drive's discards and flushes so far, as the kernel's statistics count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Commands completed.
    pub commands: u64,
    /// Bytes they discarded.
    pub bytes: u64,
    /// The sum of their times from issue to completion.
    pub busy: Duration,
    /// The same of flushes.
    pub flushing: Duration,
}

impl Counters {
    pub(super) fn add(&mut self, discard: &Sample) {
        self.commands += 1;
        self.bytes += discard.bytes;
        self.busy += discard.latency();
    }
}

/// A source's next wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// This discard, now. It is asked again when that has completed.
    Discard(Vec<Range<u64>>),
    /// A flush, the same: a commit has one before its last block and one behind it.
    Flush,
    /// To be asked again at that time.
    At(Time),
    /// Nothing more.
    Done,
}

/// Decides when which range is discarded on a drive, one in flight.
pub trait DiscardSource {
    /// Asked at the start, when a discard has completed, and when it wanted to.
    fn next(&mut self, now: Time, seen: &Seen<'_>) -> Next;
}

/// When the next discard follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// So long after the last has completed: the host's time between two.
    Gap(Duration),
    /// So long after the last was due, or when it has completed if that is later.
    Period(Duration),
}

/// Fixed pieces at a fixed pace: what a file system without a policy does.
#[derive(Debug, Clone)]
pub struct Pieces<I> {
    pieces: I,
    pace: Pace,
    /// When the next is due.
    due: Time,
    /// Whether one has been issued since `due` was set.
    issued: bool,
}

impl Pieces<std::vec::IntoIter<Range<u64>>> {
    /// A range in pieces of at most `piece` bytes (at least 1), from its start on.
    pub fn new(range: Range<u64>, piece: u64, pace: Pace) -> Self {
        let piece = piece.max(1);
        let mut pieces = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let end = start.saturating_add(piece).min(range.end);
            pieces.push(start..end);
            start = end;
        }
        Pieces::of(pieces.into_iter(), pace)
    }
}

impl<I: Iterator<Item = Range<u64>>> Pieces<I> {
    /// These ranges, one for each discard.
    pub fn of(pieces: I, pace: Pace) -> Self {
        Pieces {
            pieces,
            pace,
            due: Time::ZERO,
            issued: false,
        }
    }

    /// The same, but the first at that time.
    #[must_use]
    pub fn from(mut self, start: Time) -> Self {
        self.due = start;
        self
    }
}

impl<I: Iterator<Item = Range<u64>>> DiscardSource for Pieces<I> {
    fn next(&mut self, now: Time, _: &Seen<'_>) -> Next {
        if std::mem::take(&mut self.issued) {
            self.due = match self.pace {
                Pace::Gap(gap) => now + gap,
                Pace::Period(period) => self.due + period,
            };
        }
        if self.due > now {
            return Next::At(self.due);
        }
        match self.pieces.next() {
            Some(piece) => {
                self.issued = true;
                Next::Discard(vec![piece])
            }
            None => Next::Done,
        }
    }
}
