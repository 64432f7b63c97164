//! Conditions on a verdict, as `--fail-on` takes them: `stall>1s`, `depth<10%`, `p99(wal)>5ms`.
//!
//! A condition describes a failure: if it holds, the run failed. It looks at the actor that it
//! names in brackets. Without a name it looks at all actors, the canary included, and the worst
//! one decides. An actor without a stall has a stall of 0 s, lost 0 s and has a depth of 100 %.
//! A figure that the record does not tell is unknown, and an unknown figure passes nothing.
//! A stall is unknown too if the control stalled as well, or if the deleter's own writes may
//! have caused it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use record::units::{parse_duration, parse_share};

use super::{Finding, Foreground, Reason, Verdict};

/// The figure that a condition tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Stalled time over all stalls, in seconds.
    Stall,
    /// The longest stall, in seconds.
    Longest,
    /// Share of the baseline that was left in a stall.
    Depth,
    /// 99th percentile of the latency while discarding, or without discards in the delete phase,
    /// in seconds.
    P99,
    /// 99.9th percentile of it.
    P999,
    /// Longest latency there.
    Max,
    /// Foreground time lost, in seconds.
    Lost,
}

/// How it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `<=`
    AtMost,
}

/// One condition, e.g. `stall>1s` or `stall(wal)>200ms`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The figure that it tests.
    pub figure: Figure,
    /// The actor that it looks at; `None` for any.
    pub actor: Option<String>,
    /// The comparison.
    pub comparison: Comparison,
    /// The value that the figure is compared with: seconds, or for a depth a share from 0 to 1.
    pub value: f64,
}

/// The result of one condition on a verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// The condition as it was given, e.g. `stall(wal)>200ms`.
    pub condition: String,
    /// The actor whose figure decided; `None` if no actor has the figure.
    pub actor: Option<String>,
    /// Its figure, in `unit`; `None` if unknown.
    pub value: Option<f64>,
    /// The unit of `value` and `limit`.
    pub unit: Unit,
    /// The limit that the condition sets, in `unit`.
    pub limit: f64,
    /// Whether the condition holds.
    pub result: CheckResult,
}

/// The unit of a condition's figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// A share, 0 to 1.
    #[serde(rename = "share")]
    Share,
}

/// Whether a condition, which describes a failure, holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckResult {
    /// It holds: the run failed.
    Held,
    /// It was tested and does not hold: the run passed.
    Passed,
    /// The record does not tell.
    Unknown,
}

const FIGURES: [(&str, Figure); 7] = [
    ("stall", Figure::Stall),
    ("longest", Figure::Longest),
    ("depth", Figure::Depth),
    ("p99", Figure::P99),
    ("p999", Figure::P999),
    ("max", Figure::Max),
    ("lost", Figure::Lost),
];

// Longer ones first: `>=` begins with `>`.
const COMPARISONS: [(&str, Comparison); 4] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    (">", Comparison::Above),
    ("<", Comparison::Below),
];

/// Splits a condition into its figure's text, the comparison, and the value's text; `None` without
/// a comparison.
pub(crate) fn split(text: &str) -> Option<(&str, Comparison, &str)> {
    let (name, rest) = text.split_at(text.find(['<', '>'])?);
    let mut signs = COMPARISONS.iter();
    let (sign, comparison) = signs.find(|(sign, _)| rest.starts_with(sign))?;
    Some((name.trim(), *comparison, rest[sign.len()..].trim()))
}

impl Comparison {
    /// Returns whether it holds of a figure and a value.
    pub(crate) fn holds(self, figure: f64, value: f64) -> bool {
        match self {
            Comparison::Above => figure > value,
            Comparison::AtLeast => figure >= value,
            Comparison::Below => figure < value,
            Comparison::AtMost => figure <= value,
        }
    }

    /// Whether a figure comes closer to holding, or holds more clearly, than another.
    fn is_worse(self, figure: f64, other: f64) -> bool {
        match self {
            Comparison::Above | Comparison::AtLeast => figure > other,
            Comparison::Below | Comparison::AtMost => figure < other,
        }
    }

    /// As it is written.
    pub(crate) fn sign(self) -> &'static str {
        let written = COMPARISONS.iter().find(|(_, c)| *c == self);
        written.map_or("", |(sign, _)| sign)
    }
}

