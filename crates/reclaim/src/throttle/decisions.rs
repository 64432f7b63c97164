//! The pacer's decisions and their reasons, few enough for a file.

use std::time::Duration;

use pace::{Discards, Flushes, GoalResult, Kept, Limit, Observed, Others, Why, Witness};
use record::absence::Absent;
use storage::FileSystem;

use crate::volume::Cleaned;

/// The most decisions that are kept. Beyond it, every other one is dropped.
const MOST: usize = 2048;

/// One decision: so much may be freed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// When it was made, in seconds after the beginning.
    pub at_s: f64,
    /// Why.
    pub why: Why,
    /// Bytes that may be freed; `u64::MAX`: all.
    pub allow: u64,
    /// How long the pacer made the deletion wait since the decision before, in seconds.
    pub waited_s: f64,
    /// The learned time of a discard of full length, in seconds; `None` if none was measured.
    pub service_s: Option<f64>,
    /// The share of a discard's time that is charged.
    pub phi: f64,
    /// Bytes freed so far.
    pub freed: u64,
    /// The devices' discards so far, from any process.
    pub discards: Discards,
    /// The devices' flushes so far, from any process.
    pub flushes: Flushes,
    /// The foreground's reads and writes so far; `None` where nothing shows them.
    pub others: Option<Others>,
}

/// Decisions in their order, thinned where there are many.
#[derive(Debug, Clone, PartialEq)]
pub struct Decisions {
    kept: Vec<Decision>,
    /// One of so many was kept.
    every: u64,
    count: u64,
    last_s: f64,
}

impl Default for Decisions {
    fn default() -> Decisions {
        Decisions {
            kept: Vec::new(),
            every: 1,
            count: 0,
            last_s: 0.0,
        }
    }
}

impl Decisions {
    /// Those that are kept.
    pub fn kept(&self) -> &[Decision] {
        &self.kept
    }

    /// Of so many decisions one is kept.
    pub fn every(&self) -> u64 {
        self.every
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds a decision, whose wait is counted from the one before.
    pub(super) fn add(&mut self, decision: Decision) {
        let waited_s = decision.at_s - self.last_s;
        self.last_s = decision.at_s;
        self.count += 1;
        if !(self.count - 1).is_multiple_of(self.every) {
            return;
        }
        self.kept.push(Decision {
            waited_s,
            ..decision
        });
        if self.kept.len() == MOST {
            let mut odd = false;
            self.kept.retain(|_| {
                odd = !odd;
                odd
            });
            self.every *= 2;
        }
    }
}

// The summary of a throttled deletion.

/// The result of a throttled deletion, as measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Where the file system is mounted of which files were deleted; `None` of a trim.
    pub mount: Option<String>,
    /// The drives whose reads and flushes were measured.
    pub drives: Vec<String>,
    /// The time from the start until the debt was paid or written off.
    pub elapsed: Duration,
    /// Bytes freed.
    pub freed: u64,
    /// Freed bytes for which no discard was expected.
    pub exempt: u64,
    /// Bytes of our own discards, as far as they can be distinguished; otherwise those of all
    /// processes.
    pub discarded: u64,
    /// The number of discards meanwhile, on behalf of any process.
    pub discards: u64,
    /// Bytes of our own discards that came a second time: btrfs discards block groups that have
    /// become empty whole.
    pub discarded_twice: u64,
    /// Bytes whose discards never came, so that the throttle gave them up.
    pub written_off: u64,
    /// Whether any discards came.
    pub answered: bool,
    /// Whether the devices count; otherwise `discarded` and `discards` are no measurement.
    pub counted: bool,
    /// The file system, if it sends its discards in the background later. Those that came meanwhile
    /// are then not known to be of this deletion, and nothing is measured on them.
    pub later: Option<FileSystem>,
    /// The most that the foreground may have lost by the discards, as the pacer charged them.
    /// It is no measurement; `None` where the pacer doesn't charge.
    pub charged: Option<Duration>,
    /// The pause after each small discard with which the goal holds; 0 where no commit sends
    /// its discard.
    pub rest: Duration,
    /// The foreground's loss and the canary's waits, as measured; `None` where nothing is
    /// discarded.
    pub observed: Option<Observed>,
    /// Whether each part of the goal was met; empty without a goal.
    pub goals: Vec<GoalResult>,
    /// The name of the control group whose waits the goal limits.
    pub protected: Option<String>,
    /// The work of btrfs' cleaner; `None` where no subvolume was deleted.
    pub cleaned: Option<Cleaned>,
    /// The pacer's decisions and their reasons.
    pub decisions: Decisions,
    /// Spans in which this process did not run; all figures leave them out.
    pub absences: Vec<Absent>,
}

