//! The verdict, `trimbench.verdict/1`: the meaning of a record.

pub mod condition;
mod fit;
mod gain;
pub mod presence;
mod waits;

#[cfg(test)]
#[path = "tests/schema.rs"]
pub(crate) mod schema;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use fit::{Between, Fit};
pub use gain::{Gain, GainDoubt, GainFinding, Ratio};
pub use presence::{Absence, CpuWait};
use record::{LoopKind, Origin, Slower};
pub use waits::{Waited, Waiter};

/// The schema named in every verdict.
pub const VERDICT_SCHEMA: &str = "trimbench.verdict/1";

/// The JSON Schema (2020-12) that every verdict conforms to.
pub const VERDICT_JSON_SCHEMA: &str = include_str!("../../schema/verdict-1.json");

/// The meaning of a run's record. A figure that the record doesn't show is `None`, never guessed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Always [`VERDICT_SCHEMA`].
    pub schema: String,
    /// The finding.
    pub verdict: Finding,
    /// Why, as stable words a script can match.
    pub reasons: Vec<Reason>,
    /// One sentence a person can quote.
    pub summary: String,
    /// The result of each `--fail-on`, in the order given.
    #[serde(default)]
    pub conditions: Vec<condition::Checked>,
    /// Whose verdict it is.
    #[serde(default)]
    pub origin: Origin,
    /// The run, as version 0.1 wrote it: all of it is in `origin`.
    #[serde(default)]
    pub run: Value,
    /// The target, as version 0.1 wrote it: all of it is in `origin`.
    #[serde(default)]
    pub target: Value,
    /// The figures of each foreground actor, ordered by baseline rate, fastest first.
    pub foreground: Vec<Foreground>,
    /// The figures of the devices.
    pub discard: Discard,
    /// The deletion; `None` where the record has none.
    pub deletion: Option<Deletion>,
    /// Where too little was deleted to tell: how many bytes would do, at the rate measured.
    #[serde(default)]
    pub try_bytes: Option<u64>,
    /// The cost of the discards, as far as the record shows it.
    pub fit: Option<Fit>,
    /// The figures of the control run, where there was one.
    pub control: Option<Control>,
    /// Of a simulated drive whose time is stretched: how much, and whether the
    /// figures here are those of the drive that it stands for.
    #[serde(default)]
    pub slower: Option<Slower>,
    /// Discards on the target's devices that can't be this deletion's, where there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<OthersDiscards>,
    /// How evenly the devices wrote, if they wrote more than journals and metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes: Option<Writes>,
    /// The gain of a trim of all free space, where the run's deletion is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gain: Option<Gain>,
    /// Spans in which trimbench itself did not run; all figures leave them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absences: Vec<Absence>,
    /// In what the actors waited, where `run --why` watched them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Waited>,
    /// Whatever changes how far the figures can be trusted, in words.
    pub warnings: Vec<String>,
}

impl Verdict {
    /// The verdict with the origin of its record.
    pub(crate) fn with_origin(self, origin: Origin) -> Verdict {
        let mut target = json!(origin.targets.first());
        target["drives"] = json!(origin.drives);
        target["kernel"] = json!(origin.kernel);
        target["host"] = json!(origin.host);
        let run = json!({
            "id": origin.id, "time": origin.time, "version": origin.version,
            "arguments": origin.arguments,
        });
        Verdict {
            origin,
            run,
            target,
            ..self
        }
    }
}

/// The finding of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// The foreground nearly stopped while discards were processed.
    Stall,
    /// It lost at least 10 % for at least a second while discards were processed.
    Slowdown,
    /// Neither, and a loss of 10 % would have been seen.
    None,
    /// The record shows neither these nor their absence.
    #[default]
    Inconclusive,
}