/// Whether a verdict tells what discards do to the foreground, so that a
/// condition that doesn't hold means something. One without discards, without a
/// deletion or without a finding doesn't.
fn is_known(verdict: &Verdict) -> bool {
    let untested = [
        Reason::NoDiscards,
        Reason::ForeignDiscards,
        Reason::DiscardsDidNotCome,
        Reason::NoDeletion,
        Reason::NothingDeleted,
    ];
    match verdict.verdict {
        Finding::Stall | Finding::Slowdown => true,
        Finding::None => !untested.iter().any(|r| verdict.reasons.contains(r)),
        Finding::Inconclusive => false,
    }
}

impl Condition {
    /// Checks it against a verdict.
    pub fn check(&self, verdict: &Verdict) -> Checked {
        let named = |f: &&Foreground| self.actor.as_ref().is_none_or(|actor| f.actor == *actor);
        let all = verdict.foreground.iter().filter(named);
        let known = is_known(verdict);
        let figures = all.filter_map(|f| Some((f, self.figure.of(f, known)?)));
        let worst = figures.reduce(|worst, next| {
            let is_worse = self.comparison.is_worse(next.1, worst.1);
            if is_worse { next } else { worst }
        });
        let holds = worst.is_some_and(|(_, value)| self.comparison.holds(value, self.value));
        let unproven =
            self.figure.is_of_stalls() && UNPROVEN.iter().any(|r| verdict.reasons.contains(r));
        Checked {
            condition: self.to_string(),
            actor: worst.map(|(actor, _)| actor.actor.clone()),
            value: worst.map(|(_, value)| value),
            unit: self.figure.unit(),
            limit: self.value,
            result: match holds {
                _ if worst.is_none() || unproven => CheckResult::Unknown,
                true => CheckResult::Held,
                false if known => CheckResult::Passed,
                false => CheckResult::Unknown,
            },
        }
    }
}

/// Below this share of its baseline an actor may have stalled.
const STALLED: f64 = 0.5;

/// Reasons for which a stall may not be the discards' doing.
const UNPROVEN: [Reason; 5] = [
    Reason::ControlDipsToo,
    Reason::ForeignDiscards,
    Reason::DiscardsAllTheTime,
    Reason::MoreWritesWithDiscards,
    Reason::Writeback,
];

impl Figure {
    /// The figure of one actor; `None` if the record does not tell. `known`: whether the verdict
    /// tells what discards do.
    fn of(self, foreground: &Foreground, known: bool) -> Option<f64> {
        let stall = foreground.stall;
        // Without a baseline nobody knows whether the actor stalled, nor where hardly anything
        // went on although no stall was found.
        let went_on = foreground.ops_ratio.is_none_or(|ratio| ratio >= STALLED);
        let known = known && foreground.baseline.ops_per_s.is_some() && went_on;
        let unharmed = |value| known.then_some(value);
        let seconds = |us: Option<f64>| us.map(|us| us / 1e6);
        match self {
            Figure::Stall => stall.map(|s| s.seconds).or(unharmed(0.0)),
            Figure::Longest => stall.map(|s| s.longest_s).or(unharmed(0.0)),
            Figure::Depth => stall.map(|s| s.depth).or(unharmed(1.0)),
            Figure::P99 => seconds(foreground.beside().p99_us),
            Figure::P999 => seconds(foreground.beside().p999_us),
            Figure::Max => seconds(foreground.beside().max_us),
            Figure::Lost => foreground.lost_s.or(unharmed(0.0)),
        }
    }

    fn is_of_stalls(self) -> bool {
        matches!(
            self,
            Figure::Stall | Figure::Longest | Figure::Depth | Figure::Lost
        )
    }

    fn unit(self) -> Unit {
        match self {
            Figure::Depth => Unit::Share,
            _ => Unit::Seconds,
        }
    }
}

impl Unit {
    /// A limit as it is given on the command line: `200ms`, `10%`.
    pub fn exact(self, limit: f64) -> String {
        match self {
            Unit::Share => format!("{}%", limit * 100.0),
            Unit::Seconds => {
                let limit = std::time::Duration::try_from_secs_f64(limit);
                record::units::duration_exact(limit.unwrap_or_default())
            }
        }
    }

    /// A figure for people: `0.29 s`, `3.1 ms`, `7 %`.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::Share => record::units::percent(value),
            Unit::Seconds => record::units::seconds(value),
        }
    }
}

impl FromStr for Condition {
    type Err = String;

