//! Waits for the discards of holes in a file, where the file system lies on a loop device.

use std::time::{Duration, Instant};

use linux::SysRoot;
use linux::stats::writes_in_flight;

use super::outcome::TrimError;
use crate::event::Listener;
use crate::throttle::Throttle;

/// The longest wait for a discard after a commit.
const LATE: Duration = Duration::from_millis(100);

/// After this many commits the wait is at most four times the longest that they took, and at least
/// [`SOON`].
const SHOWN: u32 = 3;
const SOON: Duration = Duration::from_millis(5);

/// The time between two looks at whether a device is idle.
const LOOK: Duration = Duration::from_micros(500);

/// Waits until a device has done all that was sent to it: only then does a commit discard the hole.
/// Another process may write there all the time, so this waits no longer than [`LATE`].
pub(super) fn done_by(
    device: &str,
    throttle: &mut Throttle,
    listener: &mut Listener<'_>,
) -> Result<(), TrimError> {
    let sys = SysRoot::host();
    let began = Instant::now();
    let mut quiet = 0;
    while quiet < 2 && began.elapsed() < LATE {
        throttle.pause(LOOK, listener)?;
        quiet = match writes_in_flight(&sys, device) {
            Some(0) | None => quiet + 1,
            Some(_) => 0,
        };
    }
    Ok(())
}

/// Learns how long after a commit discards come. A kernel thread sends them where the file system
/// below a loop device has a journal.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lateness {
    commits: u32,
    longest: Duration,
}

impl Lateness {
    fn patience(self) -> Duration {
        if self.commits < SHOWN {
            return LATE;
        }
        (self.longest * 4).clamp(SOON, LATE)
    }

    /// Waits until `bytes` bytes are discarded, or none have been for long. A part of the trimmed
    /// space may have been a hole before, for which no discard comes.
    pub(super) fn wait(
        &mut self,
        throttle: &mut Throttle,
        bytes: u64,
        before: u64,
        listener: &mut Listener<'_>,
    ) -> Result<(), TrimError> {
        let patience = self.patience();
        // Those that are under way already aren't late.
        throttle.settle(listener)?;
        let mut last = throttle.discards().bytes;
        let mut changed = Instant::now();
        while throttle.discards().bytes - before < bytes && changed.elapsed() < patience {
            throttle.settle(listener)?;
            let now = throttle.discards().bytes;
            if now != last {
                self.longest = self.longest.max(changed.elapsed());
                (last, changed) = (now, Instant::now());
            }
        }
        self.commits += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_what_commits_have_shown() {
        let patience = |commits, ms| {
            let longest = Duration::from_millis(ms);
            Lateness { commits, longest }.patience()
        };
        assert_eq!(patience(2, 0), LATE);
        assert_eq!(patience(3, 0), SOON);
        assert_eq!(patience(3, 10), Duration::from_millis(40));
        assert_eq!(patience(3, 60), LATE);
    }
}
