//! Commands for a drive, and their completions.

use std::ops::Range;

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
