//! One foreground actor, judged.

use std::ops::Range;

use super::JudgeOptions;
use super::baseline::Baseline;
use super::discards::Discards;
use super::effect::View;
use super::figures::{self, Recorded, Stretch};
use super::grid::Grid;
use super::low::{self, Lows};
use super::presence;
use super::reference::Reference;
use super::runs::{self, Piece};
use super::window::Window;
use crate::verdict::{
    BaselineFrom, Figures, Finding, Foreground, Reason, ServiceFigures, UnfinishedFigures,
};
use record::{PhaseName, RunRecord};

/// One actor's part of a verdict.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    /// The actor's part of the verdict.
    pub(super) foreground: Foreground,
    /// The finding of this actor.
    pub(super) finding: Finding,
    /// The reasons for it.
    pub(super) reasons: Vec<Reason>,
    /// How much slower it was while discarding: 1 − mean rate ÷ the baseline's. (Means, because
    /// the median of twenty scattered values scatters a quarter more.)
    pub(super) loss: Option<f64>,
    /// Whether it was low or slower while discarding, though that may prove nothing.
    pub(super) suffered: bool,
    /// Time lost in low runs of the delete phase, whatever their cause, in seconds.
    pub(super) low_lost_s: f64,
    /// Share of the baseline that was lost in the median cell of the delete phase.
    pub(super) delete_loss: f64,
    /// The share of its baseline's time that it lost beside discards; `None` if the baseline had
    /// them all the time.
    pub(super) baseline_lost: Option<f64>,
    /// Of an open loop that did not keep up before the deletion: its rate then, and the one that
    /// was asked for.
    pub(super) saturated: Option<[f64; 2]>,
    /// The intervals of its stalls.
    pub(super) stalled: Vec<Range<usize>>,
    /// Its index in the head.
    pub(super) index: usize,
}

/// The input that all actors of a part share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setting<'a> {
    pub(super) record: &'a RunRecord,
    pub(super) discards: &'a Discards,
    pub(super) window: &'a Window,
    pub(super) reference: &'a Reference,
    /// The baseline phase of another part, if this part has none.
    pub(super) borrowed: Option<&'a Range<usize>>,
    pub(super) options: &'a JudgeOptions,
}

/// Judges one actor.
pub(super) fn judge(setting: Setting<'_>, index: usize) -> Judged {
    let Setting { record, window, .. } = setting;
    let columns = &record.intervals.actors[index];
    let seen = Seen::of(setting, index);
    let mut judged = Judged {
        foreground: foreground(record, index, &seen.stretches, seen.baseline.as_ref()),
        finding: Finding::Inconclusive,
        reasons: Vec::new(),
        loss: None,
        suffered: false,
        low_lost_s: 0.0,
        delete_loss: 0.0,
        baseline_lost: Some(0.0),
        saturated: (seen.baseline.as_ref())
            .and_then(|baseline| low::saturated(record, &record.head.actors[index], baseline)),
        stalled: Vec::new(),
        index,
    };
    if window.all.clone().any(|i| columns.errors[i] > 0) {
        judged.reasons.push(Reason::ForegroundErrors);
    }
    let (Some(baseline), Some(laid)) = (&seen.baseline, &seen.laid) else {
        // One that began with the deletion had none to compare with.
        let idle = |range: &Range<usize>| range.clone().all(|i| columns.ops[i] == 0);
        let few = idle(&window.all) || window.baseline.as_ref().is_some_and(idle);
        judged.reasons.push(match few {
            true => Reason::TooFewOperations,
            false => Reason::NoSteadyBaseline,
        });
        return judged;
    };
    // Elsewhere than before the deletion, discards may be its own.
    let before = baseline.from == BaselineFrom::Phase;
    if before && !laid.sparse && !laid.by_age {
        judged.baseline_lost = baseline.lost_to_discards(&laid.grid, setting.discards);
    }
    let view = View::of(setting, baseline, laid);
    view.stalls_and_dips(&mut judged);
    view.stalls_by_others(&mut judged);
    view.losses(&mut judged);
    view.find(&mut judged);
    judged
}

/// The data that an actor is judged by.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) baseline: Option<Baseline>,
    pub(super) stretches: Stretches,
    /// `None` without a baseline.
    pub(super) laid: Option<Laid>,
}

/// The actor's rates against its baseline, and the low ones among them.
#[derive(Debug, Clone)]
pub(super) struct Laid {
    pub(super) grid: Grid,
    pub(super) lows: Lows,
    /// The cells in which it had begun and not yet ended.
    pub(super) cells: Range<usize>,
    pub(super) pieces: Vec<Piece>,
    /// Runs that discards of others explain.
    pub(super) by_others: Vec<Piece>,
    pub(super) by_age: bool,
    /// Too few operations for cells that say something.
    pub(super) sparse: bool,
}