impl Summary {
    /// Counts only our own discards, where others discarded on the same devices. `at_most`: the bytes of
    /// all discards of this file system, where they are known.
    pub(super) fn with_own_discards(mut self, at_most: Option<u64>) -> Summary {
        if let Some(observed) = &mut self.observed {
            let beyond = observed
                .own
                .bytes
                .saturating_sub(at_most.unwrap_or(u64::MAX));
            observed.own.bytes -= beyond;
            observed.others.bytes += beyond;
            self.discarded = observed.own.bytes;
            let beyond = self.discarded.saturating_sub(self.freed);
            self.discarded_twice = self.discarded_twice.min(beyond);
        }
        self
    }

    /// Takes the loss of other I/O, and whether goals were kept, from an account that saw the time after it.
    pub(super) fn with_a_look_after(mut self, goals: Vec<GoalResult>, after: &Observed) -> Summary {
        self.goals = goals;
        if let Some(observed) = &mut self.observed {
            (observed.readers, observed.flushers) = (after.readers, after.flushers);
        }
        self
    }

    /// Removes all figures that assume that the discards were of this deletion: this file system
    /// sends them later.
    pub(crate) fn without_discards(mut self, fs: FileSystem) -> Summary {
        for goal in &mut self.goals {
            if matches!(goal.limit, Limit::Slowdown(_) | Limit::MaxLatency(_)) {
                *goal = GoalResult {
                    kept: Kept::NotMeasured,
                    measured: None,
                    witness: None,
                    first_missed_s: None,
                    worst: None,
                    ..*goal
                };
            }
        }
        let observed = self.observed.map(|observed| Observed {
            readers: None,
            flushers: None,
            canary: None,
            ..observed
        });
        Summary {
            counted: false,
            later: Some(fs),
            observed,
            ..self
        }
    }

