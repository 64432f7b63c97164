//! One actor's rates on a grid coarse enough to tell them.

use std::ops::Range;

use super::discards::Discards;
use crate::record::{ActorColumns, RunRecord};

/// Operations that the baseline expects in a cell.
const EXPECTED_OPS: f64 = 20.0;

/// Cells longer than this say nothing any more about a stall; an actor that
/// would need them is judged by the age of its oldest operation.
const LONGEST_CELL_S: f64 = 1.0;

/// One actor's intervals, merged into cells.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    /// The intervals of each cell, in order.
    pub(super) cells: Vec<Range<usize>>,
    /// Length of each cell, in seconds.
    pub(super) seconds: Vec<f64>,
    /// Operations per second in each cell.
    pub(super) rate: Vec<f64>,
    /// Whether a significant discard was in service in the cell.
    pub(super) covered: Vec<bool>,
    /// Sum of the waits of the discards that completed in the cell, in seconds.
    pub(super) wait_s: Vec<f64>,
    /// Typical length of a cell, in seconds.
    pub(super) cell_s: f64,
}

/// How many intervals make a cell; `None` when the actor is too sparse.
pub(super) fn merged(rate: f64, interval_s: f64) -> Option<usize> {
    let merge = (EXPECTED_OPS / (rate * interval_s)).ceil().max(1.0);
    (merge == 1.0 || merge * interval_s <= LONGEST_CELL_S).then_some(merge as usize)
}

impl Grid {
    /// The cells of `all` in which the actor ran.
    ///
    /// They are laid from the first significant discard in both directions,
    /// so that what happened long before doesn't move them.
    pub(super) fn new(
        record: &RunRecord,
        actor: &ActorColumns,
        discards: &Discards,
        all: Range<usize>,
        merge: usize,
    ) -> Grid {
        let anchor = discards.span().map_or(all.start, |(first, _)| first);
        let offset = (anchor.max(all.start) - all.start) % merge;
        let interval_s = record.head.interval_ms / 1e3;
        let mut grid = Grid {
            cells: Vec::new(),
            seconds: Vec::new(),
            rate: Vec::new(),
            covered: Vec::new(),
            wait_s: Vec::new(),
            cell_s: interval_s * merge as f64,
        };
        for start in (all.start + offset..all.end).step_by(merge) {
            let cell = start..start + merge;
            // A cell cut short at the end tells a rate from too few operations.
            if cell.end > all.end || !actor.running[cell.clone()].iter().all(|&r| r) {
                continue;
            }
            let seconds: f64 = record.intervals.seconds[cell.clone()]
                .iter()
                .copied()
                .map(f64::from)
                .sum();
            let ops: u64 = actor.ops[cell.clone()].iter().map(|&n| u64::from(n)).sum();
            grid.seconds.push(seconds);
            grid.rate.push(ops as f64 / seconds);
            grid.covered
                .push(discards.covered[cell.clone()].contains(&true));
            let wait_ms: u64 = discards.wait_ms[cell.clone()].iter().sum();
            grid.wait_s.push(wait_ms as f64 / 1e3);
            grid.cells.push(cell);
        }
        grid
    }

    /// The cells that lie wholly within these intervals.
    pub(super) fn within(&self, range: &Range<usize>) -> Range<usize> {
        let first = self.cells.partition_point(|c| c.start < range.start);
        let end = self.cells.partition_point(|c| c.end <= range.end);
        first..end.max(first)
    }

    /// Whether cell `i` follows cell `i - 1` without a gap.
    pub(super) fn adjoins(&self, i: usize) -> bool {
        i > 0 && self.cells[i - 1].end == self.cells[i].start
    }
}
