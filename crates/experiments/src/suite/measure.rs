//! The figures of a suite.

use judge::Verdict;
use judge::verdict::{Finding, Foreground, Stall};
use serde::{Deserialize, Serialize};

use crate::suite::log::{Figures, Side};
use crate::suite::rows::word;
use crate::suite::step::Step;

/// The unit of a measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Operations per second.
    PerSecond,
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// A share, 0 to 1.
    Share,
    /// A plain number.
    Number,
}

/// A figure of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Time of the step.
    Time,
    /// Time of the first sync after a removal.
    FirstSync,
    /// Time of the second sync after a removal.
    SecondSync,
    /// Time from the beginning of a removal or a trim to its last discard.
    Freed,
    /// Bytes that the device discarded.
    Discarded,
    /// Reads per second before a deletion.
    ReadsBefore,
    /// Reads per second while discards are in service, or without any while files are deleted.
    ReadsDuring,
    /// Reads per second in the stall, of a run that stalled.
    ReadsInStall,
    /// Reads per second afterwards.
    ReadsAfter,
    /// Time for which reads stalled.
    Stall,
    /// The longest stall.
    LongestStall,
    /// Bytes discarded per second while discards came.
    TrimRate,
    /// Bytes of a mapped file dirtied per second.
    Dirtied,
    /// Bytes per second that the drive wrote meanwhile.
    Written,
    /// Share of the time in which the drive had something to do.
    Utilisation,
    /// Standard deviation of the drive's writes in each interval over their mean.
    Lumpiness,
    /// [`Measure::Dirtied`] beside a deletion.
    DirtiedBeside,
    /// [`Measure::Written`] beside a deletion.
    WrittenBeside,
    /// [`Measure::Utilisation`] beside a deletion.
    UtilisationBeside,
    /// [`Measure::Lumpiness`] beside a deletion.
    LumpinessBeside,
}

impl Measure {
    /// The figures of a writeback job by itself.
    pub const ALONE: [Measure; 4] = [
        Measure::Dirtied,
        Measure::Written,
        Measure::Utilisation,
        Measure::Lumpiness,
    ];
    /// The same beside a deletion.
    pub const BESIDE: [Measure; 4] = [
        Measure::DirtiedBeside,
        Measure::WrittenBeside,
        Measure::UtilisationBeside,
        Measure::LumpinessBeside,
    ];

    /// Its unit.
    pub fn unit(self) -> Unit {
        self.texts().1
    }

    /// Its name, to stand behind a step's.
    pub fn words(self) -> &'static str {
        self.texts().0
    }

    /// Its name and its unit.
    fn texts(self) -> (&'static str, Unit) {
        match self {
            Measure::Time => ("time", Unit::Seconds),
            Measure::FirstSync => ("first sync", Unit::Seconds),
            Measure::SecondSync => ("second sync", Unit::Seconds),
            Measure::Freed => ("all discarded", Unit::Seconds),
            Measure::Discarded => ("discarded", Unit::Bytes),
            Measure::ReadsBefore => ("reads before", Unit::PerSecond),
            Measure::ReadsDuring => ("reads while discarding", Unit::PerSecond),
            Measure::ReadsInStall => ("reads in the stall", Unit::PerSecond),
            Measure::ReadsAfter => ("reads after", Unit::PerSecond),
            Measure::Stall => ("stall", Unit::Seconds),
            Measure::LongestStall => ("longest stall", Unit::Seconds),
            Measure::TrimRate => ("TRIM rate", Unit::BytesPerSecond),
            Measure::Dirtied => ("dirtied", Unit::BytesPerSecond),
            Measure::Written => ("written", Unit::BytesPerSecond),
            Measure::Utilisation => ("utilisation", Unit::Share),
            Measure::Lumpiness => ("lumpiness", Unit::Number),
            Measure::DirtiedBeside => ("dirtied beside a deletion", Unit::BytesPerSecond),
            Measure::WrittenBeside => ("written beside a deletion", Unit::BytesPerSecond),
            Measure::UtilisationBeside => ("utilisation beside a deletion", Unit::Share),
            Measure::LumpinessBeside => ("lumpiness beside a deletion", Unit::Number),
        }
    }

    /// The measures of a step with their values. The time of a run is none: it is mostly waiting.
    pub(crate) fn of(step: Step, figures: &Figures) -> Vec<(Measure, f64)> {
        let run = |of: fn(&RunFigures) -> Option<f64>| figures.run.as_deref().and_then(of);
        // A run that is rejected has none: whose the stall was is unknown.
        let judged = |of: fn(&RunFigures) -> Option<f64>| {
            let known = figures.run.as_deref().filter(|run| !run.is_inconclusive());
            known.and_then(of)
        };
        let timed = !step.is_run() && !step.is_named_only();
        let mut all = vec![
            (Measure::Time, timed.then_some(figures.seconds)),
            (Measure::FirstSync, figures.first_sync_s),
            (Measure::SecondSync, figures.second_sync_s),
            (Measure::Freed, figures.freed_s),
            (Measure::Discarded, Some(figures.discard_bytes as f64)),
            (Measure::ReadsBefore, run(|run| run.before_per_s)),
            (Measure::ReadsDuring, run(|run| run.during_per_s)),
            (Measure::ReadsInStall, judged(|run| run.in_stall_per_s)),
            (Measure::ReadsAfter, run(|run| run.after_per_s)),
            (Measure::Stall, judged(|run| run.stall_s)),
            (Measure::LongestStall, judged(|run| run.longest_stall_s)),
            (Measure::TrimRate, trim_rate(step, figures)),
        ];
        if let Some(job) = &figures.writeback {
            all.extend(Measure::ALONE.into_iter().zip(job.alone.figures()));
            all.extend(Measure::BESIDE.into_iter().zip(job.beside.figures()));
        }
        let some = all
            .into_iter()
            .filter_map(|(measure, value)| Some((measure, value?)));
        some.filter(|(_, value)| value.is_finite()).collect()
    }
}

