//! The goal as a caller writes it, e.g. `slowdown=10%,max-latency=5ms`.

use pace::Goal;
use record::units::{parse_duration, parse_share};

/// Parses a goal; `None` is the default.
///
/// # Errors
/// A sentence: an unknown name, or a value that isn't one.
pub(crate) fn parse(text: Option<&str>) -> Result<Goal, String> {
    let mut goal = Goal::default();
    let parts = text.unwrap_or_default().split(',').map(str::trim);
    for part in parts.filter(|part| !part.is_empty()) {
        let invalid = |why: String| format!("goal `{part}`: {why}");
        match part.split_once('=') {
            Some(("slowdown", share)) => {
                goal.slowdown = parse_share(share).map_err(|e| invalid(e.to_string()))?;
            }
            Some(("max-latency", time)) => {
                goal.max_latency = Some(parse_duration(time).map_err(|e| invalid(e.to_string()))?);
            }
            _ => {
                return Err(invalid(
                    "give slowdown=PERCENT or max-latency=TIME".to_owned(),
                ));
            }
        }
    }
    Ok(goal)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pace::Goal;

    use super::parse;

    #[test]
    fn goals_are_those_of_the_command_line() {
        assert_eq!(parse(None), Ok(Goal::default()));
        assert_eq!(parse(Some("")), Ok(Goal::default()));
        assert_eq!(parse(Some("slowdown=30%")), Ok(Goal::slowdown(0.3)));
        let both = parse(Some("slowdown=5%, max-latency=2ms")).unwrap();
        assert_eq!(both.slowdown, 0.05);
        assert_eq!(both.max_latency, Some(Duration::from_millis(2)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for wrong in ["speed=3", "slowdown", "slowdown=110%", "max-latency=soon"] {
            let why = parse(Some(wrong)).unwrap_err();
            assert!(why.contains(wrong), "{why}");
        }
    }
}
