//! How long the machine has slept, and which time it is here.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Two readings as near as this to each other are of one moment.
const NEAR: Duration = Duration::from_millis(1);

/// How long this machine has been suspended since it started: by so much `CLOCK_BOOTTIME`
/// is ahead of `CLOCK_MONOTONIC` (clock_gettime(2)), to about a millisecond. In a time
/// namespace only how much it grows tells anything.
pub fn suspended() -> Duration {
    loop {
        let before = read(ClockId::Monotonic);
        let boot = read(ClockId::Boottime);
        // Whoever is held up in between would take that for sleep.
        if read(ClockId::Monotonic).saturating_sub(before) < NEAR {
            return boot.saturating_sub(before);
        }
    }
}

fn read(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Seconds by which local time is ahead of UTC at a moment, in seconds since 1970; 0 where the
/// system has no time zone.
pub fn local_offset_s(unix_s: i64) -> i64 {
    // Its type is the C library's: musl's is about to change.
    let time = unix_s as _;
    // SAFETY: all zeros is a valid `tm`; the call writes that one structure and keeps no pointer.
    let mut local: libc::tm = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of their types.
    let done = unsafe { libc::localtime_r(&raw const time, &raw mut local) };
    match done.is_null() {
        true => 0,
        false => local.tm_gmtoff as i64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_zone_is_within_a_day() {
        assert!(local_offset_s(1_800_000_000).abs() < 86_400);
    }

    #[test]
    fn who_is_awake_sleeps_no_more() {
        let before = suspended();
        std::thread::sleep(Duration::from_millis(20));
        let grown = suspended().saturating_sub(before);
        assert!(grown < Duration::from_millis(10), "{grown:?}");
    }
}
