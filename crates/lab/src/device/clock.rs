//! The drive's time: the real one, stretched, and standing still while the
//! drive hangs.

use std::time::{Duration, Instant};

use ssd::Time;

/// The longest time that a drive hangs after an order to hang.
pub(super) const LONGEST_HANG: Duration = Duration::from_secs(86_400);

#[derive(Debug, Clone)]
pub(super) struct Clock {
    /// Real time of `time`.
    real: Instant,
    time: Time,
    /// Real time for each of the drive's, e.g. 4 on a drive 4 times slower.
    slower: f64,
    /// Until then it stands still at `time`.
    hangs_until: Option<Instant>,
}

impl Clock {
    pub(super) fn new(now: Instant, slower: f64) -> Clock {
        Clock {
            real: now,
            time: Time::ZERO,
            slower,
            hangs_until: None,
        }
    }

    /// The drive's time; `None` while it hangs.
    pub(super) fn at(&mut self, now: Instant) -> Option<Time> {
        if let Some(end) = self.hangs_until {
            if now < end {
                return None;
            }
            self.real = end;
            self.hangs_until = None;
        }
        let real = now.saturating_duration_since(self.real);
        if self.slower == 1.0 {
            return Some(self.time + real);
        }
        Some(self.time + real.div_f64(self.slower))
    }

    /// Converts a span of real time into one of the drive's.
    pub(super) fn virtual_span(&self, span: Duration) -> Duration {
        span.div_f64(self.slower)
    }

    /// The time that it stands still at, while it hangs.
    pub(super) fn stopped(&self) -> Time {
        self.time
    }

    /// When the drive's time will be `time`.
    pub(super) fn real(&self, time: Time) -> Instant {
        let since = time.since(self.time);
        let since = if self.slower == 1.0 {
            since
        } else {
            since.mul_f64(self.slower)
        };
        self.hangs_until.unwrap_or(self.real) + since
    }

    /// Stops the clock for `span` of real time from now, at most [`LONGEST_HANG`]. This also ends
    /// an earlier hang; 0 ends it now.
    pub(super) fn hang(&mut self, now: Instant, span: Duration) {
        if let Some(time) = self.at(now) {
            self.time = time;
            self.real = now;
        }
        self.hangs_until = Some(now + span.min(LONGEST_HANG));
    }

    /// How long it will still stand still; `None` if it doesn't.
    pub(super) fn hangs_for(&self, now: Instant) -> Option<Duration> {
        let left = self.hangs_until?.saturating_duration_since(now);
        (!left.is_zero()).then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_time_and_stands_still_while_it_hangs() {
        let start = Instant::now();
        let s = |s: u64| start + Duration::from_secs(s);
        let time = |s: u64| Time::from_nanos(s * 1_000_000_000);
        let mut clock = Clock::new(start, 4.0);
        assert_eq!(clock.at(s(40)), Some(time(10)));
        assert_eq!(clock.real(time(12)), s(48));

        clock.hang(s(40), Duration::from_secs(5));
        assert_eq!((clock.at(s(44)), clock.stopped()), (None, time(10)));
        assert_eq!(clock.real(time(12)), s(53), "what was to come comes later");
        clock.hang(s(44), Duration::from_secs(10));
        assert_eq!(clock.hangs_for(s(50)), Some(Duration::from_secs(4)));
        assert_eq!(clock.at(s(49)), None, "the second hang replaces the first");
        assert_eq!(clock.at(s(58)), Some(time(11)));
        assert_eq!(clock.real(time(12)), s(62));

        clock.hang(s(62), Duration::from_secs(1000));
        clock.hang(s(70), Duration::ZERO);
        assert_eq!(
            (clock.at(s(70)), clock.hangs_for(s(70))),
            (Some(time(12)), None)
        );
    }

    #[test]
    fn hangs_for_a_day_at_most() {
        let start = Instant::now();
        let mut clock = Clock::new(start, 1000.0);
        for _ in 0..3 {
            clock.hang(start, Duration::MAX);
            clock.real(Time::from_nanos(u64::MAX));
        }
        assert_eq!(clock.at(start + LONGEST_HANG), Some(Time::ZERO));
    }
}
