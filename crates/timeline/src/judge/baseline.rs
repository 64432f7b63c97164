//! What the foreground did when nobody disturbed it.

use std::ops::Range;

use super::discards::Discards;
use super::grid::{Grid, merged};
use super::stats::{drift, mean, median};
use super::window::Window;
use crate::record::{ActorColumns, RunRecord};
use crate::verdict::BaselineFrom;

/// A steady stretch drifts by at most this share of its mean.
pub(super) const STEADY: f64 = 0.1;

/// Shortest and longest stretch that is taken from a record without phases, in seconds.
const STRETCH_S: (f64, f64) = (5.0, 10.0);

/// One actor's baseline.
#[derive(Debug, Clone)]
pub(super) struct Baseline {
    /// Where it was taken.
    pub(super) from: BaselineFrom,
    /// Its intervals.
    pub(super) range: Range<usize>,
    /// Operations per second: the median over its cells.
    pub(super) rate: f64,
    /// How many intervals make a cell; `None` if the actor is too sparse for cells.
    pub(super) merge: Option<usize>,
    /// How far it drifts over its length, as a share of its mean.
    pub(super) drift: f64,
}

impl Baseline {
    /// Whether it drifts by no more than 10 %.
    pub(super) fn steady(&self) -> bool {
        self.drift <= STEADY
    }

    /// An actor's baseline: its phase; else the longest steady 5–10 s before
    /// the first significant discard; else the longest steady 5–10 s at the
    /// record's end, after the last one; else none. `borrowed` is another
    /// part's baseline phase, for a control that has none of its own.
    pub(super) fn of(
        record: &RunRecord,
        actor: &ActorColumns,
        discards: &Discards,
        window: &Window,
        borrowed: Option<Range<usize>>,
    ) -> Option<Baseline> {
        let rates = Rates { record, actor };
        for phase in [window.baseline.clone(), borrowed].into_iter().flatten() {
            let made = rates.baseline(BaselineFrom::Phase, phase, discards);
            if made.is_some() {
                return made;
            }
        }
        let begin = window.all.clone().find(|&i| actor.ops[i] > 0)?;
        let end = window.all.clone().rfind(|&i| actor.ops[i] > 0)? + 1;
        let first = discards
            .covered
            .iter()
            .position(|&c| c)
            .unwrap_or(end)
            .min(end);
        if let Some(stretch) = rates.steady_suffix(begin, first) {
            return rates.baseline(BaselineFrom::BeforeFirstDiscard, stretch, discards);
        }
        // The interval right after the last discard may still be part of the stall.
        let after = discards.covered.iter().rposition(|&c| c)? + 2;
        let stretch = rates.steady_suffix(after.max(begin), end)?;
        rates.baseline(BaselineFrom::Recovery, stretch, discards)
    }
}

struct Rates<'a> {
    record: &'a RunRecord,
    actor: &'a ActorColumns,
}

impl Rates<'_> {
    fn seconds(&self, i: usize) -> f64 {
        f64::from(self.record.intervals.seconds[i])
    }

    fn rates(&self, range: &Range<usize>) -> Vec<f64> {
        range
            .clone()
            .map(|i| f64::from(self.actor.ops[i]) / self.seconds(i))
            .collect()
    }

    /// The longest steady stretch of 5–10 s that ends before `end`.
    fn steady_suffix(&self, begin: usize, end: usize) -> Option<Range<usize>> {
        const ROUNDING_S: f64 = 1e-3;
        let mut length = 0.0;
        let mut best = None;
        for start in (begin..end).rev() {
            length += self.seconds(start);
            if length > STRETCH_S.1 + ROUNDING_S || !self.actor.running[start] {
                break;
            }
            let range = start..end;
            if length >= STRETCH_S.0 - ROUNDING_S && drift(&self.rates(&range)) <= STEADY {
                best = Some(range);
            }
        }
        best
    }

    fn baseline(
        &self,
        from: BaselineFrom,
        range: Range<usize>,
        discards: &Discards,
    ) -> Option<Baseline> {
        let range = self.while_running(range);
        let rates = self.rates(&range);
        let mean = mean(&rates).filter(|&rate| rate > 0.0)?;
        let merge = merged(mean, self.record.head.interval_ms / 1e3);
        // The cells of the baseline are laid like all others, so the grid is made for it alone.
        let grid = Grid::new(
            self.record,
            self.actor,
            discards,
            range.clone(),
            merge.unwrap_or(1),
        );
        let rate = match merge {
            Some(_) => median(grid.rates())
                .filter(|&rate| rate > 0.0)
                .unwrap_or(mean),
            None => mean,
        };
        Some(Baseline {
            from,
            range,
            rate,
            merge,
            drift: drift(&rates),
        })
    }

    /// An actor that starts late or stops early leaves intervals without it at the ends.
    fn while_running(&self, range: Range<usize>) -> Range<usize> {
        let begin = range
            .clone()
            .find(|&i| self.actor.running[i])
            .unwrap_or(range.end);
        let end = range
            .clone()
            .rfind(|&i| self.actor.running[i])
            .map_or(begin, |i| i + 1);
        begin..end.max(begin)
    }
}
