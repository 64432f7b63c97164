//! Whether discards are a barrier: nothing else completes during one, and one queue
//! depth of operations between two.
//!
//! The word follows from two figures with their intervals: the operations completed per
//! discard, against the depth; and the share of the time that discards took from others.

use std::ops::Range;

use super::actor::Judged;
use super::discards::Discards;
use super::stats::mean;
use crate::compare::student_95;
use crate::verdict::{Between, Fit};
use record::RunRecord;

/// Discards that wait one by one for this share of a stall are in service all the time.
const ALL_THE_TIME: f64 = 0.9;
/// Fewer discards than this tell nothing.
const LEAST_DISCARDS: u64 = 20;
/// A drive that wrote in this share of the stalled intervals may have been flushed as often. Then
/// discards waited for flushes, and reads that went on meanwhile say nothing about discards.
const WROTE: f64 = 0.1;

/// Adds what the stalls of a closed loop tell.
pub(super) fn add_to(fit: &mut Fit, record: &RunRecord, discards: &Discards, actor: &Judged) {
    let rows = rows(record, discards, actor);
    let depth = actor.foreground.loop_kind.depth();
    fit.depth = Some(depth);
    let commands: f64 = rows.iter().map(|row| row.commands).sum();
    let per_discard: Vec<(f64, f64)> = rows.iter().map(|r| (r.ops, r.commands)).collect();
    (fit.ops_per_discard, fit.ops_per_discard_95) = ratio(&per_discard);
    if let Some(usual) = actor.foreground.baseline.ops_per_s {
        let kept: Vec<(f64, f64)> = rows.iter().map(|r| (r.ops, usual * r.seconds)).collect();
        let (kept, kept_95) = ratio(&kept);
        fit.blocked = kept.map(|kept| (1.0 - kept).clamp(0.0, 1.0));
        fit.blocked_95 =
            kept_95.map(|[low, high]| [1.0 - high, 1.0 - low].map(|x| x.clamp(0.0, 1.0)));
    }
    // Several drives take turns; what passes between two discards isn't one depth then.
    if discards.devices == 1 && commands >= LEAST_DISCARDS as f64 {
        let alone = wrote(record, actor) < WROTE;
        fit.barrier = word(fit).filter(|&barrier| barrier || alone);
    }
}

/// Returns the share of the stalled intervals in which a leaf device wrote.
fn wrote(record: &RunRecord, actor: &Judged) -> f64 {
    let columns = record.intervals.devices.iter().zip(&record.head.devices);
    let leaves: Vec<_> = columns.filter(|(_, device)| device.leaf).collect();
    let stalled = || actor.stalled.iter().cloned().flatten();
    let with = stalled().filter(|&i| leaves.iter().any(|(columns, _)| columns.writes[i] > 0));
    with.count() as f64 / stalled().count().max(1) as f64
}

fn word(fit: &Fit) -> Option<bool> {
    match fit.between() {
        Between::OneDepth => Some(true),
        Between::Other => fit.serves_others().then_some(false),
        Between::Unclear => None,
    }
}

/// One interval of a stall.
struct Row {
    ops: f64,
    commands: f64,
    seconds: f64,
}

/// The full intervals of the stalls: those between the first and the last of each, so that
/// what ran before doesn't count. A stall with pauses between its discards tells nothing.
fn rows(record: &RunRecord, discards: &Discards, actor: &Judged) -> Vec<Row> {
    let columns = &record.intervals.actors[actor.index];
    let long = actor.stalled.iter().filter(|range| range.len() > 2);
    let full = long.map(|range| range.start + 1..range.end - 1);
    let waits_known = discards.waits_s() > 0.0;
    let in_service = |full: &Range<usize>| {
        let wait_ms: u64 = discards.wait_ms[full.clone()].iter().sum();
        let seconds = record.intervals.seconds[full.clone()].iter();
        let length_s: f64 = seconds.copied().map(f64::from).sum();
        !waits_known || wait_ms as f64 / 1e3 >= ALL_THE_TIME * length_s
    };
    let full = full.filter(in_service).flatten();
    full.map(|i| Row {
        ops: f64::from(columns.ops[i]),
        commands: f64::from(discards.commands[i]),
        seconds: f64::from(record.intervals.seconds[i]),
    })
    .collect()
}

/// The ratio of two sums, and its 95 % interval from how each row departs from it.
fn ratio(rows: &[(f64, f64)]) -> (Option<f64>, Option<[f64; 2]>) {
    let (above, below) = rows
        .iter()
        .fold((0.0, 0.0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
    if below <= 0.0 {
        return (None, None);
    }
    let ratio = above / below;
    let count = rows.len() as f64;
    let squares: Vec<f64> = rows
        .iter()
        .map(|row| (row.0 - ratio * row.1).powi(2))
        .collect();
    let interval = mean(&squares).filter(|_| rows.len() > 1).map(|square| {
        let free = count - 1.0;
        let half = student_95(free) * (square / free).sqrt() * count / below;
        [(ratio - half).max(0.0), ratio + half]
    });
    (Some(ratio), interval)
}
