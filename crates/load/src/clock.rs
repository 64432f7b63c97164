//! One clock for a whole run: cheap enough to read for every batch of I/Os.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

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
/// `clock_gettime(CLOCK_MONOTONIC)`. The counter is calibrated once, to some
/// parts per million; [`Clock::to_monotonic`] compares the two clocks anew at
/// every call, so that no drift adds up.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    source: Source,
}

#[derive(Debug, Clone, Copy)]
enum Source {
    /// Ticks since `zero`, times `scale` / 2^32, are nanoseconds.
    #[cfg(target_arch = "x86_64")]
    Tsc { zero: u64, scale: u64 },
    /// `CLOCK_MONOTONIC` minus `zero`, in nanoseconds.
    Monotonic { zero: u64 },
}

impl Clock {
    /// Starts a clock now. Calibrating the counter takes some 50 ms.
    pub fn start() -> Clock {
        #[cfg(target_arch = "x86_64")]
        if tsc::is_trustworthy() {
            let (zero, from) = tsc::pair();
            std::thread::sleep(CALIBRATION);
            let (ticks, to) = tsc::pair();
            let scale = (u128::from(to - from) << 32) / u128::from(ticks - zero).max(1);
            if let Ok(scale) = u64::try_from(scale)
                && scale > 0
            {
                return Clock {
                    source: Source::Tsc { zero, scale },
                };
            }
        }
        Clock::without_calibration()
    }

    /// Starts a clock now that takes no time to calibrate, and reads `CLOCK_MONOTONIC`: for
    /// whoever reads it rarely.
    pub fn without_calibration() -> Clock {
        Clock {
            // A reading is never 0: meters use 0 for "nothing in flight".
            source: Source::Monotonic {
                zero: monotonic_ns() - 1,
            },
        }
    }

    /// The time now, since the clock's zero; never 0.
    #[inline]
    pub fn now(&self) -> Nanos {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::Tsc { zero, scale } => {
                // Another core's counter may be some ticks behind the one that read `zero`.
                let ticks = tsc::read().saturating_sub(zero);
                Nanos(((u128::from(ticks) * u128::from(scale)) >> 32) as u64 | 1)
            }
            Source::Monotonic { zero } => Nanos(monotonic_ns().saturating_sub(zero).max(1)),
        }
    }

    /// The clock's source: `tsc` or `clock_gettime`.
    pub fn source(&self) -> &'static str {
        match self.source {
            #[cfg(target_arch = "x86_64")]
            Source::Tsc { .. } => "tsc",
            Source::Monotonic { .. } => "clock_gettime",
        }
    }

    /// The moment of `CLOCK_MONOTONIC`, in nanoseconds, at which this clock reads `at`.
    pub fn to_monotonic(&self, at: Nanos) -> u64 {
        let (here, there) = (self.now(), monotonic_ns());
        let ahead = i128::from(at.0) - i128::from(here.0);
        u64::try_from(i128::from(there) + ahead).unwrap_or(0)
    }

    /// Sleeps until this clock reads `at`; returns at once when that is past.
    pub fn sleep_until(&self, at: Nanos) {
        loop {
            let left = at.since(self.now()).0;
            if left == 0 {
                return;
            }
            std::thread::sleep(Duration::from_nanos(left));
        }
    }
}

/// Both clocks are read within some 100 ns, so this gives a few parts per million.
#[cfg(target_arch = "x86_64")]
const CALIBRATION: Duration = Duration::from_millis(50);

/// `CLOCK_MONOTONIC` in nanoseconds.
#[inline]
fn monotonic_ns() -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
}

#[cfg(target_arch = "x86_64")]
mod tsc {
    use std::arch::x86_64::{__cpuid, _rdtsc};

    use super::monotonic_ns;

    /// Whether the counter runs at one rate in all power states, and the
    /// kernel itself hasn't found it out of step between cores.
    pub(super) fn is_trustworthy() -> bool {
        /// CPUID 8000_0007h, EDX bit 8: "invariant TSC" (AMD APM 3 and Intel SDM 2A).
        const INVARIANT: u32 = 1 << 8;
        #[allow(unused_unsafe, reason = "safe in newer standard libraries")]
        // SAFETY: every x86-64 processor has CPUID.
        let invariant = unsafe {
            __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & INVARIANT != 0
        };
        let kernel = std::fs::read_to_string(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        );
        let agrees = kernel.is_ok_and(|name| {
            matches!(
                name.trim(),
                "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page"
            )
        });
        invariant && agrees
    }

    #[inline]
    pub(super) fn read() -> u64 {
        // SAFETY: RDTSC reads a register and has no other effect.
        unsafe { _rdtsc() }
    }

    /// Counter and monotonic clock at one moment: the closest of several tries.
    pub(super) fn pair() -> (u64, u64) {
        let mut best = (u64::MAX, 0, 0);
        for _ in 0..32 {
            let before = read();
            let monotonic = monotonic_ns();
            let width = read().saturating_sub(before);
            if width < best.0 {
                best = (width, before + width / 2, monotonic);
            }
        }
        (best.1, best.2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_goes_back_and_never_reads_zero() {
        let clock = Clock::start();
        let mut last = clock.now();
        assert!(last.0 > 0);
        for _ in 0..100_000 {
            let now = clock.now();
            // Two nanoseconds: the lowest bit is always set.
            assert!(now.0 + 2 >= last.0, "{now:?} after {last:?}");
            last = now;
        }
    }

    #[test]
    fn keeps_pace_with_the_monotonic_clock() {
        let clock = Clock::start();
        let (a, m) = (clock.now(), monotonic_ns());
        std::thread::sleep(Duration::from_millis(300));
        let (b, n) = (clock.now(), monotonic_ns());
        let error = (b.since(a).0 as f64 / (n - m) as f64 - 1.0).abs();
        // A busy machine may take the processor between the two readings.
        assert!(error < 0.02, "{} is off by {error}", clock.source());
    }

    #[test]
    fn its_readings_are_moments_of_the_monotonic_clock() {
        let clock = Clock::start();
        let (before, now) = (monotonic_ns(), clock.to_monotonic(clock.now()));
        assert!(now.abs_diff(before) < 50_000_000, "{before} and {now}");
        assert!(clock.to_monotonic(clock.now().plus(Duration::from_secs(9))) > now);
    }

    #[test]
    fn sleeps_at_least_until() {
        let clock = Clock::start();
        let until = clock.now().plus(Duration::from_millis(5));
        clock.sleep_until(until);
        assert!(clock.now() >= until);
    }
}
