//! The trials worth choosing from: those that no other one beats.

use crate::Spread;
use crate::tune::point::Point;

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
}

impl Measure {
    /// All.
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
        }
    }

    /// The least difference that counts, whatever the repeats show. It is an interval of the
    /// record, a twentieth of the throughput, or a millisecond of other work of the machine.
    fn grain(self) -> f64 {
        match self {
            Measure::Freeing => 0.1,
            Measure::Lost => 0.05,
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
    let beaten = |point: &Point| {
        points.iter().any(|other| {
            Measure::ALL.iter().any(|&m| beats(other, point, m))
                && !Measure::ALL.iter().any(|&m| beats(point, other, m))
        })
    };
    points.iter().map(|point| !beaten(point)).collect()
}
