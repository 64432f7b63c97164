//! A fitted figure: known with its confidence, bounded, or unknown with a word why.

use record::units::MIB;

use super::cells::Cell;
use super::line::{Line, bootstrap};

/// A value with the interval that holds it with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The interval's lower end; at most the value.
    pub low: f64,
    /// Its upper end; at least the value.
    pub high: f64,
}

impl Estimate {
    /// A value, and what came out when it was computed again from resampled
    /// data: the interval leaves out 2.5 % of them at either end.
    pub(super) fn of(value: f64, mut samples: Vec<f64>) -> Estimate {
        samples.retain(|s| s.is_finite());
        samples.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let last = samples.len().saturating_sub(1) as f64;
            samples.get((share * last).round() as usize).copied()
        };
        Estimate {
            value,
            low: at(0.025).map_or(value, |low| low.min(value)),
            high: at(0.975).map_or(value, |high| high.max(value)),
        }
    }

    /// The same with an interval so many times as wide, but not below 0.
    pub(super) fn widened(self, times: f64) -> Estimate {
        let Estimate { value, low, high } = self;
        Estimate {
            value,
            low: (value - (value - low) * times).max(low.min(0.0)),
            high: value + (high - value) * times,
        }
    }

    /// Half of the interval's width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// A figure, as far as the records tell it.
#[derive(Debug, Clone, PartialEq)]
pub enum Figure {
    /// It is known.
    Known(Estimate),
    /// It is at most this.
    AtMost {
        /// The bound.
        bound: f64,
        /// Why no more is known.
        why: String,
    },
    /// It is unknown.
    Unknown {
        /// Why.
        why: String,
    },
}

impl Figure {
    /// The value, where it is known.
    pub fn value(&self) -> Option<f64> {
        self.estimate().map(|estimate| estimate.value)
    }

    /// The value and its confidence, where it is known.
    pub fn estimate(&self) -> Option<Estimate> {
        match self {
            Figure::Known(estimate) => Some(*estimate),
            Figure::AtMost { .. } | Figure::Unknown { .. } => None,
        }
    }

    /// The value, or else the bound.
    pub fn at_most(&self) -> Option<f64> {
        match self {
            Figure::Known(estimate) => Some(estimate.value),
            Figure::AtMost { bound, .. } => Some(*bound),
            Figure::Unknown { .. } => None,
        }
    }

    /// Why it isn't known, where it isn't.
    pub fn why(&self) -> Option<&str> {
        match self {
            Figure::Known(_) => None,
            Figure::AtMost { why, .. } | Figure::Unknown { why } => Some(why),
        }
    }

    pub(super) fn unknown(why: impl Into<String>) -> Figure {
        Figure::Unknown { why: why.into() }
    }

    pub(super) fn at_most_for(bound: f64, why: impl Into<String>) -> Figure {
        let why = why.into();
        Figure::AtMost { bound, why }
    }
}

/// The median; 0 of nothing.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    record::units::median(values).unwrap_or(0.0)
}

// The times of discards of about the same size: the ladder's rungs.

/// Sizes within this factor are one rung.
pub(super) const ALIKE: f64 = 1.3;

/// Rungs with less than this share of the discards and of the bytes are left out.
const NEXT_TO_NOTHING: f64 = 0.005;

/// Discards of about the same size.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Their mean size, in MiB.
    pub mib: f64,
    /// How many.
    pub discards: u64,
    /// The device's time that one takes, in microseconds.
    pub service_us: Estimate,
    /// Whether several were in flight, so that it is the device's throughput.
    pub queued: bool,
}

impl Point {
    /// Whether its time is known no better than to this share of it, and not because
    /// of the kernel's clock, which tells multiples of `tick_us` alone.
    fn is_unsure(&self, share: f64, tick_us: f64) -> bool {
        let half = self.service_us.half_width();
        half > share * self.service_us.value && half * self.discards as f64 > 2.0 * tick_us
    }

    /// The size in words.
    pub fn size(&self) -> String {
        record::units::bytes((self.mib * MIB as f64).round() as u64)
    }
}

