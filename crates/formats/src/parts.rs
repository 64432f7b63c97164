//! The parts that the records of all readers share.

use record::{
    End, EndReason, Event, EventKind, Head, Host, Line, Phase, PhaseName, PushError, RUN_SCHEMA,
    RunRecord, Target,
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
        let actors = &record.intervals.actors;
        let busy = |i: &usize| actors.iter().any(|a| a.ops[*i] > 0);
        let busy = (0..record.intervals.len()).find(busy);
        let begin_s = busy.map_or(0.0, |i| record.intervals.at_s[i]);
        let baseline_s = (delete_s - BASELINE_S).max(begin_s).min(delete_s);
        for (name, at_s) in [
            (PhaseName::Settle, 0.0),
            (PhaseName::Baseline, baseline_s),
            (PhaseName::Delete, delete_s),
        ] {
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
    }))
}

/// Seconds that stamps of whole seconds may be off.
const STAMP_S: f64 = 1.0;

/// When discards began, if it was so shortly before `told_s` that this may be off: the stamp of an
/// interval is its end.
fn first_discard(record: &RunRecord, told_s: f64) -> Option<f64> {
    const ROUNDING_S: f64 = 1e-3;
    let all = &record.intervals;
    let error_s = STAMP_S.max(record.head.interval_ms / 1e3) + ROUNDING_S;
    let discarded = |i: usize| all.devices.iter().any(|device| device.discards[i] > 0);
    let mut near = (0..all.len()).filter(|&i| (told_s - error_s..told_s).contains(&all.at_s[i]));
    let first = near.find(|&i| discarded(i) && (i == 0 || !discarded(i - 1)));
    first.map(|i| all.at_s[i])
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
