//! The baseline: the foreground's rate when nothing disturbed it.

use std::ops::Range;

use super::discards::Discards;
use super::grid::{Grid, merged};
use super::reference::{self, LEAST_FREE_S, Reference};
use super::spans::Spans;
use super::stats::{drift, mean, median};
use super::window::Window;
use crate::verdict::{BaselineFrom, STEADY};
use record::{ActorColumns, RunRecord};

/// Shortest and longest stretch that is taken from a record without phases, in seconds.
const STRETCH_S: (f64, f64) = (5.0, 10.0);

/// The least number of intervals in such a stretch, however long they are (`iostat 10`). In a
/// single one the foreground may have begun, and one alone can't show that it is steady.
const LEAST_INTERVALS: usize = 2;

/// Seconds before the first discard in which the deleter may already disturb others.
const DELETER_S: f64 = 1.0 - 1e-3;

/// The least number of cells between discards that show an actor's rate.
const LEAST_CELLS: usize = 5;

/// One actor's baseline.
#[derive(Debug, Clone)]
pub(super) struct Baseline {
    /// Where it was taken.
    pub(super) from: BaselineFrom,
    /// Its intervals.
    pub(super) spans: Spans,
    /// Operations per second: the median over its cells.
    pub(super) rate: f64,
    /// How many intervals make a cell; `None` if the actor is too sparse for cells.
    pub(super) merge: Option<usize>,
    /// The drift, as a share of its mean: over its length. Where stretches with and without
    /// discards alternate, it is the drift from the middle of the latter to that of the former.
    pub(super) drift: f64,
}

impl Baseline {
    /// Returns whether it drifts by no more than 10 %.
    pub(super) fn steady(&self) -> bool {
        self.drift <= STEADY
    }

    /// Returns the share of its time that the actor lost beside discards, as its cells show it
    /// against those without any; `None` if discards were in service all the time.
    pub(super) fn lost_to_discards(&self, grid: &Grid, discards: &Discards) -> Option<f64> {
        let seen = |i: usize| discards.seen[grid.cell(i)].contains(&true);
        let near = |i: usize| (i.saturating_sub(1)..(i + 2).min(grid.len())).any(seen);
        let (with, without): (Vec<usize>, Vec<usize>) =
            grid.among(&self.spans).partition(|&i| near(i));
        let seconds = |cells: &[usize]| cells.iter().map(|&i| grid.seconds(i)).sum::<f64>();
        let rates = |cells: &[usize]| cells.iter().map(|&i| grid.rate(i)).collect::<Vec<f64>>();
        let Some(with_rate) = mean(&rates(&with)) else {
            return Some(0.0);
        };
        let usual = mean(&rates(&without)).filter(|&usual| usual > 0.0)?;
        let share = seconds(&with) / (seconds(&with) + seconds(&without));
        Some(share * (1.0 - with_rate / usual).max(0.0))
    }

    /// Returns an actor's baseline, from the first of these that gives one:
    ///
    /// - for a continuous deleter, only the stretches without discards that `reference` names;
    /// - its baseline phase, without the discards of others. A log's phase was made from the moment of
    ///   its deletion: if that one drifts, a steady stretch as below goes before it;
    /// - `borrowed`, the baseline phase of another part, for a control that has none of its own;
    /// - the longest steady 5–10 s before the first discard in service, or before the last second of
    ///   that time;
    /// - the longest steady 5–10 s at the record's end, after the last one.
    pub(super) fn of(
        record: &RunRecord,
        actor: &ActorColumns,
        discards: &Discards,
        window: &Window,
        reference: &Reference,
        borrowed: Option<Range<usize>>,
    ) -> Option<Baseline> {
        let rates = Rates { record, actor };
        if let Reference::Within(work) = reference {
            return rates.without_discards(work, discards);
        }
        for phase in [window.baseline.clone(), borrowed].into_iter().flatten() {
            let spared = discards.others.spare(&phase, record);
            let spans = spared.unwrap_or_else(|| phase.into());
            let made = rates.baseline(BaselineFrom::Phase, spans, discards);
            if let Some(made) = made {
                let is_log = record.head.run.is_none();
                let drifts = made.merge.is_some() && !made.steady();
                let other = (is_log && drifts).then(|| rates.steady_stretch(window, discards));
                return other.flatten().or(Some(made));
            }
        }
        rates.steady_stretch(window, discards)
    }
}

struct Rates<'a> {
    record: &'a RunRecord,
    actor: &'a ActorColumns,
}

