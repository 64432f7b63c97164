//! When a foreground has settled.

use std::collections::VecDeque;
use std::time::Duration;

use timeline::judge::drift;

/// A stretch is steady when its trend changes the rate by at most this share.
const DRIFT: f64 = 0.10;
/// Long enough for a trend to show beside a drive's own ups and downs.
const STRETCH: Duration = Duration::from_secs(5);
/// Intervals that a stretch should have, and has to have.
const SHOULD: usize = 10;
const MUST: usize = 3;

/// Watches a rate until its last stretch is steady.
#[derive(Debug)]
pub(crate) struct Settling {
    window: usize,
    rates: VecDeque<f64>,
}

impl Settling {
    /// The stretch lasts five seconds, or ten intervals if those are longer; but
    /// not more than half the limit, as long as three intervals fit into that.
    pub(crate) fn new(interval: Duration, limit: Duration) -> Self {
        let intervals = |time: Duration| time.as_nanos() / interval.as_nanos().max(1);
        let in_half = usize::try_from(intervals(limit / 2)).unwrap_or(usize::MAX);
        let wanted = usize::try_from(intervals(STRETCH)).unwrap_or(usize::MAX);
        let window = wanted.max(SHOULD).min(in_half).max(MUST);
        Settling {
            window,
            rates: VecDeque::new(),
        }
    }

    /// Adds an interval's rate; true when the stretch that ends here is steady.
    pub(crate) fn is_steady_after(&mut self, rate: f64) -> bool {
        if self.rates.len() == self.window {
            self.rates.pop_front();
        }
        self.rates.push_back(rate);
        self.can_tell() && drift(self.rates.make_contiguous()) <= DRIFT
    }

    /// Whether there was time for a whole stretch.
    pub(crate) fn can_tell(&self) -> bool {
        self.rates.len() == self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const S: Duration = Duration::from_secs(1);

    /// After how many intervals of a rate that doesn't change it is steady.
    fn steady_after(interval: Duration, limit: Duration) -> u32 {
        let mut settling = Settling::new(interval, limit);
        (1..1000)
            .find(|_| settling.is_steady_after(7.0))
            .expect("steady")
    }

    #[test]
    fn a_stretch_lasts_five_seconds_where_there_is_time() {
        assert_eq!(steady_after(100 * MS, 60 * S), 50);
        assert_eq!(steady_after(S, 60 * S), 10);
    }

    #[test]
    fn a_short_limit_and_long_intervals_leave_less_and_enough() {
        assert_eq!(steady_after(100 * MS, S), 5);
        assert_eq!(steady_after(10 * S, 60 * S), 3);
    }

    #[test]
    fn what_rises_is_not_steady_and_too_few_intervals_cannot_tell() {
        let mut settling = Settling::new(10 * S, 20 * S);
        for rate in [1.0, 2.0] {
            assert!(!settling.is_steady_after(rate));
            assert!(!settling.can_tell());
        }
        assert!(!settling.is_steady_after(3.0));
        assert!(settling.can_tell());
    }
}
