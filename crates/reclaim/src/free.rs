//! What frees space: paced, or at once.

use std::fs::File;
use std::os::fd::BorrowedFd;

use crate::freer::Felt;
use crate::{ReclaimError, Watch};

/// Frees space of one file system.
pub trait Free {
    /// Empties a file that nobody needs any more, whose name the caller then removes.
    fn empty(&mut self, file: &File, watch: &mut dyn Watch) -> Result<(), ReclaimError>;
    /// Whether a file that holds `bytes` fits into the present piece, or into a new one,
    /// which is waited for: then it may be removed as small files are.
    fn fits(&mut self, bytes: u64, watch: &mut dyn Watch) -> Result<bool, ReclaimError>;
    /// Waits until the caller may remove a small file that holds `bytes`.
    fn allow(&mut self, bytes: u64, watch: &mut dyn Watch) -> Result<(), ReclaimError>;
    /// The caller has freed so many bytes.
    fn freed(&mut self, bytes: u64);
    /// Waits until all that was freed has been discarded, and says what others felt.
    fn finish(self: Box<Self>, watch: &mut dyn Watch) -> Result<Option<Felt>, ReclaimError>;
}

/// What is to be freed on one file system, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes, by allocated blocks.
    pub bytes: u64,
    /// The fewest extents that they can lie in.
    pub extents: u64,
}

/// Where freers come from.
pub trait Freers {
    /// Whether freeing on the file system of `on` is to be paced at all. Where it
    /// isn't, nobody looks how much a file holds.
    fn paces(&mut self, on: BorrowedFd<'_>) -> bool;
    /// Whether small files are to be paced there, too, not only large ones.
    fn paces_small(&mut self, on: BorrowedFd<'_>) -> bool;
    /// Why freeing there isn't paced, in a sentence; `None` where it is.
    fn unpaced(&mut self, on: BorrowedFd<'_>) -> Option<String>;
    /// Tries whether the goal can be met there, before anything is changed: with files of its
    /// own, where that tells.
    ///
    /// # Errors
    /// [`ReclaimError::Refused`] if it can't be.
    fn try_goal(
        &mut self,
        _on: BorrowedFd<'_>,
        _watch: &mut dyn Watch,
    ) -> Result<(), ReclaimError> {
        Ok(())
    }
    /// One that frees so much there, and what deserves saying about it.
    fn freer(
        &mut self,
        on: BorrowedFd<'_>,
        amount: Amount,
    ) -> Result<(Box<dyn Free>, Vec<String>), ReclaimError>;
}
