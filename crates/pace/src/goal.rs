//! The goal: how much a deletion may slow others down.

use std::time::Duration;

use crate::quantity::Share;

/// The loss of a window that may exceed its goal, as a share of the window.
pub(crate) const TOLERANCE: Share = Share(0.030);

/// The limits of a deletion: how much it may slow others down, and its deadline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Goal {
    /// The share of the foreground's throughput that it may cost, above 0 to 1; 1 paces nothing. It
    /// holds over any window of max(1 s, 2·S/`slowdown`), at most 30 s. An open loop loses no
    /// throughput. There it is the share of the time in which an I/O finds the device busy with
    /// discards.
    pub slowdown: f64,
    /// The 99.9th percentile of the latency added to an open-loop reader.
    pub max_latency: Option<Duration>,
    /// The deletion must be done so long after the start. Where that is too soon for `slowdown`,
    /// the deadline wins, and the advice reports it.
    pub deadline: Option<Duration>,
    /// By how much the share of the time may rise that a protected control group waits for I/O
    /// ([`Feedback::pressure`](crate::Feedback::pressure)), above 0 to 1.
    pub max_pressure: Option<f64>,
}

impl Default for Goal {
    /// Returns a slowdown of 10 %, and nothing else.
    fn default() -> Goal {
        Goal {
            slowdown: 0.10,
            max_latency: None,
            deadline: None,
            max_pressure: None,
        }
    }
}

impl Goal {
    /// Returns a goal of this slowdown (a share, limited to 0.1 % to 100 % when it is used), and
    /// nothing else.
    pub fn slowdown(share: f64) -> Goal {
        Goal {
            slowdown: share,
            ..Goal::default()
        }
    }

    /// Returns the share within its limits. NaN counts as the default.
    pub(crate) fn share(&self) -> Share {
        if self.slowdown.is_nan() {
            return Share(Goal::default().slowdown);
        }
        Share(self.slowdown.clamp(0.001, 1.0))
    }
}
