//! How much time others may lose to our discards, and when.

use std::collections::VecDeque;
use std::time::Duration;

use ssd::Time;

/// Losses closer than this are added up, in seconds.
const GRAIN: f64 = 0.001;

/// The longest memory of losses, in seconds.
const MEMORY: f64 = 30.0;

/// The time that others may lose: refilled at the goal's rate, spent by our discards.
///
/// Discards of other programs are not charged: a database that drops log files beside us
/// does not spend our goal. Deleters that share one goal divide its rate among them
/// ([`crate::Feedback::deleters`]).
#[derive(Debug, Clone, Default)]
pub(crate) struct Budget {
    /// Seconds that may be lost now; below 0 if too many have been.
    tokens: f64,
    /// Of what was spent, the part that discards have not used yet.
    reserved: f64,
    now: Time,
    /// What was charged in all, in seconds.
    charged: f64,
    /// What was lost when, in seconds.
    lost: VecDeque<(Time, f64)>,
}

impl Budget {
    pub(crate) fn new(tokens: f64) -> Budget {
        Budget {
            tokens,
            ..Budget::default()
        }
    }

    /// Time passes: `share` of each second may be lost. At most `depth` seconds are kept,
    /// so that what was saved is not spent on others at once. No more is owed than can be
    /// given back while it is remembered.
    pub(crate) fn refill(&mut self, now: Time, share: f64, depth: f64) {
        let passed = now.since(self.now).as_secs_f64();
        self.now = self.now.max(now);
        let pending = -share * MEMORY;
        self.tokens = (self.tokens.max(pending) + passed * share).min(depth);
        while let Some(&(then, _)) = self.lost.front()
            && now.since(then).as_secs_f64() > MEMORY
        {
            self.lost.pop_front();
        }
    }

    /// Our discards took so many seconds from others.
    pub(crate) fn charge(&mut self, seconds: f64) {
        if seconds <= 0.0 {
            return;
        }
        self.charged += seconds;
        let foreseen = self.reserved.min(seconds);
        self.reserved -= foreseen;
        self.tokens -= seconds - foreseen;
        match self.lost.back_mut() {
            Some((then, lost)) if self.now.since(*then).as_secs_f64() < GRAIN => *lost += seconds,
            _ => self.lost.push_back((self.now, seconds)),
        }
    }

    /// Spends what a piece will cost, before it does.
    pub(crate) fn reserve(&mut self, need: f64) {
        self.tokens -= need;
        self.reserved += need;
    }

    /// The piece is done: what it didn't use comes back.
    pub(crate) fn release(&mut self) {
        self.tokens += std::mem::take(&mut self.reserved);
    }

    /// What has been saved is given up: the next starts from at most this.
    pub(crate) fn at_most(&mut self, tokens: f64) {
        self.tokens = self.tokens.min(tokens);
    }

    /// What can be spent now.
    pub(crate) fn tokens(&self) -> f64 {
        self.tokens
    }

    /// Seconds lost in the last `window` seconds.
    pub(crate) fn lost_in(&self, window: f64) -> f64 {
        self.within(window).map(|(_, lost)| lost).sum()
    }

    /// The losses of the last `window` seconds, the oldest first.
    fn within(&self, window: f64) -> impl Iterator<Item = (Time, f64)> {
        let is_recent = move |then: Time| self.now.since(then).as_secs_f64() < window;
        self.lost
            .iter()
            .copied()
            .filter(move |&(then, _)| is_recent(then))
    }

    /// Returns what was charged in all, in seconds.
    pub(crate) fn charged(&self) -> f64 {
        self.charged
    }

    /// How long until so much can be spent, at this share.
    pub(crate) fn until(&self, need: f64, share: f64) -> Duration {
        let short = (need - self.tokens).max(0.0);
        Duration::from_secs_f64((short / share.max(1e-6)).min(3600.0))
    }

    /// How long until `need` more keeps the loss of the last `window` seconds within `most`
    /// (nothing, if that is negative).
    pub(crate) fn until_window(&self, need: f64, window: f64, most: f64) -> Duration {
        let mut over = self.lost_in(window) + need - most.max(0.0);
        let mut wait = Duration::ZERO;
        for (then, lost) in self.within(window) {
            if over <= 1e-9 {
                break;
            }
            // If it alone is too much, it goes when nothing else is in the window.
            wait = Duration::from_secs_f64(window).saturating_sub(self.now.since(then));
            over -= lost;
        }
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Time {
        Time::from_secs_f64(seconds)
    }

    #[test]
    fn a_window_is_kept_free() {
        let mut budget = Budget::new(0.0);
        for i in 0..5 {
            budget.refill(at(f64::from(i) * 0.1), 0.1, 1.0);
            budget.charge(0.02);
        }
        budget.refill(at(0.5), 0.1, 1.0);
        assert!((budget.lost_in(1.0) - 0.1).abs() < 1e-9);
        assert_eq!(budget.until_window(0.02, 1.0, 0.125), Duration::ZERO);
        // The first, of 0.0 s, must leave.
        let wait = budget.until_window(0.03, 1.0, 0.125).as_secs_f64();
        assert!((wait - 0.5).abs() < 1e-6, "{wait}");
        let all = budget.until_window(9.0, 1.0, 0.125).as_secs_f64();
        assert!((all - 0.9).abs() < 1e-6, "{all}");
    }

    #[test]
    fn what_is_not_used_comes_back_and_old_debts_are_forgotten() {
        let mut budget = Budget::new(0.0);
        budget.refill(at(0.1), 0.1, 1.0);
        budget.reserve(0.5);
        let before = budget.tokens();
        budget.charge(0.2);
        budget.release();
        assert!((budget.tokens() - before - 0.3).abs() < 1e-9);
        // An hour's loss is not waited off for ten.
        budget.charge(3600.0);
        budget.refill(at(2.0), 0.1, 1.0);
        assert!(budget.tokens() >= -3.0, "{}", budget.tokens());
    }
}
