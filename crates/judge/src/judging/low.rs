//! How much of the baseline each cell had, and which cells are low.

use super::baseline::Baseline;
use super::grid::Grid;
use crate::verdict::BaselineFrom;
use record::{ActorColumns, ActorInfo, LoopKind, RunRecord};

/// An operation is old when it is older than this many times the baseline's p99.
const OLD: f64 = 10.0;

/// Below this many expected operations a cell's count says nothing by itself.
const COUNTABLE: f64 = 5.0;

/// An open loop that does less than this share of its rate does not keep up.
const KEEPS_UP: f64 = 0.8;
/// Its missing operations are more than chance leaves out: so many standard deviations.
const SURELY: f64 = 3.0;

/// Each cell's share of the baseline, and whether it is low.
#[derive(Debug, Clone)]
pub(super) struct Lows {
    /// Operations as a share of those expected; open loop: at most 1, since
    /// catching up doesn't undo a delay.
    share: Vec<f32>,
    /// Whether the cell is low.
    pub(super) low: Vec<bool>,
    /// By age: the wait above which a cell is low, in microseconds.
    pub(super) limit_us: Option<f64>,
}

impl Lows {
    /// The share of cell `i`.
    pub(super) fn share(&self, i: usize) -> f64 {
        f64::from(self.share[i])
    }

    /// The share of the baseline that cell `i` lost, where it is low; else 0.
    pub(super) fn lost(&self, i: usize) -> f64 {
        if self.low[i] {
            (1.0 - self.share(i)).max(0.0)
        } else {
            0.0
        }
    }
}

/// Whether an actor is judged by the age of its oldest operation rather than by its rate.
pub(super) fn by_age(info: &ActorInfo, columns: &ActorColumns, baseline: &Baseline) -> bool {
    let known = columns.oldest_us.iter().any(|us| !us.is_nan());
    known && (info.loop_kind.is_open() || baseline.merge.is_none())
}

/// Returns the rate of an open loop before the deletion and the rate that was asked for, if it did
/// not keep up.
pub(super) fn saturated(
    record: &RunRecord,
    info: &ActorInfo,
    baseline: &Baseline,
) -> Option<[f64; 2]> {
    let LoopKind::Open { rate_per_s, .. } = info.loop_kind else {
        return None;
    };
    let before = [BaselineFrom::Phase, BaselineFrom::BeforeFirstDiscard].contains(&baseline.from);
    let due = rate_per_s * baseline.spans.seconds(record);
    let missing = (1.0 - baseline.rate / rate_per_s) * due;
    let surely = missing > SURELY * due.sqrt();
    let slow = before && surely && baseline.rate < KEEPS_UP * rate_per_s;
    slow.then_some([baseline.rate, rate_per_s])
}

/// By rate: low at less than `low` of the baseline.
pub(super) fn by_rate(grid: &Grid, baseline: &Baseline, low: f64) -> Lows {
    let share: Vec<f32> = grid
        .rates()
        .map(|rate| (rate / baseline.rate) as f32)
        .collect();
    let low = share.iter().map(|&r| f64::from(r) < low).collect();
    Lows {
        share,
        low,
        limit_us: None,
    }
}

/// By age: low while the oldest operation in flight is older than both ten
/// times the baseline's p99 and a cell. Of open loops and of actors with too
/// few operations for a rate.
pub(super) fn by_oldest(
    record: &RunRecord,
    info: &ActorInfo,
    columns: &ActorColumns,
    grid: &Grid,
    baseline: &Baseline,
    p99_us: Option<f64>,
) -> Lows {
    let cell_us = record.head.interval_ms * 1e3;
    let old_us = OLD * p99_us.unwrap_or(0.0);
    let expected = match info.loop_kind {
        // A loop that never kept up is measured by what it did, not by what was asked.
        LoopKind::Open { rate_per_s, .. } if baseline.rate >= KEEPS_UP * rate_per_s => rate_per_s,
        _ => baseline.rate,
    };
    let oldest = |cell: usize| f64::from(columns.oldest_us[grid.cell(cell).end - 1]);
    let limit_us = old_us.max(cell_us);
    let cells = 0..grid.len();
    let low: Vec<bool> = cells.clone().map(|i| oldest(i) > limit_us).collect();
    let share = cells.map(|i| {
        let share = (grid.rate(i) / expected).min(1.0);
        if low[i] || expected * grid.seconds(i) >= COUNTABLE {
            return share;
        }
        // Too few to count: the part of the cell that the oldest has waited is lost.
        let age_us = oldest(i);
        if age_us > old_us {
            1.0 - (age_us / cell_us).min(1.0)
        } else {
            1.0
        }
    });
    Lows {
        share: share.map(|share| share as f32).collect(),
        low,
        limit_us: Some(limit_us),
    }
}
