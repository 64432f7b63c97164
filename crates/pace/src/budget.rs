//! How much time the others may lose, and when.

use std::collections::VecDeque;
use std::time::Duration;

use ssd::Time;

/// Losses closer than this are added up, in seconds.
const GRAIN: f64 = 0.001;

/// The longest memory of losses, in seconds.
const MEMORY: f64 = 30.0;

/// What other people's discards may take of the goal at most.
const YIELD: f64 = 0.8;

/// Whoever was kept out by other people's discards for so long, in seconds, or for as long as
/// it takes to get a piece of what they leave at least, lets one in.
const STARVED: f64 = 2.0;

/// How long other people's discards are remembered, in seconds.
const THEIRS: f64 = 1.0;

/// Of what we take more than they do, the part that is left to them.
const FAIRNESS: f64 = 0.2;

/// Whose discards take less than this share of the goal isn't given way to in full.
const NOTICED: f64 = 0.05;

/// The others' lost time: refilled at the goal's rate, spent by discards.
///
/// Several who delete hold one goal together: what other people's discards cost
/// is taken off our share, and whoever takes more leaves a little to the other,
/// until both have the same. But they take four fifths at most: whoever
/// discards without any regard doesn't stop us for ever.
#[derive(Debug, Clone, Default)]
pub(crate) struct Budget {
    /// Seconds that may be lost now; below 0 if too many have been.
    tokens: f64,
    /// Of what was spent, the part that discards haven't used yet.
    reserved: f64,
    /// What was lost for each second lately, to ours and to theirs, and for how
    /// long that was watched.
    ours: f64,
    theirs: f64,
    watched: f64,
    now: Time,
    /// When a piece last went, or all began.
    went: Option<Time>,
    /// What was lost when, in seconds: to ours, and to theirs.
    lost: VecDeque<(Time, f64, f64)>,
}

impl Budget {
    pub(crate) fn new(tokens: f64) -> Budget {
        Budget {
            tokens,
            ..Budget::default()
        }
    }

    /// Time passes: of the goal's share so much as others leave may be lost for
    /// each second, and at most `depth` is kept: what was saved for a piece that turns
    /// out to cost less isn't there to be spent on others. Nor is more owed than can be
    /// given back while it is remembered.
    pub(crate) fn refill(&mut self, now: Time, share: f64, depth: f64) {
        let passed = now.since(self.now).as_secs_f64();
        self.now = self.now.max(now);
        self.went.get_or_insert(now);
        let fade = (-passed / THEIRS).exp();
        self.ours *= fade;
        self.theirs *= fade;
        self.watched = self.watched * fade + passed;
        let owed = -share * MEMORY;
        self.tokens = (self.tokens.max(owed) + passed * self.own(share)).min(depth);
        while let Some(&(then, ..)) = self.lost.front()
            && now.since(then).as_secs_f64() > MEMORY
        {
            self.lost.pop_front();
        }
    }

    /// Our part of a share.
    pub(crate) fn own(&self, share: f64) -> f64 {
        if self.theirs <= 0.0 {
            return share;
        }
        let watched = self.watched.max(0.1);
        let (ours, theirs) = (self.ours / watched, self.theirs / watched);
        // Somebody's lone small discard is nobody who deletes.
        let who = (theirs / (NOTICED * share)).min(1.0);
        let fair = FAIRNESS * who * (ours - theirs).max(0.0);
        (share - theirs - fair).max(share * (1.0 - YIELD))
    }

    /// Whether others discard too, to speak of.
    pub(crate) fn is_shared(&self, share: f64) -> bool {
        self.theirs > 0.02 * share * self.watched.max(0.1)
    }

    /// So much was lost, to our own discards and to other people's.
    pub(crate) fn charge(&mut self, ours: f64, theirs: f64) {
        if ours + theirs <= 0.0 {
            return;
        }
        let foreseen = self.reserved.min(ours);
        self.reserved -= foreseen;
        self.tokens -= ours - foreseen;
        self.ours += ours;
        self.theirs += theirs;
        match self.lost.back_mut() {
            Some((then, own, other)) if self.now.since(*then).as_secs_f64() < GRAIN => {
                *own += ours;
                *other += theirs;
            }
            _ => self.lost.push_back((self.now, ours, theirs)),
        }
    }

