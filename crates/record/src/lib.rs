//! The record of a run, `trimbench.run/1`.
//!
//! Everything that measures (a native run, a run in virtual time, an imported
//! log) becomes one [`RunRecord`]; everything that judges, draws or compares
//! reads only that. This crate makes no system call and has no clock: it
//! reads and writes any `Read` or `Write` it is given. [`units`] are the sizes,
//! times and names of its figures, as people write them and as they are shown.
//!
//! On disk it is one [`Line`] per line; in memory it is a [`RunRecord`], whose
//! intervals are columns so that an eight-hour run stays small. Eight hours at
//! 100 ms are 288,000 intervals, which take tens of megabytes in columns.
//! Percentiles can't be merged, so the record keeps an HdrHistogram (V2 encoding)
//! of each second and phase. A deletion has one for each interval of 100 ms or
//! more, for ten minutes at most, because a stall may be shorter than a second.

#![forbid(unsafe_code)]

pub mod absence;
pub mod as_drive;
mod columns;
pub mod form;
mod head;
mod histogram;
mod line;
mod lines;
pub mod origin;
mod push;
mod reader;
pub mod units;
pub mod waits;
mod writer;
mod written;

#[cfg(test)]
mod tests;

pub use as_drive::as_drive;
pub use columns::{ActorColumns, DeviceColumns, Intervals};
pub use head::{
    ActorInfo, AtaTrim, Counting, DeviceInfo, DeviceKind, DiscardLimits, DiscardSetting,
    DiscardsAtMost, Head, Host, Invocation, LoopKind, RUN_SCHEMA, Slower, Target, Transport,
    WholeDrive,
};
pub use histogram::{
    HistogramError, LONGEST_NS, decode_histogram, encode_histogram, latency_histogram,
    second_histogram,
};
pub use line::{
    ActorInterval, DeletionLine, DeviceInterval, End, EndReason, Event, EventKind, Grain,
    HistogramLine, Interval, Latency, Line, Part, Phase, PhaseName, Unfinished,
};

pub use origin::Origin;
pub use push::{MAX_ACTORS, MAX_DEVICES, MAX_INTERVALS, PushError};
pub use reader::{ReadError, RecordReader, content};
pub use waits::Waits;
pub use writer::RecordWriter;
pub use written::Written;

use hdrhistogram::Histogram;

/// A whole run as recorded: what was measured, on what, and how it ended.
#[derive(Debug, Clone)]
pub struct RunRecord {
    /// The run's host, target and set-up.
    pub head: Head,
    /// One row per interval, in order of time.
    pub intervals: Intervals,
    /// Phases in order of time.
    pub phases: Vec<Phase>,
    /// Events in order of time.
    pub events: Vec<Event>,
    /// Bytes and files deleted, for each part of the deletion.
    pub deletions: Vec<DeletionLine>,
    /// Latency histograms per phase (those per second stay in the file).
    pub histograms: Vec<PhaseHistogram>,
    /// Latencies of short stretches of the deletion.
    pub stretches: Vec<StretchHistogram>,
    /// The waits of its actors; `None` where nobody looked (`run --why` does).
    pub waits: Option<Waits>,
    /// How the run ended; `None` in a record of a run that was killed.
    pub end: Option<End>,
}

/// The latencies of one actor in a short stretch of the deletion ([`Grain::Stretch`]).
#[derive(Debug, Clone, PartialEq)]
pub struct StretchHistogram {
    /// Index into the head's actors.
    pub actor: usize,
    /// Which of the two latencies.
    pub latency: Latency,
    /// The part of the run that the deletion belongs to.
    pub part: Part,
    /// Its start, in seconds since the record's zero.
    pub at_s: f64,
    /// Its length in seconds.
    pub seconds: f64,
    /// The text of [`encode_histogram`]: decoded, ten minutes of four actors would take gigabytes.
    pub v2: String,
}

/// The latencies of one actor in one phase.
#[derive(Debug, Clone)]
pub struct PhaseHistogram {
    /// Index into [`Head::actors`].
    pub actor: usize,
    /// Which of the two latencies.
    pub latency: Latency,
    /// Which phase.
    pub phase: PhaseName,
    /// The part of the run the phase belongs to.
    pub part: Part,
    /// Latencies in nanoseconds, 1 ns to 1 h, three significant digits.
    pub histogram: Histogram<u64>,
}