/// The reason of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The devices saw no discards.
    NoDiscards,
    /// Not all that was freed had been discarded when the wait for it ended.
    DiscardsDidNotCome,
    /// The record has no deletion.
    NoDeletion,
    /// The outside program or the event freed nothing.
    NothingDeleted,
    /// Discards that can't be this deletion's disturbed the foreground.
    ForeignDiscards,
    /// The devices' counters are switched off, or the log has no columns of discards, so that nobody
    /// knows whether there were discards.
    CountersOff,
    /// No device is known below the target, so that nobody knows whether there were discards.
    DevicesUnknown,
    /// No steady stretch to compare with.
    NoSteadyBaseline,
    /// Too few operations, or too short, to see a loss of 10 %.
    TooFewOperations,
    /// The foreground scatters so much without discards that it would hide a loss of 10 %.
    TooNoisy,
    /// The discards were over too soon for a stall or a slowdown, though the foreground was
    /// slower meanwhile, or too soon for it to show.
    TooLittleDeleted,
    /// The control run, which had no discards, lost about as much.
    ControlDipsToo,
    /// The foreground dipped while no discards were processed, or for longer than they took.
    DipsWithoutDiscards,
    /// The run was interrupted before it was over.
    Interrupted,
    /// The run failed before it was over.
    Failed,
    /// A deleter that creates and drops files all the time left hardly a stretch without discards.
    /// No control shows the effect of its writes.
    DiscardsAllTheTime,
    /// The devices wrote far more beside discards than without, so the writes may have slowed the
    /// foreground down. No control shows it.
    MoreWritesWithDiscards,
    /// Only actors that write into the page cache were slow, and the kernel's writeback slows them
    /// down by itself. No control shows it.
    Writeback,
    /// trimbench itself did not run while most of the discards were processed.
    Absent,
    /// The foreground had errors.
    ForegroundErrors,
}

/// A steady stretch drifts by at most this share of its mean.
pub(crate) const STEADY: f64 = 0.1;

/// The figures of one actor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Foreground {
    /// The actor's name.
    pub actor: String,
    /// Its operation.
    pub op: String,
    /// Closed or open loop. It decides from when latency is counted.
    #[serde(flatten)]
    pub loop_kind: LoopKind,
    /// Where the baseline was taken.
    pub baseline_from: Option<BaselineFrom>,
    /// Before the deletion, or wherever else `baseline_from` says; response times.
    pub baseline: Figures,
    /// How far the baseline's rate drifted over its length, as a share of its mean. Above 0.1 it is
    /// not steady. `None` where it wasn't recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_drift: Option<f64>,
    /// Before the deletion, where that isn't the baseline. Beside the baseline it shows the cost of
    /// the writes of a deleter that creates and drops files all the time.
    #[serde(default)]
    pub undisturbed: Option<Figures>,
    /// In the whole delete phase, also while the run waited for more discards.
    pub delete: Figures,
    /// In the part of it with discards in service; `None` if there were none.
    #[serde(default)]
    pub discarding: Option<Figures>,
    /// After it.
    pub recovery: Figures,
    /// The same from submission: service times.
    pub service: Option<ServiceFigures>,
    /// Rate in the median interval with discards in service, as a share of the baseline's.
    pub ops_ratio: Option<f64>,
    /// Time lost while discards were in service, in seconds, also where it was too
    /// little for a stall: the sum of 1 − share of the baseline over their intervals.
    pub lost_s: Option<f64>,
    /// The smallest loss, as a share of the baseline, that stands out from the foreground's own
    /// scatter. It is at least the 10 % that make a slowdown.
    #[serde(default)]
    pub detectable: Option<f64>,
    /// The stall, where there was one.
    pub stall: Option<Stall>,
    /// Low stretches that this deletion's discards don't explain.
    pub dips: Vec<Dip>,
    /// The stall by discards that can't be this deletion's, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_by_others: Option<Stall>,
    /// How long its threads waited for a processor, where that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_wait: Option<CpuWait>,
    /// Operations that never finished, and the age of the oldest in microseconds.
    pub unfinished: Option<UnfinishedFigures>,
}

impl Foreground {
    /// Returns the figures to compare with the baseline: those while discards were in service, or
    /// without any those of the whole delete phase.
    pub fn beside(&self) -> &Figures {
        self.discarding.as_ref().unwrap_or(&self.delete)
    }

    /// Returns how far its baseline drifted, if that was too far for a steady one.
    pub fn drifted(&self) -> Option<f64> {
        self.baseline_drift.filter(|&drift| drift > STEADY)
    }
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
    /// In the whole delete phase.
    pub delete: Figures,
    /// In the part of it with discards in service; `None` where that wasn't recorded.
    #[serde(default)]
    pub discarding: Option<Figures>,
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
    /// The stretches of the deletion itself without discards. A deleter that creates and drops
    /// files all the time is compared with them. Their percentiles are those of their intervals,
    /// weighed by operations; p99.9 is `None`.
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
    /// The wait from which an operation counts as stalled, in microseconds. It is present where
    /// waits show the stall rather than a rate: in open loops, and for actors with few operations.
    #[serde(default)]
    pub limit_us: Option<f64>,
}

