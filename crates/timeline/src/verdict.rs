//! The verdict, `trimbench.verdict/1`: what a record means.

pub mod condition;

#[cfg(test)]
pub(crate) mod schema;

use serde::{Deserialize, Serialize};

use crate::record::{LoopKind, Slower};

/// The schema named in every verdict.
pub const VERDICT_SCHEMA: &str = "trimbench.verdict/1";

/// The JSON Schema (2020-12) that every verdict conforms to.
pub const VERDICT_JSON_SCHEMA: &str = include_str!("../schema/verdict-1.json");

/// What a run's record means. What can't be told is `None`, never guessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Always [`VERDICT_SCHEMA`].
    pub schema: String,
    /// The finding.
    pub verdict: Finding,
    /// Why, as stable words a script can match.
    pub reasons: Vec<Reason>,
    /// One sentence a person can quote.
    pub summary: String,
    /// What the foreground saw, ordered by baseline rate, fastest first.
    pub foreground: Vec<Foreground>,
    /// What the devices did.
    pub discard: Discard,
    /// What was deleted; `None` where the record doesn't tell.
    pub deletion: Option<Deletion>,
    /// What the discards cost, as far as it can be told.
    pub fit: Option<Fit>,
    /// The same of the control run, where there was one.
    pub control: Option<Control>,
    /// Of a simulated drive whose time is stretched: how much, and whether the
    /// figures here are those of the drive that it stands for.
    #[serde(default)]
    pub slower: Option<Slower>,
    /// Whatever changes how far the figures can be trusted, in words.
    pub warnings: Vec<String>,
}

/// What a run found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The foreground nearly stopped while discards were processed.
    Stall,
    /// It lost at least 10 % for at least a second while discards were processed.
    Slowdown,
    /// Neither, and a loss of 10 % would have been seen.
    None,
    /// It can't be told.
    Inconclusive,
}

/// Why a finding is what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The devices saw no discards.
    NoDiscards,
    /// Most of what was freed had not been discarded when the wait for it ended.
    DiscardsDidNotCome,
    /// Nothing was deleted.
    NoDeletion,
    /// No steady stretch to compare with.
    NoSteadyBaseline,
    /// Too few operations, or too short, to see a loss of 10 %.
    TooFewOperations,
    /// The control run, which had no discards, lost about as much.
    ControlDipsToo,
    /// The foreground dipped while no discards were processed.
    DipsWithoutDiscards,
    /// The run was interrupted before it was over.
    Interrupted,
    /// The run failed before it was over.
    Failed,
    /// A deleter that creates and drops files all the time left hardly a
    /// stretch without discards, and no control tells what its writes did.
    DiscardsAllTheTime,
    /// The devices wrote far more beside discards than without, so the slower
    /// foreground may be the writes' doing, and no control tells.
    MoreWritesWithDiscards,
    /// The foreground had errors.
    ForegroundErrors,
}

/// What one actor saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Foreground {
    /// The actor's name.
    pub actor: String,
    /// What its operations do.
    pub op: String,
    /// Closed or open loop: says what latency is counted from.
    #[serde(flatten)]
    pub loop_kind: LoopKind,
    /// Where the baseline was taken.
    pub baseline_from: Option<BaselineFrom>,
    /// Before the deletion, or wherever else `baseline_from` says; response times.
    pub baseline: Figures,
    /// Before the deletion, where that isn't the baseline: what the writes of a
    /// deleter that creates and drops files all the time cost shows beside it.
    #[serde(default)]
    pub undisturbed: Option<Figures>,
    /// During it.
    pub delete: Figures,
    /// After it.
    pub recovery: Figures,
    /// The same from submission: service times.
    pub service: Option<ServiceFigures>,
    /// Median rate during significant discards as a share of the baseline's.
    pub ops_ratio: Option<f64>,
    /// Time lost while discards were in service, in seconds, also where it was too
    /// little for a stall: the sum of 1 − share of the baseline over their intervals.
    pub lost_s: Option<f64>,
    /// The stall, where there was one.
    pub stall: Option<Stall>,
    /// Low stretches without discards: not TRIM's doing.
    pub dips: Vec<Dip>,
    /// Operations that never finished, and the age of the oldest in microseconds.
    pub unfinished: Option<UnfinishedFigures>,
}

