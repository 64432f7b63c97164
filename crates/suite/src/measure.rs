//! The figures of a suite.

use serde::{Deserialize, Serialize};

use crate::log::{Figures, Side};
use crate::step::Step;

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
        match self {
            Measure::Time
            | Measure::FirstSync
            | Measure::SecondSync
            | Measure::Freed
            | Measure::Stall
            | Measure::LongestStall => Unit::Seconds,
            Measure::ReadsBefore
            | Measure::ReadsDuring
            | Measure::ReadsInStall
            | Measure::ReadsAfter => Unit::PerSecond,
            Measure::Discarded => Unit::Bytes,
            Measure::TrimRate
            | Measure::Dirtied
            | Measure::Written
            | Measure::DirtiedBeside
            | Measure::WrittenBeside => Unit::BytesPerSecond,
            Measure::Utilisation | Measure::UtilisationBeside => Unit::Share,
            Measure::Lumpiness | Measure::LumpinessBeside => Unit::Number,
        }
    }

    /// Its name, to stand behind a step's.
    pub fn words(self) -> &'static str {
        match self {
            Measure::Time => "time",
            Measure::FirstSync => "first sync",
            Measure::SecondSync => "second sync",
            Measure::Freed => "all discarded",
            Measure::Discarded => "discarded",
            Measure::ReadsBefore => "reads before",
            Measure::ReadsDuring => "reads while discarding",
            Measure::ReadsInStall => "reads in the stall",
            Measure::ReadsAfter => "reads after",
            Measure::Stall => "stall",
            Measure::LongestStall => "longest stall",
            Measure::TrimRate => "TRIM rate",
            Measure::Dirtied => "dirtied",
            Measure::Written => "written",
            Measure::Utilisation => "utilisation",
            Measure::Lumpiness => "lumpiness",
            Measure::DirtiedBeside => "dirtied beside a deletion",
            Measure::WrittenBeside => "written beside a deletion",
            Measure::UtilisationBeside => "utilisation beside a deletion",
            Measure::LumpinessBeside => "lumpiness beside a deletion",
        }
    }

    /// The measures of a step with their values. The time of a run is none: it is mostly waiting.
    pub(crate) fn of(step: Step, figures: &Figures) -> Vec<(Measure, f64)> {
        let run = figures.run.as_ref();
        let timed = !step.is_run() && !step.is_named_only();
        let all = [
            (Measure::Time, timed.then_some(figures.seconds)),
            (Measure::FirstSync, figures.first_sync_s),
            (Measure::SecondSync, figures.second_sync_s),
            (Measure::Freed, figures.freed_s),
            (Measure::Discarded, Some(figures.discard_bytes as f64)),
            (Measure::ReadsBefore, run.and_then(|run| run.before_per_s)),
            (Measure::ReadsDuring, run.and_then(|run| run.during_per_s)),
            (
                Measure::ReadsInStall,
                run.and_then(|run| run.in_stall_per_s),
            ),
            (Measure::ReadsAfter, run.and_then(|run| run.after_per_s)),
            (Measure::Stall, run.and_then(|run| run.stall_s)),
            (
                Measure::LongestStall,
                run.and_then(|run| run.longest_stall_s),
            ),
            (Measure::TrimRate, trim_rate(step, figures)),
        ];
        let some = all
            .into_iter()
            .chain(writeback(figures))
            .filter_map(|(measure, value)| Some((measure, value?)));
        some.filter(|(_, value)| value.is_finite()).collect()
    }
}

/// The figures of a writeback job, alone and beside a deletion.
fn writeback(figures: &Figures) -> Vec<(Measure, Option<f64>)> {
    let Some(job) = &figures.writeback else {
        return Vec::new();
    };
    let both = [(Measure::ALONE, job.alone), (Measure::BESIDE, job.beside)];
    let values = |(measures, side): ([Measure; 4], Side)| {
        let values = [
            Some(side.dirtied_bytes_per_s),
            Some(side.written_bytes_per_s),
            Some(side.utilisation),
            side.lumpiness,
        ];
        measures.into_iter().zip(values)
    };
    both.into_iter().flat_map(values).collect()
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
