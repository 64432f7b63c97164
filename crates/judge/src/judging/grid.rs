//! One actor's rates on a grid coarse enough to tell them.

use std::ops::Range;

use super::discards::Discards;
use super::spans::Spans;
use record::{ActorColumns, RunRecord};

/// Operations that the baseline expects in a cell.
const EXPECTED_OPS: f64 = 20.0;

/// Cells longer than this say nothing any more about a stall; an actor that
/// would need them is judged by the age of its oldest operation.
const LONGEST_CELL_S: f64 = 1.0;

/// One actor's intervals, merged into cells. Narrow columns: a long record has
/// hundreds of thousands of cells for each of its actors.
#[derive(Debug, Clone)]
pub(super) struct Grid {
    /// The first interval of each cell, in order.
    starts: Vec<u32>,
    /// The interval after each cell's last.
    ends: Vec<u32>,
    seconds: Vec<f32>,
    rate: Vec<f32>,
    wait_s: Vec<f32>,
    /// Whether a significant discard was in service in the cell.
    pub(super) covered: Vec<bool>,
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
        let offset = match anchor.checked_sub(all.start) {
            Some(after) => after % merge,
            None => (merge - (all.start - anchor) % merge) % merge,
        };
        let interval_s = record.head.interval_ms / 1e3;
        let most = all.len() / merge;
        let mut grid = Grid {
            starts: Vec::with_capacity(most),
            ends: Vec::with_capacity(most),
            seconds: Vec::with_capacity(most),
            rate: Vec::with_capacity(most),
            wait_s: Vec::with_capacity(most),
            covered: Vec::with_capacity(most),
            cell_s: interval_s * merge as f64,
        };
        // Intervals as short as those that a late sampling thread makes up for are taken
        // together: else a run would be told by hundreds of them that lasted no time.
        let least_s = 0.5 * grid.cell_s;
        let mut end = all.start + offset;
        while end < all.end {
            let start = end;
            let mut length_s = 0.0;
            while end < all.end && (end < start + merge || length_s < least_s) {
                length_s += f64::from(record.intervals.seconds[end]);
                end += 1;
            }
            let cell = start..end;
            // A cell cut short at the end tells a rate from too few operations.
            let short = cell.len() < merge || length_s < least_s;
            if short || !actor.running[cell.clone()].iter().all(|&r| r) {
                continue;
            }
            let ops: u64 = actor.ops[cell.clone()].iter().map(|&n| u64::from(n)).sum();
            grid.seconds.push(length_s as f32);
            grid.rate.push((ops as f64 / length_s) as f32);
            grid.covered
                .push(discards.covered[cell.clone()].contains(&true));
            let wait_ms: u64 = discards.wait_ms[cell].iter().sum();
            grid.wait_s.push((wait_ms as f64 / 1e3) as f32);
            // A record has at most ten million intervals.
            grid.starts.push(start as u32);
            grid.ends.push(end as u32);
        }
        grid
    }

    /// The same cells beside other discards: `covered` tells the intervals with one of those in
    /// service, `wait_ms` the waits of those that completed in each.
    pub(super) fn beside(&self, covered: &[bool], wait_ms: &[u64]) -> Grid {
        let cells = || (0..self.len()).map(|i| self.cell(i));
        let wait_s = |cell: Range<usize>| wait_ms[cell].iter().sum::<u64>() as f32 / 1e3;
        Grid {
            covered: cells().map(|cell| covered[cell].contains(&true)).collect(),
            wait_s: cells().map(wait_s).collect(),
            ..self.clone()
        }
    }

    /// Number of cells.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// The intervals of cell `i`.
    pub(super) fn cell(&self, i: usize) -> Range<usize> {
        self.starts[i] as usize..self.ends[i] as usize
    }

    /// Length of cell `i`, in seconds.
    pub(super) fn seconds(&self, i: usize) -> f64 {
        f64::from(self.seconds[i])
    }

    /// Operations per second in cell `i`.
    pub(super) fn rate(&self, i: usize) -> f64 {
        f64::from(self.rate[i])
    }

    /// Sum of the waits of the discards that completed in cell `i`, in seconds.
    pub(super) fn wait_s(&self, i: usize) -> f64 {
        f64::from(self.wait_s[i])
    }

    /// Operations per second, cell by cell.
    pub(super) fn rates(&self) -> impl Iterator<Item = f64> {
        self.rate.iter().copied().map(f64::from)
    }

    /// The cells that lie wholly within these intervals.
    pub(super) fn within(&self, range: &Range<usize>) -> Range<usize> {
        let first = self
            .starts
            .partition_point(|&start| (start as usize) < range.start);
        let end = self.ends.partition_point(|&end| end as usize <= range.end);
        first..end.max(first)
    }

    /// The cells that lie wholly within one of these spans.
    pub(super) fn among(&self, spans: &Spans) -> impl Iterator<Item = usize> {
        spans.ranges().iter().flat_map(|range| self.within(range))
    }

    /// Which cells have discards in service, or follow or precede one that has.
    pub(super) fn near_discards(&self) -> Vec<bool> {
        let covered = &self.covered;
        let near =
            |i: usize| covered[i.saturating_sub(1)..(i + 2).min(covered.len())].contains(&true);
        (0..covered.len()).map(near).collect()
    }

    /// Whether cell `i` follows cell `i - 1` without a gap.
    pub(super) fn adjoins(&self, i: usize) -> bool {
        i > 0 && self.cell(i - 1).end == self.cell(i).start
    }
}
