//! The length of a pause: how long the next piece waits for the last one's cost to be made up for.

use std::time::Duration;

use crate::budget::Budget;
use crate::goal::TOLERANCE;
use crate::piece::COMMIT_LOSS;
use crate::quantity::{Seconds, Share};

/// The least that a window may lose beyond the goal, as a share of it. It is up to [`TOLERANCE`]
/// where single discards are so long that whole ones don't fit.
const SLACK: Share = Share(0.015);

/// So much of the goal is enough: for the rest no piece more is let into a window.
const NEARLY: f64 = 0.9;

/// Pieces of one size are so much alike.
const UNLIKE: f64 = 1.05;

/// No judge's interval of 100 ms may lose half: at most this share of it, and so many
/// times the goal where that is more.
const INTERVAL: Seconds = Seconds(0.1);
const INTERVAL_SHARE: Share = Share(0.45);
const INTERVAL_TIMES: f64 = 1.6;

/// While nobody is there, the pacer looks after each piece whether another process has come that its
/// discards slow down. It looks for this long, and for this share of the discards' time at least.
const LOOK: Duration = Duration::from_millis(1);
const LOOK_SHARE: Share = Share(0.1);

/// The limits within which a piece waits beside other I/O.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pause {
    /// g, the share of the time that may be lost.
    share: Share,
    /// φ, the share of a discard's time that the foreground loses.
    phi: Share,
    /// w = 2·φ·S/g, within 1 to 30 s.
    window: Seconds,
    /// M, the most that a window may lose: (g + slack)·w.
    most: Seconds,
    /// φ·S, the cost of a discard of a size that is known.
    one: Seconds,
}

/// Why a piece waits: the terms of its pause, of which the longest holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PauseTerms {
    /// The limits behind them.
    #[allow(dead_code, reason = "Debug shows them")]
    limits: Pause,
    /// N, the time that the piece costs others: φ·(n·(a + δ) + b·L).
    #[allow(dead_code, reason = "Debug shows it")]
    need: Seconds,
    /// Until the budget has saved N: (N − tokens)/g; 0 for the last pieces.
    for_budget: Duration,
    /// Until the losses of the last w, less one discard, are at most M − N.
    for_window: Duration,
    /// Until the losses of the last interval (100 ms, or 3·φ·S) leave room for N in its most,
    /// max(45 %, 1.6·g) of it.
    for_interval: Duration,
}

impl PauseTerms {
    /// Returns how long the piece waits: the longest term.
    pub(crate) fn pause(&self) -> Duration {
        self.for_budget.max(self.for_window).max(self.for_interval)
    }
}

impl Pause {
    /// The limits where `share` of each `window` may be lost. A discard of a known size costs
    /// `one`, and the present piece `current`.
    pub(crate) fn new(
        share: Share,
        phi: Share,
        window: Seconds,
        one: Seconds,
        current: Seconds,
    ) -> Pause {
        // Where pieces are long, whole ones must fit.
        let lump = one.max(current);
        // As many whole ones as the goal has room for, or one more.
        let fit = (NEARLY * share * window / lump.max(Seconds(1e-9))).ceil() * lump * UNLIKE;
        let slack = (Share(fit / window) - share).clamp(SLACK, TOLERANCE);
        Pause {
            share,
            phi,
            window,
            most: (share + slack) * window,
            one,
        }
    }

    /// Returns why a piece that costs `need` waits. `finishing`: it and all that is left fit into the
    /// window.
    pub(crate) fn before(&self, need: Seconds, budget: &Budget, finishing: bool) -> PauseTerms {
        let saved = match finishing {
            true => Duration::ZERO,
            false => budget.until(need, self.share),
        };
        // A loss is counted when it is over, and began before.
        let interval = INTERVAL.max(3.0 * self.one);
        let lump = self.one.max(need.min(COMMIT_LOSS));
        let within = lump.max(INTERVAL_SHARE.max(INTERVAL_TIMES * self.share) * interval);
        // A piece that slows others down little is long for what it costs.
        let before = (interval - lump / self.phi.min(Share(1.0))).max(Seconds::ZERO);
        PauseTerms {
            limits: *self,
            need,
            for_budget: saved,
            for_window: budget.until_window(need, self.window - lump, self.most),
            for_interval: budget.until_window(need, before, within),
        }
    }
}

/// Returns the pause after a piece whose discards took so long, while nobody else is there.
pub(crate) fn while_idle(discarding: Seconds) -> Duration {
    LOOK.max((LOOK_SHARE * discarding).duration())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_its_longest_term_and_debug_shows_which() {
        let (share, phi, ms) = (Share(0.1), Share(1.0), |ms: f64| Seconds(ms / 1e3));
        let limits = Pause::new(share, phi, Seconds(1.0), ms(8.0), ms(8.0));
        let mut budget = Budget::new(Seconds::ZERO);
        // The example of docs/pacing.md: N = 8 ms at 10 %, and nothing saved.
        let terms = limits.before(ms(8.0), &budget, false);
        assert_eq!(terms.pause().as_millis(), 80);
        let shown = format!("{terms:?}");
        assert!(
            shown.contains("for_budget: 80ms, for_window: 0ns"),
            "{shown}"
        );
        // The window is full: the last pieces wait, too.
        budget.refill(ssd::Time::from_secs_f64(0.5), share, Seconds(1.0));
        budget.charge(ms(130.0));
        let terms = limits.before(ms(8.0), &budget, true);
        assert!(terms.for_budget.is_zero() && terms.for_window > Duration::from_millis(900));
        assert_eq!(terms.pause(), terms.for_window);
    }
}
