//! Whether TRIM ever destroys data here, or fails to hide them.
//!
//! Several threads write blocks that say what they are, overwrite, cut, punch, remove and discard
//! them, and read them back past the page cache. Each sector that is not as it was written becomes
//! evidence: where it lies, what it holds, which discard was near, and whether a second read and
//! another write help. From that follows the fault that explains it best.
//!
//! | module | question it answers |
//! |---|---|
//! | [`block`] | what does a sector say of itself? |
//! | [`pattern`] | what is wrong with a sector? |
//! | [`discards`] | which discards were near? |
//! | [`cause`] | which fault explains the damage, and which all of it? |
//! | [`finding`] | how is it reported? |
//! | [`report`] | what came of a test? |
//!
//! The first five are pure: they hold no file and no clock.

pub mod block;
pub mod cause;
mod check;
pub mod discards;
pub mod finding;
mod home;
mod joined;
pub mod pattern;
mod place;
pub mod report;
mod run;
mod shared;
mod slot;
mod stage;
mod worker;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use linux::owner::OwnerError;
use record::units::names::shown;
use storage::TargetError;
use storage::raw::RawError;

pub use report::{Outcome, Report};
pub use run::{Tick, verify};
pub use stage::Progress;

// Why nothing could be verified.

/// Why a test could not begin or go on.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum VerifyError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Raw(#[from] RawError),
    #[error(transparent)]
    Owner(#[from] OwnerError),
    #[error("cannot use {}: {why}", shown(path))]
    Home { path: PathBuf, why: String },
    #[error("{}: {why}", shown(path))]
    Place { path: PathBuf, why: String },
    #[error("cannot {what} {}: {source}", shown(path))]
    Io {
        path: PathBuf,
        what: &'static str,
        source: io::Error,
    },
    #[error("{0}")]
    Failed(String),
}

impl VerifyError {
    /// Whether something else was to be asked for.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            VerifyError::Target(_) | VerifyError::Raw(_) | VerifyError::Place { .. }
        )
    }
}

// A test as it was asked for.

/// Where a test works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// In a directory of its own below this one.
    Directory(PathBuf),
    /// On a raw device, whose data it destroys.
    Device {
        /// The device.
        path: PathBuf,
        /// Whether known data on it, such as a file system, may be destroyed.
        force: bool,
    },
}

/// A test as it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Where.
    pub place: Where,
    /// How long data are written and discarded. Reading all of it back comes after that.
    pub duration: Duration,
    /// Bytes that are tested; `None`: 1 GiB, and at most a quarter of what may be written.
    pub size_bytes: Option<u64>,
    /// The most bytes written and read in a second; `None`: as many as possible.
    pub rate: Option<u64>,
    /// Threads that write and read.
    pub workers: u32,
    /// Trim the file system in a loop (`FITRIM`).
    pub fstrim: bool,
    /// A random number that marks this test's data.
    pub volume: u64,
}
