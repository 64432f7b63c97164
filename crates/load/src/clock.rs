//! One clock for a whole run: cheap enough to read for every batch of I/Os.

use std::time::Duration;

/// Nanoseconds since the clock's zero, or a length of time in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nanos(pub u64);

impl Nanos {
    /// From seconds; negative and NaN give 0.
    pub fn from_secs_f64(seconds: f64) -> Nanos {
        Nanos((seconds * 1e9) as u64)
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// In microseconds.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Time since `earlier`; zero where that is later.
    pub fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// This much later.
    pub fn plus(self, length: Duration) -> Nanos {
        Nanos(
            self.0
                .saturating_add(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

/// A monotonic clock whose zero is the moment it was made.
///
/// Copies share the zero. On x86-64 with an invariant time-stamp counter a
/// reading costs about 10 ns and no system call; elsewhere it is
/// `clock_gettime(CLOCK_MONOTONIC)`.
#[derive(Debug, Clone, Copy)]
pub struct Clock {}

impl Clock {
    /// Starts a clock now. Calibrating the counter takes some 50 ms.
    pub fn start() -> Clock {
        unimplemented!()
    }

    /// The time now, since the clock's zero.
    pub fn now(&self) -> Nanos {
        unimplemented!()
    }

    /// What it reads: `tsc` or `clock_gettime`.
    pub fn source(&self) -> &'static str {
        unimplemented!()
    }

    /// The reading of this clock at a moment of `CLOCK_MONOTONIC`, given in
    /// nanoseconds; zero for moments before the clock's zero.
    pub fn from_monotonic(&self, _monotonic_ns: u64) -> Nanos {
        unimplemented!()
    }

    /// The moment of `CLOCK_MONOTONIC`, in nanoseconds, at which this clock reads `at`.
    pub fn to_monotonic(&self, _at: Nanos) -> u64 {
        unimplemented!()
    }

    /// Sleeps until this clock reads `at`; returns at once when that is past.
    pub fn sleep_until(&self, _at: Nanos) {
        unimplemented!()
    }
}
