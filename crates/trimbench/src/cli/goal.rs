//! What others may feel: the options that every command has that frees space.

use std::time::Duration;

use bench::scenario::values::positive_duration;
use clap::Args;
use pace::Goal;

/// Heading of what may be felt.
pub(super) const GOALS: &str = "What others may feel";

/// What others may feel.
#[derive(Debug, Args)]
pub struct GoalArgs {
    /// How much of their throughput others may lose [default: 10%]
    #[arg(long, help_heading = GOALS, value_name = "SHARE", value_parser = share)]
    pub slowdown: Option<f64>,
    /// How much longer others may wait: the 99.9th percentile of what is added to a read
    #[arg(long, help_heading = GOALS, value_name = "TIME", value_parser = positive_duration)]
    pub max_latency: Option<Duration>,
    /// By when it must be done; where that is too soon for --slowdown, it wins (with --profile it is
    /// refused before anything is begun)
    #[arg(long, help_heading = GOALS, value_name = "TIME", value_parser = positive_duration)]
    pub deadline: Option<Duration>,
    /// What is known of the drive: a name that `trimbench lab profiles` lists, or a device card that
    /// `trimbench fit` wrote
    #[arg(long, help_heading = GOALS, value_name = "PROFILE|FILE")]
    pub profile: Option<String>,
}

impl GoalArgs {
    /// Whether any part of a goal was given.
    pub(crate) fn has_limit(&self) -> bool {
        self.slowdown.is_some() || self.max_latency.is_some() || self.deadline.is_some()
    }

    /// The goal.
    pub(crate) fn goal(&self) -> Goal {
        Goal {
            slowdown: self.slowdown.unwrap_or(Goal::default().slowdown),
            max_latency: self.max_latency,
            deadline: self.deadline,
        }
    }
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = units::parse_share(text).map_err(|error| error.to_string())?;
    match share >= 0.001 {
        true => Ok(share),
        false => Err("at least 0.1% must be allowed, or it would never end".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert!(share("0").is_err());
        assert_eq!(share("5%"), Ok(0.05));
    }
}
