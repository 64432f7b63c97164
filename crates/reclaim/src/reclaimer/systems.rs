//! Reclaimers that the kernel's statistics drive.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};

use pace::{Policy, Work};
use record::DiscardSetting;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use ssd::Card;
use storage::FileSystem;

use super::paced::SMALL;
use super::probe::try_latency;
use super::{Amount, PacedReclaimer, Reclaimer, Reclaimers};
use crate::ReclaimError;
use crate::event::Listener;
use crate::throttle::{EarlyObservation, Summary, ThrottleOptions};

/// Makes a [`PacedReclaimer`] for each file system.
#[derive(Debug)]
pub struct PacedReclaimers<'a> {
    /// How it is paced.
    pub policy: Policy,
    /// A card of the drive, if there is one.
    pub card: Option<&'a Card>,
    /// The options of the throttle.
    pub options: ThrottleOptions,
    /// By device.
    known: HashMap<u64, Known>,
    /// By device: what is observed before the work there is known.
    early: HashMap<u64, EarlyObservation>,
}

/// The facts about the file system of one device.
#[derive(Debug)]
struct Known {
    /// Why nothing is paced there, if so.
    unpaced: Option<String>,
    /// The file system discards long after, at a rate of its own.
    discards_later: bool,
}

impl Known {
    /// Looks at the file system of an open directory.
    fn of(on: BorrowedFd<'_>) -> Known {
        let path = format!("/proc/self/fd/{}", on.as_raw_fd());
        let found = match storage::describe(path) {
            Ok(found) => found,
            // What can't be examined is none of the file systems that send discards.
            Err(error) => return Known::unpaced(error.to_string()),
        };
        // What lies in a lower layer would be copied, all of it, before it could go.
        if FileSystem::named(&found.target) == FileSystem::Overlay {
            return Known::unpaced(
                "it is an overlay; what is deleted in its upper directory itself is paced"
                    .to_owned(),
            );
        }
        match found.target.discard {
            DiscardSetting::On => Known::paced(false),
            DiscardSetting::Async => Known::paced(true),
            _ if found.warnings.is_empty() => Known::unpaced("no discards are sent".to_owned()),
            _ => Known::unpaced(
                found
                    .warnings
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join("; "),
            ),
        }
    }

    fn paced(discards_later: bool) -> Known {
        Known {
            unpaced: None,
            discards_later,
        }
    }

    fn unpaced(why: String) -> Known {
        Known {
            unpaced: Some(why),
            discards_later: false,
        }
    }
}

impl<'a> PacedReclaimers<'a> {
    /// By this policy.
    pub fn new(
        policy: Policy,
        card: Option<&'a Card>,
        options: ThrottleOptions,
    ) -> PacedReclaimers<'a> {
        PacedReclaimers {
            policy,
            card,
            options,
            known: HashMap::new(),
            early: HashMap::new(),
        }
    }
}

impl PacedReclaimers<'_> {
    fn look(&mut self, on: BorrowedFd<'_>) -> Result<&Known, Errno> {
        let stat = rustix::fs::fstat(on)?;
        let known = self.known.entry(stat.st_dev);
        Ok(known.or_insert_with(|| Known::of(on)))
    }
}

impl Reclaimers for PacedReclaimers<'_> {
    fn paces(&mut self, on: BorrowedFd<'_>) -> bool {
        self.unpaced(on).is_none()
    }

    fn unpaced(&mut self, on: BorrowedFd<'_>) -> Option<String> {
        if self.policy == Policy::Burst {
            return Some("nothing is to be paced".to_owned());
        }
        match self.look(on) {
            Ok(known) => known.unpaced.clone(),
            Err(errno) => Some(format!("it can't be examined: {}", crate::words::of(errno))),
        }
    }

    /// btrfs with `discard=async` discards what small files held minutes later, with everything
    /// else that has become free beside them: pacing their names would not pace that. A
    /// chunk or a rate that the user asked for holds for them all the same.
    fn paces_small(&mut self, on: BorrowedFd<'_>) -> bool {
        let adapts = matches!(self.policy, Policy::Adaptive(_));
        let later = self.look(on).is_ok_and(|known| known.discards_later);
        self.paces(on) && !(adapts && later)
    }

    fn try_goal(
        &mut self,
        on: BorrowedFd<'_>,
        listener: &mut Listener<'_>,
    ) -> Result<(), ReclaimError> {
        match (self.policy, self.card) {
            // A card has told already.
            (Policy::Adaptive(goal), None) if self.paces(on) => match goal.max_latency {
                Some(asked) => try_latency(on, asked, &self.options, listener),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn anticipate(&mut self, on: BorrowedFd<'_>, amount: Amount, has_large: bool) {
        if amount.bytes < SMALL || !self.paces(on) || !has_large && !self.paces_small(on) {
            return;
        }
        let device = rustix::fs::fstat(on).map(|stat| stat.st_dev);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let own = rustix::fs::openat(on, c".", flags, Mode::empty());
        if let (Ok(device), Ok(own)) = (device, own) {
            let options = &self.options;
            let begin = || EarlyObservation::start(own, options.clone());
            self.early.entry(device).or_insert_with(begin);
        }
    }

    fn reclaimer(
        &mut self,
        on: BorrowedFd<'_>,
        amount: Amount,
        listener: &mut Listener<'_>,
    ) -> Result<Box<dyn Reclaimer>, ReclaimError> {
        let work = Work::new(amount.bytes, amount.extents);
        let device = rustix::fs::fstat(on).map(|stat| stat.st_dev);
        let early = device.ok().and_then(|device| self.early.remove(&device));
        let (policy, card) = (self.policy, self.card);
        let reclaimer =
            PacedReclaimer::observed(on, policy, card, &work, &self.options, early, listener)?;
        Ok(Box::new(reclaimer))
    }
}

impl Reclaimer for PacedReclaimer {
    fn empty(&mut self, file: &File, listener: &mut Listener<'_>) -> Result<(), ReclaimError> {
        PacedReclaimer::empty(self, file, listener).map(|_| ())
    }

    fn fits(&mut self, bytes: u64, listener: &mut Listener<'_>) -> Result<bool, ReclaimError> {
        PacedReclaimer::fits(self, bytes, listener)
    }

    fn allow(&mut self, bytes: u64, listener: &mut Listener<'_>) -> Result<(), ReclaimError> {
        PacedReclaimer::allow(self, bytes, listener)
    }

    fn freed(&mut self, bytes: u64) {
        PacedReclaimer::freed(self, bytes);
    }

    fn finish(
        self: Box<Self>,
        listener: &mut Listener<'_>,
    ) -> Result<Option<Summary>, ReclaimError> {
        PacedReclaimer::finish(*self, listener).map(Some)
    }
}