/// A low stretch that this deletion's discards don't explain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Dip {
    /// Its start, in seconds since the record's zero.
    pub at_s: f64,
    /// Its length, in seconds.
    pub seconds: f64,
    /// Median share of the baseline that was left, 0 to 1.
    pub depth: f64,
    /// Discards in it or right before it. `None`: there were none, so TRIM isn't the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discards: Option<DipDiscards>,
}

/// Discards in a low stretch that this deletion's discards don't explain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DipDiscards {
    /// Discards that can't be this deletion's were in service in it.
    Others,
    /// Discards came in it that may be this deletion's and don't count: after its phase, or
    /// when all that it freed had been discarded.
    Unsure,
    /// Nobody counted.
    Unknown,
    /// None, but it directly follows low intervals that this deletion's discards explain: a slow
    /// recovery, or something else.
    Before,
    /// This deletion's, but only in a part of it, and the rest is as low: TRIM, or something else.
    Partly,
    /// Discards in it or at its edges that are too small or too few to count: TRIM, or something
    /// else.
    Small,
}

/// Discards on the target's devices that can't be this deletion's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct OthersDiscards {
    /// Bytes.
    pub bytes: u64,
    /// Of them those in the delete phase.
    pub during_bytes: u64,
    /// Time with them in service, in seconds.
    pub active_s: f64,
    /// Why most of them can't be this deletion's.
    pub why: NotTheDeletions,
}

/// The devices' writes before and beside a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Writes {
    /// Length of the intervals that the figures compare, in milliseconds.
    pub interval_ms: f64,
    /// In the baseline phase.
    pub baseline: Option<WriteFigures>,
    /// In the delete phase.
    pub delete: Option<WriteFigures>,
}

/// The devices' writes over one phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WriteFigures {
    /// Bytes written per second.
    pub bytes_per_s: f64,
    /// Standard deviation of the bytes written in each interval, divided by their mean: 0 is even.
    /// `None` of fewer than five intervals, or where nothing was written.
    pub lumpiness: Option<f64>,
}

/// Why discards can't be a deletion's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NotTheDeletions {
    /// The mount sends none.
    MountSendsNone,
    /// They came before its first call, or there was no deletion.
    BeforeIt,
    /// They are more than its file system discards for what was freed.
    MoreThanFreed,
    /// They did not come through the devices above.
    FromElsewhere,
}

impl NotTheDeletions {
    pub(crate) const ALL: [NotTheDeletions; 4] = [
        NotTheDeletions::MountSendsNone,
        NotTheDeletions::BeforeIt,
        NotTheDeletions::MoreThanFreed,
        NotTheDeletions::FromElsewhere,
    ];

    /// Returns it in words, of a deletion: `the mount sends none`.
    pub fn in_words(self) -> &'static str {
        match self {
            NotTheDeletions::MountSendsNone => "the mount sends none",
            NotTheDeletions::BeforeIt => "they came before any deletion",
            NotTheDeletions::MoreThanFreed => "they are more than it freed",
            NotTheDeletions::FromElsewhere => "the devices above sent fewer",
        }
    }
}

/// Operations that never finished.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct UnfinishedFigures {
    /// How many.
    pub operations: u64,
    /// Age of the oldest, in microseconds.
    pub oldest_us: f64,
}

/// The figures of the devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Discard {
    /// Bytes discarded by the deletion.
    pub bytes: Option<u64>,
    /// Discard commands; `None` also of a log that has their bytes alone.
    pub commands: Option<u64>,
    /// Time with discards in service that could slow the foreground down, in seconds.
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

/// The deletion.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Deletion {
    /// Bytes freed.
    pub bytes: u64,
    /// Files deleted.
    pub files: u64,
    /// From the first call to the last one's return, in seconds.
    pub seconds: f64,
    /// The command of the event that was watched in place of a deletion of the run's own. Then
    /// `bytes` is the growth of the free space by its end.
    #[serde(default)]
    pub event: Option<String>,
    /// Growth of the file system's free space, in bytes; known for outside programs and events. The
    /// writes and deletions of others are in it.
    #[serde(default)]
    pub space_freed_bytes: Option<u64>,
    /// Exit code of the outside program or the event's command; of several runs
    /// the first that is not 0.
    #[serde(default)]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default)]
    pub signal: Option<i32>,
}

/// The figures of the control run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// How discards were kept away, in words: `nodiscard` or `second name`.
    pub method: Option<String>,
    /// Its finding, judged alone.
    pub verdict: Finding,
    /// Bytes discarded all the same.
    pub discard_bytes: Option<u64>,
    /// The figures of each foreground actor in it.
    pub foreground: Vec<Foreground>,
}
