//! What discards did to one actor: its stalls, its dips, its loss, and the finding.

use std::ops::Range;

use super::actor::Judged;
use super::baseline::Baseline;
use super::figures;
use super::grid::Grid;
use super::low::Lows;
use super::reference::Reference;
use super::runs::{self, Piece};
use super::stats::{self, Loss, median};
use super::window::Window;
use crate::record::RunRecord;
use crate::verdict::{Dip, Finding, Reason, Stall};

/// A slowdown loses at least this share of the baseline…
const SLOWDOWN: f64 = 0.1;
/// …for at least so many seconds while discards are processed.
const SLOWDOWN_S: f64 = 1.0;
/// One cell tells a slowdown only if it is no longer than this, in seconds: what else happened in
/// it isn't the discards' doing.
const ALONE_S: f64 = 1.0;
/// A stall lasts at least this long, and two cells.
const STALL_S: f64 = 0.2;
/// Operations expected while discarding, below which nothing can be told.
const EXPECTED_OPS: f64 = 20.0;
/// Most dips that are listed.
const MAX_DIPS: usize = 1000;

/// All that is known about one actor when it is judged.
pub(super) struct View<'a> {
    pub(super) record: &'a RunRecord,
    pub(super) window: &'a Window,
    pub(super) baseline: &'a Baseline,
    pub(super) grid: &'a Grid,
    pub(super) lows: &'a Lows,
    pub(super) reference: &'a Reference,
}

