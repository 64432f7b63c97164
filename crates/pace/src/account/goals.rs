//! Whether a goal was kept, by how much, and by whose I/O that was measured.

use serde::Serialize;
use std::time::Duration;

use crate::account::Observed;
use crate::account::readers::{Measured, Readers, Worst};
use crate::goal::{Goal, TOLERANCE};
use crate::quantity::Share;

/// The fewest canary reads from which a latency is judged.
const ENOUGH: u64 = 20;

/// One part of a goal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// The share of others' throughput that it may cost.
    Slowdown(f64),
    /// The 99.9th percentile of what it may add to a read's latency.
    MaxLatency(Duration),
    /// The time in which it must be done.
    Deadline(Duration),
    /// The most by which the share of the time may rise that a protected group waits.
    Pressure(f64),
}

/// Whether it was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kept {
    /// The figure is within the limit.
    Met,
    /// The figure is beyond the limit, by less than it may be off. Or it is within the limit, but may be
    /// off by more than that, or is beyond it if all that may be ours counts.
    Unsure,
    /// The figure is beyond the limit, whatever it may be off.
    Missed,
    /// Nobody else used the drive, so that the goal had nobody to protect.
    NobodyElse,
    /// There was too little to measure it by.
    NotMeasured,
}

/// Whose I/O a figure was measured on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Witness {
    /// The drive's readers, our canary not among them.
    Readers,
    /// Those who flush: programs that sync.
    Flushers,
    /// Our canary's reads.
    Canary,
    /// The clock.
    Clock,
    /// The protected control group.
    Group,
}

/// How one part of a goal was kept.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GoalResult {
    /// The limit that was asked for.
    pub limit: Limit,
    /// Whether it was kept.
    pub kept: Kept,
    /// The measured value: a share, or seconds. `None` if it wasn't measured.
    pub measured: Option<Measured>,
    /// Whose I/O it was measured on.
    pub witness: Option<Witness>,
    /// When a goal that was missed was first missed, in seconds after the first byte was freed.
    pub first_missed_s: Option<f64>,
    /// Where it was worst.
    pub worst: Option<Worst>,
}

impl GoalResult {
    fn of(limit: Limit) -> GoalResult {
        GoalResult {
            limit,
            kept: Kept::NotMeasured,
            measured: None,
            witness: None,
            first_missed_s: None,
            worst: None,
        }
    }

    /// Judges by a measured value, which is to be at most `most`. A share whose interval reaches twice as
    /// far tells nothing.
    fn measured(self, witness: Witness, found: Measured, most: f64) -> GoalResult {
        let is_vague = matches!(self.limit, Limit::Slowdown(_)) && found.high > 2.0 * most;
        GoalResult {
            kept: match () {
                () if found.value <= most && !is_vague => Kept::Met,
                () if found.low <= most => Kept::Unsure,
                () => Kept::Missed,
            },
            measured: Some(found),
            witness: Some(witness),
            ..self
        }
    }
}

pub(super) fn judge(
    goal: &Goal,
    observed: &Observed,
    who: [&Readers; 2],
    elapsed: Duration,
) -> Vec<GoalResult> {
    let mut all = vec![slowdown(goal.share(), observed, who)];
    all.extend(goal.max_latency.map(|limit| latency(limit, observed)));
    all.extend(goal.deadline.map(|limit| deadline(limit, elapsed)));
    all.extend(goal.max_pressure.map(|limit| pressure(limit, observed)));
    all
}

/// Judges by who lost more, the readers or those who flush. Where both are an open loop, the canary
/// is asked.
fn slowdown(share: Share, observed: &Observed, who: [&Readers; 2]) -> GoalResult {
    let result = GoalResult::of(Limit::Slowdown(share.0));
    let witnesses = [Witness::Readers, Witness::Flushers];
    let closed = [observed.readers, observed.flushers]
        .into_iter()
        .zip(witnesses.into_iter().zip(who))
        .filter_map(|(of, who)| Some((of.filter(|of| !of.open_loop)?, who)))
        .max_by(|(a, _), (b, _)| a.lost.value.total_cmp(&b.lost.value));
    if let Some((loss, (witness, who))) = closed {
        let beyond = |worst: &Worst| worst.value > (share + TOLERANCE).0;
        let losses = || who.losses();
        let result = result.measured(witness, loss.lost, share.0);
        let kept = match result.kept {
            Kept::Met if loss.lost_with_pauses > share.0 => Kept::Unsure,
            kept => kept,
        };
        let first = losses().find(beyond).map(|window| window.at_s);
        return GoalResult {
            kept,
            first_missed_s: first.filter(|_| kept == Kept::Missed),
            // The rest of a second at the end can be worse than every whole one.
            worst: losses()
                .max_by(|a, b| a.value.total_cmp(&b.value))
                .filter(|worst| worst.value >= loss.lost.value),
            ..result
        };
    }
    match observed.canary.map(|canary| canary.held_share) {
        Some(Some(held)) => result.measured(Witness::Canary, held, share.0),
        Some(None) if observed.canary.is_some_and(|canary| canary.reads >= ENOUGH) => GoalResult {
            kept: Kept::NobodyElse,
            ..result
        },
        _ => result,
    }
}

/// Judges a latency by the waits beside our own discards. The goal does not cover waits with
/// another cause.
fn latency(limit: Duration, observed: &Observed) -> GoalResult {
    let result = GoalResult::of(Limit::MaxLatency(limit));
    let Some(canary) = observed.canary.filter(|canary| canary.reads >= ENOUGH) else {
        return result;
    };
    let value = canary.p999_own.as_secs_f64();
    let found = Measured {
        value,
        low: value,
        high: canary.p999_added.as_secs_f64().max(value),
    };
    let result = result.measured(Witness::Canary, found, limit.as_secs_f64());
    GoalResult {
        first_missed_s: canary.first_over_s.filter(|_| result.kept == Kept::Missed),
        worst: canary.worst_own_s.map(|at_s| Worst {
            at_s,
            length_s: 0.0,
            value,
        }),
        ..result
    }
}

/// Judges by the group's own waits, whoever caused them.
fn pressure(limit: f64, observed: &Observed) -> GoalResult {
    let result = GoalResult::of(Limit::Pressure(limit));
    let Some(group) = observed.group else {
        return result;
    };
    let value = (group.beside - group.before).max(0.0);
    let found = Measured {
        value,
        low: value,
        high: value,
    };
    result.measured(Witness::Group, found, limit)
}

fn deadline(limit: Duration, elapsed: Duration) -> GoalResult {
    let took = elapsed.as_secs_f64();
    let found = Measured {
        value: took,
        low: took,
        high: took,
    };
    GoalResult::of(Limit::Deadline(limit)).measured(Witness::Clock, found, limit.as_secs_f64())
}
