//! How much a window trimmed, and how long the devices took.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pace::Discards;

use super::late::{Lateness, done_by};
use super::outcome::TrimError;
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
