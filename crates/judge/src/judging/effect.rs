//! The effect of discards on one actor: its stalls, its dips, its loss, and the finding.
//!
//! Each is set against the [`Yardstick`]: what stretches without discards show by themselves.

use std::ops::Range;

use super::actor::{Judged, Laid, Setting};
use super::baseline::Baseline;
use super::counting;
use super::discards::Discards;
use super::figures;
use super::reference::Reference;
use super::runs::{self, Cost, Piece};
use super::spans::Spans;
use super::stats::{mean, median};
use super::window::Window;
use super::yardstick::{self, Yardstick};
use crate::verdict::{Dip, DipDiscards, Finding, Reason, Stall};
use record::{ActorInfo, RunRecord};

/// A slowdown loses at least this share of the baseline…
const SLOWDOWN: f64 = 0.1;
/// …for at least so many seconds while discards are processed.
const SLOWDOWN_S: f64 = 1.0;
/// A single cell shows a slowdown only if it is no longer than this, in seconds. In a longer one,
/// something else may have slowed the foreground down.
const ALONE_S: f64 = 1.0;
/// A stall lasts at least this long, and two cells.
const STALL_S: f64 = 0.2;
/// The two edges of a stall lie within cells, so its length is known only as well as their rates.
/// It may fall short of the least by so many times a cell's scatter, but by half a cell at most.
const EDGES: (f64, f64) = (3.0, 0.5);
/// The least operations expected while discarding, from which there is a finding.
const EXPECTED_OPS: f64 = 20.0;
/// A stall that leaves less than this share of what the worst stretch without discards leaves isn't
/// noise, however much that scatters.
const FAR_DEEPER: f64 = 0.25;
/// Most dips that are listed.
const MAX_DIPS: usize = 1000;

/// The data about one actor when it is judged.
pub(super) struct View<'a> {
    pub(super) record: &'a RunRecord,
    pub(super) window: &'a Window,
    pub(super) baseline: &'a Baseline,
    pub(super) reference: &'a Reference,
    pub(super) discards: &'a Discards,
    pub(super) laid: &'a Laid,
    /// The cells with discards in service that may be compared, but for those of dips.
    explained: Vec<bool>,
    /// The cells that show what happens without discards.
    undisturbed: Vec<usize>,
    /// `None` where they are too few.
    yardstick: Option<Yardstick>,
}

impl<'a> View<'a> {
    pub(super) fn of(setting: Setting<'a>, baseline: &'a Baseline, laid: &'a Laid) -> View<'a> {
        let mut view = View {
            record: setting.record,
            window: setting.window,
            baseline,
            reference: setting.reference,
            discards: setting.discards,
            laid,
            explained: Vec::new(),
            undisturbed: Vec::new(),
            yardstick: None,
        };
        view.explained = view.outside_dips();
        let size = (cells_of(&view.explained).count(), view.bursts());
        view.undisturbed = view.undisturbed();
        let usual = view.usual();
        view.yardstick = Yardstick::of(&laid.grid, &laid.lows, &view.undisturbed, size, usual);
        view
    }

    /// Returns the mean rate of the baseline's cells.
    fn usual(&self) -> f64 {
        let grid = &self.laid.grid;
        let rates: Vec<f64> = grid
            .among(&self.baseline.spans)
            .map(|i| grid.rate(i))
            .collect();
        mean(&rates)
            .filter(|&rate| rate > 0.0)
            .unwrap_or(self.baseline.rate)
    }

    /// The cells before and after the discards: baseline and recovery; of a continuous deleter
    /// what it is compared with; without phases all but those next to discards or a stall.
    fn undisturbed(&self) -> Vec<usize> {
        let grid = &self.laid.grid;
        let mut cells: Vec<usize> = match (self.reference, self.window.has_phases) {
            (Reference::Within(_), _) => grid.among(&self.baseline.spans).collect(),
            (_, false) => self.since_the_load_began().collect(),
            (_, true) => {
                let recovery = self.window.recovery.clone().map(Spans::from);
                let recovery = recovery.unwrap_or_default();
                let before = grid.among(&self.baseline.spans);
                before.chain(grid.among(&recovery)).collect()
            }
        };
        let mut near = grid.near_discards();
        let silent = |p: &&Piece| p.stall || self.is_silent(p, 0.0);
        for stall in self.laid.pieces.iter().filter(silent) {
            let end = (stall.cells.end + 1).min(near.len());
            near[stall.cells.start.saturating_sub(1)..end].fill(true);
        }
        let others = &self.discards.others;
        cells.retain(|&i| {
            let intervals = grid.cell(i);
            let discards = others.covered[intervals.clone()].contains(&true)
                || others.unsure[intervals].contains(&true);
            !near[i] && !discards && self.laid.cells.contains(&i)
        });
        cells.sort_unstable();
        cells.dedup();
        cells
    }

    /// Without phases, a log may begin before its load does, or beside the writes that
    /// prepare it: with low cells, which end before the discards.
    fn since_the_load_began(&self) -> Range<usize> {
        let Laid {
            grid, lows, cells, ..
        } = self.laid;
        match cells.clone().find(|&i| !lows.low[i] || grid.covered[i]) {
            // The load began somewhere within a cell.
            Some(begun) if begun > cells.start && !grid.covered[begun] => begun + 1..cells.end,
            _ => cells.clone(),
        }
    }

    /// In how many bursts a continuous deleter's discards come; else 1.
    fn bursts(&self) -> usize {
        let begins = |i: usize| self.explained[i] && (i == 0 || !self.explained[i - 1]);
        let begun = (0..self.explained.len()).filter(|&i| begins(i)).count();
        match self.reference {
            Reference::Within(_) => begun.max(1),
            Reference::Outside | Reference::Bound => 1,
        }
    }

    fn stalls(&self) -> Vec<&'a Piece> {
        self.laid.pieces.iter().filter(|p| p.stall).collect()
    }

