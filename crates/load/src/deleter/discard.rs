//! `BLKDISCARD` on a raw device, in steps.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;

use super::progress::Progress;
use super::{Method, refuse, spawn};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static METHOD: Method = Method {
    name: "discard",
    about: "discard a raw device in steps, as blkdiscard and mkfs do",
    continuous: false,
};

/// The range to discard.
#[derive(Debug)]
pub(super) struct Range {
    pub(super) device: Arc<File>,
    pub(super) path: PathBuf,
    pub(super) start: u64,
    pub(super) len: u64,
    pub(super) step_bytes: NonZeroU64,
}

/// `_IO(0x12, 119)` of `include/uapi/linux/fs.h`.
const BLKDISCARD: libc::Ioctl = 0x1277;

pub(super) fn check(start: u64, len: u64, step_bytes: u64) -> Result<(), LoadError> {
    let aligned = [start, len, step_bytes];
    if len == 0 || aligned.iter().any(|bytes| !bytes.is_multiple_of(512)) {
        return Err(refuse(format!(
            "can't discard {len} bytes from {start} in steps of {step_bytes}: \
             all must be multiples of 512"
        )));
    }
    Ok(())
}

pub(super) fn start(range: Range, clock: Clock) -> Result<Arc<Progress>, LoadError> {
    let step = range.step_bytes.get();
    let progress = Progress::new(clock, 1, range.len, 0);
    spawn(&progress, move |progress, call| {
        let mut done = 0;
        while done < range.len && !progress.stopping() {
            let bytes = step.min(range.len - done);
            let span = [range.start + done, bytes];
            if let Err(error) = call.make(bytes, || discard(&range.device, &span)) {
                // What fails once fails always: unsupported, read-only, gone.
                progress.fail(&range.path, "discard", &error);
                return;
            }
            done += bytes;
        }
    })?;
    Ok(progress)
}

fn discard(device: &File, span: &[u64; 2]) -> io::Result<()> {
    // SAFETY: the ioctl reads two 64-bit numbers, start and length.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), BLKDISCARD, span.as_ptr()) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
