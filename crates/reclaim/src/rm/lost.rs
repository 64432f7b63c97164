//! Explains errors of a file system that can't be written to any more.
//!
//! When a disk fails, ext4 aborts its journal and then becomes read-only. A process that waits for
//! a commit gets an input/output error. A deletion meets one or both, and its message should name
//! both and the next step.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use linux::mounts::Mount;
use rustix::fs::StatVfsMountFlags;
use rustix::io::Errno;

use crate::ReclaimError;
use crate::error::words;
use crate::rm::trash;
use record::units::names::quoted;

/// How long to wait, after an input/output error, for the file system to become read-only. That
/// follows at once, but not in the same step.
const FOLLOWS: Duration = Duration::from_millis(200);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Returns the error as the user who asked for `argument` needs it. It says if the file system of
/// `on`, to which something was written before, has become read-only. It names no path inside a
/// trash.
pub(super) fn explained(error: ReclaimError, on: BorrowedFd<'_>, argument: &Path) -> ReclaimError {
    let errno = match &error {
        ReclaimError::Io { source, .. } | ReclaimError::Free { source, .. } => {
            Errno::from_io_error(source)
        }
        _ => None,
    };
    if errno == Some(Errno::IO) {
        wait_for_read_only(on);
    }
    match (read_only(on, errno, argument), error) {
        (Some(read_only), _) => read_only,
        (
            None,
            ReclaimError::Io {
                action,
                path,
                source,
            },
        ) if trash::is_within(&path) => ReclaimError::Io {
            action,
            path: argument.to_owned(),
            source,
        },
        (None, error) => error,
    }
}

/// Returns the error that ends the removal, if `errno` means that the file system has become
/// read-only.
pub(super) fn read_only(
    on: BorrowedFd<'_>,
    errno: Option<Errno>,
    argument: &Path,
) -> Option<ReclaimError> {
    let said = match errno? {
        Errno::ROFS if is_read_only(on) => words(&Errno::ROFS.into()),
        Errno::IO if is_read_only(on) => format!(
            "{}, then {}",
            words(&Errno::IO.into()),
            words(&Errno::ROFS.into())
        ),
        _ => return None,
    };
    Some(ReclaimError::ReadOnly {
        path: quoted(argument),
        said,
    })
}

fn wait_for_read_only(on: BorrowedFd<'_>) {
    let began = Instant::now();
    while !is_read_only(on) && began.elapsed() < FOLLOWS {
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Returns whether the mount or its file system is read-only. Since Linux 6.15 ext4 shows the
/// latter by an option alone (`EXT4_FLAGS_EMERGENCY_RO`).
fn is_read_only(on: BorrowedFd<'_>) -> bool {
    let flags = rustix::fs::fstatvfs(on).map(|found| found.f_flag);
    if flags.is_ok_and(|flags| flags.contains(StatVfsMountFlags::RDONLY)) {
        return true;
    }
    let mount = Mount::of(format!("/proc/self/fd/{}", on.as_raw_fd()));
    mount.is_ok_and(|mount| mount.super_options.iter().any(|o| o == "emergency_ro"))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsFd;
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn an_error_elsewhere_is_told_as_it_is_and_by_the_name_that_was_given() {
        let directory = tempfile::tempdir().unwrap();
        let on = File::open(directory.path()).unwrap();
        let said = |path: &str| {
            let error = ReclaimError::Io {
                action: "commit the file system of",
                path: PathBuf::from(path),
                source: io::Error::from(Errno::IO),
            };
            explained(error, on.as_fd(), Path::new("t")).to_string()
        };
        let inside = said("/mnt/.trimbench-trash-0123abcd/000001/d");
        assert!(
            inside.starts_with("cannot commit the file system of 't': "),
            "{inside}"
        );
        let outside = said("/mnt/d");
        assert!(
            outside.starts_with("cannot commit the file system of '/mnt/d': "),
            "{outside}"
        );
        assert!(read_only(on.as_fd(), Some(Errno::ROFS), Path::new("t")).is_none());
    }
}