/// Rate and latency over one stretch of time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Operations per second (baseline: the median over its intervals).
    pub ops_per_s: Option<f64>,
    /// Median latency, in microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile, in microseconds.
    pub p99_us: Option<f64>,
    /// 99.9th percentile, in microseconds.
    pub p999_us: Option<f64>,
    /// Longest, in microseconds; at least the age of the oldest that never finished.
    pub max_us: Option<f64>,
}

/// Service times: from submission, beside the response times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceFigures {
    /// Before the deletion.
    pub baseline: Figures,
    /// During it.
    pub delete: Figures,
    /// After it.
    pub recovery: Figures,
}

/// Where a baseline was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BaselineFrom {
    /// The baseline phase.
    Phase,
    /// The steady seconds before the first significant discard.
    BeforeFirstDiscard,
    /// The steady seconds after the last.
    Recovery,
    /// The stretches of the deletion itself without discards: what a deleter that
    /// creates and drops files all the time is compared with. Their percentiles
    /// are those of their intervals, weighed by operations; p99.9 can't be told.
    WithoutDiscards,
}

/// A stall: low intervals that overlap significant discards.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Stalled time, in seconds, over all stalls.
    pub seconds: f64,
    /// The longest one, in seconds.
    pub longest_s: f64,
    /// Median share of the baseline that was left in the full intervals, 0 to 1.
    pub depth: f64,
    /// Foreground time lost, in seconds.
    pub lost_s: f64,
    /// Longest latency, in microseconds.
    pub worst_latency_us: Option<f64>,
}

/// A low stretch without discards.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Dip {
    /// Its start, in seconds since the record's zero.
    pub at_s: f64,
    /// Its length, in seconds.
    pub seconds: f64,
    /// Median share of the baseline that was left, 0 to 1.
    pub depth: f64,
}

/// Operations that never finished.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UnfinishedFigures {
    /// How many.
    pub operations: u64,
    /// Age of the oldest, in microseconds.
    pub oldest_us: f64,
}

/// What the devices did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Discard {
    /// Bytes discarded by the deletion.
    pub bytes: Option<u64>,
    /// Discard commands.
    pub commands: Option<u64>,
    /// Time with significant discards, in seconds.
    pub active_s: Option<f64>,
    /// TRIM rate: median over the intervals whose both neighbours discard too.
    pub bytes_per_s: Option<f64>,
    /// Whether `bytes_per_s` is only a lower bound (fewer than three such intervals).
    pub bytes_per_s_is_lower_bound: bool,
    /// Mean size of a discard, in bytes.
    pub mean_bytes: Option<f64>,
    /// Mean wait of a discard, in microseconds.
    pub await_us: Option<f64>,
    /// Largest discard debt: bytes freed and not yet discarded.
    pub debt_max_bytes: Option<u64>,
    /// From the first deletion call to the first discard, in seconds.
    pub first_discard_lag_s: Option<f64>,
    /// From the last deletion call's return until the debt was paid, in seconds.
    pub drain_s: Option<f64>,
}

/// What was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Deletion {
    /// Bytes freed.
    pub bytes: u64,
    /// Files deleted.
    pub files: u64,
    /// From the first call to the last one's return, in seconds.
    pub seconds: f64,
}

/// What the discards cost: S = a + b·L for a discard of L MiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Fixed cost of a discard, in microseconds.
    pub a_us: Option<f64>,
    /// Cost per MiB, in microseconds.
    pub b_us_per_mib: Option<f64>,
    /// Share of a discard's service time that blocks other I/O, 0 to 1.
    pub phi: Option<f64>,
    /// Service time of the discards seen, in microseconds.
    pub service_us: Option<f64>,
    /// The size they had, in MiB.
    pub at_mib: Option<f64>,
    /// Whether discards are a barrier: one queue depth of reads between two of them.
    pub barrier: Option<bool>,
    /// Foreground operations completed per discard during the stall.
    pub ops_per_discard: Option<f64>,
}

/// What the control run showed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// How discards were kept away, in words: `nodiscard` or `second name`.
    pub method: Option<String>,
    /// Its finding, judged alone.
    pub verdict: Finding,
    /// Bytes discarded all the same.
    pub discard_bytes: Option<u64>,
    /// What the foreground saw in it.
    pub foreground: Vec<Foreground>,
}
