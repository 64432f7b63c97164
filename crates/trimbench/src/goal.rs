//! The goal: the options of every command that frees space, and their words to be given again.

use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use clap::Args;
use pace::{Goal, Refusal, Work};
use record::units::values::positive_duration;
use record::units::{duration_exact, names, percent_exact};
use ssd::Card;

use crate::card;
use crate::exit::Error;
use crate::systemd::absolute;
use reclaim::throttle::Protected;

/// The heading of the options for the goal.
pub(crate) const GOALS: &str = "How much others' I/O may lose";

/// The limits on the slow-down of other I/O.
#[derive(Debug, Args)]
pub struct GoalArgs {
    /// How much of its throughput other I/O may lose
    #[arg(
        long,
        help_heading = GOALS,
        value_name = "SHARE",
        value_parser = share,
        help = slowdown_help()
    )]
    pub slowdown: Option<f64>,
    /// How much longer a read of others may wait (99.9th percentile)
    #[arg(long, help_heading = GOALS, value_name = "TIME", value_parser = positive_duration)]
    pub max_latency: Option<Duration>,
    /// Until when it must be done, even if others' I/O loses more
    ///
    /// With --profile a deadline that needs a larger --slowdown is refused before anything is freed.
    #[arg(long, help_heading = GOALS, value_name = "TIME", value_parser = positive_duration)]
    pub deadline: Option<Duration>,
    /// A service or control group whose waits for I/O may take at most SHARE more of the time
    ///
    /// A unit of systemd, or a path of a control group of version 2. Without SHARE: 5%.
    #[arg(long, help_heading = GOALS, value_name = "UNIT[=SHARE]", value_parser = protect)]
    pub protect: Option<Protect>,
    /// The drive's card: one of `lab profiles`, or a file of `fit`
    #[arg(long, help_heading = GOALS, value_name = "PROFILE|FILE")]
    pub profile: Option<String>,
}

/// The default of `--slowdown` as it is typed; [`Goal::default`] has it.
pub(crate) fn default_slowdown() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| percent_exact(Goal::default().slowdown));
    &TEXT
}

fn slowdown_help() -> String {
    let default = default_slowdown();
    format!("How much of their throughput others may lose [default: {default}]")
}

impl GoalArgs {
    /// Whether any part of a goal was given.
    pub(crate) fn has_limit(&self) -> bool {
        self.slowdown.is_some()
            || self.max_latency.is_some()
            || self.deadline.is_some()
            || self.protect.is_some()
    }

    /// The goal.
    pub(crate) fn goal(&self) -> Goal {
        Goal {
            slowdown: self.slowdown.unwrap_or(Goal::default().slowdown),
            max_latency: self.max_latency,
            deadline: self.deadline,
            max_pressure: self.protect.as_ref().map(|protect| protect.share),
        }
    }

    /// Returns the control group to protect, if one is named.
    pub(crate) fn protected(&self) -> Option<Protected> {
        self.protect.as_ref().map(|protect| protect.of.clone())
    }
}

/// A control group, and how much longer it may wait for I/O.
#[derive(Debug, Clone, PartialEq)]
pub struct Protect {
    of: Protected,
    /// The share of the time.
    share: f64,
}

/// How much longer a protected group may wait, if the user doesn't say.
const PRESSURE: f64 = 0.05;

fn protect(text: &str) -> Result<Protect, String> {
    let (name, share) = group(text)?;
    let directory = linux::cgroup::watched(name).map_err(|error| error.to_string())?;
    let name = name.to_owned();
    Ok(Protect {
        of: Protected { name, directory },
        share,
    })
}

/// Returns the name of a group, and how much longer it may wait.
fn group(text: &str) -> Result<(&str, f64), String> {
    let (name, allowed) = match text.rsplit_once('=') {
        Some((name, allowed)) => (name, share(allowed)?),
        None => (text, PRESSURE),
    };
    match name.is_empty() {
        true => Err("name a unit of systemd, or a control group".to_owned()),
        false => Ok((name, allowed)),
    }
}

pub(crate) fn share(text: &str) -> Result<f64, String> {
    let share = record::units::parse_share(text).map_err(|error| error.to_string())?;
    match share >= 0.001 {
        true => Ok(share),
        false => Err("at least 0.1% must be allowed, or it would never end".to_owned()),
    }
}

