//! Walks a directory tree by open directories alone.
//!
//! Other processes may rename, replace and link names meanwhile. So each directory is opened once,
//! by its name in its open parent, never through a symbolic link. All names in it are relative to
//! it.
//!
//! At most [`walk::MOST_OPEN`] directories are open at a time. In deeper trees those near the top
//! are closed, and opened once more by `..` on the way back. That must lead to the same directory
//! (device and inode), or the walk gives up that branch.

mod batch;
mod trail;
mod walk;

#[cfg(test)]
mod tests;

pub(crate) use batch::{Entry, Kind};
pub(crate) use trail::Trail;
pub(crate) use walk::{At, Enter, Left, Root, Visit, walk};
