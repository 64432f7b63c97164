//! How a throttle begins.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use pace::{Account, Pacer, Work};

use super::commits::Commits;
use super::decisions::Decisions;
use super::ledger::Ledger;
use super::observation::Observation;
use super::pacing::Pacing;
use super::space::SpaceWatch;
use super::stack::Stack;
use super::worker::Worker;
use super::{Throttle, shown};
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
        let failed = |action| {
            move |source: io::Error| ReclaimError::Io {
                action,
                path: shown(setup.on),
                source,
            }
        };
        let stack = setup.stack;
        let deletes = setup.purpose == Purpose::Delete;
        let goal = pacing.goal();
        let account = || Account::new(goal.as_ref(), setup.work.discards_twice);
        let on = setup.on.try_clone_to_owned();
        let mut throttle = Throttle {
            on: on.map_err(failed("keep open the directory"))?,
            pacer,
            goal,
            account: stack.is_paced().then(account),
            worker: Worker::start().map_err(failed("start a thread for"))?,
            monitor: observed.monitor,
            ledger: Ledger::new(setup.work.bytes, deletes && stack.discards_twice),
            space: SpaceWatch::new(deletes),
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
