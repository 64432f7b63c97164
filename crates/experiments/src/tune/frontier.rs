//! The trials worth choosing from: those that no other one beats.

use serde::Serialize;

use crate::Spread;
use crate::tune::figures::Figures;
use crate::tune::trials::Trial;

/// Figures nearer to each other than this share of the larger one are alike.
const ALIKE: f64 = 0.15;

/// A measure by which trials are compared. Less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// How long the freeing takes.
    Freeing,
    /// The time that the readers lose.
    Lost,
    /// The share of their I/O that readers lose in the worst 100 ms.
    WorstLoss,
    /// The longest wait of a read.
    WorstRead,
    /// The share of their I/O that readers lose while the space is freed: what pacing is for.
    LostShare,
}

impl Measure {
    /// Those in which no setting may be worse that replaces another. The share of the loss follows
    /// from two of them.
    pub const ALL: [Measure; 4] = [
        Measure::Freeing,
        Measure::Lost,
        Measure::WorstLoss,
        Measure::WorstRead,
    ];

    /// The figure of a point.
    pub fn of(self, point: &Point) -> Spread {
        match self {
            Measure::Freeing => point.freeing_s,
            Measure::Lost => point.lost_s,
            Measure::WorstLoss => point.worst_loss,
            Measure::WorstRead => point.worst_read_us,
            Measure::LostShare => {
                let share = point.lost_share();
                Spread {
                    low: share,
                    median: share,
                    high: share,
                    count: point.lost_s.count,
                }
            }
        }
    }

    /// The least difference that counts, whatever the repeats show. It is an interval of the
    /// record, a twentieth of the throughput, or a millisecond of other work of the machine.
    fn grain(self) -> f64 {
        match self {
            Measure::Freeing => 0.1,
            Measure::Lost | Measure::LostShare => 0.05,
            Measure::WorstLoss => 0.1,
            Measure::WorstRead => 1000.0,
        }
    }
}

/// Whether `a` is better than `b` by more than the noise.
///
/// The noise is half of the sum of both ranges, a sixth of the value, or the measure's
/// grain, whichever is most.
pub fn beats(a: &Point, b: &Point, measure: Measure) -> bool {
    let (a, b) = (measure.of(a), measure.of(b));
    let noise = (a.half_range() + b.half_range())
        .max(ALIKE * b.median)
        .max(measure.grain());
    b.median - a.median > noise
}

/// Which points no other beats: none is better by one measure and worse by none.
pub fn frontier(points: &[Point]) -> Vec<bool> {
    let better = |a: &Point, b: &Point| {
        let mut all = Measure::ALL.into_iter().chain([Measure::LostShare]);
        all.any(|measure| beats(a, b, measure))
    };
    let beaten = |point: &Point| {
        let mut others = points.iter();
        others.any(|other| better(other, point) && !better(point, other))
    };
    points.iter().map(|point| !beaten(point)).collect()
}

// The result of a trial: its runs, taken together.

/// A trial and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// The trial.
    #[serde(flatten)]
    pub trial: Trial,
    /// Runs that count.
    pub runs: usize,
    /// From the first deletion call until all was discarded, in seconds.
    pub freeing_s: Spread,
    /// Time that the readers lost meanwhile, in seconds.
    pub lost_s: Spread,
    /// Share of the readers' usual throughput that was lost in the worst 100 ms, 0 to 1.
    pub worst_loss: Spread,
    /// The same before the deletion: what is usual here.
    pub usual_worst_loss: Spread,
    /// The longest wait of a read, in microseconds.
    pub worst_read_us: Spread,
    /// The longest wait for an fsync, in microseconds.
    pub worst_fsync_us: Spread,
    /// Bytes discarded.
    pub discard_bytes: Spread,
    /// Discards.
    pub discards: Spread,
    /// Share of the runs whose verdict was a stall or a slowdown, 0 to 1.
    pub stalled: f64,
    /// Share of those that were inconclusive, 0 to 1.
    pub inconclusive: f64,
}

impl Point {
    /// Of a trial's runs; `None` where none counts.
    pub fn of(trial: Trial, runs: &[Figures]) -> Option<Point> {
        let spread = |figure: fn(&Figures) -> f64| Spread::of(runs.iter().map(figure));
        let share = |of: fn(&Figures) -> bool| {
            runs.iter().filter(|run| of(run)).count() as f64 / runs.len() as f64
        };
        Some(Point {
            trial,
            runs: runs.len(),
            freeing_s: spread(|run| run.freeing_s)?,
            lost_s: spread(|run| run.lost_s)?,
            worst_loss: spread(|run| run.worst_loss)?,
            usual_worst_loss: spread(|run| run.usual_worst_loss)?,
            worst_read_us: spread(|run| run.worst_read_us)?,
            worst_fsync_us: spread(|run| run.worst_fsync_us)?,
            discard_bytes: spread(|run| run.discard_bytes as f64)?,
            discards: spread(|run| run.discards as f64)?,
            stalled: share(|run| run.stalled),
            inconclusive: share(|run| run.inconclusive),
        })
    }

    /// Share of the time of the freeing that the readers lost, 0 to 1.
    pub fn lost_share(&self) -> f64 {
        (self.lost_s.median / self.freeing_s.median.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
    }
}
