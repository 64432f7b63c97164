//! Trims ranges that its caller chooses, one after the other, as a throttle allows.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use linux::trim::{Range, fitrim};
use pace::Policy;
use ssd::Card;

use super::busy_limit;
use super::cost::Costs;
use super::outcome::TrimError;
use super::survey::{Asked, Survey, explained};
use super::tally::{Count, Tally};
use super::windows::{Window, WindowResult};
use crate::event::Listener;
use crate::throttle::{Purpose, Setup, Summary, Throttle, ThrottleOptions};

/// The shortest part into which a range is cut, in bytes, however slow the device is.
const LEAST: u64 = 1 << 20;

/// Trims ranges of one file system.
#[derive(Debug)]
pub(crate) struct Pieces {
    directory: Arc<File>,
    throttle: Throttle,
    tally: Tally,
    costs: Costs,
    busy_limit: f64,
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
        policy: Policy,
        card: Option<&Card>,
        options: &ThrottleOptions,
        listener: &mut Listener<'_>,
    ) -> Result<Pieces, TrimError> {
        let survey = Survey::of(path, Asked::default(), None)?;
        survey.probe()?;
        let work = survey
            .stack
            .shape(&pace::Work::new(bytes.max(1), extents.max(1)));
        let setup = Setup {
            on: survey.directory.as_fd(),
            stack: &survey.stack,
            purpose: Purpose::Trim,
            work: &work,
            policy,
            card,
            options,
        };
        let throttle = Throttle::start(&setup, listener)?;
        Ok(Pieces {
            tally: Tally::of(&survey),
            directory: Arc::new(survey.directory),
            throttle,
            costs: Costs::default(),
            busy_limit: busy_limit(&policy),
        })
    }

    /// Waits until a part of the `left` bytes may be trimmed, and returns how much.
    pub(crate) fn grant(
        &mut self,
        left: u64,
        listener: &mut Listener<'_>,
    ) -> Result<u64, TrimError> {
        let mut bytes = self.throttle.grant(left, listener)?.allow;
        // An extent whose cost isn't known may take any time: the pacer starts with little.
        while bytes > LEAST && bytes < u64::MAX {
            match self.costs.predict(1, bytes) {
                Some(seconds) if seconds > self.busy_limit => bytes /= 2,
                _ => break,
            }
        }
        Ok(bytes)
    }

    /// Trims a range in which so many bytes are free. Returns what the devices' counters show of
    /// it, or the kernel's error.
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
        let slept = linux::clock::suspended();
        let counted = window_of(
            &self.directory,
            &mut self.throttle,
            &mut self.tally,
            &window,
            range,
            listener,
        )?;
        let count = match counted {
            Ok(count) => count,
            Err(error) => return Ok(Err(error)),
        };
        if linux::clock::suspended().saturating_sub(slept) > super::SLEPT {
            return Ok(Err(io::ErrorKind::Interrupted.into()));
        }
        let came = count.came;
        self.costs.learn(came.discards, came.bytes, came.busy);
        Ok(Ok(came))
    }

    /// Stops the throttle at once.
    pub(crate) fn end(self) -> Summary {
        self.throttle.end()
    }
}

/// Trims one window with one call, and counts its discards. The inner error is the kernel's.
pub(super) fn window_of(
    directory: &Arc<File>,
    throttle: &mut Throttle,
    tally: &mut Tally,
    window: &Window,
    range: Range,
    listener: &mut Listener<'_>,
) -> Result<io::Result<Count>, TrimError> {
    let before = throttle.discards();
    let began = Instant::now();
    let reported = Arc::new(AtomicU64::new(0));
    let job = {
        let (directory, reported) = (Arc::clone(directory), Arc::clone(&reported));
        move || {
            reported.store(fitrim(&directory, range)?, Ordering::Relaxed);
            Ok(())
        }
    };
    if let Err(error) = throttle.call(listener, job)? {
        return Ok(Err(error));
    }
    let reported = reported.load(Ordering::Relaxed);
    let count = tally.count(throttle, window, reported, before, began, listener)?;
    throttle.freed(count.trimmed, count.swallowed);
    Ok(Ok(count))
}

/// Returns the reason why a file system isn't trimmed, in words.
pub(crate) fn refused(path: &Path, error: io::Error) -> TrimError {
    explained(path, error)
}
