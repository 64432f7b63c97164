//! How long a canary's read usually takes.

use std::time::Duration;

use crate::quantity::Seconds;

/// How much one read counts.
const WEIGHT: f64 = 0.05;

/// A read of so many times the usual latency counts as no more than that.
const MOST: f64 = 3.0;

/// A read counts as slow if it takes longer than this many times the usual latency and this much
/// more.
const HELD: f64 = 2.0;
const HELD_MORE: Seconds = Seconds(100e-6);

/// The usual latency of a canary's reads, learned from reads that met no discard.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UsualLatency(Option<Seconds>);

impl UsualLatency {
    /// Takes in one read; `quiet`: it met no discard. Returns whether it was slow.
    pub(crate) fn observe(&mut self, latency: Duration, quiet: bool) -> bool {
        let latency = Seconds::from(latency);
        let usual = *self.0.get_or_insert(latency);
        if quiet || latency < usual {
            let step = latency.min(usual * MOST) - usual;
            self.0 = Some(usual + WEIGHT * step);
        }
        latency > usual * HELD + HELD_MORE
    }

    /// Returns how much longer than usual a read took.
    pub(crate) fn added(&self, latency: Duration) -> Duration {
        latency.saturating_sub(self.latency())
    }

    /// Returns the usual latency; 0 before the first read.
    pub(crate) fn latency(&self) -> Duration {
        self.0.unwrap_or_default().duration()
    }
}
