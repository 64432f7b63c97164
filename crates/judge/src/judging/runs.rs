//! Runs of low cells: which are stalls, which are dips, and what they cost.
//!
//! A run that overlaps significant discards (± 1 cell) is a stall. But a hang with another cause
//! may begin or end next to a few discards, and must not be charged to them. A slow drive takes
//! many cells for one discard, and all of them must be charged to it. So a cell counts as
//! *explained* if a discard was in service in it or in a neighbour.
//!
//! - Where a run goes on for more than max(3 cells, 0.5 s) unexplained, it is cut there.
//! - Its pieces with discards are stalls if most of the run is explained.
//! - They are stalls, too, if the run began with discards and these are deeper. Most cells with
//!   discards in service must be low in this record. Its cells with discards must be at most
//!   half as high as its rest. Then discards do that here, and something weaker happened to follow.
//!   A big writer that starts with the deletion fails this: it takes as much with discards as
//!   without.
//! - They are stalls, too, if operations complete beside the discards, and none after them. Then
//!   something changed when the discards ended: one cause was not at work all the time.
//!   The discards must last for two cells, and nothing may stand still elsewhere without discards.
//! - If the record has waits, those of the discards must add up to half of the piece at least.
//!   Discards of 40 ms don't explain 0.3 s beside a processor hog. Where a piece begins with
//!   discards and goes on without them, only its part with discards must meet this, and it is cut
//!   at their end.
//!
//! A run without a piece that meets these is a dip. The rest of a run after a stall is its *tail*:
//! a dip, too, which may be a slow recovery.

use std::ops::Range;

use super::grid::Grid;
use super::low::Lows;
use super::stats::median;

/// A run is cut where nothing explains it for longer than this.
const UNEXPLAINED_CELLS: f64 = 3.0;
/// The same in seconds; the longer of both counts.
const UNEXPLAINED_S: f64 = 0.5;
/// Cells with discards are at most this high beside the rest of a run that goes on without.
const DEEPER: f64 = 0.5;
/// Where less than this share is left, twice as much is no difference.
pub(super) const SOME: f64 = 0.05;
/// Discards must have waited for this share of a piece to be its cause. On a drive that they block
/// they wait for nearly all of it (0.95 and more in every log of 2024).
const WORKED: f64 = 0.5;

/// A run of low cells, or a piece of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its cells, all low.
    pub(super) cells: Range<usize>,
    /// Whether discards explain it.
    pub(super) stall: bool,
    /// Whether it is what follows a stall within the same run.
    pub(super) tail: bool,
}

/// The cost of a set of pieces.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Cost {
    /// Stalled seconds: over the pieces and their edges, min(1, (1−r)/(1−depth)) × length.
    pub(super) seconds: f64,
    /// Those of the longest piece.
    pub(super) longest_s: f64,
    /// Median share over the full cells.
    pub(super) depth: f64,
    /// Sum of (1−r) × length over the pieces and their edges.
    pub(super) lost_s: f64,
}

