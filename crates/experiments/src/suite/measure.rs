//! The figures of a suite.

use serde::{Deserialize, Serialize};

use crate::suite::log::{Figures, Side};
use crate::suite::step::Step;
use crate::suite::verdict::RunFigures;

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
        let timed = !step.is_run() && !step.is_named_only();
        let mut all = vec![
            (Measure::Time, timed.then_some(figures.seconds)),
            (Measure::FirstSync, figures.first_sync_s),
            (Measure::SecondSync, figures.second_sync_s),
            (Measure::Freed, figures.freed_s),
            (Measure::Discarded, Some(figures.discard_bytes as f64)),
            (Measure::ReadsBefore, run(|run| run.before_per_s)),
            (Measure::ReadsDuring, run(|run| run.during_per_s)),
            (Measure::ReadsInStall, run(|run| run.in_stall_per_s)),
            (Measure::ReadsAfter, run(|run| run.after_per_s)),
            (Measure::Stall, run(|run| run.stall_s)),
            (Measure::LongestStall, run(|run| run.longest_stall_s)),
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
