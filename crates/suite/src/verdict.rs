//! The verdict of a run, as far as a suite needs it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The figures of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunFigures {
    /// `stall`, `slowdown`, `none` or `inconclusive`.
    pub verdict: String,
    /// The verdict's sentence.
    pub summary: String,
    /// The reader's operations per second before the deletion.
    pub before_per_s: Option<f64>,
    /// The same while space is freed.
    pub during_per_s: Option<f64>,
    /// The same in the stall: the median of its intervals. `None` without a stall.
    #[serde(default)]
    pub in_stall_per_s: Option<f64>,
    /// The same afterwards.
    pub after_per_s: Option<f64>,
    /// Seconds for which it stalled; 0 if it didn't.
    pub stall_s: Option<f64>,
    /// The longest of the stalls, in seconds.
    pub longest_stall_s: Option<f64>,
    /// Bytes discarded per second while discards came.
    pub trim_bytes_per_s: Option<f64>,
    /// Whether that is only a lower bound, because the discards were over too soon.
    #[serde(default)]
    pub trim_is_bound: bool,
}

impl RunFigures {
    /// Whether the run leaves open whether the deletion stalled reads.
    pub fn is_inconclusive(&self) -> bool {
        self.verdict == "inconclusive"
    }

    /// The figures of a `trimbench.verdict/1`. `None`: it isn't one.
    pub(crate) fn of(json: &Value) -> Option<RunFigures> {
        let text = |at: &str| json.pointer(at)?.as_str().map(str::to_owned);
        // The canary may have been the faster of the two.
        let actors = json.get("foreground")?.as_array()?;
        let reader = actors.iter().find(|actor| actor["actor"] == "reader");
        let reader = reader.or(actors.first());
        let number = |at: &str| reader?.pointer(at)?.as_f64();
        let verdict = text("/verdict")?;
        let told = verdict != "inconclusive";
        // Only a run that tells has no stall where it has none.
        let stall = |at: &str| number(at).or(told.then_some(0.0));
        Some(RunFigures {
            summary: text("/summary")?,
            before_per_s: number("/baseline/ops_per_s"),
            in_stall_per_s: number("/stall/depth")
                .zip(number("/baseline/ops_per_s"))
                .map(|(share, before)| share * before),
            during_per_s: number("/discarding/ops_per_s").or_else(|| number("/delete/ops_per_s")),
            after_per_s: number("/recovery/ops_per_s"),
            stall_s: stall("/stall/seconds"),
            longest_stall_s: stall("/stall/longest_s"),
            trim_bytes_per_s: json.pointer("/discard/bytes_per_s").and_then(Value::as_f64),
            trim_is_bound: json
                .pointer("/discard/bytes_per_s_is_lower_bound")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            verdict,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_stall_that_nobody_can_tell_is_not_none() {
        let of = |verdict: &str, stall: Value| {
            RunFigures::of(&json!({
                "verdict": verdict,
                "summary": "A sentence.",
                "foreground": [
                    {"actor": "canary", "baseline": {"ops_per_s": 99.0}},
                    {"actor": "reader", "baseline": {"ops_per_s": 10.0}, "stall": stall},
                ],
                "discard": {"bytes_per_s": null}
            }))
            .unwrap()
        };
        assert_eq!(of("none", Value::Null).stall_s, Some(0.0));
        assert_eq!(of("inconclusive", Value::Null).stall_s, None);
        let stalled = of(
            "stall",
            json!({"seconds": 1.5, "longest_s": 1.0, "depth": 0.25}),
        );
        assert_eq!(
            (stalled.stall_s, stalled.longest_stall_s),
            (Some(1.5), Some(1.0))
        );
        assert_eq!(stalled.before_per_s, Some(10.0));
        assert_eq!(stalled.in_stall_per_s, Some(2.5));
        assert_eq!(of("none", Value::Null).in_stall_per_s, None);
        assert_eq!(RunFigures::of(&json!({"schema": "another"})), None);
    }
}
