//! A limited rate: a token bucket, kept as the time at which the next write
//! is due (virtual scheduling, ITU-T I.371). Pure.

use std::time::Duration;

/// A delay up to this long is caught up at full speed: a slow `fdatasync` or a stall of less than
/// that doesn't lower the mean rate.
const CATCH_UP: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Bucket {
    bytes_per_s: f64,
    due: Duration,
}

impl Bucket {
    /// Empty at time 0. The rate isn't 0.
    pub(super) fn new(bytes_per_s: u64) -> Bucket {
        Bucket {
            bytes_per_s: bytes_per_s.max(1) as f64,
            due: Duration::ZERO,
        }
    }

    /// Takes so many bytes; how long to wait from `now` until they may be written.
    pub(super) fn take(&mut self, bytes: u64, now: Duration) -> Duration {
        self.due = self.due.max(now.saturating_sub(CATCH_UP));
        let wait = self.due.saturating_sub(now);
        let costs = Duration::try_from_secs_f64(bytes as f64 / self.bytes_per_s);
        self.due = self.due.saturating_add(costs.unwrap_or(Duration::MAX));
        wait
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    proptest! {
        /// In virtual time, with delays beside the writes that leave time enough.
        #[test]
        fn the_mean_rate_holds_whatever_is_late(
            mib_per_s in 1..500u64,
            delays_us in proptest::collection::vec(0..1500u64, 1..50),
        ) {
            let rate = mib_per_s * MIB;
            let write = MIB as f64 / rate as f64;
            let mut bucket = Bucket::new(rate);
            let (mut now, mut written) = (Duration::ZERO, 0);
            for i in 0..2000 {
                now += bucket.take(MIB, now);
                // Never before its time: the first write alone is free.
                let may = now.as_secs_f64() * rate as f64 + MIB as f64;
                prop_assert!(written as f64 <= may + 1.0, "{written} at {now:?}");
                written += MIB;
                let delay = Duration::from_micros(delays_us[i % delays_us.len()]);
                now += delay.min(Duration::from_secs_f64(write * 0.9));
            }
            let mean = written as f64 / (now.as_secs_f64() + write);
            prop_assert!((0.8..1.2).contains(&(mean / rate as f64)), "{mean} of {rate}");
        }
    }

    #[test]
    fn a_long_stall_is_not_caught_up_in_full() {
        let mut bucket = Bucket::new(MIB);
        assert_eq!(bucket.take(MIB, Duration::ZERO), Duration::ZERO);
        let late = Duration::from_secs(100);
        let at_once = (0..10)
            .take_while(|_| bucket.take(MIB, late).is_zero())
            .count();
        // A second's worth, and the one that is due.
        assert_eq!(at_once, 2);
    }

    #[test]
    fn the_slowest_rate_is_no_overflow() {
        let mut bucket = Bucket::new(1);
        for _ in 0..3 {
            bucket.take(u64::MAX, Duration::ZERO);
        }
        assert!(bucket.take(1, Duration::ZERO) > Duration::from_secs(1 << 40));
    }
}
