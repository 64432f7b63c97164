//! The length of a pause: how long the next piece waits for the last one's cost to be made up for.

use std::time::Duration;

use crate::budget::Budget;
use crate::goal::TOLERANCE;
use crate::piece::COMMIT_LOSS;

/// The least that a window may lose beyond the goal, as a share of it. It is up to [`TOLERANCE`]
/// where single discards are so long that whole ones don't fit.
const SLACK: f64 = 0.015;

/// So much of the goal is enough: for the rest no piece more is let into a window.
const NEARLY: f64 = 0.9;

/// Pieces of one size are so much alike.
const UNLIKE: f64 = 1.05;

/// No judge's interval of 100 ms may lose half: at most this share of it, and so many
/// times the goal where that is more.
const INTERVAL: f64 = 0.1;
const INTERVAL_SHARE: f64 = 0.45;
const INTERVAL_TIMES: f64 = 1.6;

/// While nobody is there, the pacer looks after each piece whether another process has come that its
/// discards slow down. It looks for this long, and for this share of the discards' time at least.
const LOOK: Duration = Duration::from_millis(1);
const LOOK_SHARE: f64 = 0.1;

/// The limits within which a piece waits beside other I/O. Times are in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pause {
    /// The share of the time that may be lost.
    share: f64,
    phi: f64,
    window: f64,
    /// The most that a window may lose.
    most: f64,
    /// The cost of a discard of a size that is known.
    one: f64,
}

impl Pause {
    /// The limits where `share` of each `window` may be lost. A discard of a known size costs
    /// `one`, and the present piece `current`.
    pub(crate) fn new(share: f64, phi: f64, window: f64, one: f64, current: f64) -> Pause {
        // Where pieces are long, whole ones must fit.
        let lump = one.max(current);
        // As many whole ones as the goal has room for, or one more.
        let fit = (NEARLY * share * window / lump.max(1e-9)).ceil() * lump * UNLIKE;
        let slack = (fit / window - share).clamp(SLACK, TOLERANCE);
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
    pub(crate) fn before(&self, need: f64, budget: &Budget, finishing: bool) -> Duration {
        let saved = match finishing {
            true => Duration::ZERO,
            false => budget.until(need, self.share),
        };
        // A loss is counted when it is over, and began before.
        let interval = INTERVAL.max(3.0 * self.one);
        let lump = self.one.max(need.min(COMMIT_LOSS));
        let within = lump.max(interval * INTERVAL_SHARE.max(INTERVAL_TIMES * self.share));
        // A piece that slows others down little is long for what it costs.
        let before = (interval - lump / self.phi.min(1.0)).max(0.0);
        saved
            .max(budget.until_window(need, self.window - lump, self.most))
            .max(budget.until_window(need, before, within))
    }
}

/// Returns the pause after a piece whose discards took so many seconds, while nobody else is
/// there.
pub(crate) fn while_idle(discarding: f64) -> Duration {
    LOOK.max(Duration::from_secs_f64(discarding * LOOK_SHARE))
}
