//! The findings as JSON: `trimbench.tune/1`.

use ::tune::{Advice, Findings, Target, Trials, frontier};
use serde_json::{Value, json};

/// The text, with a line end.
pub(super) fn of(
    target: &Target,
    trials: &Trials,
    found: &Findings,
    advice: &Advice,
    applied: bool,
) -> String {
    let on = frontier(&found.points);
    let points = found.points.iter().zip(on).map(|(point, on)| {
        let mut value = serde_json::to_value(point).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            fields.insert("on_frontier".into(), on.into());
            let missed = point.misses(trials.setup.slowdown);
            fields.insert("misses_goal".into(), json!(missed));
        }
        value
    });
    let runs = found.runs.iter().map(|run| {
        let mut value = serde_json::to_value(&run.figures).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            fields.insert("policy".into(), json!(run.trial.policy));
            fields.insert("limit_bytes".into(), run.trial.limit_bytes.into());
            fields.insert("disturbed".into(), json!(run.disturbed));
            fields.insert("counts".into(), run.counts.into());
        }
        value
    });
    let value = json!({
        "schema": "trimbench.tune/1",
        "target": {
            // A path as such would panic here where it isn't UTF-8.
            "path": target.directory.to_string_lossy().into_owned(),
            "mount": target.mount.mount_point.to_string_lossy().into_owned(),
            "fs": target.mount.fs,
            "drives": target.drives,
            "discard_granularity_bytes": target.range.granularity_bytes,
            "discard_max_hw_bytes": target.range.hw_bytes,
        },
        "now": {
            "discard_max_bytes": target.range.now_bytes,
            "online": target.is_online(),
        },
        "size_bytes": trials.setup.size_bytes,
        "slowdown": trials.setup.slowdown,
        "repeats": trials.repeats,
        "points": points.collect::<Vec<_>>(),
        "runs": runs.collect::<Vec<_>>(),
        "advice": advice,
        "applied": applied,
        "notes": found.notes,
    });
    format!("{value:#}\n")
}