    /// Spends what a piece will cost, before it does.
    pub(crate) fn reserve(&mut self, need: f64) {
        self.tokens -= need;
        self.reserved += need;
        self.went = Some(self.now);
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

    /// What was lost in the last so many seconds.
    pub(crate) fn lost_in(&self, window: f64) -> f64 {
        let recent = self.lost.iter().rev();
        recent
            .take_while(|(then, ..)| self.now.since(*then).as_secs_f64() < window)
            .map(|(_, ours, theirs)| ours + theirs)
            .sum()
    }

    /// How long until so much is there, at this share.
    pub(crate) fn until(&self, need: f64, share: f64) -> Duration {
        let short = (need - self.tokens).max(0.0);
        Duration::from_secs_f64((short / self.own(share).max(1e-6)).min(3600.0))
    }

    /// Whether one would have gone long ago if others took all but what they leave at least.
    fn is_starved(&self, need: f64, share: f64) -> bool {
        let due = (need / (share * (1.0 - YIELD))).max(STARVED);
        self.went
            .is_some_and(|went| self.now.since(went).as_secs_f64() > due)
    }

    /// How long until `need` more keeps the loss of the last `window` seconds
    /// within `most` (nothing, if that is negative), where `share` of the time may be lost
    /// in the long run.
    pub(crate) fn until_window(&self, need: f64, window: f64, most: f64, share: f64) -> Duration {
        let most = most.max(0.0);
        let within = |then: &Time| self.now.since(*then).as_secs_f64() < window;
        let losses = || self.lost.iter().filter(|(then, ..)| within(then));
        let theirs: f64 = losses().map(|(.., theirs)| theirs).sum();
        // Of theirs, no more counts than they may take; and who discards without any regard, or
        // so steadily that nothing has gone for long, doesn't keep out a piece that is larger
        // than what is left to us.
        let regardless = self.own(share) <= share * (1.0 - YIELD) || self.is_starved(need, share);
        let room = if regardless { most - need } else { most };
        let counts = if theirs > 0.0 {
            (room.clamp(0.0, most * YIELD) / theirs).min(1.0)
        } else {
            0.0
        };
        let mut over = losses().map(|(_, o, t)| o + t * counts).sum::<f64>() + need - most;
        let mut wait = Duration::ZERO;
        for (then, ours, theirs) in losses() {
            if over <= 1e-9 {
                break;
            }
            if ours + theirs * counts <= 0.0 {
                continue;
            }
            // If it alone is too much, it goes when nothing else is in the window.
            wait = Duration::from_secs_f64(window).saturating_sub(self.now.since(*then));
            over -= ours + theirs * counts;
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
            budget.charge(0.02, 0.0);
        }
        budget.refill(at(0.5), 0.1, 1.0);
        assert!((budget.lost_in(1.0) - 0.1).abs() < 1e-9);
        assert_eq!(budget.until_window(0.02, 1.0, 0.125, 0.1), Duration::ZERO);
        // The first, of 0.0 s, must leave.
        let wait = budget.until_window(0.03, 1.0, 0.125, 0.1).as_secs_f64();
        assert!((wait - 0.5).abs() < 1e-6, "{wait}");
        let all = budget.until_window(9.0, 1.0, 0.125, 0.1).as_secs_f64();
        assert!((all - 0.9).abs() < 1e-6, "{all}");
    }

    /// How many pieces that cost `need` go within a minute, while somebody else's discard
    /// takes `theirs` seconds every so many milliseconds.
    fn went_beside(theirs: f64, every_ms: u64, need: f64) -> usize {
        let (mut budget, mut went) = (Budget::new(0.0), 0);
        for ms in 0..60_000 {
            budget.refill(at(ms as f64 / 1e3), 0.1, need);
            if ms % every_ms == 0 {
                budget.charge(0.0, theirs);
            }
            let window = budget.until_window(need, 1.0 - need, 0.115 - need, 0.1);
            if budget.until(need, 0.1).is_zero() && window.is_zero() {
                budget.reserve(need);
                budget.charge(need, 0.0);
                budget.release();
                went += 1;
            }
        }
        went
    }

    #[test]
    fn who_discards_steadily_stops_nobody_for_ever() {
        for (theirs, every_ms, need) in [
            (0.0041, 66, 0.034),
            (0.004, 80, 0.05),
            (0.001, 900, 0.3),
            (0.05, 800, 0.05),
            (0.09, 100, 0.01),
        ] {
            let due = 60.0 / (need / 0.02_f64).max(STARVED);
            let went = went_beside(theirs, every_ms, need) as f64;
            assert!(
                went > 0.5 * due - 1.0,
                "{theirs} every {every_ms} ms: {went} of {due}"
            );
            assert!(
                went * need < 0.11 * 60.0,
                "{theirs} every {every_ms} ms: {went}"
            );
        }
    }

    #[test]
    fn others_leave_a_fifth() {
        let mut budget = Budget::new(0.0);
        for i in 1..200 {
            budget.refill(at(f64::from(i) * 0.01), 0.1, 1.0);
            budget.charge(0.0, 0.009);
        }
        assert!((budget.own(0.1) - 0.02).abs() < 1e-9);
        assert!(budget.until_window(0.01, 1.0, 0.1, 0.1).is_zero());
        // Even a piece larger than that gets its turn, beside whoever has no regard.
        assert!(budget.until_window(0.02, 0.1, 0.04, 0.1).is_zero());
        // A lone discard of a journal isn't given way to.
        let mut alone = Budget::new(0.0);
        alone.refill(at(0.1), 0.1, 1.0);
        alone.charge(0.1, 1e-5);
        assert!(alone.own(0.1) > 0.095, "{}", alone.own(0.1));
        // What isn't used comes back.
        budget.reserve(0.5);
        let before = budget.tokens();
        budget.charge(0.2, 0.0);
        budget.release();
        assert!((budget.tokens() - before - 0.3).abs() < 1e-9);
        // An hour's loss isn't waited off for ten.
        budget.charge(3600.0, 0.0);
        budget.refill(at(2.0), 0.1, 1.0);
        assert!(budget.tokens() >= -3.0, "{}", budget.tokens());
    }
}
