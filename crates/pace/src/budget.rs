//! How much time others may lose to our discards, and when.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use ssd::Time;

use crate::quantity::{Seconds, Share};

/// Losses closer than this are added up.
const GRAIN: Seconds = Seconds(0.001);

/// The longest memory of losses.
const MEMORY: Seconds = Seconds(30.0);

/// The time that others may lose: refilled at the goal's rate, spent by our discards.
///
/// Discards of other programs are not charged: a database that drops log files beside us
/// does not spend our goal. Deleters that share one goal divide its rate among them
/// ([`crate::Feedback::deleters`]).
#[derive(Clone, Default)]
pub(crate) struct Budget {
    /// The time that may be lost now: min(depth, max(tokens, −g·30 s) + g·Δt) at each refill. Below
    /// 0 if too much has been lost.
    tokens: Seconds,
    /// Of what was spent, the part that discards have not used yet: the need N of the piece in
    /// flight, less its charges so far.
    reserved: Seconds,
    now: Time,
    /// All that was charged: the sum of φ·(busy time of our discards).
    charged: Seconds,
    /// All that was granted: the first tokens, each refill, and each part of a deficit beyond what
    /// [`MEMORY`] gives back. charged + reserved + tokens never exceed it.
    granted: Seconds,
    /// Each loss, and when it was.
    lost: VecDeque<(Time, Seconds)>,
}

impl Budget {
    pub(crate) fn new(tokens: Seconds) -> Budget {
        Budget {
            tokens,
            granted: tokens,
            ..Budget::default()
        }
    }

    /// Checks that nothing is spent that was not granted. A rounding error is no spending.
    fn check(&self) {
        let spent = self.charged + self.reserved + self.tokens;
        assert!(
            self.reserved >= Seconds::ZERO
                && spent <= self.granted + 1e-6 * (self.granted + Seconds(1.0)),
            "more is spent than was granted: {self:?}"
        );
    }

    /// Adds the time that others may lose since the last refill: `share` of each second. At most
    /// `depth` is kept, so that savings are not spent on others at once. The deficit is at most
    /// what [`MEMORY`] can give back.
    pub(crate) fn refill(&mut self, now: Time, share: Share, depth: Seconds) {
        let passed = Seconds::from(now.since(self.now));
        self.now = self.now.max(now);
        let before = self.tokens;
        let refilled = before.max(-share * MEMORY) + share * passed;
        self.tokens = refilled.min(depth);
        self.granted += refilled - before;
        self.check();
        while let Some(&(then, _)) = self.lost.front()
            && Seconds::from(now.since(then)) > MEMORY
        {
            self.lost.pop_front();
        }
    }

    /// Charges a loss: the time that our discards took from others.
    pub(crate) fn charge(&mut self, loss: Seconds) {
        if loss <= Seconds::ZERO {
            return;
        }
        self.charged += loss;
        let foreseen = self.reserved.min(loss);
        self.reserved -= foreseen;
        self.tokens -= loss - foreseen;
        match self.lost.back_mut() {
            Some((then, lost)) if Seconds::from(self.now.since(*then)) < GRAIN => *lost += loss,
            _ => self.lost.push_back((self.now, loss)),
        }
        self.check();
    }

    /// Spends what a piece will cost, before it does.
    pub(crate) fn reserve(&mut self, need: Seconds) {
        self.tokens -= need;
        self.reserved += need;
    }

    /// Ends a reservation when the piece is done, and returns the part that it didn't use to the
    /// budget.
    pub(crate) fn release(&mut self) {
        self.tokens += std::mem::take(&mut self.reserved);
        self.check();
    }

    /// Gives up what was saved: the next piece starts from at most this.
    pub(crate) fn at_most(&mut self, tokens: Seconds) {
        self.tokens = self.tokens.min(tokens);
    }

    /// Returns the time that can be spent now.
    pub(crate) fn tokens(&self) -> Seconds {
        self.tokens
    }

