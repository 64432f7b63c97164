//! The findings as JSON: `trimbench.tune/1`.

use experiments::tune::{Advice, Findings, Target, Trials, frontier};
use serde_json::json;

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
        let mut value = json!(point);
        value["on_frontier"] = on.into();
        value["misses_goal"] = json!(point.misses(trials.setup.slowdown));
        value
    });
    let value = json!({
        "schema": "trimbench.tune/1",
        "origin": storage::origin([&target.directory]),
        "target": {
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
        "runs": found.runs,
        "advice": advice,
        "applied": applied,
        "notes": found.notes,
    });
    format!("{value:#}\n")
}
