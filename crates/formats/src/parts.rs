//! The parts that the records of all readers share.

use record::{
    DeviceColumns, End, EndReason, Event, EventKind, Head, Host, Line, Phase, PhaseName, PushError,
    RUN_SCHEMA, RunRecord, Target,
};

use crate::Moment;

/// Longest baseline before a deletion whose time the user gave, in seconds.
const BASELINE_S: f64 = 10.0;

/// The head of a record of these programs' texts, without actors and devices.
pub(crate) fn head(programs: &str, started_unix_s: f64, interval_ms: f64) -> Head {
    Head {
        schema: RUN_SCHEMA.to_owned(),
        run: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s,
        host: Host::default(),
        target: Target::default(),
        scenario: serde_json::json!({ "imported_from": programs }),
        interval_ms,
        actors: vec![],
        devices: vec![],
    }
}

/// Adds warnings, each once.
pub(crate) fn warn(
    record: &mut RunRecord,
    warnings: impl IntoIterator<Item = String>,
) -> Result<(), PushError> {
    for warning in warnings {
        if !(record.events.iter()).any(|event| event.detail.as_ref() == Some(&warning)) {
            push_event(record, 0.0, EventKind::Warning, Some(warning))?;
        }
    }
    Ok(())
}

fn push_event(
    record: &mut RunRecord,
    at_s: f64,
    kind: EventKind,
    detail: Option<String>,
) -> Result<(), PushError> {
    record.push(&Line::Event(Event { at_s, kind, detail }))
}

/// Ends a record that has its intervals. If the user gave the moment when the deletion began, what
/// was done before it, for 10 s at most, is the baseline.
pub(crate) fn finish(record: &mut RunRecord, deletion: Option<Moment>) -> Result<(), PushError> {
    let end_s = record.intervals.end_s();
    if let Some(deletion) = deletion {
        let told_s = deletion.in_record(record).clamp(0.0, end_s);
        let delete_s = first_discard(record, told_s).unwrap_or(told_s);
        if delete_s < told_s {
            let earlier = record::units::seconds(told_s - delete_s);
            let why = format!(
                "Discards began {earlier} before the moment given with --at, which is within its error: the \
                 deletion is taken to have begun with them."
            );
            warn(record, [why])?;
        }
        if let Some(last_s) = all_discards_before(record, delete_s) {
            let earlier = record::units::seconds(delete_s - last_s);
            let why = format!(
                "All discards of the log came before the moment given with --at, the last {earlier} before \
                 it; leave --at out, and the deletion is found by them."
            );
            warn(record, [why])?;
        }
        let later_s = first_from(record, delete_s).map_or(0.0, |first_s| first_s - delete_s);
        if later_s > LATE_S {
            let later = record::units::seconds(later_s);
            let why = format!(
                "The first discards came {later} after the moment given with --at; if the deletion began \
                 later, give that moment."
            );
            warn(record, [why])?;
        }
        let actors = &record.intervals.actors;
        let busy = |i: &usize| actors.iter().any(|a| a.ops[*i] > 0);
        let busy = (0..record.intervals.len()).find(busy);
        let begin_s = busy.map_or(0.0, |i| record.intervals.at_s[i]);
        let baseline_s = (delete_s - BASELINE_S).max(begin_s).min(delete_s);
        let recovery = discarded_until(record, delete_s).map(|at_s| (PhaseName::Recovery, at_s));
        let phases = [
            (PhaseName::Settle, 0.0),
            (PhaseName::Baseline, baseline_s),
            (PhaseName::Delete, delete_s),
        ];
        for (name, at_s) in phases.into_iter().chain(recovery) {
            let part = Default::default();
            record.push(&Line::Phase(Phase { name, part, at_s }))?;
        }
        push_event(record, delete_s, EventKind::DeletionBegan, None)?;
    }
    record.push(&Line::End(End {
        at_s: end_s,
        reason: EndReason::Completed,
        message: None,
        unfinished: vec![],
        lives: Vec::new(),
    }))
}

/// Seconds that stamps of whole seconds may be off.
const STAMP_S: f64 = 1.0;

/// When discards began, if it was so shortly before `told_s` that this may be off. The stamps leave
/// out parts of a second, and an interval's first discards may have come at its end.
fn first_discard(record: &RunRecord, told_s: f64) -> Option<f64> {
    const ROUNDING_S: f64 = 1e-3;
    let all = &record.intervals;
    let interval_s = record.head.interval_ms / 1e3 * record.head.devices_spread_over() as f64;
    let error_s = STAMP_S + interval_s + ROUNDING_S;
    let discarded = |i: usize| all.devices.iter().any(|device| device.discards[i] > 0);
    let mut near = (0..all.len()).filter(|&i| (told_s - error_s..told_s).contains(&all.at_s[i]));
    let first = near.find(|&i| discarded(i) && (i == 0 || !discarded(i - 1)));
    first.map(|i| all.at_s[i])
}

/// Most file systems discard within the 5 s after which they commit by themselves.
const LATE_S: f64 = 6.0;

/// When the first discards from `delete_s` on came.
fn first_from(record: &RunRecord, delete_s: f64) -> Option<f64> {
    let all = &record.intervals;
    let first = all.at_s.partition_point(|&at_s| at_s < delete_s);
    let discarded = |i: &usize| all.devices.iter().any(|device| device.discards[*i] > 0);
    (first..all.len()).find(discarded).map(|i| all.at_s[i])
}

/// Discards of less than this share of all that came from the deletion on are a trickle.
const TRICKLE: f64 = 0.01;

/// When the last discards from `delete_s` on ended, but for a trickle; `None` without any.
fn discarded_until(record: &RunRecord, delete_s: f64) -> Option<f64> {
    let all = &record.intervals;
    let first = all.at_s.partition_point(|&at_s| at_s < delete_s);
    let sum = |of: &dyn Fn(&DeviceColumns, usize) -> u64, i: usize| -> u64 {
        all.devices.iter().map(|device| of(device, i)).sum()
    };
    let bytes = |i: usize| sum(&|device, i| device.discard_bytes[i], i);
    // Some logs don't tell sizes.
    let counts = |i: usize| sum(&|device, i| device.discards[i].into(), i);
    let last = |of: &dyn Fn(usize) -> u64| {
        let least = TRICKLE * (first..all.len()).map(of).sum::<u64>() as f64;
        (first..all.len()).rfind(|&i| of(i) > 0 && of(i) as f64 >= least)
    };
    let last = last(&bytes).or_else(|| last(&counts))?;
    Some(all.at_s[last] + f64::from(all.seconds[last]))
}

/// When the last discards ended, if there were some and none came at `delete_s` or later.
fn all_discards_before(record: &RunRecord, delete_s: f64) -> Option<f64> {
    let all = &record.intervals;
    let discarded = |i: &usize| all.devices.iter().any(|device| device.discards[*i] > 0);
    let last = (0..all.len()).rfind(discarded)?;
    let end_s = all.at_s[last] + f64::from(all.seconds[last]);
    (end_s <= delete_s).then_some(end_s)
}

/// The first of these, in order, at which this share of all their weights is reached.
pub(crate) fn quantile<T: Copy>(ordered: &[(T, f64)], share: f64) -> Option<T> {
    let all: f64 = ordered.iter().map(|one| one.1).sum();
    let mut sum = 0.0;
    let reached = ordered.iter().find(|one| {
        sum += one.1;
        sum >= share * all
    });
    reached.or(ordered.last()).map(|one| one.0)
}
