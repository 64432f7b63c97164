//! Trims ranges one after the other, as a throttle allows.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use linux::trim::{Range, fitrim};
use pace::{Goal, Work};

use super::TrimError;
use super::cost::Costs;
use super::survey::{Part, Survey, explained};
use super::tally::{Count, Tally};
use super::windows::{Window, WindowResult};
use crate::event::Listener;
use crate::throttle::{Pacing, Purpose, Setup, Summary, Throttle};

/// The shortest part into which a range is cut, in bytes, however slow the device is.
const LEAST: u64 = 1 << 20;

/// The longest time in seconds for which one window may keep the device busy. It is also at most
/// [`BUSY_SHARE`] of the time that a goal allows in each second.
const BUSY: f64 = 0.020;
const BUSY_SHARE: f64 = 0.2;
const LEAST_BUSY: f64 = 0.002;

/// If the machine slept for this long during a call, the call was cut short. ext4 and XFS return
/// early and without an error when the machine is to be suspended (Linux 6.12
/// `ext4_trim_interrupted`, `xfs_trim_should_stop`). They also return early for a freeze without
/// sleep, which trimbench can't detect.
const SLEPT: Duration = Duration::from_millis(10);

/// Trims windows of one file system, and counts their discards.
#[derive(Debug)]
pub(super) struct Trimmer {
    directory: Arc<File>,
    pub(super) throttle: Throttle,
    tally: Tally,
    /// How long one window may keep the device busy, in seconds.
    pub(super) busy_limit: f64,
}

impl Trimmer {
    /// Starts a throttle for a file system, of which so much is to be trimmed.
    pub(super) fn start(
        survey: &Survey,
        work: &Work,
        pacing: &Pacing,
        listener: &mut Listener<'_>,
    ) -> Result<Trimmer, TrimError> {
        let setup = Setup {
            on: survey.directory.as_fd(),
            stack: &survey.stack,
            purpose: Purpose::Trim,
            work,
            pacing,
        };
        Ok(Trimmer {
            directory: Arc::clone(&survey.directory),
            throttle: Throttle::start(&setup, listener)?,
            tally: Tally::of(survey),
            busy_limit: busy_limit(pacing.goal()),
        })
    }

    /// Trims one window with one call, and counts its discards. The inner error is the kernel's.
    pub(super) fn window(
        &mut self,
        window: &Window,
        range: Range,
        listener: &mut Listener<'_>,
    ) -> Result<io::Result<Count>, TrimError> {
        let slept = linux::clock::suspended();
        let before = self.throttle.discards();
        let began = Instant::now();
        let reported = Arc::new(AtomicU64::new(0));
        let job = {
            let (directory, reported) = (Arc::clone(&self.directory), Arc::clone(&reported));
            move || {
                reported.store(fitrim(&directory, range)?, Ordering::Relaxed);
                Ok(())
            }
        };
        let throttle = &mut self.throttle;
        if let Err(error) = throttle.call(listener, job)? {
            return Ok(Err(error));
        }
        let reported = reported.load(Ordering::Relaxed);
        let count = (self.tally).count(throttle, window, reported, before, began, listener)?;
        throttle.freed(count.trimmed, count.swallowed);
        let cut_short = linux::clock::suspended().saturating_sub(slept) > SLEPT;
        Ok(Ok(Count { cut_short, ..count }))
    }
}

/// Returns how long one window may keep the device busy, in seconds.
fn busy_limit(goal: Option<Goal>) -> f64 {
    match goal {
        Some(goal) if goal.slowdown < 1.0 => (BUSY_SHARE * goal.slowdown).clamp(LEAST_BUSY, BUSY),
        _ => f64::INFINITY,
    }
}

/// Trims ranges of one file system that its caller chooses.
#[derive(Debug)]
pub(crate) struct Pieces {
    trimmer: Trimmer,
    costs: Costs,
}

impl Pieces {
    /// Begins to trim the file system of a directory, of which about `bytes` in `extents` extents
    /// are to be trimmed.
    ///
    /// # Errors
    /// As [`Trim::new`](super::Trim::new).
    pub(crate) fn begin(
        path: &Path,
        bytes: u64,
        extents: u64,
        pacing: &Pacing,
        listener: &mut Listener<'_>,
    ) -> Result<Pieces, TrimError> {
        let survey = Survey::of(path, Part::default(), None)?;
        survey.probe()?;
        let work = Work::new(bytes.max(1), extents.max(1));
        Ok(Pieces {
            trimmer: Trimmer::start(&survey, &survey.stack.shape(&work), pacing, listener)?,
            costs: Costs::default(),
        })
    }

    /// Waits until a part of the `left` bytes may be trimmed, and returns how much.
    pub(crate) fn grant(
        &mut self,
        left: u64,
        listener: &mut Listener<'_>,
    ) -> Result<u64, TrimError> {
        let mut bytes = self.trimmer.throttle.grant(left, listener)?.allow;
        // An extent whose cost isn't known may take any time: the pacer starts with little.
        while bytes > LEAST && bytes < u64::MAX {
            match self.costs.predict(1, bytes) {
                Some(seconds) if seconds > self.trimmer.busy_limit => bytes /= 2,
                _ => break,
            }
        }
        Ok(bytes)
    }

    /// Trims a range in which so many bytes are free. Returns what the devices' counters show
    /// meanwhile, or the kernel's error.
    pub(crate) fn trim(
        &mut self,
        range: std::ops::Range<u64>,
        holds: u64,
        listener: &mut Listener<'_>,
    ) -> Result<io::Result<WindowResult>, TrimError> {
        let length = range.end - range.start;
        let window = Window {
            start: range.start,
            length,
            spans: length,
            holds: Some(holds),
        };
        let range = Range {
            start: range.start,
            length,
            minimum: 0,
        };
        let count = match self.trimmer.window(&window, range, listener)? {
            Ok(count) if count.cut_short => return Ok(Err(io::ErrorKind::Interrupted.into())),
            Ok(count) => count,
            Err(error) => return Ok(Err(error)),
        };
        let came = count.came;
        self.costs.learn(came.discards, came.bytes, came.busy);
        // All three are of the same devices.
        let bytes = count.seen;
        Ok(Ok(WindowResult { bytes, ..came }))
    }

    /// Stops the throttle at once.
    pub(crate) fn end(self) -> Summary {
        self.trimmer.throttle.end()
    }
}

/// Returns the reason why a file system isn't trimmed, in words.
pub(crate) fn refused(path: &Path, error: io::Error) -> TrimError {
    explained(path, error)
}
