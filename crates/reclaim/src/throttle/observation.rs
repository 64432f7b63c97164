//! Observes the devices, the canary and the foreground before anything is freed.
//!
//! It takes some 0.1 s to make a canary and to observe a foreground. A deletion of a tree can start
//! that while it still surveys the tree ([`EarlyObservation`]). The survey itself reads
//! directories, and its reads look like those of a foreground. So the observation counts only if no
//! read at all reached the drives meanwhile; otherwise it starts over.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use linux::SysRoot;
use storage::Commit;
use storage::counter::Source;

use super::canary::{self, Canary, CanaryError};
use super::counters::DeviceCounters;
use super::monitor::Monitor;
use super::pacing::{CanaryFile, Pacing};
use super::setup::Purpose;
use super::stack::Stack;
use super::{counters_failed, nameless};
use crate::Result;

/// Devices and canary, observed since some moment.
#[derive(Debug)]
pub(crate) struct Observation {
    pub(super) monitor: Monitor,
    /// An own file by which a commit of the journal is forced.
    pub(super) anchor: Option<Arc<File>>,
    /// Why there is no canary.
    pub(super) no_canary: Option<CanaryError>,
    pub(super) began: Instant,
}

impl Observation {
    /// Starts to observe the devices of a file system, of which `on` is an open directory.
    ///
    /// # Errors
    /// [`ReclaimError::Io`] if the devices can't be observed.
    pub(super) fn start(
        on: BorrowedFd<'_>,
        stack: &Stack,
        purpose: Purpose,
        pacing: &Pacing,
    ) -> Result<Observation> {
        let paced = stack.is_paced();
        let deletes = purpose == Purpose::Delete;
        let file = match &pacing.canary {
            CanaryFile::Made if paced => Some(canary::make(on).map(Arc::new)),
            CanaryFile::Given(file) if paced => Some(Ok(Arc::clone(file))),
            _ => None,
        };
        let (file, mut no_canary) = match file.transpose() {
            Ok(file) => (file, None),
            Err(error) => (None, Some(error)),
        };
        let mut canary = None;
        if let Some(file) = &file {
            match Canary::start(Arc::clone(file), pacing) {
                Ok(started) => canary = Some(started),
                Err(error) => no_canary = Some(error),
            }
        }
        let sources: &[Source] = if paced { &stack.sources } else { &[] };
        let counters = DeviceCounters::open(&SysRoot::host(), sources).map_err(counters_failed)?;
        let uncounted = file.clone().filter(|_| stack.uncounted);
        let made = matches!(pacing.canary, CanaryFile::Made);
        let mut anchor = file.filter(|_| made && deletes);
        if deletes && anchor.is_none() && stack.commit == Commit::File {
            anchor = nameless(on).ok().map(Arc::new);
        }
        Ok(Observation {
            monitor: Monitor::new(counters, canary, uncounted, paced),
            anchor,
            no_canary,
            began: Instant::now(),
        })
    }

    /// Starts again if anything was read since the beginning: it may have been the survey.
    ///
    /// # Errors
    /// [`ReclaimError::Io`] if the devices can't be observed.
    pub(super) fn leave_out_reads(&mut self) -> Result<()> {
        if self.monitor.has_foreign_reads().map_err(counters_failed)? {
            self.monitor.restart().map_err(counters_failed)?;
            self.began = Instant::now();
        }
        Ok(())
    }
}

/// An observation that a thread starts while the deletion's work is not yet known.
#[derive(Debug)]
pub(crate) struct EarlyObservation {
    /// `None` once it was taken.
    thread: Option<JoinHandle<Option<Observation>>>,
}

impl EarlyObservation {
    /// Starts it for the file system of a directory. Where it fails, it has no result.
    pub(crate) fn start(on: OwnedFd, stack: Stack, pacing: Pacing) -> EarlyObservation {
        let observe = move || Observation::start(on.as_fd(), &stack, Purpose::Delete, &pacing).ok();
        let builder = std::thread::Builder::new().name("observe".to_owned());
        EarlyObservation {
            thread: builder.spawn(observe).ok(),
        }
    }

    /// Waits for its start. Returns `None` if it failed.
    pub(crate) fn take(mut self) -> Option<Observation> {
        self.thread.take()?.join().ok()?
    }
}

impl Drop for EarlyObservation {
    /// An observation that nothing needs leaves no thread behind.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