/// The rungs, from the smallest size to the largest.
pub(super) fn points(records: &[Vec<Cell>]) -> Vec<Point> {
    let mut sizes: Vec<f64> = records.iter().flatten().map(size).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    let mut points = Vec::new();
    let mut rest = &sizes[..];
    while let Some(&smallest) = rest.first() {
        let end = rest.partition_point(|&s| s <= smallest * ALIKE);
        let range = smallest..=rest[end - 1];
        points.push(point(records, |c| range.contains(&size(c))));
        rest = &rest[end..];
    }
    let all: f64 = points.iter().map(|p| p.discards as f64).sum();
    let bytes: f64 = points.iter().map(|p| p.discards as f64 * p.mib).sum();
    points.retain(|p| {
        let discards = p.discards as f64;
        discards >= NEXT_TO_NOTHING * all || discards * p.mib >= NEXT_TO_NOTHING * bytes
    });
    points
}

/// That of the ladder's two ends which is known worse, if it is known no better than to
/// `share` of it.
pub(super) fn unsure_end(points: &[Point], share: f64, tick_us: f64) -> Option<&Point> {
    let ends = [points.first(), points.last()].into_iter().flatten();
    let relative = |p: &Point| p.service_us.half_width() / p.service_us.value.max(1e-9);
    ends.filter(|point| point.is_unsure(share, tick_us))
        .max_by(|a, b| relative(a).total_cmp(&relative(b)))
}

/// Mean size of a cell's discards, in MiB.
pub(super) fn size(cell: &Cell) -> f64 {
    cell.mib / cell.discards
}

fn point(records: &[Vec<Cell>], within: impl Fn(&Cell) -> bool) -> Point {
    let chosen: Vec<Vec<Cell>> = records
        .iter()
        .map(|cells| cells.iter().copied().filter(&within).collect())
        .collect();
    let strata: Vec<&[Cell]> = chosen.iter().map(Vec::as_slice).collect();
    let [service_us] = bootstrap(&strata, |cells| [Line::level(cells)]);
    let all = || chosen.iter().flatten();
    let discards: f64 = all().map(|c| c.discards).sum();
    Point {
        mib: all().map(|c| c.mib).sum::<f64>() / discards,
        discards: discards as u64,
        service_us,
        queued: all().filter(|c| c.queued).map(|c| c.discards).sum::<f64>() > discards / 2.0,
    }
}

/// The most that a discard of a size takes, in microseconds: no longer than a larger one, nor than a
/// smaller one in proportion (a + b · size). It is no less than what a smaller one takes for certain.
pub(super) fn at_most_us(points: &[Point], mib: f64) -> Option<f64> {
    let most = |point: &Point| point.service_us.high * (mib / point.mib).max(1.0);
    let smaller = points.iter().filter(|point| point.mib <= mib);
    let least = smaller.fold(0.0, |least, point| f64::max(least, point.service_us.low));
    let most = points.iter().map(most).reduce(f64::min)?;
    Some(most.max(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_its_value_and_most_samples() {
        let samples = (0..=1000).map(f64::from).collect();
        let it = Estimate::of(500.0, samples);
        assert_eq!((it.low, it.high, it.half_width()), (25.0, 975.0, 475.0));
        let outside = Estimate::of(-1.0, vec![f64::NAN, 2.0]);
        assert_eq!((outside.low, outside.high), (-1.0, 2.0));
        let alone = Estimate::of(3.0, vec![]);
        assert_eq!((alone.low, alone.high), (3.0, 3.0));
        let wide = it.widened(2.0);
        assert_eq!((wide.value, wide.low, wide.high), (500.0, 0.0, 1450.0));
    }

    /// As a ladder on a busy machine had them: its largest step was disturbed.
    #[test]
    fn no_size_takes_longer_than_a_larger_one_or_its_parts() {
        let steps = [
            (1.0, 750.0),
            (4.0, 734.0),
            (16.0, 1220.0),
            (64.0, 1180.0),
            (128.0, 3150.0),
        ];
        let points = steps.map(|(mib, high)| Point {
            mib,
            discards: 64,
            service_us: Estimate {
                value: high,
                low: 0.0,
                high,
            },
            queued: false,
        });
        for (mib, most) in [
            (1.0, 734.0),
            (25.6, 1180.0),
            (80.0, 1180.0 * 1.25),
            (128.0, 1180.0 * 2.0),
            (512.0, 1180.0 * 8.0),
        ] {
            assert_eq!(at_most_us(&points, mib), Some(most), "{mib} MiB");
        }
        // A drive on which a large discard costs more in proportion.
        let mut steep = points;
        steep[4].service_us.low = 3000.0;
        assert_eq!(at_most_us(&steep, 128.0), Some(3000.0));
        assert_eq!(at_most_us(&[], 1.0), None);
    }
}