    fn seconds(&self, cells: impl Iterator<Item = usize>) -> f64 {
        cells.fold(0.0, |sum, i| sum + self.laid.grid.seconds(i))
    }

    /// A stall lasts at least this long, in seconds.
    fn least_s(&self) -> f64 {
        STALL_S.max(2.0 * self.laid.grid.cell_s)
    }

    pub(super) fn stalls_and_dips(&self, judged: &mut Judged) {
        let Laid { grid, lows, .. } = self.laid;
        let stalls = self.stalls();
        if let Some(cost) = runs::cost(grid, lows, &stalls).filter(|cost| self.is_stall(cost)) {
            judged.stalled = stalls.iter().map(|p| self.intervals(&p.cells)).collect();
            judged.foreground.stall = Some(self.stall(judged, &cost, &stalls));
        }
        let dips = self.laid.pieces.iter().filter(|p| !p.stall);
        let listed = dips.filter_map(|piece| {
            let cost = runs::cost(grid, lows, &[piece])?;
            let first = grid.cell(piece.cells.start).start;
            (cost.seconds >= STALL_S * (1.0 - 1e-3)).then_some(Dip {
                at_s: self.record.intervals.at_s[first],
                seconds: cost.seconds,
                depth: cost.depth.clamp(0.0, 1.0),
                discards: self.discards_in(piece),
            })
        });
        judged.foreground.dips = listed.take(MAX_DIPS).collect();
    }

    /// Returns the kind of discards in a low run that the deletion's don't explain alone; `None` if
    /// there were none.
    fn discards_in(&self, piece: &Piece) -> Option<DipDiscards> {
        let Laid { grid, lows, .. } = self.laid;
        let range = self.intervals(&runs::with_edges(grid, lows, &piece.cells));
        let others = &self.discards.others;
        let covered = grid.covered[piece.cells.clone()].contains(&true);
        match () {
            () if others.covered[range.clone()].contains(&true) => Some(DipDiscards::Others),
            () if others.unsure[range.clone()].contains(&true) => Some(DipDiscards::Unsure),
            () if covered && !piece.tail => Some(DipDiscards::Partly),
            () if self.discards.seen[range].contains(&true) => Some(DipDiscards::Small),
            () if piece.tail => Some(DipDiscards::Before),
            () if counting::nobody_counts(&self.record.head) => Some(DipDiscards::Unknown),
            () => None,
        }
    }

    /// Adds the stalls that discards caused which can't be the deletion's.
    pub(super) fn stalls_by_others(&self, judged: &mut Judged) {
        let Laid { grid, lows, .. } = self.laid;
        let pieces: Vec<&Piece> = self.laid.by_others.iter().collect();
        let cost = runs::cost(grid, lows, &pieces);
        let enough = cost.filter(|cost| cost.seconds >= STALL_S * (1.0 - 1e-3));
        judged.foreground.stall_by_others = enough.map(|cost| self.stall(judged, &cost, &pieces));
    }

