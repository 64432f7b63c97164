//! When the operations of an open loop are meant to start. Pure.

use fastrand::Rng;

use crate::clock::Nanos;

/// The intended starts, one after the other. They don't depend on how the
/// operations go: that is what makes a loop open.
#[derive(Debug, Clone)]
pub struct Schedule {
    start: Nanos,
    rate_per_s: f64,
    gaps: Gaps,
    next: Nanos,
}

#[derive(Debug, Clone)]
enum Gaps {
    /// Number `n` starts at `n` / rate: no error adds up.
    Constant { n: u64 },
    /// Exponential gaps; the exact time is kept in nanoseconds since the start.
    Poisson { rng: Box<Rng>, elapsed_ns: f64 },
}

impl Schedule {
    /// A schedule from `start` on, at a mean rate above 0.
    pub fn new(start: Nanos, rate_per_s: f64, poisson: bool, seed: u64) -> Schedule {
        let mut schedule = Schedule {
            start,
            rate_per_s,
            gaps: Gaps::Constant { n: 0 },
            next: start,
        };
        if poisson {
            schedule.gaps = Gaps::Poisson {
                rng: Box::new(Rng::with_seed(seed)),
                elapsed_ns: 0.0,
            };
            schedule.advance();
        }
        schedule
    }

    /// When the next operation is meant to start.
    #[inline]
    pub fn next(&self) -> Nanos {
        self.next
    }

    /// Takes it: [`Schedule::next`] is now the one after.
    #[inline]
    pub fn advance(&mut self) {
        let since_start = match &mut self.gaps {
            Gaps::Constant { n } => {
                *n += 1;
                *n as f64 * 1e9 / self.rate_per_s
            }
            Gaps::Poisson { rng, elapsed_ns } => {
                // 1 - f64() is in (0, 1], so the logarithm is finite.
                *elapsed_ns -= (1.0 - rng.f64()).ln() * 1e9 / self.rate_per_s;
                *elapsed_ns
            }
        };
        self.next = Nanos(self.start.0 + since_start as u64);
    }
}

impl Schedule {
    /// Passes over what was due before `at`: nobody was there to begin it.
    #[inline]
    pub fn skip_to(&mut self, at: Nanos) {
        while self.next < at {
            self.advance();
        }
    }
}

/// How many operations of a schedule are due from `next` to `until`, given
/// the next one; for random gaps the expected number.
pub fn due(next: Nanos, until: Nanos, rate_per_s: f64) -> u64 {
    if next > until {
        return 0;
    }
    1 + (until.since(next).as_secs_f64() * rate_per_s) as u64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn take(schedule: &mut Schedule, n: usize) -> Vec<u64> {
        (0..n)
            .map(|_| {
                let at = schedule.next().0;
                schedule.advance();
                at
            })
            .collect()
    }

    #[test]
    fn constant_gaps_add_up_no_error() {
        let start = Nanos(1_000);
        let mut schedule = Schedule::new(start, 3.0, false, 0);
        let times = take(&mut schedule, 3_000_001);
        assert_eq!(times[..3], [1_000, 333_334_333, 666_667_666]);
        assert_eq!(times[3_000_000], 1_000 + 1_000_000 * 1_000_000_000);
    }

    #[test]
    fn poisson_has_the_mean_and_the_spread_of_exponential_gaps() {
        let n = 200_000;
        let mut schedule = Schedule::new(Nanos(0), 1_000.0, true, 7);
        let times = take(&mut schedule, n);
        let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Standard error of both is below 0.5 %; the seed is fixed.
        assert!((mean / 1e6 - 1.0).abs() < 0.02, "mean gap {mean} ns");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02);
    }

    #[test]
    fn who_was_away_goes_on_with_what_is_due_next() {
        let mut schedule = Schedule::new(Nanos(0), 1_000.0, false, 0);
        schedule.skip_to(Nanos(2_500_000));
        assert_eq!(take(&mut schedule, 2), [3_000_000, 4_000_000]);
        schedule.skip_to(Nanos(0));
        assert_eq!(schedule.next(), Nanos(5_000_000));
    }

    #[test]
    fn one_seed_one_schedule() {
        let run = |seed| take(&mut Schedule::new(Nanos(5), 50.0, true, seed), 100);
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    proptest! {
        #[test]
        fn due_counts_what_the_schedule_gives(
            rate in 0.1..100_000.0f64, start in 0..1_000_000u64, ms in 0..200u64,
        ) {
            let until = Nanos(start + ms * 1_000_000);
            let mut schedule = Schedule::new(Nanos(start), rate, false, 0);
            let expected = due(schedule.next(), until, rate);
            let mut n = 0;
            while schedule.next() <= until {
                schedule.advance();
                n += 1;
            }
            prop_assert!(expected.abs_diff(n) <= 1, "{expected} expected, {n} given");
        }
    }
}
