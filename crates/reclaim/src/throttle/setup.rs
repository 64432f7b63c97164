//! How a throttle begins.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use linux::SysRoot;
use linux::stats::DeviceStats;
use pace::{Account, Goal, Pacer, Policy, Work};
use ssd::Card;
use storage::Commit;
use storage::counter::Source;

use super::canary::{self, Canary, CanaryError};
use super::commits::{Commits, Ledger, Worker};
use super::counters::DeviceCounters;
use super::decisions::Decisions;
use super::monitor::{Group, Monitor, Protected, SpaceWatch};
use super::stack::Stack;
use super::{Throttle, counters_failed, nameless, shown};
use crate::event::{Event, Listener, Reporter};
use crate::{ReclaimError, Result};

/// Why something is discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Files are freed, and the file system gains space. Too little space relaxes the goal. Once
    /// something is freed, no latency is refused any more.
    Delete,
    /// Free space is trimmed, and the file system gains none.
    Trim,
}

/// Everything that a throttle needs to start.
#[derive(Debug)]
pub struct Setup<'a> {
    /// Any directory of the file system.
    pub on: BorrowedFd<'a>,
    /// The storage stack. Where it sends no discards, nothing is paced.
    pub stack: &'a Stack,
    /// Why something is discarded.
    pub purpose: Purpose,
    /// All that will be freed, shaped by [`Stack::shape`].
    pub work: &'a Work,
    /// How it is paced.
    pub pacing: &'a Pacing,
}

impl Throttle {
    /// Starts a throttle.
    ///
    /// # Errors
    /// [`ReclaimError::Refused`] if a card says that the goal can't be met, or
    /// [`ReclaimError::Io`] if the devices can't be observed.
    pub fn start(setup: &Setup<'_>, listener: &mut Listener<'_>) -> Result<Throttle> {
        Throttle::start_with(setup, None, listener)
    }

    /// Starts a throttle with what was observed before its work was known.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(crate) fn start_with(
        setup: &Setup<'_>,
        observed: Option<Observation>,
        listener: &mut Listener<'_>,
    ) -> Result<Throttle> {
        let pacing = setup.pacing;
        let pacer = Pacer::new(pacing.policy, setup.work, pacing.card.as_ref())?;
        let observed = match observed {
            Some(mut observed) => {
                observed.leave_out_reads()?;
                observed
            }
            None => Observation::start(setup.on, setup.stack, setup.purpose, pacing)?,
        };
        let stack = setup.stack;
        let deletes = setup.purpose == Purpose::Delete;
        let goal = pacing.goal();
        let account = || Account::new(goal.as_ref(), setup.work.discards_twice);
        let on = setup.on.try_clone_to_owned();
        let mut throttle = Throttle {
            on: on.map_err(ReclaimError::io("keep open the directory", shown(setup.on)))?,
            pacer,
            goal,
            account: stack.is_paced().then(account),
            worker: Worker::start()
                .map_err(ReclaimError::io("start a thread for", shown(setup.on)))?,
            monitor: observed.monitor,
            ledger: Ledger::new(setup.work.bytes, deletes && stack.discards_twice),
            space: SpaceWatch::new(deletes),
            loop_device: stack.loop_device.as_ref().and_then(|name| {
                let stats = DeviceStats::open(&SysRoot::host(), name).ok()?;
                let now = stats.read().ok()?;
                Some((stats, now))
            }),
            commits: Commits::new(stack.commit, stack.frees_in_background, observed.anchor),
            decisions: Decisions::default(),
            observed_since: observed.began,
            began: Instant::now(),
            reporter: Reporter::default(),
            urgent: false,
        };
        throttle.observe_beginning();
        throttle.observe()?;
        if let Some(why) = observed.no_canary {
            listener(Event::Note(&format_args!(
                "there is no canary ({why}): what a read waits is not measured"
            )));
        }
        Ok(throttle)
    }
}

// How freeing is paced: one set of choices for all throttles of a command.

/// The file that the canary reads.
#[derive(Debug, Clone, Default)]
pub enum CanaryFile {
    /// A file of 1 MiB without a name, made on the file system.
    #[default]
    Made,
    /// This file, open for direct reads, with at least 4 KiB of written data.
    Given(Arc<File>),
    /// There is no canary.
    Without,
}

/// How freeing is paced.
#[derive(Debug, Clone)]
pub struct Pacing {
    /// How much is freed, and when.
    pub policy: Policy,
    /// A card of the drive, if there is one.
    pub card: Option<Card>,
    /// The canary's file.
    pub canary: CanaryFile,
    /// The canary's reads each second; `None`: forty.
    pub reads_per_s: Option<f64>,
    /// A blkio cgroup of version 1 in which the canary reads: that of the
    /// foreground of a simulated drive, whose reads don't wait in the loop
    /// driver behind discards.
    pub canary_group: Option<PathBuf>,
    /// The control group whose waits the goal's `max_pressure` limits.
    pub protect: Option<Protected>,
    /// No commit is forced after a piece: discards come when the file system
    /// likes. Only for policies that don't wait for them.
    pub skip_commits: bool,
}

impl Pacing {
    /// Paces by this policy, without a card, and with a canary of forty reads each second.
    pub fn new(policy: Policy) -> Pacing {
        Pacing {
            policy,
            card: None,
            canary: CanaryFile::default(),
            reads_per_s: None,
            canary_group: None,
            protect: None,
            skip_commits: false,
        }
    }

    /// Returns the goal that the policy keeps, if it has one.
    pub(crate) fn goal(&self) -> Option<Goal> {
        match self.policy {
            Policy::Adaptive(goal) => Some(goal),
            _ => None,
        }
    }
}

// Observes the devices, the canary and the foreground before anything is freed.
//
// It takes some 0.1 s to make a canary and to observe a foreground. A deletion of a tree can start
// that while it still surveys the tree ([`EarlyObservation`]). The survey itself reads
// directories, and its reads look like those of a foreground. So the observation counts only if no
// read at all reached the drives meanwhile; otherwise it starts over.

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
        let group = pacing.protect.clone().filter(|_| paced).map(Group::new);
        let made = matches!(pacing.canary, CanaryFile::Made);
        let mut anchor = file.filter(|_| made && deletes);
        if deletes && anchor.is_none() && stack.commit == Commit::File {
            anchor = nameless(on).ok().map(Arc::new);
        }
        Ok(Observation {
            monitor: Monitor::new(counters, canary, group, paced),
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
