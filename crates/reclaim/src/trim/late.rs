//! Over a file of another file system: how long to wait for the discards of its holes.

use std::time::{Duration, Instant};

use linux::SysRoot;
use linux::stats::writes_in_flight;

use super::outcome::TrimError;
use crate::throttle::Throttle;
use crate::watch::Watch;

/// A discard that follows a commit comes sooner than this.
const LATE: Duration = Duration::from_millis(100);

/// And once so many commits have shown how soon, sooner than four times that, or than
/// this.
const SHOWN: u32 = 3;
const SOON: Duration = Duration::from_millis(5);

/// How often it is looked whether a device has done what it was sent.
const LOOK: Duration = Duration::from_micros(500);

/// Waits until a device has done what it was sent by who didn't wait for it: only then is
/// it a hole that a commit discards. Others may write there all the time: no longer than
/// for [`LATE`].
pub(super) fn done_by(
    device: &str,
    throttle: &mut Throttle,
    watch: &mut dyn Watch,
) -> Result<(), TrimError> {
    let sys = SysRoot::host();
    let began = Instant::now();
    let mut quiet = 0;
    while quiet < 2 && began.elapsed() < LATE {
        throttle.pause(LOOK, watch)?;
        quiet = match writes_in_flight(&sys, device) {
            Some(0) | None => quiet + 1,
            Some(_) => 0,
        };
    }
    Ok(())
}

/// How long after a commit discards come: from a thread of the kernel's, where the file
/// system below a loop device has a journal.
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

    /// Waits until so many bytes are discarded, or none have been for long: of what is
    /// trimmed a part can have been a hole before.
    pub(super) fn wait(
        &mut self,
        throttle: &mut Throttle,
        bytes: u64,
        before: u64,
        watch: &mut dyn Watch,
    ) -> Result<(), TrimError> {
        let patience = self.patience();
        // Those that are under way already aren't late.
        throttle.settle(watch)?;
        let mut last = throttle.discards().bytes;
        let mut changed = Instant::now();
        while throttle.discards().bytes - before < bytes && changed.elapsed() < patience {
            throttle.settle(watch)?;
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