/// Returns all low runs within `range` of the grid, cut, and marked as stalls or dips.
pub(super) fn pieces(grid: &Grid, lows: &Lows, range: Range<usize>) -> Vec<Piece> {
    let all = runs(grid, lows, range.clone());
    let explained: Vec<bool> = (0..grid.len())
        .map(|i| {
            let after = i + 1 < grid.len() && grid.adjoins(i + 1) && grid.covered[i + 1];
            grid.covered[i] || after || grid.adjoins(i) && grid.covered[i - 1]
        })
        .collect();
    let length_s = |cells: &Range<usize>, so: &dyn Fn(usize) -> bool| {
        cells
            .clone()
            .filter(|&i| so(i))
            .fold(0.0, |sum, i| sum + grid.seconds(i))
    };
    let covered_s = length_s(&range, &|i| grid.covered[i]);
    let low_covered_s = length_s(&range, &|i| grid.covered[i] && lows.low[i]);
    let discards_stall = 2.0 * low_covered_s > covered_s;
    let gap_s = (UNEXPLAINED_CELLS * grid.cell_s).max(UNEXPLAINED_S);
    let waits_known = (0..grid.len()).any(|i| grid.wait_s(i) > 0.0);
    let mut found = Vec::new();
    // Whether nothing completed although no discard was near.
    let hangs =
        |run: &Range<usize>| !run.clone().any(|i| explained[i]) && silent(lows, run.clone());
    let hangs_anyhow = all.iter().any(hangs);
    for run in all {
        let explained_s = length_s(&run, &|i| explained[i]);
        let mostly = 2.0 * explained_s > length_s(&run, &|_| true);
        let began_with_them = explained[run.start] && run.clone().any(|i| grid.covered[i]);
        let mut pieces = vec![Piece {
            cells: run.clone(),
            stall: false,
            tail: false,
        }];
        let goes_on =
            || deeper(grid, lows, &run) || !hangs_anyhow && ends_silently(grid, lows, &run);
        if explained_s > 0.0 && (mostly || discards_stall && began_with_them && goes_on()) {
            pieces = cut(grid, &run, &explained, gap_s);
        }
        let worked = |p: &Piece| p.stall && (!waits_known || waits(grid, lows, p) >= WORKED);
        let mut pieces: Vec<Piece> = pieces
            .into_iter()
            .flat_map(|piece| match worked(&piece) {
                true => vec![piece],
                false => at_discards_end(grid, piece, &explained),
            })
            .collect();
        if pieces.iter().any(worked) {
            pieces.iter_mut().for_each(|p| p.stall = worked(p));
            for i in 1..pieces.len() {
                pieces[i].tail = !pieces[i].stall && pieces[i - 1].stall;
            }
            found.extend(pieces);
        } else {
            found.push(Piece {
                cells: run,
                stall: false,
                tail: false,
            });
        }
    }
    found
}

/// Whether a run is deeper where discards are in service.
fn deeper(grid: &Grid, lows: &Lows, run: &Range<usize>) -> bool {
    let share = |so: bool| {
        let cells = run.clone().filter(|&i| grid.covered[i] == so);
        median(cells.map(|i| lows.share(i)))
    };
    match (share(true), share(false)) {
        (Some(with), Some(without)) => without >= SOME && with <= DEEPER * without,
        _ => true,
    }
}

/// Whether operations complete beside a run's discards, which are in service in two cells at least,
/// and none after them.
fn ends_silently(grid: &Grid, lows: &Lows, run: &Range<usize>) -> bool {
    let with = || run.clone().filter(|&i| grid.covered[i]);
    let some = median(with().map(|i| lows.share(i))).is_some_and(|share| share > 0.0);
    let rest = with().next_back().map_or(run.end, |last| last + 1);
    some && with().count() >= 2 && silent(lows, rest..run.end)
}

/// Whether nothing completes in these cells.
fn silent(lows: &Lows, mut cells: Range<usize>) -> bool {
    cells.all(|i| lows.share(i) <= 0.0)
}

/// Cuts a piece that begins with discards after the last of them.
fn at_discards_end(grid: &Grid, piece: Piece, explained: &[bool]) -> Vec<Piece> {
    let Range { start, end } = piece.cells;
    let last = (start..end).rfind(|&i| grid.covered[i]);
    match last {
        Some(last) if piece.stall && explained[start] && last + 1 < end => vec![
            Piece {
                cells: start..last + 1,
                ..piece.clone()
            },
            Piece {
                cells: last + 1..end,
                stall: false,
                tail: false,
            },
        ],
        _ => vec![piece],
    }
}

/// Returns the waits of the discards that completed in a piece or at its edges, as a share of its
/// length. It is above 1 when several wait at a time.
fn waits(grid: &Grid, lows: &Lows, piece: &Piece) -> f64 {
    let sum = |of: &dyn Fn(usize) -> f64, cells: Range<usize>| cells.map(of).sum::<f64>();
    let wait_s = sum(&|i| grid.wait_s(i), with_edges(grid, lows, &piece.cells));
    let length_s = sum(&|i| grid.seconds(i), piece.cells.clone());
    wait_s / length_s
}