    fn stall(&self, judged: &Judged, cost: &Cost, pieces: &[&Piece]) -> Stall {
        Stall {
            seconds: cost.seconds,
            longest_s: cost.longest_s,
            depth: cost.depth.clamp(0.0, 1.0),
            lost_s: cost.lost_s,
            worst_latency_us: self.worst_latency(judged, pieces),
            limit_us: self.laid.lows.limit_us,
        }
    }

    fn is_stall(&self, cost: &Cost) -> bool {
        let scatter = self.yardstick.map_or(0.0, |y| y.scatter);
        let short_s = (EDGES.0 * scatter).min(EDGES.1) * self.laid.grid.cell_s;
        let long_s = cost.seconds + self.silent_s(cost.depth);
        let long = long_s >= self.least_s() * (1.0 - 1e-3) - short_s;
        long && self.beyond_noise(cost)
    }

    /// Returns for how long stalls went on, at least as deep, when no discard completed any more:
    /// the drive may have been busy with the last.
    fn silent_s(&self, depth: f64) -> f64 {
        let Laid { grid, lows, .. } = self.laid;
        let tails = self.laid.pieces.iter().filter(|p| self.is_silent(p, depth));
        let costs = tails.filter_map(|tail| runs::cost(grid, lows, &[tail]));
        costs.fold(0.0, |sum, cost| sum + cost.seconds)
    }

    /// Returns whether a piece follows a stall of this depth, and next to nothing more was done.
    fn is_silent(&self, piece: &Piece, depth: f64) -> bool {
        let Laid { grid, lows, .. } = self.laid;
        let cost = || runs::cost(grid, lows, &[piece]);
        piece.tail && cost().is_some_and(|cost| cost.depth <= depth + runs::SOME)
    }

    fn beyond_noise(&self, cost: &Cost) -> bool {
        let active_s = self.seconds(cells_of(&self.laid.grid.covered));
        let exceeds = |y: Yardstick| y.is_exceeded(cost.lost_s, active_s);
        self.yardstick.is_none_or(exceeds) || self.far_deeper(cost)
    }

    /// Returns whether a stall left far less than any stretch without discards that is as long.
    fn far_deeper(&self, cost: &Cost) -> bool {
        let Laid { grid, lows, .. } = self.laid;
        let width = ((cost.longest_s / grid.cell_s).round() as usize).max(1);
        let left = yardstick::sums(&self.undisturbed, width, |i| lows.share(i));
        let least = left.into_iter().min_by(f64::total_cmp);
        least.is_some_and(|least| cost.depth < FAR_DEEPER * least / width as f64)
    }

    fn worst_latency(&self, judged: &Judged, stalls: &[&Piece]) -> Option<f64> {
        let Laid { grid, lows, .. } = self.laid;
        let columns = &self.record.intervals.actors[judged.index];
        let ranges = stalls.iter().map(|piece| {
            // What waited through a stall completes in the interval after it.
            self.intervals(&runs::with_edges(grid, lows, &piece.cells))
        });
        ranges
            .flat_map(|range| {
                let seen = range
                    .clone()
                    .flat_map(|i| [columns.max_us[i], columns.oldest_us[i]]);
                let unfinished = figures::unfinished_in(self.record, judged.index, &range);
                let unfinished = unfinished.map(|[_, whole]| whole);
                seen.map(f64::from).chain(unfinished).collect::<Vec<f64>>()
            })
            .filter(|us| !us.is_nan())
            .max_by(f64::total_cmp)
    }

    pub(super) fn losses(&self, judged: &mut Judged) {
        let Laid { grid, lows, .. } = self.laid;
        let covered = || self.laid.cells.clone().filter(|&i| grid.covered[i]);
        let ratio = |rate| rate / self.baseline.rate;
        let compared = covered().filter(|&i| self.comparable(i));
        judged.foreground.ops_ratio = median(compared.map(|i| grid.rate(i))).map(ratio);
        let stall = judged.foreground.stall;
        let any = stall.is_some() || covered().next().is_some();
        judged.foreground.lost_s = any.then(|| self.lost_s(stall));
        let with: Vec<f64> = cells_of(&self.explained).map(|i| grid.rate(i)).collect();
        judged.loss = mean(&with).map(|rate| 1.0 - rate / self.usual());
        judged.foreground.detectable = self.yardstick.map(|y| y.loss.clamp(SLOWDOWN, 1.0));
        let delete = self.window.delete.as_ref();
        if let Some(delete) = delete.filter(|_| self.window.has_phases) {
            let of_delete = grid.within(delete);
            let rate = median(of_delete.clone().map(|i| grid.rate(i)));
            judged.delete_loss = rate.map_or(0.0, |rate| 1.0 - rate / self.baseline.rate);
            let pieces = self.laid.pieces.iter();
            let lost = pieces
                .filter(|p| p.cells.start < of_delete.end && p.cells.end > of_delete.start)
                .filter_map(|p| runs::cost(grid, lows, &[p]));
            judged.low_lost_s = lost.map(|cost| cost.lost_s).fold(0.0, |sum, s| sum + s);
        }
    }