    /// Makes a goal uncertain that was met, by our own reads, while btrfs' cleaner was at work: they don't
    /// wait for its transactions.
    pub(crate) fn beside_cleaner(mut self) -> Summary {
        let is_unsure = |goal: &GoalResult| {
            matches!(goal.limit, Limit::Slowdown(_))
                && goal.kept == Kept::Met
                && goal.witness == Some(Witness::Canary)
        };
        let goals = self.goals.iter_mut().filter(|goal| is_unsure(goal));
        for goal in goals.filter(|_| self.cleaned.is_some()) {
            goal.kept = Kept::Unsure;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_after_the_end_leaves_the_discards_as_they_were_distinguished() {
        let mut observed = pace::Account::new(None, false).observed();
        observed.own.bytes = 9 << 20;
        let after = observed;
        let summary = Summary {
            observed: Some(observed),
            ..Summary::default()
        };
        let summary = summary.with_own_discards(Some(4 << 20));
        let summary = summary.with_a_look_after(Vec::new(), &after);
        let observed = summary.observed.unwrap();
        assert_eq!(
            (observed.own.bytes, observed.others.bytes),
            (4 << 20, 5 << 20)
        );
    }

    /// A goal that was met, by our own reads.
    fn met(limit: Limit) -> GoalResult {
        GoalResult {
            limit,
            kept: Kept::Met,
            measured: Some(pace::Measured {
                value: 0.03,
                low: 0.02,
                high: 0.04,
            }),
            witness: Some(Witness::Canary),
            first_missed_s: None,
            worst: None,
        }
    }

    fn observed() -> Observed {
        Observed {
            seconds: 1.0,
            readers: None,
            flushers: None,
            canary: None,
            group: None,
            own: pace::Discarded::default(),
            others: pace::Discarded::default(),
        }
    }

    #[test]
    fn others_discards_are_not_second_ones() {
        let summary = |own| Summary {
            freed: 600,
            discarded: 1700,
            discarded_twice: 500,
            observed: own,
            ..Summary::default()
        };
        let observed = |bytes| Observed {
            own: pace::Discarded {
                bytes,
                seconds: 0.0,
            },
            ..observed()
        };
        let shown = |own, at_most| {
            let summary = summary(own).with_own_discards(at_most);
            (summary.discarded, summary.discarded_twice)
        };
        assert_eq!(shown(Some(observed(700)), None), (700, 100));
        assert_eq!(shown(Some(observed(500)), None), (500, 0));
        assert_eq!(shown(Some(observed(1700)), None), (1700, 500));
        assert_eq!(shown(Some(observed(1700)), Some(650)), (650, 50));
        assert_eq!(shown(Some(observed(500)), Some(650)), (500, 0));
        assert_eq!(shown(None, None), (1700, 500));
    }

    #[test]
    fn beside_the_cleaner_our_own_reads_make_no_goal_certain() {
        let kept = |cleaned, witness| {
            let goal = GoalResult {
                witness: Some(witness),
                ..met(Limit::Slowdown(0.1))
            };
            let summary = Summary {
                cleaned,
                goals: vec![goal],
                ..Summary::default()
            };
            summary.beside_cleaner().goals[0].kept
        };
        let work = Some(Cleaned::default());
        assert_eq!(kept(work, Witness::Canary), Kept::Unsure);
        assert_eq!(kept(work, Witness::Readers), Kept::Met);
        assert_eq!(kept(None, Witness::Canary), Kept::Met);
    }

    #[test]
    fn a_goal_is_not_judged_by_discards_that_come_later() {
        let limits = [
            Limit::Slowdown(0.1),
            Limit::MaxLatency(Duration::from_millis(5)),
            Limit::Deadline(Duration::from_secs(60)),
        ];
        let summary = Summary {
            counted: true,
            goals: limits.map(met).to_vec(),
            ..Summary::default()
        };
        let later = summary.without_discards(FileSystem::Btrfs);
        let kept = later
            .goals
            .iter()
            .map(|goal| (goal.kept, goal.measured.is_some()));
        assert_eq!(
            kept.collect::<Vec<_>>(),
            [
                (Kept::NotMeasured, false),
                (Kept::NotMeasured, false),
                (Kept::Met, true)
            ]
        );
        assert!(!later.counted);
    }

    #[test]
    fn a_million_decisions_are_a_few_thousand_in_their_order() {
        let mut decisions = Decisions::default();
        for number in 0..1_000_000 {
            decisions.add(Decision {
                at_s: f64::from(number),
                why: Why::Holding,
                allow: 1,
                waited_s: 0.0,
                service_s: None,
                phi: 1.0,
                freed: 0,
                discards: Discards::default(),
                flushes: Flushes::default(),
                others: None,
            });
        }
        let kept = decisions.kept();
        assert!(kept.len() > MOST / 4 && kept.len() < MOST, "{}", kept.len());
        assert_eq!(decisions.count(), 1_000_000);
        let apart = decisions.every() as f64;
        assert!(
            kept.windows(2)
                .all(|two| two[1].at_s - two[0].at_s == apart)
        );
    }
}
