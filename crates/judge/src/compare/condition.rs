//! Conditions on a change, as `compare --fail-on` takes them: `lost > +10%`, `p99 > +2ms`.
//!
//! The grammar is that of [`verdict::condition`](crate::verdict::condition) with
//! more figures, and a value with its sign: a share of the reference's value, or
//! an absolute change in the figure's unit.
//!
//! A user who qualifies kernels or firmware wants no alarm that the next run takes back. So a
//! change *trips* a condition if it meets it and differs from 0 at 95 %. Such a user lets nothing
//! through on a guess, either: where no difference is sure and the interval reaches as far as the
//! condition, the result is unknown.

use std::fmt;
use std::str::FromStr;

use super::comparison::{Change, ChangeFinding, Compared, Comparison, Doubt};
use super::figure::{Figure, Unit};
use crate::verdict::condition::{self, Comparison as Sign};
use record::units::{self, UnitError, bytes_exact};

/// One condition, e.g. `lost>+10%`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangeCondition {
    /// The figure that it compares.
    pub figure: Figure,
    /// The comparison.
    pub sign: Sign,
    /// The change that the figure is compared with.
    pub value: ChangeValue,
}

/// A change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChangeValue {
    /// As a share of the reference's value: 0.1 is 10 % more.
    Relative(f64),
    /// In the figure's unit.
    Absolute(f64),
}

/// The result of a condition on a comparison.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It holds: for this figure, and this change of it.
    Holds {
        /// Whose: the actor's name; `None` for what a run has once.
        actor: Option<String>,
        /// The change.
        change: Change,
    },
    /// It doesn't.
    Fails,
    /// The runs neither show it nor rule it out.
    Unknown {
        /// Whose change may meet it, and the change; `None` if the figure isn't measured in both.
        open: Option<(Option<String>, Change)>,
    },
}

fn absolute(unit: Unit, size: &str) -> Result<f64, UnitError> {
    let seconds = || units::parse_duration(size).map(|d| d.as_secs_f64());
    match unit {
        Unit::Seconds => seconds(),
        Unit::Microseconds => seconds().map(|s| s * 1e6),
        Unit::OpsPerSecond => units::parse_rate(size),
        Unit::BytesPerSecond => units::parse_byte_rate(size).map(|n| n as f64),
        Unit::Bytes => units::parse_size(size).map(|n| n as f64),
        Unit::Count | Unit::Share => plain(size, size),
    }
}

/// Returns a number without a unit: digits and a point.
fn plain(number: &str, text: &str) -> Result<f64, UnitError> {
    let number = number.trim();
    let digits = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let read = number.parse().ok().filter(|_| digits);
    let example = "a share, e.g. 10%, or a value in the figure's unit, e.g. 2ms";
    read.ok_or_else(|| UnitError::not_a(text, "change", example))
}

impl ChangeCondition {
    /// Returns the result on a comparison.
    pub fn of(&self, comparison: &Comparison) -> Outcome {
        let ours = |compared: &&Compared| compared.figure == self.figure;
        let (mut known, mut open) = (false, None);
        for compared in comparison.figures.iter().filter(ours) {
            let reference = compared.sides.first().and_then(|side| side.value);
            let at = |absolute: f64| self.meets(absolute, reference);
            for change in &compared.changes {
                let Some(absolute) = change.absolute else {
                    continue;
                };
                known = true;
                // One of the interval's ends goes further than all between them.
                let low = at(change.absolute_low.unwrap_or(f64::NEG_INFINITY));
                let high = at(change.absolute_high.unwrap_or(f64::INFINITY));
                let (holds, reaches) = match change.finding {
                    ChangeFinding::Differs if change.bound().is_empty() => (at(absolute), false),
                    ChangeFinding::Differs => (low && high, low || high),
                    _ => (false, change.why == Some(Doubt::LowerBound) || low || high),
                };
                if holds {
                    return Outcome::Holds {
                        actor: compared.actor.clone(),
                        change: change.clone(),
                    };
                }
                if reaches && open.is_none() {
                    open = Some((compared.actor.clone(), change.clone()));
                }
            }
        }
        match known && open.is_none() {
            true => Outcome::Fails,
            false => Outcome::Unknown { open },
        }
    }

    /// Returns whether an absolute change meets it. A change from 0 is more than any share of it.
    fn meets(&self, absolute: f64, reference: Option<f64>) -> bool {
        match self.value {
            ChangeValue::Absolute(value) => self.sign.holds(absolute, value),
            ChangeValue::Relative(value) => {
                let reference = reference.unwrap_or(0.0).abs();
                let relative = if absolute == 0.0 {
                    0.0
                } else {
                    absolute / reference
                };
                self.sign.holds(relative, value)
            }
        }
    }
}