impl Seen {
    /// Collects the data as [`judge`] uses it.
    pub(super) fn of(setting: Setting<'_>, index: usize) -> Seen {
        let Setting {
            record,
            discards,
            window,
            reference,
            borrowed,
            ..
        } = setting;
        let columns = &record.intervals.actors[index];
        let borrowed = borrowed.cloned();
        let baseline = Baseline::of(record, columns, discards, window, reference, borrowed);
        let mut stretches = Stretches::of(record, discards, window, baseline.as_ref());
        let before = stretches.baseline.as_ref();
        let p99_us = || figures::response(record, index, before?).p99_us;
        let laid = baseline
            .as_ref()
            .map(|baseline| lay(setting, index, baseline, p99_us));
        let last = laid
            .as_ref()
            .and_then(|laid| Some(laid.grid.cell(laid.cells.clone().last()?)));
        if let Some(last) = last.filter(|_| outlives_the_load(record, window)) {
            stretches.end_with_the_load(last.end);
        }
        Seen {
            baseline,
            stretches,
            laid,
        }
    }
}

/// Whether the record may go on after the load has ended: a run of trimbench's ends with its load.
fn outlives_the_load(record: &RunRecord, window: &Window) -> bool {
    !window.has_phases || record.head.scenario.get("imported_from").is_some()
}

fn lay(
    setting: Setting<'_>,
    index: usize,
    baseline: &Baseline,
    p99_us: impl FnOnce() -> Option<f64>,
) -> Laid {
    let Setting {
        record,
        discards,
        window,
        options,
        ..
    } = setting;
    let (info, columns) = (&record.head.actors[index], &record.intervals.actors[index]);
    let by_age = low::by_age(info, columns, baseline);
    let merge = if by_age {
        1
    } else {
        baseline.merge.unwrap_or(1)
    };
    let begin = if window.has_phases {
        window.all.start
    } else {
        // Idle at first; and the load began somewhere within its first interval.
        let first = window.all.clone().find(|&i| columns.ops[i] > 0);
        first.map_or(window.all.start, |i| i + 1)
    };
    let grid = Grid::new(record, columns, discards, begin..window.all.end, merge);
    let lows = if by_age {
        low::by_oldest(record, info, columns, &grid, baseline, p99_us())
    } else {
        low::by_rate(&grid, baseline, options.low)
    };
    let end = if !outlives_the_load(record, window) || by_age {
        window.all.end
    } else {
        window
            .all
            .clone()
            .rfind(|&i| columns.ops[i] > 0)
            .map_or(window.all.end, |i| i + 1)
    };
    let cells = grid.within(&(begin..end));
    // Cells of an actor too sparse for them are empty as often as not.
    let sparse = baseline.merge.is_none() && !by_age;
    let mut pieces = if sparse {
        Vec::new()
    } else {
        runs::pieces(&grid, &lows, cells.clone())
    };
    let mut cells = cells;
    // A fall that nothing follows, and no discards explain, is the end of the load.
    let last = (pieces.last()).filter(|piece| !piece.stall && piece.cells.end == cells.end);
    if let Some(fall) = last.filter(|_| outlives_the_load(record, window) && !by_age) {
        cells.end = fall.cells.start;
        pieces.pop();
    }
    let others = &discards.others;
    let mut by_others = Vec::new();
    if others.any() && !sparse {
        let beside = grid.beside(&others.covered, &others.wait_ms);
        by_others = runs::pieces(&beside, &lows, cells.clone());
        let own = |cell: usize| pieces.iter().any(|p| p.stall && p.cells.contains(&cell));
        by_others.retain(|piece| piece.stall && !piece.cells.clone().any(own));
    }
    Laid {
        by_others,
        grid,
        lows,
        cells,
        pieces,
        by_age,
        sparse,
    }
}

/// The stretches that figures are given for.
#[derive(Debug, Clone)]
pub(super) struct Stretches {
    pub(super) baseline: Option<Stretch>,
    /// The baseline phase, where that isn't the baseline.
    undisturbed: Option<Stretch>,
    pub(super) delete: Option<Stretch>,
    /// Of it the intervals with discards in service.
    discarding: Option<Stretch>,
    pub(super) recovery: Option<Stretch>,
}

impl Stretches {
    /// The time after the load has ended is no recovery.
    fn end_with_the_load(&mut self, end: usize) {
        let hull = self.recovery.as_ref().and_then(|after| after.spans.hull());
        if let Some(hull) = hull.filter(|hull| hull.end > end) {
            self.recovery = (hull.start < end).then(|| Stretch {
                spans: (hull.start..end).into(),
                latencies: Recorded::Intervals,
            });
        }
    }

