//! What was found, as JSON: `trimbench.tune/1`.

use ::tune::{Advice, Ground, frontier};
use serde_json::{Value, json};

use super::runs::Found;
use super::trials::Trials;

/// The text, with a line end.
pub(super) fn of(
    ground: &Ground,
    trials: &Trials,
    found: &Found,
    advice: &Advice,
    applied: bool,
) -> String {
    let on = frontier(&found.points);
    let points = found.points.iter().zip(on).map(|(point, on)| {
        let mut value = serde_json::to_value(point).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            fields.insert("on_frontier".into(), on.into());
            let missed = point.misses(trials.course.slowdown);
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
            "path": ground.directory.to_string_lossy().into_owned(),
            "mount": ground.mount.mount_point.to_string_lossy().into_owned(),
            "fs": ground.mount.fs,
            "drives": ground.drives,
            "discard_granularity_bytes": ground.range.granularity_bytes,
            "discard_max_hw_bytes": ground.range.hw_bytes,
        },
        "now": {
            "discard_max_bytes": ground.range.now_bytes,
            "online": ground.is_online(),
        },
        "size_bytes": trials.course.size_bytes,
        "slowdown": trials.course.slowdown,
        "repeats": trials.repeats,
        "points": points.collect::<Vec<_>>(),
        "runs": runs.collect::<Vec<_>>(),
        "advice": advice,
        "applied": applied,
        "notes": found.notes,
    });
    format!("{value:#}\n")
}