    /// Returns the time that was lost to discards: in the stalls, and beside all others. A discard may
    /// have begun in the cell before the one that it completes in, and what waited completes in the
    /// next.
    fn lost_s(&self, stall: Option<Stall>) -> f64 {
        let Laid { grid, lows, .. } = self.laid;
        let mut beside = grid.near_discards();
        for piece in &self.laid.pieces {
            match piece.stall && stall.is_some() {
                true => beside[runs::with_edges(grid, lows, &piece.cells)].fill(false),
                // Something else made a dip low.
                false => (piece.cells.clone().filter(|&i| !grid.covered[i]))
                    .for_each(|i| beside[i] = false),
            }
        }
        let rest = self.laid.cells.clone().filter(|&i| beside[i]);
        let rest_s = rest.fold(0.0, |sum, i| sum + (1.0 - lows.share(i)) * grid.seconds(i));
        stall.map_or(0.0, |stall| stall.lost_s) + rest_s.max(0.0)
    }

    /// Whether a cell may be set against the baseline's mean: not if a continuous
    /// deleter wrote during those, and no longer in this.
    fn comparable(&self, i: usize) -> bool {
        match self.reference {
            Reference::Within(work) => self.laid.grid.cell(i).start < work.end,
            Reference::Outside | Reference::Bound => true,
        }
    }

    /// The cells with discards in service that may be compared, but for those of
    /// dips: something else made them low.
    fn outside_dips(&self) -> Vec<bool> {
        let covered = self.laid.grid.covered.iter().enumerate();
        let mut explained: Vec<bool> = covered
            .map(|(i, &covered)| covered && self.comparable(i))
            .collect();
        for dip in self.laid.pieces.iter().filter(|p| !p.stall) {
            explained[dip.cells.clone()].fill(false);
        }
        explained
    }

    pub(super) fn find(&self, judged: &mut Judged) {
        let found = self.found(judged);
        judged.suffered = !matches!(found, Ok(Finding::None)) && self.suffers(judged);
        match found {
            Ok(finding) => judged.finding = finding,
            Err(reason) => judged.reasons.push(reason),
        }
    }

    /// Returns whether it was slower, whatever that proves.
    fn suffers(&self, judged: &Judged) -> bool {
        let open = self.info(judged).loop_kind.is_open();
        let slower = judged.loss.is_some_and(|loss| loss >= SLOWDOWN);
        !self.stalls().is_empty() || slower && !(open && self.laid.by_age)
    }

