//! Freers that the kernel's statistics drive.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};

use pace::{Policy, Work};
use ssd::Card;
use timeline::record::DiscardSetting;

use crate::free::{Amount, Free, Freers};
use crate::freer::{Felt, Freer, FreerOptions};
use crate::{ReclaimError, Watch};

/// Makes a [`Freer`] for each file system.
#[derive(Debug)]
pub struct Kernel<'a> {
    /// How it is paced.
    pub policy: Policy,
    /// What is known about the drive.
    pub card: Option<&'a Card>,
    /// What can be chosen.
    pub options: FreerOptions,
    /// By device: why nothing is paced there, if so.
    known: HashMap<u64, Option<String>>,
}

impl<'a> Kernel<'a> {
    /// By this policy.
    pub fn new(policy: Policy, card: Option<&'a Card>, options: FreerOptions) -> Kernel<'a> {
        Kernel {
            policy,
            card,
            options,
            known: HashMap::new(),
        }
    }
}

impl Freers for Kernel<'_> {
    fn paces(&mut self, on: BorrowedFd<'_>) -> bool {
        self.unpaced(on).is_none()
    }

    fn unpaced(&mut self, on: BorrowedFd<'_>) -> Option<String> {
        if self.policy == Policy::Burst {
            return Some("nothing is to be paced".to_owned());
        }
        let stat = match rustix::fs::fstat(on) {
            Ok(stat) => stat,
            Err(errno) => {
                return Some(format!("it can't be examined: {}", crate::words::of(errno)));
            }
        };
        let why = self.known.entry(stat.st_dev).or_insert_with(|| {
            let path = format!("/proc/self/fd/{}", on.as_raw_fd());
            match linux::target::describe(path) {
                // What lies in a lower layer would be copied, all of it, before it could go.
                Ok(found) if found.target.fs.as_deref() == Some("overlay") => Some(
                    "it is an overlay; what is deleted in its upper directory itself is paced"
                        .to_owned(),
                ),
                Ok(found) => match found.target.discard {
                    DiscardSetting::On | DiscardSetting::Async => None,
                    _ if found.notes.is_empty() => Some("no discards are sent".to_owned()),
                    _ => Some(found.notes.join("; ")),
                },
                // What can't be examined is none of the file systems that send discards.
                Err(error) => Some(error.to_string()),
            }
        });
        why.clone()
    }

    fn freer(
        &mut self,
        on: BorrowedFd<'_>,
        amount: Amount,
    ) -> Result<(Box<dyn Free>, Vec<String>), ReclaimError> {
        let work = Work::new(amount.bytes, amount.extents);
        let freer = Freer::new(on, self.policy, self.card, &work, &self.options)?;
        let notes = freer.notes().to_vec();
        Ok((Box::new(freer), notes))
    }
}

impl Free for Freer {
    fn empty(&mut self, file: &File, watch: &mut dyn Watch) -> Result<(), ReclaimError> {
        Freer::empty(self, file, watch).map(|_| ())
    }

    fn allow(&mut self, bytes: u64, watch: &mut dyn Watch) -> Result<u64, ReclaimError> {
        Freer::allow(self, bytes, watch)
    }

    fn freed(&mut self, bytes: u64) {
        Freer::freed(self, bytes);
    }

    fn finish(self: Box<Self>, watch: &mut dyn Watch) -> Result<Option<Felt>, ReclaimError> {
        Freer::finish(*self, watch).map(Some)
    }
}