impl Side {
    /// The figures in the order of [`Measure::ALONE`].
    fn figures(&self) -> [Option<f64>; 4] {
        [
            Some(self.dirtied_bytes_per_s),
            Some(self.written_bytes_per_s),
            Some(self.utilisation),
            self.lumpiness,
        ]
    }
}

/// The rate of a run as it was judged; of mkfs and a trim the bytes over the time to the last
/// discard.
fn trim_rate(step: Step, figures: &Figures) -> Option<f64> {
    match step {
        Step::Mkfs | Step::Fstrim | Step::FstrimTrimbench => {
            let bytes = figures.discard_bytes as f64;
            let seconds = figures.freed_s.unwrap_or(figures.seconds);
            (bytes > 0.0 && seconds > 0.0).then(|| bytes / seconds)
        }
        _ => figures.run.as_ref()?.trim_bytes_per_s,
    }
}

// The verdict of a run, as far as a suite needs it.

/// The figures of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// `stall`, `slowdown`, `none` or `inconclusive`.
    pub verdict: String,
    /// The verdict's sentence.
    pub summary: String,
    /// The reader's operations per second before the deletion.
    pub before_per_s: Option<f64>,
    /// The same while space is freed.
    pub during_per_s: Option<f64>,
    /// The same in the stall: the median of its intervals. `None` without a stall.
    #[serde(default)]
    pub in_stall_per_s: Option<f64>,
    /// The same afterwards.
    pub after_per_s: Option<f64>,
    /// Seconds for which reads stalled, of the actor that stalled for longest; 0 if none did.
    pub stall_s: Option<f64>,
    /// The longest stall of any actor, in seconds.
    pub longest_stall_s: Option<f64>,
    /// Bytes discarded per second while discards came.
    pub trim_bytes_per_s: Option<f64>,
    /// Whether that is only a lower bound, because the discards were over too soon.
    #[serde(default)]
    pub trim_is_bound: bool,
}

impl RunFigures {
    /// Whether the run leaves open whether the deletion stalled reads.
    pub fn is_inconclusive(&self) -> bool {
        self.verdict == "inconclusive"
    }

    /// The figures of a verdict.
    pub(crate) fn of(verdict: Verdict) -> RunFigures {
        // The canary may have been the faster of the two.
        let actors = &verdict.foreground;
        let reader = actors.iter().find(|actor| actor.actor == "reader");
        let reader = reader.or(actors.first());
        let rate = |of: fn(&Foreground) -> Option<f64>| reader.and_then(of);
        let before_per_s = rate(|reader| reader.baseline.ops_per_s);
        let stall = reader.and_then(|reader| reader.stall);
        let most = |of: fn(&Stall) -> f64| {
            let stalls = actors.iter().filter_map(|actor| actor.stall.as_ref());
            stalls.map(of).max_by(f64::total_cmp)
        };
        // Only a run that is conclusive has no stall where it has none.
        let none = (verdict.verdict != Finding::Inconclusive).then_some(0.0);
        RunFigures {
            before_per_s,
            during_per_s: rate(|reader| {
                let discarding = reader.discarding.and_then(|during| during.ops_per_s);
                discarding.or(reader.delete.ops_per_s)
            }),
            in_stall_per_s: stall
                .zip(before_per_s)
                .map(|(stall, before)| stall.depth * before),
            after_per_s: rate(|reader| reader.recovery.ops_per_s),
            stall_s: most(|stall| stall.seconds).or(none),
            longest_stall_s: most(|stall| stall.longest_s).or(none),
            trim_bytes_per_s: verdict.discard.bytes_per_s,
            trim_is_bound: verdict.discard.bytes_per_s_is_lower_bound,
            verdict: word(&verdict.verdict).unwrap_or_default(),
            summary: verdict.summary,
        }
    }
}

