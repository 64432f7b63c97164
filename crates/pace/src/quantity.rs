//! Seconds, bytes and shares, which the compiler tells apart.
//!
//! They hold floating-point numbers, because they are means and estimates. A count is a `u64`, and
//! the time of a pause is a [`Duration`].

use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};
use std::time::Duration;

/// A number with a unit: sums, differences, multiples and ratios of its own kind.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
        pub(crate) struct $name(pub(crate) f64);

        #[allow(dead_code, reason = "not every kind needs each")]
        impl $name {
            pub(crate) const ZERO: $name = $name(0.0);
            pub(crate) const INFINITE: $name = $name(f64::INFINITY);

            pub(crate) fn min(self, other: $name) -> $name {
                $name(self.0.min(other.0))
            }

            pub(crate) fn max(self, other: $name) -> $name {
                $name(self.0.max(other.0))
            }

            pub(crate) fn clamp(self, least: $name, most: $name) -> $name {
                $name(self.0.clamp(least.0, most.0))
            }
        }

        impl Add for $name {
            type Output = $name;
            fn add(self, other: $name) -> $name {
                $name(self.0 + other.0)
            }
        }

        impl Sub for $name {
            type Output = $name;
            fn sub(self, other: $name) -> $name {
                $name(self.0 - other.0)
            }
        }

        impl Neg for $name {
            type Output = $name;
            fn neg(self) -> $name {
                $name(-self.0)
            }
        }

        impl AddAssign for $name {
            fn add_assign(&mut self, other: $name) {
                self.0 += other.0;
            }
        }

        impl SubAssign for $name {
            fn sub_assign(&mut self, other: $name) {
                self.0 -= other.0;
            }
        }

        impl Mul<f64> for $name {
            type Output = $name;
            fn mul(self, times: f64) -> $name {
                $name(self.0 * times)
            }
        }

        impl Mul<$name> for f64 {
            type Output = $name;
            fn mul(self, other: $name) -> $name {
                $name(self * other.0)
            }
        }

        impl MulAssign<f64> for $name {
            fn mul_assign(&mut self, times: f64) {
                self.0 *= times;
            }
        }

        impl Div<f64> for $name {
            type Output = $name;
            fn div(self, parts: f64) -> $name {
                $name(self.0 / parts)
            }
        }

        impl Div for $name {
            type Output = f64;
            fn div(self, other: $name) -> f64 {
                self.0 / other.0
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = $name>>(all: I) -> $name {
                $name(all.map(|one| one.0).sum())
            }
        }
    };
}

quantity! {
    /// Seconds. A balance may be below 0, and what never comes is infinite.
    Seconds
}

quantity! {
    /// Bytes, with fractions.
    Bytes
}

quantity! {
    /// Seconds for each byte.
    SecondsPerByte
}

quantity! {
    /// A share: of the time that others may lose, or of a discard's time that slows them down.
    Share
}

impl From<Duration> for Seconds {
    fn from(duration: Duration) -> Seconds {
        Seconds(duration.as_secs_f64())
    }
}

impl Seconds {
    /// Returns a duration: from 0 to 30 million years.
    pub(crate) fn duration(self) -> Duration {
        Duration::from_secs_f64(self.0.clamp(0.0, 1e15))
    }
}

impl From<u64> for Bytes {
    fn from(bytes: u64) -> Bytes {
        Bytes(bytes as f64)
    }
}

impl Mul<Bytes> for SecondsPerByte {
    type Output = Seconds;
    fn mul(self, bytes: Bytes) -> Seconds {
        Seconds(self.0 * bytes.0)
    }
}

impl Div<Bytes> for Seconds {
    type Output = SecondsPerByte;
    fn div(self, bytes: Bytes) -> SecondsPerByte {
        SecondsPerByte(self.0 / bytes.0)
    }
}

impl Div<SecondsPerByte> for Seconds {
    type Output = Bytes;
    fn div(self, each: SecondsPerByte) -> Bytes {
        Bytes(self.0 / each.0)
    }
}

impl Mul<Seconds> for Share {
    type Output = Seconds;
    fn mul(self, time: Seconds) -> Seconds {
        Seconds(self.0 * time.0)
    }
}

impl Div<Share> for Seconds {
    type Output = Seconds;
    fn div(self, share: Share) -> Seconds {
        Seconds(self.0 / share.0)
    }
}

/// The law of a discard's time: so many seconds whatever its size, and so many for each byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line {
    /// a.
    pub(crate) fixed: Seconds,
    /// b.
    pub(crate) per_byte: SecondsPerByte,
}

impl Line {
    /// Returns S = a + b·L.
    pub(crate) fn at(&self, bytes: Bytes) -> Seconds {
        self.fixed + self.per_byte * bytes
    }
}
