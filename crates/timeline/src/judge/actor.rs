//! One foreground actor, judged.

use std::ops::Range;

use super::JudgeOptions;
use super::baseline::Baseline;
use super::discards::Discards;
use super::effect::View;
use super::figures::{self, Stretch};
use super::grid::Grid;
use super::low;
use super::runs;
use super::stats::Loss;
use super::window::Window;
use crate::record::{PhaseName, RunRecord};
use crate::verdict::{Figures, Finding, Foreground, Reason, ServiceFigures, UnfinishedFigures};

/// One actor's part of a verdict.
#[derive(Debug, Clone)]
pub(super) struct Judged {
    /// What goes into the verdict.
    pub(super) foreground: Foreground,
    /// What this actor found.
    pub(super) finding: Finding,
    /// Why.
    pub(super) reasons: Vec<Reason>,
    /// How much slower it was while discarding.
    pub(super) loss: Option<Loss>,
    /// Time lost in low runs of the delete phase, whatever their cause, in seconds.
    pub(super) low_lost_s: f64,
    /// Share of the baseline that was lost in the median cell of the delete phase.
    pub(super) delete_loss: f64,
    /// How far its baseline drifts over its length, as a share of its mean.
    pub(super) drift: f64,
    /// The intervals of its stalls.
    pub(super) stalled: Vec<Range<usize>>,
    /// Its index in the head.
    pub(super) index: usize,
}

/// Judges one actor. `borrowed` is another part's baseline phase, for want of an own one.
pub(super) fn judge(
    record: &RunRecord,
    index: usize,
    discards: &Discards,
    window: &Window,
    borrowed: Option<Range<usize>>,
    options: &JudgeOptions,
) -> Judged {
    let columns = &record.intervals.actors[index];
    let baseline = Baseline::of(record, columns, discards, window, borrowed);
    let stretches = Stretches::of(discards, window, baseline.as_ref());
    let mut judged = Judged {
        foreground: foreground(record, index, &stretches, baseline.as_ref()),
        finding: Finding::Inconclusive,
        reasons: Vec::new(),
        loss: None,
        low_lost_s: 0.0,
        delete_loss: 0.0,
        drift: baseline.as_ref().map_or(0.0, |b| b.drift),
        stalled: Vec::new(),
        index,
    };
    if window.all.clone().any(|i| columns.errors[i] > 0) {
        judged.reasons.push(Reason::ForegroundErrors);
    }
    let Some(baseline) = baseline else {
        let any = window.all.clone().any(|i| columns.ops[i] > 0);
        judged.reasons.push(if any {
            Reason::NoSteadyBaseline
        } else {
            Reason::TooFewOperations
        });
        return judged;
    };
    let by_age = low::by_age(&record.head.actors[index], columns, &baseline);
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
        let p99_us = judged.foreground.baseline.p99_us;
        low::by_oldest(
            record,
            &record.head.actors[index],
            columns,
            &grid,
            &baseline,
            p99_us,
        )
    } else {
        low::by_rate(&grid, &baseline, options.low)
    };
    // A record without phases may have gone on after the load had ended.
    let end = if window.has_phases || by_age {
        window.all.end
    } else {
        window
            .all
            .clone()
            .rfind(|&i| columns.ops[i] > 0)
            .map_or(window.all.end, |i| i + 1)
    };
    let cells = grid.within(&(begin..end));
    let view = View {
        record,
        window,
        baseline: &baseline,
        grid: &grid,
        lows: &lows,
    };
    // Cells of an actor too sparse for them are empty as often as not.
    let sparse = baseline.merge.is_none() && !by_age;
    let pieces = if sparse {
        Vec::new()
    } else {
        runs::pieces(&grid, &lows, cells.clone())
    };
    view.stalls_and_dips(&mut judged, &pieces);
    view.losses(&mut judged, cells, &pieces);
    view.find(&mut judged, &pieces, by_age, sparse);
    judged
}

/// The stretches that figures are given for.
struct Stretches {
    baseline: Option<Stretch>,
    delete: Option<Stretch>,
    recovery: Option<Stretch>,
}

impl Stretches {
    fn of(discards: &Discards, window: &Window, baseline: Option<&Baseline>) -> Stretches {
        let phase = |range: &Option<Range<usize>>, name| {
            let phase = Some((window.part, name));
            range.clone().map(|range| Stretch { range, phase })
        };
        let chosen = baseline.map(|b| Stretch {
            range: b.range.clone(),
            phase: None,
        });
        if window.has_phases {
            return Stretches {
                baseline: phase(&window.baseline, PhaseName::Baseline).or(chosen),
                delete: phase(&window.delete, PhaseName::Delete),
                recovery: phase(&window.recovery, PhaseName::Recovery),
            };
        }
        let first = discards.covered.iter().position(|&c| c);
        let last = discards.covered.iter().rposition(|&c| c);
        let stretch = |range: Range<usize>| Stretch { range, phase: None };
        Stretches {
            baseline: chosen,
            delete: first
                .zip(last)
                .map(|(first, last)| stretch(first..last + 1)),
            recovery: last.map(|last| stretch((last + 2).min(window.all.end)..window.all.end)),
        }
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
    let services = [&stretches.baseline, &stretches.delete, &stretches.recovery].map(service);
    let mut foreground = Foreground {
        actor: info.name.clone(),
        op: info.op.clone(),
        loop_kind: info.loop_kind,
        baseline_from: baseline.map(|b| b.from),
        baseline: of(&stretches.baseline),
        delete: of(&stretches.delete),
        recovery: of(&stretches.recovery),
        service: services
            .iter()
            .any(Option::is_some)
            .then(|| ServiceFigures {
                baseline: services[0].unwrap_or_default(),
                delete: services[1].unwrap_or_default(),
                recovery: services[2].unwrap_or_default(),
            }),
        ops_ratio: None,
        lost_s: None,
        stall: None,
        dips: Vec::new(),
        unfinished: unfinished(record, index),
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
