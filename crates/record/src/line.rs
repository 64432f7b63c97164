//! The lines of a record after its head.

use serde::{Deserialize, Serialize};

use super::{Head, Written};
use crate::absence::Absent;
use crate::waits::Waits;

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum Line {
    /// First: what ran, where.
    Head(Box<Head>),
    /// The figures of one interval; every interval has one, empty or not.
    Interval(Interval),
    /// Latencies of one actor over a second or a phase.
    Histogram(HistogramLine),
    /// A phase began (the one before it ended).
    Phase(Phase),
    /// Something happened.
    Event(Event),
    /// A deletion's last call returned.
    Deletion(DeletionLine),
    /// The waits of its actors, known at its end.
    Waits(Box<Waits>),
    /// Last: how the run ended.
    End(End),
}

/// The figures of one interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Start, in seconds since the record's zero.
    pub at_s: f64,
    /// Measured length, in seconds. Near the nominal one; longer when the
    /// sampling thread itself was late.
    pub seconds: f64,
    /// One per [`Head::actors`], in that order; `None` while an actor isn't running.
    pub actors: Vec<Option<ActorInterval>>,
    /// One per [`Head::devices`], in that order.
    pub devices: Vec<DeviceInterval>,
    /// Bytes handed to the file system (or device) to be freed in this interval.
    #[serde(default)]
    pub freed_bytes: u64,
    /// trimbench itself did not run for a part of this interval. No actor of its own has a
    /// figure then, and what was in flight is counted nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<Absent>,
    /// One per [`Head::actors`], in that order: the share of the interval, 0 to 1, that its
    /// threads were ready to run and waited for a processor, on average. Empty where nobody
    /// looked, `None` of an actor that isn't trimbench's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_wait: Vec<Option<f64>>,
}

/// The figures of one actor in one interval. Latencies are response times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ActorInterval {
    /// Operations completed.
    pub ops: u64,
    /// Operations that failed.
    #[serde(default)]
    pub errors: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Median latency, in microseconds; `None` when nothing completed.
    pub p50_us: Option<f64>,
    /// 99th percentile of the latency, in microseconds.
    pub p99_us: Option<f64>,
    /// Longest latency, in microseconds.
    pub max_us: Option<f64>,
    /// Age at the interval's end of the oldest operation in flight, in
    /// microseconds, from its intended start; 0 when none is in flight, `None`
    /// where it isn't known.
    pub oldest_us: Option<f64>,
}

/// The figures of one block device in one interval: differences of its statistics.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceInterval {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Sum of the reads' waits, in milliseconds.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Sum of the writes' waits, in milliseconds.
    pub write_ms: u64,
    /// Discards completed.
    pub discards: u64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// Sum of the discards' waits, in milliseconds.
    pub discard_ms: u64,
    /// Operations in flight at the interval's end.
    pub in_flight: u64,
}

/// Which latency a histogram holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Latency {
    /// From the intended start (open loop) or from submission (closed loop).
    Response,
    /// From submission.
    Service,
}

/// The stretch of time a histogram covers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grain {
    /// The second that starts here, in seconds since the record's zero.
    SecondAt(f64),
    /// An interval, but at least a tenth of a second, while data is deleted. The second
    /// that it lies in has a histogram of its own, too.
    Stretch {
        /// Its start, in seconds since the record's zero.
        at_s: f64,
        /// Its length in seconds.
        seconds: f64,
    },
    /// A whole phase.
    Phase(PhaseName),
}

/// Latencies of one actor over one stretch of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HistogramLine {
    /// Index into [`Head::actors`].
    pub actor: usize,
    /// Which latency.
    pub latency: Latency,
    /// Over which stretch.
    pub over: Grain,
    /// The part of the run it belongs to.
    #[serde(default)]
    pub part: Part,
    /// HdrHistogram V2 (deflate), base64; values in nanoseconds, of a phase with
    /// three significant digits, of less with two.
    pub v2: String,
}

/// The part of a run that a phase belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The deletion under test.
    #[default]
    Main,
    /// The control: the same deletion without its discards.
    Control,
}

/// The phases of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PhaseName {
    /// Files are being made.
    Prepare,
    /// The foreground runs until it is steady.
    Settle,
    /// The foreground runs undisturbed.
    Baseline,
    /// From the first deletion call until the discard debt is paid.
    Delete,
    /// The foreground runs on.
    Recovery,
}

/// A phase begins here; it ends where the next begins, or with the record.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Which.
    pub name: PhaseName,
    /// In which part.
    #[serde(default)]
    pub part: Part,
    /// Its start, in seconds since the record's zero.
    pub at_s: f64,
}

/// Something that happened at one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, in seconds since the record's zero.
    pub at_s: f64,
    /// The kind of event.
    pub kind: EventKind,
    /// More, in words, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A file was made; the detail says what came of it.
    Prepared,
    /// Settling ended because the foreground was steady.
    SettleSteady,
    /// Settling ended at its limit; the foreground never was steady.
    SettleLimit,
    /// The first deletion call began.
    DeletionBegan,
    /// Beside it: this deleter creates and drops files all the time. A run that is
    /// killed has no [`DeletionLine::continuous`] to say so.
    ContinuousDeletionBegan,
    /// The last deletion call returned.
    DeletionReturned,
    /// A commit was forced (syncfs began).
    CommitForced,
    /// The forced commit returned.
    CommitReturned,
    /// The discard debt was paid.
    DebtPaid,
    /// The debt was still unpaid when the wait for it ended (`phases.drain-limit`).
    DiscardsDidNotCome,
    /// Something that changes how far the figures can be trusted.
    Warning,
    /// A signal stopped the run.
    Interrupted,
}

/// The space that a deletion freed, written when its last call and the forced
/// commit, if any, have returned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DeletionLine {
    /// Which part it belongs to.
    #[serde(default)]
    pub part: Part,
    /// When its first call began, in seconds since the record's zero.
    pub at_s: f64,
    /// From the first call's begin to the last call's return, in seconds.
    pub seconds: f64,
    /// Bytes handed to the file system to be freed (allocated blocks).
    pub bytes: u64,
    /// Files deleted (or truncated to nothing).
    pub files: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Whether it created and dropped files all the time (an LSM tree's
    /// compaction, a spill). Its own writes slow the foreground as well, so the judge
    /// compares stretches with discards with those without.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continuous: bool,
    /// Bytes by which the file system's free space had grown, recorded of outside
    /// programs and events. The writes and deletions of others are in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space_freed_bytes: Option<u64>,
    /// Exit code of the outside program; of several runs the first that is not 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended the outside program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// When, in seconds since the record's zero.
    pub at_s: f64,
    /// Why.
    pub reason: EndReason,
    /// The error in words, when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Operations that never finished.
    #[serde(default)]
    pub unfinished: Vec<Unfinished>,
    /// [`DeviceInfo::life`](super::DeviceInfo::life) of each of [`Head::devices`] now; empty where
    /// nobody asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lives: Vec<Option<Written>>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// It did all it was asked to.
    Completed,
    /// A signal stopped it.
    Interrupted,
    /// It failed.
    Failed,
}

/// An actor's operations that were still in flight when the run ended.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Index into [`Head::actors`].
    pub actor: usize,
    /// How many.
    pub operations: u64,
    /// Age of the oldest, in microseconds, from its intended start.
    pub oldest_us: f64,
}
