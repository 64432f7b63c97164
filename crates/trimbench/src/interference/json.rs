//! The parts that `trimbench.rm/1` and `trimbench.fstrim/1` share. A figure that was not measured
//! is null.

use std::time::Duration;

use pace::{CanaryWaits, GoalResult, Limit, Policy, ReaderLoss};
use reclaim::throttle::{Decision, Decisions, Summary};
use serde_json::{Value, json};

use super::is_given;
use crate::goal::GoalArgs;

/// How it was paced.
pub(crate) fn policy(policy: &Policy) -> Value {
    let mut value = json!({
        "kind": "adaptive", "slowdown": null, "max_latency_s": null, "deadline_s": null,
        "chunk_bytes": null, "sleep_s": null, "bytes_per_s": null,
    });
    let fields = match policy {
        Policy::Burst => json!({"kind": "burst"}),
        Policy::Fixed { chunk, sleep } => {
            json!({"kind": "chunk", "chunk_bytes": chunk, "sleep_s": seconds(*sleep)})
        }
        Policy::Rate { bytes_per_s, .. } => json!({"kind": "rate", "bytes_per_s": bytes_per_s}),
        Policy::Adaptive(goal) => json!({
            "slowdown": goal.slowdown,
            "max_latency_s": goal.max_latency.map(seconds),
            "deadline_s": goal.deadline.map(seconds),
        }),
    };
    if let (Value::Object(all), Value::Object(fields)) = (&mut value, fields) {
        all.extend(fields);
    }
    value
}

/// The result of one file system.
pub(crate) fn measured(summary: &Summary, given: &GoalArgs) -> Value {
    let observed = summary.observed.as_ref();
    let counted = observed.filter(|_| summary.counted);
    json!({
        "mount": summary.mount,
        "seconds": seconds(summary.elapsed),
        "freed_bytes": summary.freed,
        "exempt_bytes": summary.exempt,
        "discarded_bytes": summary.counted.then_some(summary.discarded),
        "discards": summary.counted.then_some(summary.discards),
        "discarded_again_bytes": summary.discarded_twice,
        "written_off_bytes": summary.written_off,
        "our_discards": counted.map(|observed| observed.own),
        "others_discards": counted.map(|observed| observed.others),
        "charged_s": summary.charged.map(seconds),
        "readers": observed.and_then(|observed| observed.readers).map(|r| readers(&r)),
        "flushers": observed.and_then(|observed| observed.flushers).map(|r| readers(&r)),
        "canary": observed.and_then(|observed| observed.canary).map(|c| canary(&c)),
        "goals": summary.goals.iter().map(|goal| result(goal, given)).collect::<Vec<_>>(),
        "protected": observed.and_then(|observed| observed.group),
        "cleaner": summary.cleaned.map(|work| json!({
            "subvolumes": work.subvolumes,
            "others": work.others,
            "seconds": seconds(work.took),
            "quotas_s": work.quotas.map(seconds),
        })),
        "decisions": decisions(&summary.decisions),
        "absences": summary.absences,
    })
}

fn seconds(span: Duration) -> f64 {
    span.as_secs_f64()
}

fn readers(of: &ReaderLoss) -> Value {
    json!({
        "baseline": of.quiet,
        "baseline_per_s": of.baseline_per_s,
        "during_per_s": of.during_per_s,
        "lost": (!of.open_loop).then_some(of.lost),
        "slower_pauses": of.slower_pauses,
        "usual_wait_s": of.usual_wait_s,
        "wait_s": of.wait_s,
        "loop": if of.open_loop { "open" } else { "closed" },
        "left_s": of.left_s,
    })
}

fn canary(of: &CanaryWaits) -> Value {
    json!({
        "reads": of.reads,
        "usual_s": seconds(of.usual),
        "p999_added_s": seconds(of.p999_added),
        "max_added_s": seconds(of.max_added),
        "p999_added_beside_ours_s": seconds(of.p999_own),
        "held": of.held,
        "over_max_latency": of.over,
        "held_share": of.held_share,
    })
}

fn result(of: &GoalResult, given: &GoalArgs) -> Value {
    let (goal, unit, limit) = match of.limit {
        Limit::Slowdown(share) => ("slowdown", "share", share),
        Limit::MaxLatency(limit) => ("max-latency", "s", seconds(limit)),
        Limit::Deadline(limit) => ("deadline", "s", seconds(limit)),
        Limit::Pressure(share) => ("pressure", "share", share),
    };
    json!({
        "goal": goal,
        "given": is_given(of.limit, given),
        "unit": unit,
        "limit": limit,
        "result": of.kept,
        "measured": of.measured,
        "measured_on": of.witness,
        "first_missed_s": of.first_missed_s,
        "worst": of.worst,
    })
}

/// The columns of a decision.
const COLUMNS: [&str; 15] = [
    "at_s",
    "why",
    "allow_bytes",
    "waited_s",
    "service_s",
    "phi",
    "freed_bytes",
    "discarded_bytes",
    "discards",
    "discard_s",
    "flushes",
    "flush_s",
    "others_reads",
    "others_read_s",
    "writes",
];

fn decisions(of: &Decisions) -> Value {
    json!({
        "count": of.count(),
        "every": of.every(),
        "columns": COLUMNS,
        "rows": of.kept().iter().map(row).collect::<Vec<_>>(),
    })
}

fn row(of: &Decision) -> Value {
    // Fractions that nobody can measure only make the file long.
    let short = |seconds: f64| (seconds * 1e6).round() / 1e6;
    let span = |span: Duration| short(seconds(span));
    json!([
        short(of.at_s),
        of.why.to_string(),
        (of.allow != u64::MAX).then_some(of.allow),
        short(of.waited_s),
        of.service_s.map(short),
        short(of.phi),
        of.freed,
        of.discards.bytes,
        of.discards.commands,
        of.discards.busy.map(span),
        of.flushes.commands,
        span(of.flushes.busy),
        of.others.map(|others| others.reads.ops),
        of.others.map(|others| span(others.reads.wait)),
        of.others.map(|others| others.writes),
    ])
}
