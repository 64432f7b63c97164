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
    /// The share of the time that may be lost.
    share: Share,
    phi: Share,
    window: Seconds,
    /// The most that a window may lose.
    most: Seconds,
    /// The cost of a discard of a size that is known.
    one: Seconds,
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

    /// Returns how long a piece that costs `need` waits. `finishing`: it and all that is left
    /// fit into the window.
    pub(crate) fn before(&self, need: Seconds, budget: &Budget, finishing: bool) -> Duration {
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
        saved
            .max(budget.until_window(need, self.window - lump, self.most))
            .max(budget.until_window(need, before, within))
    }
}

/// Returns the pause after a piece whose discards took so long, while nobody else is there.
pub(crate) fn while_idle(discarding: Seconds) -> Duration {
    LOOK.max((LOOK_SHARE * discarding).duration())
}