// Reads by engine: buffered against direct, completions by interrupt and by polling, batches.

/// Where the blocks are that a read asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cache {
    /// On the drive, read past the page cache.
    Direct,
    /// On the drive, read through the page cache, which has none of them.
    Cold,
    /// In the page cache.
    Cached,
}

impl Cache {
    /// The word for it.
    pub fn words(self) -> &'static str {
        match self {
            Cache::Direct => "direct",
            Cache::Cold => "buffered, cold",
            Cache::Cached => "buffered, cached",
        }
    }
}

/// One way of reading, in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EngineRun {
    /// The engine, as a record names it.
    pub engine: String,
    /// Where the blocks are.
    pub cache: Cache,
    /// Completions waited for at once.
    pub batch: u32,
    /// Reads per second; `None`: see `why`.
    pub reads_per_s: Option<f64>,
    /// Median latency, in microseconds.
    pub p50_us: Option<f64>,
    /// 99th percentile, in microseconds.
    pub p99_us: Option<f64>,
    /// Processor time of a read, in microseconds, that of kernel threads for this ring included.
    pub cpu_us: Option<f64>,
    /// Why there are no figures.
    pub why: Option<String>,
}

/// The cost that trimbench adds to each I/O, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// Where trimbench's clock reads the time: `tsc` or `clock_gettime`.
    pub source: String,
    /// One reading of it.
    pub clock_ns: f64,
    /// One reading of the kernel's clock.
    pub kernel_clock_ns: f64,
    /// Recording an operation.
    pub record_ns: f64,
}

/// All that the step `engines` measured in one round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Engines {
    /// The ways of reading.
    pub runs: Vec<EngineRun>,
    /// The cost that trimbench adds.
    pub costs: Costs,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn without_a_conclusion_a_run_has_no_length_of_a_stall() {
        let of = |verdict: &str, stalls: [Value; 2]| {
            let [canary, reader] = stalls;
            let actor = |name: &str, per_s: f64, stall: Value| {
                json!({
                    "actor": name, "op": "read", "loop": "closed", "depth": 8, "batch": 1,
                    "baseline": {"ops_per_s": per_s}, "delete": {"ops_per_s": 3.0},
                    "recovery": {}, "stall": stall, "dips": [],
                })
            };
            let verdict = json!({
                "schema": "", "verdict": verdict, "reasons": [], "summary": "A sentence.",
                "foreground": [actor("canary", 99.0, canary), actor("reader", 10.0, reader)],
                "discard": {"bytes_per_s_is_lower_bound": false}, "warnings": [],
            });
            RunFigures::of(serde_json::from_value(verdict).unwrap())
        };
        let none = of("none", [Value::Null, Value::Null]);
        assert_eq!((none.verdict.as_str(), none.stall_s), ("none", Some(0.0)));
        assert_eq!((none.in_stall_per_s, none.during_per_s), (None, Some(3.0)));
        let unknown = of("inconclusive", [Value::Null, Value::Null]);
        assert_eq!(unknown.stall_s, None);
        let stall = |seconds: f64, longest_s: f64| json!({"seconds": seconds, "longest_s": longest_s, "depth": 0.25, "lost_s": 1.0});
        // Reads stalled also where only the other actor's did.
        let other = of("stall", [stall(0.8, 0.3), Value::Null]);
        assert_eq!(
            (other.stall_s, other.longest_stall_s),
            (Some(0.8), Some(0.3))
        );
        assert_eq!(other.in_stall_per_s, None);
        let stalled = of("stall", [stall(0.5, 0.5), stall(1.5, 1.0)]);
        assert_eq!(
            (stalled.stall_s, stalled.longest_stall_s),
            (Some(1.5), Some(1.0))
        );
        assert_eq!(stalled.before_per_s, Some(10.0));
        assert_eq!(stalled.in_stall_per_s, Some(2.5));
    }
}
