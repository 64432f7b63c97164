//! The result of a trial: its runs, taken together.

use serde::Serialize;

use crate::Spread;
use crate::tune::figures::Figures;
use crate::tune::trial::Trial;

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
