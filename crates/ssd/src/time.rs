//! A point in time that nobody's clock has to tell.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::time::Duration;

/// Nanoseconds since a start that the caller chooses: virtual in a simulation,
/// real behind a block device. Reaches 584 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The start.
    pub const ZERO: Time = Time(0);

    /// So many nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Seconds after the start; below 0 is the start.
    pub fn from_secs_f64(seconds: f64) -> Time {
        // A float saturates when it becomes an integer: no overflow here.
        Time((seconds * 1e9).round() as u64)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// So much earlier, but not before the start.
    pub fn before(self, span: Duration) -> Time {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_sub(nanos))
    }

    /// How long after `earlier` this is; nothing if it isn't after it.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, span: Duration) -> Time {
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Time(self.0.saturating_add(nanos))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub for Time {
    type Output = Duration;

    /// As [`Time::since`].
    fn sub(self, earlier: Time) -> Duration {
        self.since(earlier)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:09} s",
            self.0 / 1_000_000_000,
            self.0 % 1_000_000_000
        )
    }
}