impl View<'_> {
    pub(super) fn stalls_and_dips(&self, judged: &mut Judged, pieces: &[Piece]) {
        let stalls: Vec<&Piece> = pieces.iter().filter(|p| p.stall).collect();
        let least_s = STALL_S.max(2.0 * self.grid.cell_s);
        let cost = runs::cost(self.grid, self.lows, &stalls);
        let enough = cost.filter(|c| c.seconds >= least_s * (1.0 - 1e-3));
        if let Some(cost) = enough.filter(|_| self.beyond_noise()) {
            judged.stalled = stalls.iter().map(|p| self.intervals(&p.cells)).collect();
            judged.foreground.stall = Some(Stall {
                seconds: cost.seconds,
                longest_s: cost.longest_s,
                depth: cost.depth.clamp(0.0, 1.0),
                lost_s: cost.lost_s,
                worst_latency_us: self.worst_latency(judged, &stalls),
            });
        }
        let dips = pieces.iter().filter(|p| !p.stall);
        let listed = dips.filter_map(|piece| {
            let cost = runs::cost(self.grid, self.lows, &[piece])?;
            let first = self.grid.cell(piece.cells.start).start;
            (cost.seconds >= STALL_S * (1.0 - 1e-3)).then_some(Dip {
                at_s: self.record.intervals.at_s[first],
                seconds: cost.seconds,
                depth: cost.depth.clamp(0.0, 1.0),
            })
        });
        judged.foreground.dips = listed.take(MAX_DIPS).collect();
    }

    /// Where undisturbed cells are low half as often, low cells say nothing about discards.
    fn beyond_noise(&self) -> bool {
        let share = |cells: &mut dyn Iterator<Item = usize>| {
            let (mut low, mut all) = (0.0, 0.0_f64);
            for i in cells {
                low += if self.lows.low[i] {
                    self.grid.seconds(i)
                } else {
                    0.0
                };
                all += self.grid.seconds(i);
            }
            low / all.max(f64::MIN_POSITIVE)
        };
        let undisturbed = share(&mut self.grid.among(&self.baseline.spans));
        let covered = share(&mut (0..self.grid.len()).filter(|&i| self.grid.covered[i]));
        undisturbed * 2.0 <= covered.max(f64::EPSILON) || undisturbed == 0.0
    }

    fn worst_latency(&self, judged: &Judged, stalls: &[&Piece]) -> Option<f64> {
        let columns = &self.record.intervals.actors[judged.index];
        let ranges = stalls.iter().map(|piece| {
            // What waited through a stall completes in the interval after it.
            self.intervals(&runs::with_edges(self.grid, self.lows, &piece.cells))
        });
        ranges
            .flat_map(|range| {
                let seen = range
                    .clone()
                    .flat_map(|i| [columns.max_us[i], columns.oldest_us[i]]);
                let unfinished = figures::unfinished_in(self.record, judged.index, &range);
                seen.map(f64::from).chain(unfinished).collect::<Vec<f64>>()
            })
            .filter(|us| !us.is_nan())
            .max_by(f64::total_cmp)
    }

    pub(super) fn losses(&self, judged: &mut Judged, cells: Range<usize>, pieces: &[Piece]) {
        let rates = |cells: &mut dyn Iterator<Item = usize>| -> Vec<f32> {
            cells.map(|i| self.grid.rate(i) as f32).collect()
        };
        let covered = || cells.clone().filter(|&i| self.grid.covered[i]);
        let ratio = |rate| rate / self.baseline.rate;
        let compared = covered().filter(|&i| self.comparable(i));
        judged.foreground.ops_ratio = median(compared.map(|i| self.grid.rate(i))).map(ratio);
        judged.foreground.lost_s = match judged.foreground.stall {
            Some(stall) => Some(stall.lost_s),
            None => covered().fold(None, |sum, i| {
                let lost = (1.0 - self.lows.share(i)).max(0.0) * self.grid.seconds(i);
                Some(sum.unwrap_or(0.0) + lost)
            }),
        };
        let undisturbed = rates(&mut self.grid.among(&self.baseline.spans));
        let explained = self.outside_dips(pieces);
        let explained = rates(&mut (0..explained.len()).filter(|&i| explained[i]));
        judged.loss = stats::loss(&undisturbed, &explained);
        if let Some(delete) = self
            .window
            .delete
            .as_ref()
            .filter(|_| self.window.has_phases)
        {
            let of_delete = self.grid.within(delete);
            let rate = median(of_delete.clone().map(|i| self.grid.rate(i)));
            judged.delete_loss = rate.map_or(0.0, |rate| 1.0 - rate / self.baseline.rate);
            let lost = pieces
                .iter()
                .filter(|p| p.cells.start < of_delete.end && p.cells.end > of_delete.start)
                .filter_map(|p| runs::cost(self.grid, self.lows, &[p]));
            judged.low_lost_s = lost.map(|cost| cost.lost_s).fold(0.0, |sum, s| sum + s);
        }
    }

    /// Whether a cell may be set against the baseline's mean: not if a continuous
    /// deleter wrote during those, and no longer in this.
    fn comparable(&self, i: usize) -> bool {
        match self.reference {
            Reference::Within(work) => self.grid.cell(i).start < work.end,
            Reference::Outside | Reference::Bound => true,
        }
    }

    /// The cells with discards in service that may be compared, but for those of
    /// dips: something else made them low.
    fn outside_dips(&self, pieces: &[Piece]) -> Vec<bool> {
        let covered = self.grid.covered.iter().enumerate();
        let mut explained: Vec<bool> = covered
            .map(|(i, &covered)| covered && self.comparable(i))
            .collect();
        for dip in pieces.iter().filter(|p| !p.stall) {
            explained[dip.cells.clone()].fill(false);
        }
        explained
    }

    pub(super) fn find(&self, judged: &mut Judged, pieces: &[Piece], by_age: bool, sparse: bool) {
        if judged.foreground.stall.is_some() {
            judged.finding = Finding::Stall;
            return;
        }
        let explained = self.outside_dips(pieces);
        if !explained.contains(&true) {
            judged.reasons.push(Reason::DipsWithoutDiscards);
            return;
        }
        let seconds = (0..explained.len())
            .filter(|&i| explained[i])
            .map(|i| self.grid.seconds(i));
        let active_s = seconds.fold(0.0, |sum, s| sum + s);
        if sparse || self.baseline.rate * active_s < EXPECTED_OPS {
            // Too few are left, or there never were enough: only the latter clears nobody else's.
            let covered = (0..self.grid.len()).filter(|&i| self.grid.covered[i]);
            let covered_s: f64 = covered.map(|i| self.grid.seconds(i)).sum();
            let dipped = !sparse && self.baseline.rate * covered_s >= EXPECTED_OPS;
            judged.reasons.push(if dipped {
                Reason::DipsWithoutDiscards
            } else {
                Reason::TooFewOperations
            });
            return;
        }
        let info = &self.record.head.actors[judged.index];
        if by_age && info.loop_kind.is_open() {
            // Its rate is set from outside; had it been held up, its operations would be old.
            judged.finding = Finding::None;
            return;
        }
        let Some(loss) = judged.loss else {
            judged.reasons.push(Reason::TooFewOperations);
            return;
        };
        let drifted = if self.baseline.steady() {
            0.0
        } else {
            self.baseline.drift
        };
        let slower = loss.share >= SLOWDOWN.max(drifted) && loss.low > 0.0;
        let alone = explained.iter().filter(|&&e| e).count() < 2;
        if slower && alone && active_s > ALONE_S + 1e-3 {
            judged.reasons.push(Reason::TooFewOperations);
        } else if slower && active_s >= SLOWDOWN_S - 1e-3 {
            if self.slow_without_discards(&loss) {
                judged.reasons.push(Reason::DipsWithoutDiscards);
            } else {
                judged.finding = Finding::Slowdown;
            }
        } else if !self.baseline.steady() && loss.share >= SLOWDOWN {
            judged.reasons.push(Reason::NoSteadyBaseline);
        } else if loss.detectable() <= SLOWDOWN {
            judged.finding = Finding::None;
        } else {
            judged.reasons.push(Reason::TooFewOperations);
        }
    }

    /// Whether at least half of the loss is there in the delete phase's cells
    /// without discards, too: then something else slows the foreground.
    fn slow_without_discards(&self, loss: &Loss) -> bool {
        let Some(delete) = self
            .window
            .delete
            .as_ref()
            .filter(|_| self.window.has_phases)
        else {
            return false;
        };
        let of_delete = self.grid.within(delete);
        let near = |i: usize| {
            let from = i.saturating_sub(1);
            self.grid.covered[from..(i + 2).min(self.grid.covered.len())].contains(&true)
        };
        let free: Vec<usize> = of_delete.filter(|&i| !near(i)).collect();
        let seconds: f64 = free.iter().map(|&i| self.grid.seconds(i)).sum();
        if free.len() < 3 || seconds < SLOWDOWN_S - 1e-3 {
            return false;
        }
        let rate = median(free.iter().map(|&i| self.grid.rate(i)));
        rate.is_some_and(|rate| 1.0 - rate / self.baseline.rate >= loss.share / 2.0)
    }

    fn intervals(&self, cells: &Range<usize>) -> Range<usize> {
        self.grid.cell(cells.start).start..self.grid.cell(cells.end - 1).end
    }
}
