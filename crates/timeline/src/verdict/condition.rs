//! Conditions on a verdict, as `--fail-on` takes them: `stall>1s`, `depth<10%`, `p99>5ms`.
//!
//! A condition holds if it holds for any foreground actor. What can't be told
//! (no stall, no percentile) meets no condition, except that without a stall
//! its length and the lost time are 0 and its depth is 100 %.
//! A stall that the control had as well isn't TRIM's doing and meets none, nor
//! does one that may as well be due to the deleter's own writes.

use std::fmt;
use std::str::FromStr;

use super::{Finding, Foreground, Reason, Verdict};
use crate::units::{self, UnitError};

/// What a condition looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Figure {
    /// Stalled time over all stalls, in seconds.
    Stall,
    /// The longest stall, in seconds.
    Longest,
    /// Share of the baseline that was left in a stall.
    Depth,
    /// 99th percentile of the latency in the delete phase, in seconds.
    P99,
    /// 99.9th percentile of it.
    P999,
    /// Longest latency in the delete phase.
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

/// One condition, e.g. `stall>1s`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Condition {
    /// What it looks at.
    pub figure: Figure,
    /// How.
    pub comparison: Comparison,
    /// With what: seconds, or for a depth a share from 0 to 1.
    pub value: f64,
}

/// Why a text isn't a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    /// There is no comparison in it.
    #[error("'{0}' compares nothing: use >, >=, < or <=, e.g. 'stall>1s'")]
    NoComparison(String),
    /// The figure isn't known.
    #[error(
        "'{0}' is not known: use stall, longest, depth, p99, p999, max or lost, e.g. 'stall>1s'"
    )]
    UnknownFigure(String),
    /// The value can't be read.
    #[error("'{condition}': {why}")]
    Value {
        /// The whole condition.
        condition: String,
        /// What is wrong with its value.
        why: UnitError,
    },
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

/// Parses a condition: a figure (`stall`, `longest`, `depth`, `p99`, `p999`,
/// `max`, `lost`), a comparison (`>`, `>=`, `<`, `<=`) and a duration with its
/// unit, or for `depth` a share (`10%` or `0.1`).
///
/// # Errors
/// If a part is missing or unknown; the message names what is allowed.
pub fn parse(text: &str) -> Result<Condition, ConditionError> {
    let Some((name, comparison, value)) = split(text) else {
        return Err(ConditionError::NoComparison(text.trim().to_owned()));
    };
    let known = FIGURES
        .iter()
        .find(|(known, _)| name.eq_ignore_ascii_case(known));
    let Some(&(_, figure)) = known else {
        return Err(ConditionError::UnknownFigure(name.to_owned()));
    };
    let value = match figure {
        Figure::Depth => units::parse_share(value),
        _ => units::parse_duration(value).map(|d| d.as_secs_f64()),
    };
    let value = value.map_err(|why| ConditionError::Value {
        condition: text.trim().to_owned(),
        why,
    })?;
    Ok(Condition {
        figure,
        comparison,
        value,
    })
}

/// What is compared, how, and with what; `None` without a comparison.
pub(crate) fn split(text: &str) -> Option<(&str, Comparison, &str)> {
    let (name, rest) = text.split_at(text.find(['<', '>'])?);
    let (sign, comparison) = COMPARISONS
        .iter()
        .find(|(sign, _)| rest.starts_with(sign))?;
    Some((name.trim(), *comparison, rest[sign.len()..].trim()))
}