    /// Parses a condition:
    ///
    /// - a figure (`stall`, `longest`, `depth`, `p99`, `p999`, `max`, `lost`);
    /// - an actor's name in brackets, unless any actor is meant;
    /// - a comparison (`>`, `>=`, `<`, `<=`);
    /// - a duration with its unit, or for `depth` a share (`10%` or `0.1`).
    ///
    /// The error names what is missing or unknown, and what is allowed.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (name, comparison, value) = split(text).ok_or_else(|| {
            format!("'{text}' compares nothing: use >, >=, < or <=, e.g. 'stall>1s'")
        })?;
        let (name, actor) = match name.split_once('(') {
            Some((name, actor)) => (name.trim_end(), Some(actor)),
            None => (name, None),
        };
        let mut known = FIGURES.into_iter();
        let known = known.find(|(known, _)| name.eq_ignore_ascii_case(known));
        let (_, figure) = known.ok_or_else(|| {
            let known = "stall, longest, depth, p99, p999, max or lost";
            format!("'{name}' is not known: use {known}, e.g. 'stall>1s'")
        })?;
        let actor = actor.map(|actor| actor.strip_suffix(')').unwrap_or_default().trim());
        if actor == Some("") {
            return Err(format!(
                "'{text}' names no actor: write e.g. 'stall(reader)>1s', or 'stall>1s' for any actor"
            ));
        }
        let value = match figure {
            Figure::Depth => parse_share(value),
            _ => parse_duration(value).map(|d| d.as_secs_f64()),
        };
        Ok(Condition {
            figure,
            actor: actor.map(str::to_owned),
            comparison,
            value: value.map_err(|why| format!("'{text}': {why}"))?,
        })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = FIGURES
            .iter()
            .find(|(_, figure)| *figure == self.figure)
            .map_or("", |f| f.0);
        f.write_str(name)?;
        if let Some(actor) = &self.actor {
            write!(f, "({actor})")?;
        }
        let limit = self.figure.unit().exact(self.value);
        write!(f, "{}{limit}", self.comparison.sign())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::{Figures, Finding, Stall, VERDICT_SCHEMA};
    use record::LoopKind;

    fn condition(text: &str) -> Result<Condition, String> {
        text.parse()
    }

    fn actor(name: &str, stall: Option<Stall>, p99_us: Option<f64>) -> Foreground {
        Foreground {
            actor: name.into(),
            op: "read".into(),
            loop_kind: LoopKind::Closed { depth: 8 },
            baseline_from: None,
            baseline_drift: None,
            baseline: Figures {
                ops_per_s: Some(1000.0),
                ..Figures::default()
            },
            undisturbed: None,
            delete: Figures::default(),
            discarding: Some(Figures {
                p99_us,
                max_us: Some(2e6),
                ..Figures::default()
            }),
            recovery: Figures::default(),
            service: None,
            ops_ratio: None,
            lost_s: stall.map(|s| s.lost_s),
            detectable: None,
            stall,
            dips: vec![],
            unfinished: None,
            stall_by_others: None,
            cpu_wait: None,
        }
    }

    fn verdict() -> Verdict {
        let (seconds, longest_s, depth, lost_s) = (1.5, 1.0, 0.05, 1.4);
        let stall = Stall {
            seconds,
            longest_s,
            depth,
            lost_s,
            worst_latency_us: None,
            limit_us: None,
        };
        Verdict {
            schema: VERDICT_SCHEMA.into(),
            verdict: Finding::Stall,
            reasons: vec![],
            summary: "s".into(),
            foreground: vec![
                actor("wal", Some(stall), Some(5000.0)),
                actor("reader", None, None),
            ],
            ..Verdict::default()
        }
    }

    fn result(text: &str, verdict: &Verdict) -> CheckResult {
        condition(text).unwrap().check(verdict).result
    }

    #[test]
    fn holds_for_the_worst_actor() {
        let verdict = verdict();
        for text in [
            "stall>1s",
            "stall >= 1.5s",
            "STALL>1499ms",
            "longest<=1s",
            "depth<10%",
            "depth<0.06",
            "p99>4ms",
            "p99<=5ms",
            "max>1s",
            "lost>1s",
            "lost<1s",
            "depth>=100%",
        ] {
            assert_eq!(result(text, &verdict), CheckResult::Held, "{text}");
        }
        for text in [
            "stall>2s",
            "stall>1500ms",
            "longest>1s",
            "depth<5%",
            "p99>5ms",
            "max>2s",
            "lost>1400ms",
        ] {
            assert_eq!(result(text, &verdict), CheckResult::Passed, "{text}");
        }
        for text in ["p999>0", "p999<1h"] {
            assert_eq!(result(text, &verdict), CheckResult::Unknown, "{text}");
        }
    }

    #[test]
    fn looks_at_the_actor_it_names() {
        let verdict = verdict();
        for (text, actor, value, outcome) in [
            ("stall>1s", Some("wal"), Some(1.5), CheckResult::Held),
            ("stall(wal)>1s", Some("wal"), Some(1.5), CheckResult::Held),
            (
                "stall(reader)>1s",
                Some("reader"),
                Some(0.0),
                CheckResult::Passed,
            ),
            (
                "depth(reader)<10%",
                Some("reader"),
                Some(1.0),
                CheckResult::Passed,
            ),
            ("p99(reader)>1ms", None, None, CheckResult::Unknown),
            ("stall(nobody)>1s", None, None, CheckResult::Unknown),
        ] {
            let checked = condition(text).unwrap().check(&verdict);
            assert_eq!(checked.condition, text);
            assert_eq!(checked.actor.as_deref(), actor, "{text}");
            assert_eq!(checked.value, value, "{text}");
            assert_eq!(checked.result, outcome, "{text}");
        }
    }

    #[test]
    fn an_actor_that_cannot_be_judged_passes_nothing() {
        let mut verdict = verdict();
        let condition = "stall(reader)>1s";
        assert_eq!(result(condition, &verdict), CheckResult::Passed);
        // It did nothing, and no stall was found: it was behind its schedule before, too.
        verdict.foreground[1].ops_ratio = Some(0.0);
        assert_eq!(result(condition, &verdict), CheckResult::Unknown);
        verdict.foreground[1].ops_ratio = None;
        verdict.foreground[1].baseline.ops_per_s = None;
        assert_eq!(result(condition, &verdict), CheckResult::Unknown);
    }

    #[test]
    fn whether_an_unproven_stall_holds_is_unknown() {
        for reason in UNPROVEN {
            let mut verdict = verdict();
            verdict.reasons.push(reason);
            for text in ["stall>1s", "longest<=1s", "depth<10%", "lost>1s"] {
                assert_eq!(result(text, &verdict), CheckResult::Unknown, "{text}");
            }
            assert_eq!(result("p99>4ms", &verdict), CheckResult::Held);
        }
    }

    /// Without a finding, no stall was found: that isn't one of 0 s.
    #[test]
    fn a_stall_that_was_not_found_is_unknown_rather_than_none() {
        let mut verdict = verdict();
        verdict.verdict = Finding::Inconclusive;
        verdict.foreground.remove(0);
        for text in ["stall>1s", "longest>1s", "depth<10%", "lost>1s"] {
            let checked = condition(text).unwrap().check(&verdict);
            assert_eq!(checked.result, CheckResult::Unknown, "{text}");
            assert_eq!(checked.value, None, "{text}");
        }
    }

    #[test]
    fn nothing_is_told_without_discards_or_a_finding() {
        let known = |finding, reasons: &[Reason]| {
            is_known(&Verdict {
                verdict: finding,
                reasons: reasons.to_vec(),
                ..verdict()
            })
        };
        assert!(known(Finding::Stall, &[]));
        assert!(known(Finding::None, &[Reason::DipsWithoutDiscards]));
        assert!(!known(Finding::Inconclusive, &[]));
        for reason in [
            Reason::NoDiscards,
            Reason::DiscardsDidNotCome,
            Reason::NoDeletion,
            Reason::NothingDeleted,
        ] {
            assert!(!known(Finding::None, &[reason]), "{reason:?}");
        }
    }

    #[test]
    fn errors_name_what_is_allowed() {
        let message = |text: &str| condition(text).unwrap_err().to_string();
        assert!(message("stall").contains(">="));
        assert!(message("stall=1s").contains(">="));
        assert!(message("iops<3").contains("longest"));
        assert!(message(">3s").contains("longest"));
        assert!(message("stall>5").contains("ms"));
        assert!(message("stall>-1s").contains("-1s"));
        assert!(message("depth<10s").contains('%'));
        assert!(message("depth<120%").contains("100%"));
        assert!(message("").contains("stall>1s"));
        for text in ["stall()>1s", "stall(wal>1s"] {
            assert!(message(text).contains("stall(reader)>1s"), "{text}");
        }
        assert!(condition("stall>>1s").is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text: String, sign in "[<>]=?", value in "[0-9a-z%.]{0,6}") {
            let _ = condition(&text);
            if let Ok(condition) = condition(&format!("stall{sign}{value}")) {
                proptest::prop_assert_eq!(condition.to_string().parse(), Ok(condition));
            }
        }
    }

    #[test]
    fn comes_back_as_text() {
        for text in [
            "stall>1s",
            "longest>=100ms",
            "depth<10%",
            "p999<=250us",
            "lost>2m",
            "stall(wal)>200ms",
        ] {
            let condition = condition(text).unwrap();
            assert_eq!(condition.to_string(), text);
            assert_eq!(condition.to_string().parse(), Ok(condition));
        }
    }
}
