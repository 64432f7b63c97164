//! Walks a directory tree by open directories alone.
//!
//! Others may rename, replace and link things while we walk. So each directory
//! is opened once, by its name in its open parent, never through a symbolic
//! link; all in it is named relative to it. No more than [`walk::MOST_OPEN`] are open
//! at a time: in deeper trees those near the top are closed, and opened again by
//! `..` on the way back, which must lead to the very same directory (device and
//! inode), or the walk gives up that branch.

mod batch;
mod trail;
mod walk;

#[cfg(test)]
mod tests;

pub(crate) use batch::{Entry, Kind};
pub(crate) use trail::Trail;
pub(crate) use walk::{At, Enter, Left, Root, Visit, walk};