impl Comparison {
    /// Whether it holds of a figure and a value.
    pub(crate) fn holds(self, figure: f64, value: f64) -> bool {
        match self {
            Comparison::Above => figure > value,
            Comparison::AtLeast => figure >= value,
            Comparison::Below => figure < value,
            Comparison::AtMost => figure <= value,
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
pub fn is_told(verdict: &Verdict) -> bool {
    let untested = [
        Reason::NoDiscards,
        Reason::DiscardsDidNotCome,
        Reason::NoDeletion,
    ];
    match verdict.verdict {
        Finding::Stall | Finding::Slowdown => true,
        Finding::None => !untested.iter().any(|r| verdict.reasons.contains(r)),
        Finding::Inconclusive => false,
    }
}

impl Condition {
    /// Whether it holds for any foreground actor of the verdict, the canary included.
    pub fn holds(&self, verdict: &Verdict) -> bool {
        let of_stalls = matches!(
            self.figure,
            Figure::Stall | Figure::Longest | Figure::Depth | Figure::Lost
        );
        let unproven = [
            Reason::ControlDipsToo,
            Reason::DiscardsAllTheTime,
            Reason::MoreWritesWithDiscards,
        ];
        if of_stalls && unproven.iter().any(|r| verdict.reasons.contains(r)) {
            return false;
        }
        verdict
            .foreground
            .iter()
            .filter_map(|f| self.figure.of(f))
            .any(|figure| self.comparison.holds(figure, self.value))
    }
}

impl Figure {
    fn of(self, foreground: &Foreground) -> Option<f64> {
        let stall = foreground.stall;
        let seconds = |us: Option<f64>| us.map(|us| us / 1e6);
        match self {
            Figure::Stall => Some(stall.map_or(0.0, |s| s.seconds)),
            Figure::Longest => Some(stall.map_or(0.0, |s| s.longest_s)),
            Figure::Depth => Some(stall.map_or(1.0, |s| s.depth)),
            Figure::P99 => seconds(foreground.delete.p99_us),
            Figure::P999 => seconds(foreground.delete.p999_us),
            Figure::Max => seconds(foreground.delete.max_us),
            Figure::Lost => foreground.lost_s.or(stall.map(|s| s.lost_s)).or(Some(0.0)),
        }
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        parse(text)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = FIGURES
            .iter()
            .find(|(_, figure)| *figure == self.figure)
            .map_or("", |f| f.0);
        let sign = self.comparison.sign();
        match self.figure {
            Figure::Depth => write!(f, "{name}{sign}{}%", self.value * 100.0),
            _ => {
                let value = std::time::Duration::try_from_secs_f64(self.value).unwrap_or_default();
                write!(f, "{name}{sign}{}", units::duration_exact(value))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::LoopKind;
    use crate::verdict::{Discard, Figures, Finding, Stall, VERDICT_SCHEMA};

    fn actor(stall: Option<Stall>, p99_us: Option<f64>) -> Foreground {
        Foreground {
            actor: "reader".into(),
            op: "read".into(),
            loop_kind: LoopKind::Closed { depth: 8 },
            baseline_from: None,
            baseline: Figures::default(),
            undisturbed: None,
            delete: Figures {
                p99_us,
                max_us: Some(2e6),
                ..Figures::default()
            },
            recovery: Figures::default(),
            service: None,
            ops_ratio: None,
            lost_s: stall.map(|s| s.lost_s),
            stall,
            dips: vec![],
            unfinished: None,
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
        };
        Verdict {
            schema: VERDICT_SCHEMA.into(),
            verdict: Finding::Stall,
            reasons: vec![],
            summary: "s".into(),
            foreground: vec![actor(Some(stall), Some(5000.0)), actor(None, None)],
            discard: Discard::default(),
            deletion: None,
            fit: None,
            control: None,
            slower: None,
            warnings: vec![],
        }
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
            assert!(parse(text).unwrap().holds(&verdict), "{text}");
        }
        for text in [
            "stall>2s",
            "stall>1500ms",
            "longest>1s",
            "depth<5%",
            "p99>5ms",
            "p999>0",
            "p999<1h",
            "max>2s",
            "lost>1400ms",
        ] {
            assert!(!parse(text).unwrap().holds(&verdict), "{text}");
        }
    }

    #[test]
    fn a_stall_that_is_not_proven_meets_no_condition() {
        for reason in [
            Reason::ControlDipsToo,
            Reason::DiscardsAllTheTime,
            Reason::MoreWritesWithDiscards,
        ] {
            let mut verdict = verdict();
            verdict.reasons.push(reason);
            for text in ["stall>1s", "longest<=1s", "depth<10%", "lost>1s"] {
                assert!(!parse(text).unwrap().holds(&verdict), "{text}");
            }
            assert!(parse("p99>4ms").unwrap().holds(&verdict));
        }
    }

    #[test]
    fn nothing_is_told_without_discards_or_a_finding() {
        let told = |finding, reasons: &[Reason]| {
            is_told(&Verdict {
                verdict: finding,
                reasons: reasons.to_vec(),
                ..verdict()
            })
        };
        assert!(told(Finding::Stall, &[]));
        assert!(told(Finding::None, &[Reason::DipsWithoutDiscards]));
        assert!(!told(Finding::Inconclusive, &[]));
        for reason in [
            Reason::NoDiscards,
            Reason::DiscardsDidNotCome,
            Reason::NoDeletion,
        ] {
            assert!(!told(Finding::None, &[reason]), "{reason:?}");
        }
    }

    #[test]
    fn errors_name_what_is_allowed() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(message("stall").contains(">="));
        assert!(message("stall=1s").contains(">="));
        assert!(message("iops<3").contains("longest"));
        assert!(message(">3s").contains("longest"));
        assert!(message("stall>5").contains("ms"));
        assert!(message("stall>-1s").contains("-1s"));
        assert!(message("depth<10s").contains('%'));
        assert!(message("depth<120%").contains("100%"));
        assert!(message("").contains("stall>1s"));
        assert!(parse("stall>>1s").is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text: String, sign in "[<>]=?", value in "[0-9a-z%.]{0,6}") {
            let _ = parse(&text);
            if let Ok(condition) = parse(&format!("stall{sign}{value}")) {
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
        ] {
            let condition = parse(text).unwrap();
            assert_eq!(condition.to_string(), text);
            assert_eq!(condition.to_string().parse(), Ok(condition));
        }
    }
}
