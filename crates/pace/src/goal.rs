//! What the others may be made to feel.

use std::time::Duration;

use crate::quantity::Share;

/// What a window may lose beyond its goal, as a share of it.
pub(crate) const TOLERANCE: Share = Share(0.030);

/// What the others may be made to feel, and by when it must be done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// The share of the foreground's throughput that it may cost, over any
    /// window of max(1 s, 2·S/`slowdown`), above 0 to 1. 1 paces nothing. An
    /// open loop loses none: there it is the share of the time in which an I/O
    /// finds the device held.
    pub slowdown: f64,
    /// The 99.9th percentile of the latency added to an open-loop reader.
    pub max_latency: Option<Duration>,
    /// It must be done so long after the start. Where that is too soon for
    /// `slowdown`, the deadline wins, and the advice says so.
    pub deadline: Option<Duration>,
}

impl Default for Goal {
    /// A slowdown of 10 %, and nothing else.
    fn default() -> Goal {
        Goal {
            slowdown: 0.10,
            max_latency: None,
            deadline: None,
        }
    }
}

impl Goal {
    /// This slowdown (a share, held between 0.1 % and 1), and nothing else.
    pub fn slowdown(share: f64) -> Goal {
        Goal {
            slowdown: share,
            ..Goal::default()
        }
    }

    /// The share within its limits; what is no number is the default.
    pub(crate) fn share(&self) -> Share {
        if self.slowdown.is_nan() {
            return Share(Goal::default().slowdown);
        }
        Share(self.slowdown.clamp(0.001, 1.0))
    }
}
