//! When a foreground has settled.

use std::collections::VecDeque;
use std::time::Duration;

use timeline::judge::drift;

/// A stretch is steady when its trend changes the rate by at most this share.
const DRIFT: f64 = 0.10;

/// Watches a rate until its last stretch is steady.
#[derive(Debug)]
pub(crate) struct Settling {
    window: usize,
    rates: VecDeque<f64>,
}

impl Settling {
    /// The stretch lasts five seconds, or ten intervals if those are longer.
    pub(crate) fn new(interval: Duration) -> Self {
        let in_five_seconds = (5.0 / interval.as_secs_f64()).ceil() as usize;
        let window = in_five_seconds.max(10);
        Settling {
            window,
            rates: VecDeque::with_capacity(window),
        }
    }

    /// Adds an interval's rate; true when the stretch that ends here is steady.
    pub(crate) fn is_steady_after(&mut self, rate: f64) -> bool {
        if self.rates.len() == self.window {
            self.rates.pop_front();
        }
        self.rates.push_back(rate);
        self.rates.len() == self.window && drift(self.rates.make_contiguous()) <= DRIFT
    }
}
