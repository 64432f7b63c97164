//! A test as it was asked for.

use std::path::{Path, PathBuf};
use std::time::Duration;

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

impl Where {
    /// The directory or device that was named.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Where::Directory(path) | Where::Device { path, .. } => path,
        }
    }
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
    /// Unmount and mount the file system before the last reading.
    pub remount: bool,
    /// The file that remembers what was forced to the medium, for a later boot.
    pub state: Option<PathBuf>,
    /// Check what the state file says, and end.
    pub check: bool,
    /// A random number that marks this test's data.
    pub volume: u64,
}
