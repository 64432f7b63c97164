//! Deletes as fast as the device allows without hurting anybody, and survives
//! every crash.
//!
//! `rm` frees all at once, and the discards that follow hold everybody up. Here
//! names vanish at once, by a rename into a trash directory beside them, and
//! their space is freed behind that, in pieces, as a controller of `pace`
//! allows. Whatever happens in between, the trash and its journal stay, and
//! a resume goes on.
//!
//! It must be safe for root over trees that others can write. So nothing here
//! resolves a path twice, and nothing follows a symbolic link: a directory is
//! opened once, and all below it is named relative to open directories.

#![forbid(unsafe_code)]

pub mod device;
mod error;
pub mod guard;
pub mod reclaimer;
mod rm;
pub mod throttle;
pub mod trim;
mod warning;
mod watch;
pub mod words;

pub use error::ReclaimError;
pub use reclaimer::PacedReclaimers;
pub use rm::{
    Asking, Intention, Options, Outcome, PreserveRoot, Problem, Question, Stopped, Talk, Where,
    intend, remove, resume,
};
pub use warning::Warning;
pub use watch::{Progress, Unwatched, Watch};
