//! Waiting until the foreground is steady.

use std::collections::VecDeque;
use std::time::Duration;

use judge::drift;
use record::EventKind;

use super::gain::Filled;
use super::{Early, Script};

impl Script<'_> {
    pub(super) fn settle(&mut self) -> Result<(), Early> {
        let limit = self.plan.phases.settle();
        if limit.is_zero() {
            return Ok(());
        }
        let mut settling = Settling::new(self.plan.phases.interval(), limit);
        let began = self.session.tick()?.now;
        loop {
            let tick = self.session.tick()?;
            let filled = self.fills_cache(&tick);
            // The canary's rate is as steady as its clock: it decides nothing
            // while there is anybody else.
            let Some(rates) = tick.ops_per_s else {
                continue;
            };
            let followed = match self.plan.actors.len() {
                0 => &rates[..],
                own => &rates[..own],
            };
            if settling.is_steady_after(followed) && filled == Filled::Yes {
                self.session.event(EventKind::SettleSteady, None);
                return Ok(());
            }
            if tick.now.saturating_sub(began) >= limit || filled == Filled::OutOfBytes {
                let text = if filled == Filled::OutOfBytes {
                    "not steady after half of the bytes to be written before the trim".to_owned()
                } else if settling.can_tell() {
                    format!("not steady after {limit:?}")
                } else {
                    format!("not known to be steady: {limit:?} is too short to tell")
                };
                self.session.event(EventKind::SettleLimit, Some(text));
                return Ok(());
            }
        }
    }
}

/// A stretch is steady when its trend changes the rate by at most this share.
const DRIFT: f64 = 0.10;
/// Long enough for a trend to show beside a drive's own ups and downs.
const STRETCH: Duration = Duration::from_secs(5);
/// Intervals that a stretch should have, and has to have.
const SHOULD: usize = 10;
const MUST: usize = 3;

/// Operations that a stretch should have. A trend drawn through N arrivals at random is off
/// by √(12/N) of their rate, 11 % here. I/O in a closed loop is steadier than that.
const ENOUGH: f64 = 1000.0;

/// Watches the rates of several actors until the last stretch of one is steady:
/// the first's, or the fastest's where the first is too slow to tell.
#[derive(Debug)]
struct Settling {
    interval: Duration,
    window: usize,
    /// Of each actor, in order.
    rates: Vec<VecDeque<f64>>,
}

impl Settling {
    /// The stretch lasts five seconds, or ten intervals if those are longer; but
    /// not more than half the limit, as long as three intervals fit into that.
    fn new(interval: Duration, limit: Duration) -> Self {
        let intervals = |time: Duration| time.as_nanos() / interval.as_nanos().max(1);
        let in_half = usize::try_from(intervals(limit / 2)).unwrap_or(usize::MAX);
        let wanted = usize::try_from(intervals(STRETCH)).unwrap_or(usize::MAX);
        let window = wanted.max(SHOULD).min(in_half).max(MUST);
        Settling {
            interval,
            window,
            rates: Vec::new(),
        }
    }

    /// Adds an interval's rates, always of the same actors; true when the stretch
    /// that ends here is steady.
    fn is_steady_after(&mut self, rates: &[f64]) -> bool {
        self.rates.resize(rates.len(), VecDeque::new());
        for (past, &rate) in self.rates.iter_mut().zip(rates) {
            if past.len() == self.window {
                past.pop_front();
            }
            past.push_back(rate);
        }
        if !self.can_tell() {
            return false;
        }
        let followed = self.followed();
        drift(self.rates[followed].make_contiguous()) <= DRIFT
    }

    /// Whether there was time for a whole stretch, of anybody at all.
    fn can_tell(&self) -> bool {
        let first = self.rates.first();
        first.is_some_and(|past| past.len() == self.window)
    }

    /// Whose rate decides.
    fn followed(&self) -> usize {
        let seconds = self.interval.as_secs_f64();
        let ops = |past: &VecDeque<f64>| past.iter().sum::<f64>() * seconds;
        let (mut best, mut most) = (0, 0.0);
        for (i, past) in self.rates.iter().enumerate() {
            let ops = ops(past);
            if i == 0 && ops >= ENOUGH {
                return 0;
            }
            if ops > most {
                (best, most) = (i, ops);
            }
        }
        best
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
            .find(|_| settling.is_steady_after(&[7.0]))
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
            assert!(!settling.is_steady_after(&[rate]));
            assert!(!settling.can_tell());
        }
        assert!(!settling.is_steady_after(&[3.0]));
        assert!(settling.can_tell());
    }

    /// Whether a first actor's rates are steady beside a second that rises.
    fn steady_beside_a_rising_one(first: f64) -> bool {
        let mut settling = Settling::new(100 * MS, 60 * S);
        (0..60).any(|i| settling.is_steady_after(&[first, 1000.0 + f64::from(i) * 100.0]))
    }

    #[test]
    fn the_first_decides_unless_it_is_too_slow_to_tell() {
        assert!(steady_beside_a_rising_one(200.0));
        // 5 s of it are 500 operations; the other has more.
        assert!(!steady_beside_a_rising_one(100.0));
    }

    #[test]
    fn the_fastest_decides_where_all_are_slow() {
        let mut settling = Settling::new(100 * MS, 60 * S);
        let steady = (0..60).any(|i| settling.is_steady_after(&[f64::from(i) * 0.1, 20.0]));
        assert!(steady);
    }

    #[test]
    fn of_nobody_nothing_can_be_told() {
        let mut settling = Settling::new(100 * MS, S);
        for _ in 0..100 {
            assert!(!settling.is_steady_after(&[]));
        }
        assert!(!settling.can_tell());
    }
}
