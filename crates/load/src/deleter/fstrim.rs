//! `FITRIM`: discards all free space of a file system.
//!
//! One call over all of it, as fstrim(8) and the weekly `fstrim.timer` make it, because that is
//! what is under test. Windows would show progress and could be stopped, but would be another load.
//! ext4 would do the same. XFS (Linux 6.12) would force its log for every window, and btrfs would
//! trim all of its unallocated space each time.

use std::fs::File;
use std::io;
use std::sync::Arc;

use linux::trim::{Range, fitrim};
use serde::Serialize;

use super::progress::Progress;
use super::spawn;
use super::spec::{Files, How, Way};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static HOW: How = How {
    name: "fstrim",
    about: "delete before the run, and trim the whole file system in it (root only)",
    of: |_, _| Ok(Fstrim.into()),
    discards: true,
    ..How::FILES
};

/// `FITRIM` of a whole file system, in one call as fstrim(8) does it. The files are deleted, and that
/// is committed, while preparing: what is measured is the trimming.
///
/// It frees no space that wasn't free, but discards all of it at the device. Bytes are counted
/// when the call returns. A stop can't interrupt it: the deletion is abandoned then, and the
/// kernel gives up when the process ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fstrim;

impl Way for Fstrim {
    fn start(self, files: Files, clock: Clock) -> Result<Arc<Progress>, LoadError> {
        let dir = files.dir;
        let opened = File::open(&dir).map_err(LoadError::file(&dir, "open it"))?;
        let progress = Progress::new(clock, 1, 0, 0);
        spawn(progress, move |progress, call| {
            if progress.stopping() {
                return;
            }
            match call.make(0, || trim(&opened)) {
                Ok(bytes) => progress.add_freed(bytes),
                Err(error) => progress.fail(&dir, "trim its file system", &explained(error)),
            }
        })
    }
}

/// Bytes trimmed.
///
/// XFS gives back the length asked for, cut to its size, instead of what it
/// trimmed (Linux 6.12 `xfs_ioc_trim`); no more than what is free can have been.
fn trim(dir: &File) -> io::Result<u64> {
    let free = rustix::fs::fstatvfs(dir).map_or(u64::MAX, |stat| stat.f_bfree * stat.f_frsize);
    let whole = Range {
        start: 0,
        length: u64::MAX,
        minimum: 0,
    };
    Ok(fitrim(dir, whole)?.min(free))
}

fn explained(error: io::Error) -> String {
    let words = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "it takes CAP_SYS_ADMIN; run as root",
        Some(libc::EOPNOTSUPP) => {
            "its device takes no discards; choose another one, or let discards through \
             (dm-crypt: allow_discards)"
        }
        Some(libc::ENOTTY) => {
            "this kind of file system can't be trimmed; choose ext4, XFS or btrfs"
        }
        Some(libc::EROFS) => "it is read-only; remount it for writing",
        _ => return error.to_string(),
    };
    format!("{error}: {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_refuses_is_told_with_what_to_do() {
        let told = |errno| explained(io::Error::from_raw_os_error(errno));
        assert!(told(libc::EPERM).contains("run as root"));
        assert!(told(libc::EOPNOTSUPP).contains("takes no discards"));
        assert!(told(libc::EIO).contains("Input/output error"));
    }
}
