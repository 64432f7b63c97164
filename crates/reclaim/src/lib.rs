//! Deletes as fast as the device allows without slowing down the foreground, and survives every
//! crash.
//!
//! `rm` frees all space at once, and the discards that follow keep every reader and writer waiting.
//! Here a rename into a trash directory beside them removes the names at once. Their space is then
//! freed in pieces, as a controller of `pace` allows. Whatever ends the deletion, the trash and its
//! journal stay, and a resume continues it. Machines that share a drive trim it one after the other,
//! as long as each holds the [`lease`].
//!
//! It must be safe for root over trees in which other users can write. So nothing here resolves a
//! path twice, and nothing follows a symbolic link. Each directory is opened once, and all names
//! below it are relative to open directories.

#![forbid(unsafe_code)]

pub mod device;
mod directory;
mod error;
mod event;
pub mod guard;
pub mod lease;
mod rm;
pub mod throttle;
pub mod trim;
mod volume;

pub use error::{ReclaimError, Result};
pub use event::{Event, Listener, Looked, Problem, Progress, Question, Reply, silent};
pub use rm::{
    Asking, Intention, Options, Outcome, PreserveRoot, Spared, Stays, Stopped, Volumes, Where, Why,
    intend, left_elsewhere, remove, resume,
};
pub use volume::{Cleaned, Emptied, Volume};