impl FromStr for ChangeCondition {
    type Err = String;

    /// Parses a condition: a figure, a comparison (`>`, `>=`, `<`, `<=`), and a change with its
    /// sign. The change is a share (`+10%`), or a value with its unit (`+2ms`, `-1G`; `+0.05` of a
    /// share). The error names what is missing or unknown, and what is allowed.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (name, sign, value) = condition::split(text).ok_or_else(|| {
            format!("'{text}' compares nothing: use >, >=, < or <=, e.g. 'lost > +10%'")
        })?;
        let figure = Figure::named(name).ok_or_else(|| {
            let known = Figure::names();
            format!("'{name}' is not known: use {known}; e.g. 'lost > +10%'")
        })?;
        let (turn, size) = match value.split_at_checked(1) {
            Some(("+", size)) => (1.0, size.trim()),
            Some(("-", size)) => (-1.0, size.trim()),
            _ => {
                return Err(format!(
                    "'{text}': say which way, with + or -, e.g. 'lost > +10%' or 'baseline < -5%'"
                ));
            }
        };
        let value = match size.strip_suffix('%') {
            Some(percent) => plain(percent, size).map(|p| ChangeValue::Relative(turn * p / 100.0)),
            None => absolute(figure.unit(), size).map(|v| ChangeValue::Absolute(turn * v)),
        };
        let value = value.map_err(|why| format!("'{text}': {why}"))?;
        Ok(ChangeCondition {
            figure,
            sign,
            value,
        })
    }
}

impl fmt::Display for ChangeCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.figure.name(), self.sign.sign())?;
        match self.value {
            ChangeValue::Relative(share) => write!(f, "{:+}%", rounded(share * 100.0)),
            ChangeValue::Absolute(value) => {
                let sign = if value < 0.0 { '-' } else { '+' };
                let size = value.abs();
                let duration = |s: f64| {
                    let duration = std::time::Duration::try_from_secs_f64(s).unwrap_or_default();
                    units::duration_exact(duration)
                };
                match self.figure.unit() {
                    Unit::Seconds => write!(f, "{sign}{}", duration(size)),
                    Unit::Microseconds => write!(f, "{sign}{}", duration(size / 1e6)),
                    Unit::Bytes => write!(f, "{sign}{}", bytes_exact(size as u64)),
                    Unit::BytesPerSecond => write!(f, "{sign}{}/s", bytes_exact(size as u64)),
                    Unit::OpsPerSecond | Unit::Count | Unit::Share => write!(f, "{sign}{size}"),
                }
            }
        }
    }
}

/// Without what a division by 100 and back leaves.
fn rounded(percent: f64) -> f64 {
    (percent * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(text: &str) -> Result<ChangeCondition, String> {
        text.parse()
    }

    #[test]
    fn comes_back_as_text() {
        for text in [
            "lost > +10%",
            "lost >= +1s",
            "p99 > +2ms",
            "baseline.p999 > +250us",
            "baseline < -5%",
            "trim < -100%",
            "trim < -1G/s",
            "bytes > +200%",
            "commands > +100",
            "depth < -0.05",
            "delete <= -1000",
        ] {
            let condition = condition(text).unwrap();
            assert_eq!(condition.to_string(), text);
            assert_eq!(condition.to_string().parse(), Ok(condition));
        }
        assert_eq!(condition("LOST>+12.5%"), condition("lost > +12.5 %"));
    }

    #[test]
    fn errors_name_what_is_allowed() {
        let message = |text: &str| condition(text).unwrap_err().to_string();
        assert!(message("lost").contains("+10%"));
        assert!(message("lost > 10%").contains("+ or -"));
        assert!(message("lost > ").contains("+ or -"));
        assert!(message("iops > +10%").contains("recovery.p999"));
        assert!(message("lost > +5").contains("ms"));
        assert!(message("lost > +-5%").contains("5%"));
        assert!(message("trim < -5s").contains("5s"));
        assert!(message("lost > +x%").contains("share"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text: String, sign in "[<>]=?", value in "[+-][0-9a-zé%.]{0,6}") {
            let _ = condition(&text);
            for figure in ["lost", "trim", "depth", "bytes", "p99"] {
                if let Ok(condition) = condition(&format!("{figure}{sign}{value}")) {
                    let again: ChangeCondition = condition.to_string().parse().unwrap();
                    proptest::prop_assert_eq!(again.figure, condition.figure);
                }
            }
        }
    }
}
