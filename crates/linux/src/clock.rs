//! How long the machine has slept.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_awake_sleeps_no_more() {
        let before = suspended();
        std::thread::sleep(Duration::from_millis(20));
        let grown = suspended().saturating_sub(before);
        assert!(grown < Duration::from_millis(10), "{grown:?}");
    }
}
