//! File systems on loop devices that nobody may hold at a test's end.

use std::ops::Deref;
use std::path::PathBuf;

use testkit::loop_fs::{Fs, unmount};

/// A file system in memory, unmounted when dropped.
#[derive(Debug)]
pub(crate) struct LoopFs(testkit::loop_fs::LoopFs);

impl LoopFs {
    /// `None`, after printing the reason, where this machine or user can't make one.
    pub(crate) fn new(kind: &str, options: &str) -> Option<LoopFs> {
        testkit::loop_fs::LoopFs::or_skip(Fs::named(kind), options, 1024).map(LoopFs)
    }

    /// The mount point.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }
}

impl Deref for LoopFs {
    type Target = testkit::loop_fs::LoopFs;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Drop for LoopFs {
    fn drop(&mut self) {
        // Whatever holds the file system after a test's end is a bug of what was tested.
        if !std::thread::panicking() {
            unmount(&self.0.path().to_string_lossy());
        }
    }
}