    /// Returns the time lost within the last `window`.
    pub(crate) fn lost_in(&self, window: Seconds) -> Seconds {
        self.within(window).map(|(_, lost)| lost).sum()
    }

    /// Returns the losses within the last `window`, the oldest first.
    fn within(&self, window: Seconds) -> impl Iterator<Item = (Time, Seconds)> {
        let is_recent = move |then: Time| Seconds::from(self.now.since(then)) < window;
        self.lost
            .iter()
            .copied()
            .filter(move |&(then, _)| is_recent(then))
    }

    /// Returns what was charged in all.
    pub(crate) fn charged(&self) -> Seconds {
        self.charged
    }

    /// Returns how long it takes until `need` can be spent, at this share; at most an hour.
    pub(crate) fn until(&self, need: Seconds, share: Share) -> Duration {
        let short = (need - self.tokens).max(Seconds::ZERO);
        (short / share.max(Share(1e-6)))
            .min(Seconds(3600.0))
            .duration()
    }

    /// Returns how long it takes until `need` more keeps the loss within the last `window` at
    /// `most`. A negative `most` counts as 0.
    pub(crate) fn until_window(&self, need: Seconds, window: Seconds, most: Seconds) -> Duration {
        let mut over = self.lost_in(window) + need - most.max(Seconds::ZERO);
        let mut wait = Duration::ZERO;
        for (then, lost) in self.within(window) {
            if over <= Seconds(1e-9) {
                break;
            }
            // If it alone is too much, it goes when nothing else is in the window.
            wait = window.duration().saturating_sub(self.now.since(then));
            over -= lost;
        }
        wait
    }
}

/// The losses as one sum: there can be thousands.
impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("tokens", &self.tokens)
            .field("reserved", &self.reserved)
            .field("charged", &self.charged)
            .field("granted", &self.granted)
            .field("lost_in_30_s", &self.lost_in(MEMORY))
            .finish()
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
        let mut budget = Budget::new(Seconds::ZERO);
        for i in 0..5 {
            budget.refill(at(f64::from(i) * 0.1), Share(0.1), Seconds(1.0));
            budget.charge(Seconds(0.02));
        }
        budget.refill(at(0.5), Share(0.1), Seconds(1.0));
        assert!((budget.lost_in(Seconds(1.0)).0 - 0.1).abs() < 1e-9);
        let wait = |need| budget.until_window(Seconds(need), Seconds(1.0), Seconds(0.125));
        assert_eq!(wait(0.02), Duration::ZERO);
        // The first, of 0.0 s, must leave.
        let one = wait(0.03).as_secs_f64();
        assert!((one - 0.5).abs() < 1e-6, "{one}");
        let all = wait(9.0).as_secs_f64();
        assert!((all - 0.9).abs() < 1e-6, "{all}");
    }

    #[test]
    #[should_panic(expected = "more is spent than was granted")]
    fn time_that_nobody_granted_cannot_be_spent() {
        let mut budget = Budget::new(Seconds(1.0));
        budget.tokens += Seconds(0.1);
        budget.refill(at(1.0), Share(0.1), Seconds(10.0));
    }

    #[test]
    fn what_is_not_used_comes_back_and_old_debts_are_forgotten() {
        let mut budget = Budget::new(Seconds::ZERO);
        budget.refill(at(0.1), Share(0.1), Seconds(1.0));
        budget.reserve(Seconds(0.5));
        let before = budget.tokens();
        budget.charge(Seconds(0.2));
        budget.release();
        assert!((budget.tokens() - before - Seconds(0.3)).0.abs() < 1e-9);
        // An hour's loss is not waited off for ten.
        budget.charge(Seconds(3600.0));
        budget.refill(at(2.0), Share(0.1), Seconds(1.0));
        assert!(budget.tokens() >= Seconds(-3.0), "{budget:?}");
    }
}