impl GoalArgs {
    /// Returns the options that were given, each as a word that parses to the same value.
    pub(crate) fn given(&self) -> Vec<String> {
        self.given_but(None)
    }

    /// As [`given`](Self::given). If the goal was refused, it has the value that can be met
    /// instead.
    pub(crate) fn given_but(&self, refused: Option<Refusal>) -> Vec<String> {
        let (mut max_latency, mut deadline) = (self.max_latency, self.deadline);
        match refused {
            Some(Refusal::Latency { least, .. }) => max_latency = Some(least),
            Some(Refusal::Deadline { least, .. }) => deadline = Some(least),
            None => {}
        }
        let protect = self.protect.as_ref();
        let protect = protect.map(|it| format!("{}={}", it.of.name, percent_exact(it.share)));
        let all = [
            ("slowdown", self.slowdown.map(percent_exact)),
            ("max-latency", max_latency.map(duration_exact)),
            ("deadline", deadline.map(duration_exact)),
            ("protect", protect),
            ("profile", self.profile.clone()),
        ];
        all.into_iter()
            .filter_map(|(option, value)| Some(format!("--{option}={}", value?)))
            .collect()
    }
}

impl GoalArgs {
    /// Returns the card of the drive, if one is named.
    pub(crate) fn card(&self) -> Result<Option<Card>, Error> {
        self.profile.as_deref().map(card::named).transpose()
    }

    /// Returns the goal as words for a unit of systemd. A card's file has its absolute path. The
    /// slowdown is there also where it is the default, because another version may have another.
    pub(crate) fn in_unit(&self, has_slowdown: bool) -> Result<Vec<String>, Error> {
        let profile = match &self.profile {
            Some(name) if name.contains('/') || name.ends_with(".toml") => {
                Some(absolute(Path::new(name))?)
            }
            name => name.clone(),
        };
        let goal = GoalArgs {
            slowdown: has_slowdown.then(|| self.goal().slowdown),
            profile,
            protect: self.protect.clone(),
            ..*self
        };
        Ok(goal.given())
    }

    /// Returns a sentence about what a dry run leaves unknown of the goal.
    ///
    /// # Errors
    /// If a card says that the goal can't be met.
    pub(crate) fn foreseen(
        &self,
        card: Option<&Card>,
        work: &Work,
    ) -> Result<Option<String>, Refusal> {
        if let Some(card) = card {
            return pace::plan(card, work, &self.goal()).map(|_| None);
        }
        Ok(self.max_latency.map(|latency| {
            format!(
                "a dry run doesn't test --max-latency {}: before it frees anything trimbench \
                 measures what this drive can hold, and refuses less",
                duration_exact(latency)
            )
        }))
    }
}

/// Words as a shell reads them, with a blank before each.
pub(crate) fn in_shell(words: &[String]) -> String {
    words
        .iter()
        .map(|word| format!(" {}", names::shown(word)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_change_is_quoted() {
        let words = ["--slowdown=5%", "--profile=my card.toml", "--profile=it's"];
        assert_eq!(
            in_shell(&words.map(str::to_owned)),
            " --slowdown=5% '--profile=my card.toml' \"--profile=it's\""
        );
        assert_eq!(in_shell(&[]), "");
    }

    #[test]
    fn a_dry_run_refuses_what_a_card_excludes_and_leaves_the_rest_open() {
        let goal = |latency| GoalArgs {
            slowdown: None,
            max_latency: Some(Duration::from_micros(latency)),
            deadline: None,
            protect: None,
            profile: None,
        };
        let work = Work::new(1 << 30, 8);
        let open = goal(3).foreseen(None, &work).unwrap().unwrap();
        assert!(open.contains("doesn't test --max-latency 3us"), "{open}");
        let card = ssd::profiles::by_name("crucial-t500-2tb");
        assert!(goal(3).foreseen(card, &work).is_err());
        assert_eq!(goal(500_000).foreseen(card, &work), Ok(None));
    }

    #[test]
    fn a_protected_group_has_a_share_of_its_own() {
        assert_eq!(group("db@1.service"), Ok(("db@1.service", 0.05)));
        assert_eq!(group("db@1.service=2%"), Ok(("db@1.service", 0.02)));
        assert!(group("=2%").is_err() && group("db=much").is_err());
    }

    #[test]
    fn shares() {
        assert!(share("0").is_err());
        assert_eq!(share("5%"), Ok(0.05));
    }
}
