//! Reclaimers free space: paced, or at once.
//!
//! Discards follow freed space, and when they come depends on the file system:
//!
//! | file system | when its discards come | what the reclaimer does |
//! |---|---|---|
//! | ext4 without a journal | within the call that frees | nothing more: the discards are done when the call returns |
//! | ext4, XFS | after the commit of the journal | it forces a commit after each piece; then the devices' statistics show them |
//! | XFS, of unlinked names | after a commit that follows the background work in which their space is freed | it repeats the commit until the debt is paid |
//! | btrfs, `discard=sync` | within the commit of the transaction | it commits the whole file system after each piece, which ends at an extent's boundary: part of an extent frees nothing |
//! | btrfs, of block groups (1 GiB) that have become empty | whole, up to a minute later, all at once | it wakes the cleaner thread with each commit: then they come one by one with the next |
//! | btrfs, `discard=async`; f2fs | long after, by 120 s on btrfs | it doesn't wait for the debt and holds a rate |
//! | any, mounted without discard, or on devices that take none | never | it paces nothing and prints a note |

mod file;
mod paced;
mod pieces;
mod probe;
mod systems;

use std::fs::File;
use std::os::fd::BorrowedFd;

use crate::ReclaimError;
use crate::event::Listener;
use crate::throttle::Summary;

pub use paced::{Emptied, PacedReclaimer};
pub use systems::PacedReclaimers;

/// Frees space of one file system.
pub trait Reclaimer {
    /// Empties a file that no process needs any more. The caller then removes its name.
    fn empty(&mut self, file: &File, listener: &mut Listener<'_>) -> Result<(), ReclaimError>;
    /// Returns whether a file that holds `bytes` fits into the present piece, or into a new one,
    /// for which it waits. Then the caller may remove the file as a small one.
    fn fits(&mut self, bytes: u64, listener: &mut Listener<'_>) -> Result<bool, ReclaimError>;
    /// Waits until the caller may remove a small file that holds `bytes`.
    fn allow(&mut self, bytes: u64, listener: &mut Listener<'_>) -> Result<(), ReclaimError>;
    /// The caller reports that it has freed so many bytes by unlinking.
    fn freed(&mut self, bytes: u64);
    /// Waits until all that was freed has been discarded, and returns what the deletion came
    /// to; `None` where nothing is measured.
    fn finish(
        self: Box<Self>,
        listener: &mut Listener<'_>,
    ) -> Result<Option<Summary>, ReclaimError>;
}

/// The amount to be freed on one file system, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes, by allocated blocks.
    pub bytes: u64,
    /// The fewest extents that they can lie in.
    pub extents: u64,
}

/// Makes reclaimers, one for each file system.
pub trait Reclaimers {
    /// Returns whether freeing on the file system of `on` is to be paced at all. Where it isn't,
    /// the remover doesn't look how much a file holds.
    fn paces(&mut self, on: BorrowedFd<'_>) -> bool;
    /// Returns whether small files are to be paced there, and not only large ones.
    fn paces_small(&mut self, on: BorrowedFd<'_>) -> bool;
    /// Returns why freeing there isn't paced, in a sentence; `None` where it is.
    fn unpaced(&mut self, on: BorrowedFd<'_>) -> Option<String>;
    /// Tries whether the goal can be met there, before anything is changed: with files of its
    /// own, where that tells.
    ///
    /// # Errors
    /// [`ReclaimError::Refused`] if it can't be.
    fn try_goal(
        &mut self,
        _on: BorrowedFd<'_>,
        _listener: &mut Listener<'_>,
    ) -> Result<(), ReclaimError> {
        Ok(())
    }
    /// Announces that at least `amount` will be freed there, and whether a large file is in it.
    /// A reclaimer may begin to observe the devices while the caller still looks for more.
    fn anticipate(&mut self, _on: BorrowedFd<'_>, _amount: Amount, _has_large: bool) {}
    /// Makes a reclaimer for so much there.
    fn reclaimer(
        &mut self,
        on: BorrowedFd<'_>,
        amount: Amount,
        listener: &mut Listener<'_>,
    ) -> Result<Box<dyn Reclaimer>, ReclaimError>;
}
