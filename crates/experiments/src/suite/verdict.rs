//! The verdict of a run, as far as a suite needs it.

use judge::Verdict;
use judge::verdict::{Finding, Foreground};
use serde::{Deserialize, Serialize};

use crate::suite::rows::word;

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

    /// The figures of a verdict.
    pub(crate) fn of(verdict: Verdict) -> RunFigures {
        // The canary may have been the faster of the two.
        let actors = &verdict.foreground;
        let reader = actors.iter().find(|actor| actor.actor == "reader");
        let reader = reader.or(actors.first());
        let rate = |of: fn(&Foreground) -> Option<f64>| reader.and_then(of);
        let before_per_s = rate(|reader| reader.baseline.ops_per_s);
        let stall = reader.and_then(|reader| reader.stall);
        // Only a run that is conclusive has no stall where it has none.
        let none = (verdict.verdict != Finding::Inconclusive).then_some(0.0);
        RunFigures {
            before_per_s,
            during_per_s: rate(|reader| {
                let discarding = reader.discarding.and_then(|during| during.ops_per_s);
                discarding.or(reader.delete.ops_per_s)
            }),
            in_stall_per_s: stall
                .zip(before_per_s)
                .map(|(stall, before)| stall.depth * before),
            after_per_s: rate(|reader| reader.recovery.ops_per_s),
            stall_s: stall.map(|stall| stall.seconds).or(none),
            longest_stall_s: stall.map(|stall| stall.longest_s).or(none),
            trim_bytes_per_s: verdict.discard.bytes_per_s,
            trim_is_bound: verdict.discard.bytes_per_s_is_lower_bound,
            verdict: word(&verdict.verdict).unwrap_or_default(),
            summary: verdict.summary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn without_a_conclusion_a_run_has_no_length_of_a_stall() {
        let of = |verdict: &str, stall: Value| {
            let actor = |name: &str, per_s: f64, stall: Value| {
                json!({
                    "actor": name, "op": "read", "loop": "closed", "depth": 8, "batch": 1,
                    "baseline": {"ops_per_s": per_s}, "delete": {"ops_per_s": 3.0},
                    "recovery": {}, "stall": stall, "dips": [],
                })
            };
            let verdict = json!({
                "schema": "", "verdict": verdict, "reasons": [], "summary": "A sentence.",
                "foreground": [actor("canary", 99.0, Value::Null), actor("reader", 10.0, stall)],
                "discard": {"bytes_per_s_is_lower_bound": false}, "warnings": [],
            });
            RunFigures::of(serde_json::from_value(verdict).unwrap())
        };
        let none = of("none", Value::Null);
        assert_eq!((none.verdict.as_str(), none.stall_s), ("none", Some(0.0)));
        assert_eq!((none.in_stall_per_s, none.during_per_s), (None, Some(3.0)));
        assert_eq!(of("inconclusive", Value::Null).stall_s, None);
        let stall = json!({"seconds": 1.5, "longest_s": 1.0, "depth": 0.25, "lost_s": 1.0});
        let stalled = of("stall", stall);
        assert_eq!(
            (stalled.stall_s, stalled.longest_stall_s),
            (Some(1.5), Some(1.0))
        );
        assert_eq!(stalled.before_per_s, Some(10.0));
        assert_eq!(stalled.in_stall_per_s, Some(2.5));
    }
}
