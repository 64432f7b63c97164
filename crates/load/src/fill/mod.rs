//! Making the files: incompressible data at full device speed.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::error::LoadError;

/// What to make.
#[derive(Debug, Clone)]
pub struct FillSpec {
    /// The file, opened for reading and writing; usually new and empty.
    pub file: Arc<File>,
    /// Its path, for messages.
    pub path: PathBuf,
    /// First byte to write: 0 in a file of our own; on a raw device a multiple of 1 MiB.
    pub start: u64,
    /// Bytes to write. A file's length afterwards is `start + len`.
    pub len: u64,
    /// Whether to write past the page cache. Where that isn't possible the
    /// page cache is used, and a note says so.
    pub direct: bool,
    /// Fragments the file on purpose: extents of this many bytes (a multiple
    /// of 4 KiB), none of which touches the next, so that freeing them gives discards of that size.
    pub extent_bytes: Option<u64>,
    /// Seed of the data.
    pub seed: u64,
}

/// How far a fill is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FillProgress {
    /// Bytes written so far.
    pub written_bytes: u64,
    /// Bytes to be written in all.
    pub total_bytes: u64,
}

/// What a fill did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FillReport {
    /// Bytes written.
    pub written_bytes: u64,
    /// Whether it was stopped before the end.
    pub stopped: bool,
    /// Physical extents of the file, where the file system tells.
    pub extents: Option<u64>,
    /// What isn't as asked, in words.
    pub notes: Vec<String>,
}

/// A fill under way, in threads of its own.
#[derive(Debug)]
pub struct Fill {}

impl Fill {
    /// Begins.
    ///
    /// # Errors
    /// [`LoadError::Spec`] and [`LoadError::System`]; the rest comes from [`Fill::wait`].
    pub fn start(_spec: FillSpec) -> Result<Fill, LoadError> {
        unimplemented!()
    }

    /// How far it is. Never waits.
    pub fn progress(&self) -> FillProgress {
        unimplemented!()
    }

    /// Tells it to stop after what is in flight. Returns at once.
    pub fn stop(&self) {
        unimplemented!()
    }

    /// Waits at most `timeout` for the end; true when it has ended.
    pub fn wait_timeout(&self, _timeout: Duration) -> bool {
        unimplemented!()
    }

    /// Waits for the end. Data and sizes are on the device then (fsync).
    ///
    /// # Errors
    /// [`LoadError::NoSpace`] when the disk is full, [`LoadError::File`] otherwise.
    pub fn wait(self) -> Result<FillReport, LoadError> {
        unimplemented!()
    }
}
