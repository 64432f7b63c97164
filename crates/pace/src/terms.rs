//! The terms of the goal at one moment: which share of the time may be lost.

use std::time::Duration;

use ssd::Time;

use crate::feedback::Feedback;
use crate::goal::Goal;
use crate::pacer::Why;
use crate::pressure::Pressure;
use crate::quantity::{Seconds, Share};

/// By how much faster it is freed than a deadline asks for.
const HASTE: f64 = 1.05;

/// The most that is taken where a latency must be held, because the pacer always has to look.
const LATENCY_SHARE: Share = Share(0.98);

/// A goal, its deadline's start, and who divides it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terms {
    goal: Goal,
    /// When the deletion began, for the deadline.
    start: Option<Time>,
    /// How many deleters divide the goal, this one included.
    deleters: f64,
    /// How a protected control group waits.
    pressure: Pressure,
}

/// The share of the time that may be lost now, and why it is not the goal's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LossLimit {
    pub(crate) share: Share,
    pub(crate) why: Option<Why>,
}

impl Terms {
    pub(crate) fn new(goal: Goal) -> Terms {
        Terms {
            goal,
            start: None,
            deleters: 1.0,
            pressure: Pressure::new(goal.max_pressure),
        }
    }

    /// Takes in a look at this moment.
    pub(crate) fn observe(&mut self, now: Time, seen: &Feedback<'_>) {
        self.start.get_or_insert(now);
        self.deleters = 1.0 + f64::from(seen.deleters_beside);
        self.pressure.observe(now, seen);
    }

    /// Returns whether a protected group waits longer than it may.
    pub(crate) fn is_pressing(&self) -> bool {
        self.pressure.factor() < 1.0
    }

    /// Returns how many deleters divide the goal, this one included.
    pub(crate) fn deleters(&self) -> f64 {
        self.deleters
    }

    /// Returns the goal's share of the time, for all deleters together.
    pub(crate) fn goal_share(&self) -> Share {
        self.goal.share()
    }

    /// Returns the share that may be lost now: the goal's, or more for urgent space or a deadline.
    /// `rest`: what the rest will cost.
    pub(crate) fn limit(&self, now: Time, seen: &Feedback<'_>, rest: Option<Seconds>) -> LossLimit {
        let mut goal = self.goal.share() / self.deleters;
        if self.goal.max_latency.is_some() {
            // Whatever throughput may be lost, the latency is held.
            goal = goal.min(LATENCY_SHARE);
        }
        let mut limit = LossLimit {
            share: goal * self.pressure.factor(),
            why: self.is_pressing().then_some(Why::BackingOff),
        };
        let urgency = seen.space.map_or(0.0, |space| space.urgency());
        if urgency > 0.0 {
            limit = LossLimit {
                share: goal + (Share(1.0) - goal) * urgency,
                why: Some(Why::Urgent),
            };
        }
        if let (Some(_), Some(remains)) = (seen.left, self.remains(now)) {
            let needed = Share(rest.unwrap_or_default() * HASTE / remains);
            if needed > limit.share {
                let most = match self.goal.max_latency {
                    Some(_) => LATENCY_SHARE,
                    None => Share(1.0),
                };
                limit = LossLimit {
                    share: needed.min(most),
                    why: Some(Why::Deadline),
                };
            }
        }
        limit
    }

    /// Returns the bytes for each second that the deadline asks for; 0 without one.
    pub(crate) fn by_deadline(&self, now: Time, seen: &Feedback<'_>) -> f64 {
        match (seen.left, self.remains(now)) {
            (Some(left), Some(remains)) => left as f64 * HASTE / remains.0,
            _ => 0.0,
        }
    }

    /// Returns how long it is until the deadline.
    fn remains(&self, now: Time) -> Option<Seconds> {
        let passed = now.since(self.start?);
        let remains: Duration = self.goal.deadline?.saturating_sub(passed);
        Some(Seconds::from(remains).max(Seconds(1e-3)))
    }
}