/// Returns the maximal runs of low cells that follow each other without a gap.
fn runs(grid: &Grid, lows: &Lows, range: Range<usize>) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for i in range.filter(|&i| lows.low[i]) {
        match runs.last_mut() {
            Some(run) if run.end == i && grid.adjoins(i) => run.end = i + 1,
            _ => runs.push(i..i + 1),
        }
    }
    runs
}

/// Cuts a run where it is unexplained for longer than `gap_s`.
fn cut(grid: &Grid, run: &Range<usize>, explained: &[bool], gap_s: f64) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut add = |cells: Range<usize>, stall: bool| {
        if !cells.is_empty() {
            found.push(Piece {
                cells,
                stall,
                tail: false,
            });
        }
    };
    // Cells are as long as they say but for rounding.
    let long = |cells: Range<usize>| cells.map(|i| grid.seconds(i)).sum::<f64>() > gap_s * 1.001;
    // A piece begins with the run or an explained cell, and reaches over short gaps.
    let mut start = run.start;
    let mut unexplained = run.start;
    for i in run.clone().filter(|&i| explained[i]) {
        if long(unexplained..i) {
            add(start..unexplained, true);
            add(unexplained..i, false);
            start = i;
        }
        unexplained = i + 1;
    }
    let end = if long(unexplained..run.end) {
        unexplained
    } else {
        run.end
    };
    add(start..end, true);
    add(end..run.end, false);
    found
}

/// Returns the *full* cells of these pieces: those between the first and the last of each, which
/// may have been hit only partly. A piece of one or two cells has its lowest as the full one.
pub(super) fn full_cells(lows: &Lows, pieces: &[&Piece]) -> Vec<usize> {
    let full = pieces.iter().flat_map(|piece| {
        let cells = piece.cells.clone();
        if cells.len() > 2 {
            return cells.start + 1..cells.end - 1;
        }
        let lowest = cells.min_by(|&a, &b| lows.share(a).total_cmp(&lows.share(b)));
        lowest.map_or(0..0, |i| i..i + 1)
    });
    full.collect()
}

/// Returns the part of cell `i` that is stalled, 0 to 1, and the share of it that is lost.
pub(super) fn stalled(lows: &Lows, i: usize, depth: f64) -> (f64, f64) {
    let missing = (1.0 - lows.share(i)).max(0.0);
    let stalled = if lows.low[i] && missing >= 1.0 - depth {
        1.0 // also where depth is 1: one operation hangs while others go on
    } else {
        (missing / (1.0 - depth).max(f64::EPSILON)).min(1.0)
    };
    (stalled, missing)
}

/// Returns the cost of these pieces together; `None` of none.
pub(super) fn cost(grid: &Grid, lows: &Lows, pieces: &[&Piece]) -> Option<Cost> {
    let full = full_cells(lows, pieces).into_iter();
    let depth = median(full.map(|i| lows.share(i)))?;
    let mut cost = Cost {
        depth,
        ..Cost::default()
    };
    let mut counted = 0;
    for piece in pieces {
        let mut seconds = 0.0;
        for i in with_edges(grid, lows, &piece.cells) {
            if i < counted {
                continue; // an edge between two pieces belongs to the first
            }
            counted = i + 1;
            let (stalled, missing) = stalled(lows, i, depth);
            seconds += stalled * grid.seconds(i);
            cost.lost_s += missing * grid.seconds(i);
        }
        cost.seconds += seconds;
        cost.longest_s = cost.longest_s.max(seconds);
    }
    Some(cost)
}

/// Returns a piece with the cells at its two edges, unless those are low themselves (then they
/// belong to another piece).
pub(super) fn with_edges(grid: &Grid, lows: &Lows, cells: &Range<usize>) -> Range<usize> {
    let mut all = cells.clone();
    if grid.adjoins(all.start) && !lows.low[all.start - 1] {
        all.start -= 1;
    }
    if all.end < grid.len() && grid.adjoins(all.end) && !lows.low[all.end] {
        all.end += 1;
    }
    all
}
