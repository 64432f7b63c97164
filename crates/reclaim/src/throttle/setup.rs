//! How a throttle begins.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

use linux::SysRoot;
use pace::{Account, Pacer, Policy, Work};
use ssd::Card;
use storage::Commit;
use storage::counter::Source;

use super::canary::{self, Canary};
use super::commits::Commits;
use super::counters::DeviceCounters;
use super::decisions::Decisions;
use super::ledger::Ledger;
use super::monitor::Monitor;
use super::options::{CanaryFile, ThrottleOptions};
use super::space::SpaceWatch;
use super::stack::Stack;
use super::worker::Worker;
use super::{Throttle, counters_failed, nameless, shown};
use crate::error::ReclaimError;

/// Why something is discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Files are freed, and the file system gains space. Too little space relaxes the goal. Once
    /// something is freed, no latency is refused any more.
    Delete,
    /// Free space is trimmed, and the file system gains none.
    Trim,
}

/// What a throttle drives, and how.
#[derive(Debug)]
pub struct Setup<'a> {
    /// Any directory of the file system.
    pub on: BorrowedFd<'a>,
    /// What its storage stack does with discards. Where it sends none, nothing is paced.
    pub stack: &'a Stack,
    /// Why something is discarded.
    pub purpose: Purpose,
    /// All that will be freed, shaped by [`Stack::shape`].
    pub work: &'a Work,
    /// How it is paced.
    pub policy: Policy,
    /// What is known about the drive.
    pub card: Option<&'a Card>,
    /// The canary.
    pub options: &'a ThrottleOptions,
}

/// A canary, the file it reads, and whether that file was made for it.
#[derive(Default)]
struct StartedCanary {
    canary: Option<Canary>,
    file: Option<Arc<File>>,
    made: bool,
    note: Option<String>,
}

impl Throttle {
    /// Starts a throttle. Returns it with notes for the user, in sentences.
    ///
    /// # Errors
    /// [`ReclaimError::Refused`] if a card says that the goal can't be met, or
    /// [`ReclaimError::Io`] if the devices can't be observed.
    pub fn start(setup: &Setup<'_>) -> Result<(Throttle, Vec<String>), ReclaimError> {
        let failed = |action| {
            move |source: io::Error| ReclaimError::Io {
                action,
                path: shown(setup.on),
                source,
            }
        };
        let stack = setup.stack;
        let paced = stack.is_paced();
        let deletes = setup.purpose == Purpose::Delete;
        let pacer = Pacer::new(setup.policy, setup.work, setup.card)?;
        let sources: &[Source] = if paced { &stack.sources } else { &[] };
        let counters = DeviceCounters::open(&SysRoot::host(), sources).map_err(counters_failed)?;
        let canary = match paced {
            true => start_canary(setup),
            false => StartedCanary::default(),
        };
        let uncounted = canary.file.clone().filter(|_| paced && stack.uncounted);
        let mut anchor = canary.file.filter(|_| canary.made && deletes);
        if deletes && anchor.is_none() && stack.commit == Commit::File {
            anchor = nameless(setup.on).ok().map(Arc::new);
        }
        let goal = match setup.policy {
            Policy::Adaptive(goal) => Some(goal),
            _ => None,
        };
        let account = || Account::new(goal.as_ref(), setup.work.discards_twice);
        let on = setup.on.try_clone_to_owned();
        let mut throttle = Throttle {
            on: on.map_err(failed("keep open the directory"))?,
            paced,
            pacer,
            goal,
            account: paced.then(account),
            worker: Worker::start().map_err(failed("start a thread for"))?,
            monitor: Monitor::new(counters, canary.canary, uncounted, paced),
            ledger: Ledger::new(setup.work.bytes, deletes && stack.discards_twice),
            space: SpaceWatch::new(deletes),
            commits: Commits::new(stack.commit, stack.frees_in_background, anchor),
            decisions: Decisions::default(),
            began: Instant::now(),
            reported: Instant::now(),
            urgent: false,
        };
        throttle.observe()?;
        Ok((throttle, canary.note.into_iter().collect()))
    }
}

fn start_canary(setup: &Setup<'_>) -> StartedCanary {
    let options = setup.options;
    let (file, made) = match &options.canary {
        CanaryFile::Without => return StartedCanary::default(),
        CanaryFile::Given(file) => (Ok(Arc::clone(file)), false),
        CanaryFile::Made => (canary::make(setup.on).map(Arc::new), true),
    };
    let file = match file {
        Ok(file) => file,
        Err(error) => return StartedCanary::without(None, made, &error),
    };
    match Canary::start(Arc::clone(&file), options) {
        Ok(canary) => StartedCanary {
            canary: Some(canary),
            file: Some(file),
            made,
            note: None,
        },
        Err(error) => StartedCanary::without(Some(file), made, &error),
    }
}

impl StartedCanary {
    fn without(file: Option<Arc<File>>, made: bool, why: &canary::CanaryError) -> StartedCanary {
        StartedCanary {
            canary: None,
            file,
            made,
            note: Some(format!(
                "there is no canary ({why}): what a read waits is not measured"
            )),
        }
    }
}
