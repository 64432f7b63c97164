//! How what was written is made durable.

use std::fs::File;
use std::io;

use rustix::io::retry_on_intr;

/// The call that an application waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    /// Data and everything known of the file, its times among it.
    Fsync,
    /// Data, and of what is known of the file only what reading it needs, such as its length.
    Fdatasync,
}

impl Flush {
    /// Makes the call.
    pub(super) fn flush(self, file: &File) -> io::Result<()> {
        match self {
            Flush::Fsync => retry_on_intr(|| rustix::fs::fsync(file))?,
            Flush::Fdatasync => retry_on_intr(|| rustix::fs::fdatasync(file))?,
        }
        Ok(())
    }
}
