//! The terms of the goal at one moment: which share of the time may be lost.

use std::time::Duration;

use ssd::Time;

use crate::advice::Why;
use crate::feedback::Feedback;
use crate::goal::Goal;

/// By how much faster it is freed than a deadline asks for.
const HASTE: f64 = 1.05;

/// The most that is taken where a latency must be held, because the pacer always has to look.
const LATENCY_SHARE: f64 = 0.98;

/// A goal, its deadline's start, and who divides it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    goal: Goal,
    /// When the deletion began, for the deadline.
    start: Option<Time>,
    /// How many deleters divide the goal, this one included.
    deleters: f64,
}

/// The share of the time that may be lost now, and why it is not the goal's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) share: f64,
    pub(crate) why: Option<Why>,
}

impl Terms {
    pub(crate) fn new(goal: Goal) -> Terms {
        Terms {
            goal,
            start: None,
            deleters: 1.0,
        }
    }

    /// Takes in a look at this moment.
    pub(crate) fn observe(&mut self, now: Time, seen: &Feedback<'_>) {
        self.start.get_or_insert(now);
        self.deleters = 1.0 + f64::from(seen.deleters_beside);
    }

    /// Returns how many deleters divide the goal, this one included.
    pub(crate) fn deleters(&self) -> f64 {
        self.deleters
    }

    /// Returns the goal's share of the time, for all deleters together.
    pub(crate) fn goal_share(&self) -> f64 {
        self.goal.share()
    }

    /// Returns the share that may be lost now: the goal's, or more for urgent space or a deadline.
    /// `rest_s`: what the rest will cost, in seconds.
    pub(crate) fn share(&self, now: Time, seen: &Feedback<'_>, rest_s: Option<f64>) -> Share {
        let mut goal = self.goal.share() / self.deleters;
        if self.goal.max_latency.is_some() {
            // Whatever throughput may be lost, the latency is held.
            goal = goal.min(LATENCY_SHARE);
        }
        let mut share = Share {
            share: goal,
            why: None,
        };
        let urgency = seen.space.map_or(0.0, |space| space.urgency());
        if urgency > 0.0 {
            share = Share {
                share: goal + (1.0 - goal) * urgency,
                why: Some(Why::Urgent),
            };
        }
        if let (Some(_), Some(remains)) = (seen.left, self.remains(now)) {
            let needed = rest_s.unwrap_or(0.0) * HASTE / remains;
            if needed > share.share {
                let most = match self.goal.max_latency {
                    Some(_) => LATENCY_SHARE,
                    None => 1.0,
                };
                share = Share {
                    share: needed.min(most),
                    why: Some(Why::Deadline),
                };
            }
        }
        share
    }

    /// Returns the bytes for each second that the deadline asks for; 0 without one.
    pub(crate) fn by_deadline(&self, now: Time, seen: &Feedback<'_>) -> f64 {
        match (seen.left, self.remains(now)) {
            (Some(left), Some(remains)) => left as f64 * HASTE / remains,
            _ => 0.0,
        }
    }

    /// Returns how long it is until the deadline, in seconds.
    fn remains(&self, now: Time) -> Option<f64> {
        let passed = now.since(self.start?);
        let remains: Duration = self.goal.deadline?.saturating_sub(passed);
        Some(remains.as_secs_f64().max(1e-3))
    }
}