    fn info(&self, judged: &Judged) -> &'a ActorInfo {
        &self.record.head.actors[judged.index]
    }

    /// Returns the finding, or why there is none.
    fn found(&self, judged: &Judged) -> Result<Finding, Reason> {
        if judged.foreground.stall.is_some() {
            return Ok(Finding::Stall);
        }
        let mut discards = judged.foreground.dips.iter().filter_map(|dip| dip.discards);
        let by_others = |kind| {
            use DipDiscards::{Before, Partly, Small};
            !matches!(kind, Before | Partly | Small)
        };
        let why_dipped = match discards.any(by_others) {
            true => Reason::ForeignDiscards,
            false => Reason::DipsWithoutDiscards,
        };
        if !self.explained.contains(&true) {
            return Err(why_dipped);
        }
        let active_s = self.seconds(cells_of(&self.explained));
        let sparse = self.laid.sparse;
        if sparse || self.baseline.rate * active_s < EXPECTED_OPS {
            // Too few are left, or there never were enough: only the latter clears nobody else's.
            let covered_s = self.seconds(cells_of(&self.laid.grid.covered));
            let dipped = !sparse && self.baseline.rate * covered_s >= EXPECTED_OPS;
            return Err(if dipped {
                why_dipped
            } else {
                Reason::TooFewOperations
            });
        }
        if self.too_short_to_stall(active_s) {
            return Err(Reason::TooLittleDeleted);
        }
        if self.laid.by_age && self.info(judged).loop_kind.is_open() {
            // Its rate is set from outside; had it been held up, its operations would be old. With a
            // backlog they always are.
            return match judged.saturated {
                None if active_s < self.least_s() - 1e-3 => Err(Reason::TooLittleDeleted),
                None => Ok(Finding::None),
                Some(_) => Err(Reason::NoSteadyBaseline),
            };
        }
        let (Some(loss), Some(yardstick)) = (judged.loss, self.yardstick) else {
            return Err(Reason::TooFewOperations);
        };
        self.slowed(loss, yardstick, active_s)
    }

    /// Returns whether the discards were over too soon for a finding.
    ///
    /// Either the low cells beside them lost more than noise does, whatever made them low, but the
    /// discards took too short for a stall. Or the discards' waits are so short that even a standstill would not show.
    fn too_short_to_stall(&self, active_s: f64) -> bool {
        let Laid { grid, lows, .. } = self.laid;
        let is_beside = |piece: &&Piece| grid.covered[piece.cells.clone()].contains(&true);
        let beside: Vec<&Piece> = self.laid.pieces.iter().filter(is_beside).collect();
        let cost = runs::cost(grid, lows, &beside);
        // They may have begun and ended anywhere within their first and last cell.
        let covered_s = self.seconds(cells_of(&grid.covered));
        let short = covered_s < self.least_s() + 2.0 * grid.cell_s - 1e-3;
        if short && cost.is_some_and(|cost| self.beyond_noise(&cost)) {
            return true;
        }
        let waits_s = self.discards.waits_s();
        waits_s > 0.0 && waits_s < self.least_s().min(SLOWDOWN * active_s)
    }

    /// Returns the finding of an actor that did not stall.
    fn slowed(&self, loss: f64, yardstick: Yardstick, active_s: f64) -> Result<Finding, Reason> {
        let steady = self.baseline.steady();
        let drifted = if steady { 0.0 } else { self.baseline.drift };
        let alone = self.explained.iter().filter(|&&e| e).count() < 2;
        if loss >= SLOWDOWN.max(drifted) && loss > yardstick.loss {
            return match () {
                () if alone && active_s > ALONE_S + 1e-3 => Err(Reason::TooFewOperations),
                () if active_s < SLOWDOWN_S - 1e-3 => Err(Reason::TooLittleDeleted),
                () if self.slow_without_discards(loss) => Err(Reason::DipsWithoutDiscards),
                () => Ok(Finding::Slowdown),
            };
        }
        if !steady && loss >= SLOWDOWN {
            return Err(Reason::NoSteadyBaseline);
        }
        let stalls = runs::cost(&self.laid.grid, &self.laid.lows, &self.stalls());
        let noise = stalls.is_some_and(|cost| !self.beyond_noise(&cost));
        // A loss of 10 % more than was seen would stand out; or what was seen is so much less.
        let clear = yardstick.loss.min(loss + yardstick.loss) <= SLOWDOWN;
        match () {
            () if noise || loss >= SLOWDOWN => Err(Reason::TooNoisy),
            () if clear => Ok(Finding::None),
            () if yardstick.few => Err(Reason::TooFewOperations),
            () => Err(Reason::TooNoisy),
        }
    }

    /// Returns whether at least half of the loss is there in the delete phase's cells without
    /// discards, too. Then something else slows the foreground.
    fn slow_without_discards(&self, loss: f64) -> bool {
        let grid = &self.laid.grid;
        let delete = self.window.delete.as_ref();
        let Some(delete) = delete.filter(|_| self.window.has_phases) else {
            return false;
        };
        let near = grid.near_discards();
        let free: Vec<usize> = grid.within(delete).filter(|&i| !near[i]).collect();
        if free.len() < 3 || self.seconds(free.iter().copied()) < SLOWDOWN_S - 1e-3 {
            return false;
        }
        let rate = median(free.iter().map(|&i| grid.rate(i)));
        rate.is_some_and(|rate| 1.0 - rate / self.baseline.rate >= loss / 2.0)
    }

    fn intervals(&self, cells: &Range<usize>) -> Range<usize> {
        let grid = &self.laid.grid;
        grid.cell(cells.start).start..grid.cell(cells.end - 1).end
    }
}

/// Returns the indices of those that are true.
fn cells_of(so: &[bool]) -> impl Iterator<Item = usize> {
    so.iter().enumerate().filter_map(|(i, &so)| so.then_some(i))
}