impl Rates<'_> {
    /// The longest steady 5–10 s before the first discard, or else after the last.
    fn steady_stretch(&self, window: &Window, discards: &Discards) -> Option<Baseline> {
        let (record, actor) = (self.record, self.actor);
        let begin = window.all.clone().find(|&i| actor.ops[i] > 0)?;
        let end = window.all.clone().rfind(|&i| actor.ops[i] > 0)? + 1;
        let first = discards
            .covered
            .iter()
            .position(|&c| c)
            .unwrap_or(end)
            .min(end);
        // Figures of devices that are spread over intervals tell no closer when discards began.
        let unsure = record.head.devices_spread_over() - 1;
        let first = first.saturating_sub(unsure);
        // A deleter works before its first discards come.
        let mut earlier = (begin..first).rev();
        let skipped = earlier.find(|&i| self.length(i..first) >= DELETER_S);
        for end in [Some(first), skipped].into_iter().flatten() {
            if let Some(stretch) = self.steady_suffix(begin, end) {
                return self.baseline(BaselineFrom::BeforeFirstDiscard, stretch.into(), discards);
            }
        }
        // The interval right after the last discard may still be part of the stall.
        let after = discards.covered.iter().rposition(|&c| c)? + 2 + unsure;
        let stretch = self.steady_suffix(after.max(begin), end)?;
        self.baseline(BaselineFrom::Recovery, stretch.into(), discards)
    }

    fn seconds(&self, i: usize) -> f64 {
        f64::from(self.record.intervals.seconds[i])
    }

    fn length(&self, intervals: Range<usize>) -> f64 {
        intervals.map(|i| self.seconds(i)).sum()
    }

    fn rates(&self, intervals: impl Iterator<Item = usize>) -> Vec<f64> {
        intervals
            .map(|i| f64::from(self.actor.ops[i]) / self.seconds(i))
            .collect()
    }

    /// Returns the longest steady stretch of 5–10 s that ends before `end`.
    fn steady_suffix(&self, begin: usize, end: usize) -> Option<Range<usize>> {
        const ROUNDING_S: f64 = 1e-3;
        let mut length = 0.0;
        let mut best = None;
        for start in (begin..end).rev() {
            length += self.seconds(start);
            let range = start..end;
            let too_long = length > STRETCH_S.1 + ROUNDING_S && range.len() > LEAST_INTERVALS;
            if too_long || !self.actor.running[start] {
                break;
            }
            let enough = length >= STRETCH_S.0 - ROUNDING_S && range.len() >= LEAST_INTERVALS;
            if enough && drift(&self.rates(range.clone())) <= STEADY {
                best = Some(range);
            }
        }
        best
    }

    /// Returns the baseline of a continuous deleter: the stretches of its work without discards. An
    /// actor's cells may be too long to lie between discards. Then it is judged by the age of its
    /// oldest operation, as all sparse actors are.
    fn without_discards(&self, work: &Range<usize>, discards: &Discards) -> Option<Baseline> {
        let from = BaselineFrom::WithoutDiscards;
        let free = reference::free(discards, work, 1);
        let mut made = self.baseline(from, free, discards)?;
        if let Some(merge) = made.merge.filter(|&merge| merge > 1) {
            let free = reference::free(discards, work, merge);
            let apart = self.baseline(from, free, discards);
            let enough = |b: &Baseline| {
                let grid = self.grid(&b.spans, discards, merge);
                let cells = grid.iter().flat_map(|grid| grid.among(&b.spans)).count();
                cells >= LEAST_CELLS && b.spans.seconds(self.record) >= LEAST_FREE_S - 1e-3
            };
            match apart.filter(enough) {
                Some(apart) => {
                    made = Baseline {
                        merge: Some(merge),
                        ..apart
                    }
                }
                None => (made.rate, made.merge) = (self.mean_rate(&made.spans)?, None),
            }
        }
        let disturbed = Spans::filtered(work.clone(), |i| discards.covered[i]).centre();
        if let (Some(with), Some(without)) = (disturbed, made.spans.centre()) {
            made.drift *= ((with - without).abs() / work.len() as f64).min(1.0);
        }
        Some(made)
    }

    fn baseline(&self, from: BaselineFrom, spans: Spans, discards: &Discards) -> Option<Baseline> {
        // An actor that starts late or stops early leaves intervals without it.
        let spans = spans.retained(|i| self.actor.running[i]);
        let mean = self.mean_rate(&spans)?;
        let merge = merged(mean, self.record.head.interval_ms / 1e3);
        // The cells of the baseline are laid like all others, so the grid is made for it alone.
        let grid = self.grid(&spans, discards, merge.unwrap_or(1))?;
        let rate = match merge {
            Some(_) => median(grid.among(&spans).map(|i| grid.rate(i)))
                .filter(|&rate| rate > 0.0)
                .unwrap_or(mean),
            None => mean,
        };
        let drift = drift(&self.rates(spans.intervals()));
        Some(Baseline {
            from,
            spans,
            rate,
            merge,
            drift,
        })
    }

    fn grid(&self, spans: &Spans, discards: &Discards, merge: usize) -> Option<Grid> {
        let all = spans.hull()?;
        Some(Grid::new(self.record, self.actor, discards, all, merge))
    }

    /// Returns the mean of the intervals' rates; `None` if nothing was done.
    fn mean_rate(&self, spans: &Spans) -> Option<f64> {
        mean(&self.rates(spans.intervals())).filter(|&rate| rate > 0.0)
    }
}
