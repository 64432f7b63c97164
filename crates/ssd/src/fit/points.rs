//! The times of discards of about the same size: the ladder's rungs.

use record::units::MIB;

use super::cells::Cell;
use super::figure::Estimate;
use super::line::{Line, bootstrap};

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