    fn of(
        record: &RunRecord,
        discards: &Discards,
        window: &Window,
        baseline: Option<&Baseline>,
    ) -> Stretches {
        let phase = |range: &Option<Range<usize>>, name| {
            range.clone().map(|range| Stretch {
                spans: range.into(),
                latencies: Recorded::Phase(window.part, name),
            })
        };
        let chosen = baseline.map(|b| Stretch {
            spans: b.spans.clone(),
            latencies: Recorded::Intervals,
        });
        let beside = |range: Range<usize>| {
            let spans = discards.in_service(record, range);
            let latencies = Recorded::Stretches(window.part);
            let any = spans.hull().is_some();
            any.then_some(Stretch { spans, latencies })
        };
        if window.has_phases {
            let before = phase(&window.baseline, PhaseName::Baseline);
            let within = baseline.is_some_and(|b| b.from == BaselineFrom::WithoutDiscards);
            let (baseline, undisturbed) = if within {
                (chosen, before)
            } else {
                (before.or(chosen), None)
            };
            return Stretches {
                baseline,
                undisturbed,
                delete: phase(&window.delete, PhaseName::Delete),
                discarding: window.delete.clone().and_then(beside),
                recovery: phase(&window.recovery, PhaseName::Recovery),
            };
        }
        let first = discards.covered.iter().position(|&c| c);
        let last = discards.covered.iter().rposition(|&c| c);
        let stretch = |range: Range<usize>| Stretch {
            spans: range.into(),
            latencies: Recorded::Intervals,
        };
        let delete = first.zip(last).map(|(first, last)| first..last + 1);
        Stretches {
            baseline: chosen,
            undisturbed: None,
            discarding: delete.clone().and_then(beside),
            delete: delete.map(stretch),
            recovery: last.map(|last| stretch((last + 2).min(window.all.end)..window.all.end)),
        }
    }

    /// Returns those that a reader compares: before, while discarding (else while deleting), after.
    pub(super) fn compared(&self) -> [Option<&Stretch>; 3] {
        let beside = self.discarding.as_ref().or(self.delete.as_ref());
        [self.baseline.as_ref(), beside, self.recovery.as_ref()]
    }
}

fn foreground(
    record: &RunRecord,
    index: usize,
    stretches: &Stretches,
    baseline: Option<&Baseline>,
) -> Foreground {
    let info = &record.head.actors[index];
    let of = |stretch: &Option<Stretch>| {
        stretch
            .as_ref()
            .map_or(Figures::default(), |s| figures::response(record, index, s))
    };
    let service = |stretch: &Option<Stretch>| {
        stretch
            .as_ref()
            .and_then(|s| figures::service(record, index, s))
    };
    let phases = [&stretches.baseline, &stretches.delete, &stretches.recovery];
    let services = phases.map(service);
    let mut foreground = Foreground {
        actor: info.name.clone(),
        op: info.op.clone(),
        loop_kind: info.loop_kind,
        baseline_from: baseline.map(|b| b.from),
        baseline: of(&stretches.baseline),
        baseline_drift: baseline.map(|b| b.drift),
        undisturbed: stretches
            .undisturbed
            .as_ref()
            .map(|_| of(&stretches.undisturbed)),
        delete: of(&stretches.delete),
        discarding: stretches
            .discarding
            .as_ref()
            .map(|_| of(&stretches.discarding)),
        recovery: of(&stretches.recovery),
        service: services
            .iter()
            .any(Option::is_some)
            .then(|| ServiceFigures {
                baseline: services[0].unwrap_or_default(),
                delete: services[1].unwrap_or_default(),
                discarding: service(&stretches.discarding),
                recovery: services[2].unwrap_or_default(),
            }),
        ops_ratio: None,
        lost_s: None,
        detectable: None,
        stall: None,
        dips: Vec::new(),
        unfinished: unfinished(record, index),
        stall_by_others: None,
        cpu_wait: presence::cpu_wait(
            record,
            &record.intervals.actors[index],
            stretches.baseline.as_ref().map(|s| &s.spans),
            stretches.delete.as_ref().map(|s| &s.spans),
        ),
    };
    if let Some(baseline) = baseline {
        foreground.baseline.ops_per_s = Some(baseline.rate);
    }
    foreground
}

fn unfinished(record: &RunRecord, index: usize) -> Option<UnfinishedFigures> {
    let all = &record.end.as_ref()?.unfinished;
    let of_actor = all.iter().find(|u| u.actor == index && u.operations > 0)?;
    Some(UnfinishedFigures {
        operations: of_actor.operations,
        oldest_us: of_actor.oldest_us,
    })
}
