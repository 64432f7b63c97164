//! How a throttle begins.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use pace::{Account, Pacer, Policy, Work};
use ssd::Card;

use super::commits::Commits;
use super::decisions::Decisions;
use super::ledger::Ledger;
use super::observation::Observation;
use super::options::ThrottleOptions;
use super::space::SpaceWatch;
use super::stack::Stack;
use super::worker::Worker;
use super::{Throttle, shown};
use crate::error::ReclaimError;
use crate::event::{Event, Listener, Reporter};

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
    pub policy: Policy,
    /// A card of the drive, if there is one.
    pub card: Option<&'a Card>,
    /// The canary.
    pub options: &'a ThrottleOptions,
}

impl Throttle {
    /// Starts a throttle.
    ///
    /// # Errors
    /// [`ReclaimError::Refused`] if a card says that the goal can't be met, or
    /// [`ReclaimError::Io`] if the devices can't be observed.
    pub fn start(setup: &Setup<'_>, listener: &mut Listener<'_>) -> Result<Throttle, ReclaimError> {
        let pacer = Pacer::new(setup.policy, setup.work, setup.card)?;
        let observed = Observation::start(setup.on, setup.stack, setup.purpose, setup.options)?;
        Throttle::begin(setup, pacer, observed, listener)
    }

    /// Starts a throttle with what was observed before its work was known.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(crate) fn start_with(
        setup: &Setup<'_>,
        mut observed: Observation,
        listener: &mut Listener<'_>,
    ) -> Result<Throttle, ReclaimError> {
        let pacer = Pacer::new(setup.policy, setup.work, setup.card)?;
        observed.leave_out_reads()?;
        Throttle::begin(setup, pacer, observed, listener)
    }

    fn begin(
        setup: &Setup<'_>,
        pacer: Pacer,
        observed: Observation,
        listener: &mut Listener<'_>,
    ) -> Result<Throttle, ReclaimError> {
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
