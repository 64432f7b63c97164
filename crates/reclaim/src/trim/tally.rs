//! How much a window trimmed, and how long the devices took.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linux::SysRoot;
use linux::stats::writes_in_flight;
use pace::Discards;

use super::TrimError;
use super::survey::Survey;
use super::windows::{Window, WindowResult};
use crate::event::Listener;
use crate::throttle::{Throttle, nameless};

/// The kernel counts a discard a moment after the call that waited for it returns.
const COUNTED: Duration = Duration::from_millis(1);

/// Counts the discards of each window.
#[derive(Debug)]
pub(super) struct Tally {
    /// Whether the file system reports how much it trimmed.
    exact: bool,
    /// Whether the devices' statistics count.
    counted: bool,
    /// An own file on a file system that lies in a file of another one. That one discards what
    /// becomes a hole when it next commits: this file makes it commit.
    below: Option<Arc<File>>,
    /// The kernel name of the device below the file system.
    device: Option<String>,
    late: Lateness,
}

/// The result of a window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Count {
    /// The window, with what is known of its free extents by now.
    pub(super) window: Window,
    /// Bytes trimmed.
    pub(super) trimmed: u64,
    /// Bytes trimmed whose discards the devices will never show.
    pub(super) swallowed: u64,
    pub(super) came: WindowResult,
    /// Bytes that the devices discarded meanwhile, as they count them; where they don't, those of
    /// `came`.
    pub(super) seen: u64,
    /// The machine slept during the call, which may have ended early.
    pub(super) cut_short: bool,
}

impl Tally {
    pub(super) fn of(survey: &Survey) -> Tally {
        let anchor = || nameless(survey.directory.as_fd()).ok().map(Arc::new);
        Tally {
            exact: survey.is_exact(),
            counted: survey.is_counted(),
            below: survey.is_over_file().then(anchor).flatten(),
            device: survey.device().map(str::to_owned),
            late: Lateness::default(),
        }
    }

    /// Waits for the discards of a window and counts them. `reported`: bytes that the kernel
    /// reports; `before`: the discards before its call, which began at `began`.
    pub(super) fn count(
        &mut self,
        throttle: &mut Throttle,
        window: &Window,
        reported: u64,
        before: Discards,
        began: Instant,
        listener: &mut Listener<'_>,
    ) -> Result<Count, TrimError> {
        let due = match self.exact {
            true => reported,
            false => window.holds.unwrap_or(reported),
        };
        let mut window = *window;
        if !self.wait(throttle, due, before, listener)? {
            // What wasn't seen may come yet.
            window.holds = None;
        }
        let took = began.elapsed();
        let mut now = throttle.read_within(took)?;
        if self.counted && self.exact && now.bytes.saturating_sub(before.bytes) < reported {
            std::thread::sleep(COUNTED);
            now = throttle.read_within(took)?;
        }
        let seen = now.bytes.saturating_sub(before.bytes);
        let by_counters = self.counted && !self.exact;
        let bytes = match by_counters {
            true => seen.min(window.length),
            false => due,
        };
        // What was known beforehand is trimmed, whether the devices show it or not.
        let trimmed = match by_counters {
            true => bytes.max(window.holds.unwrap_or(0)),
            false => bytes,
        };
        // All that will come has come.
        let swallowed = match self.counted {
            true => trimmed.saturating_sub(seen),
            false => 0,
        };
        let busy = match (self.counted, now.busy, before.busy) {
            (true, Some(now), Some(before)) => now.saturating_sub(before).min(took),
            _ if bytes > 0 => took,
            _ => Duration::ZERO,
        };
        let came = WindowResult {
            bytes,
            discards: now.commands.saturating_sub(before.commands),
            busy: busy.as_secs_f64(),
        };
        Ok(Count {
            window,
            trimmed,
            swallowed,
            came,
            seen: if self.counted { seen } else { bytes },
            cut_short: false,
        })
    }

    /// Waits until the discards of `due` bytes are done. Returns false where some may come yet.
    fn wait(
        &mut self,
        throttle: &mut Throttle,
        due: u64,
        before: Discards,
        listener: &mut Listener<'_>,
    ) -> Result<bool, TrimError> {
        if let Some(anchor) = self.below.as_ref().filter(|_| due > 0) {
            if let Some(device) = self.device.as_ref().filter(|_| !self.exact) {
                done_by(device, throttle, listener)?;
            }
            throttle.commit(anchor, listener)?;
            self.late.wait(throttle, due, before.bytes, listener)?;
        } else if self.counted && !self.exact {
            // XFS sends them and goes on (Linux ≥ 6.6 `xfs_trim_perag_extents`).
            return Ok(throttle.settle(listener)?);
        }
        Ok(true)
    }
}

// Waits for the discards of holes in a file, where the file system lies on a loop device.

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
pub(crate) struct Lateness {
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
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`](crate::ReclaimError::Interrupted), and
    /// [`ReclaimError::Io`](crate::ReclaimError::Io) where the counters can't be read.
    pub(crate) fn wait(
        &mut self,
        throttle: &mut Throttle,
        bytes: u64,
        before: u64,
        listener: &mut Listener<'_>,
    ) -> crate::Result<()> {
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
