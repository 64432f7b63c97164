//! Requests that only btrfs knows (`linux/btrfs.h`).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `BTRFS_IOC_SYNC`: `_IO(0x94, 8)`.
const SYNC: libc::Ioctl = 0x9408;

/// Commits the file system of a file or directory, as `syncfs` does, and wakes the kernel's cleaner
/// thread, which else sleeps for up to 30 s. The thread removes block groups that have become
/// empty, and the next commit discards them whole.
///
/// # Errors
/// `ENOTTY` where it isn't btrfs (or the file is open as a path alone: `EBADF`); else
/// what the commit says.
pub fn sync_and_clean(on: impl AsFd) -> io::Result<()> {
    // SAFETY: the request takes no argument.
    let done = unsafe { libc::ioctl(on.as_fd().as_raw_fd(), SYNC) };
    if done == 0 {
        return Ok(());
    }
    Err(io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_know_nothing_of_it() {
        let file = std::fs::File::open("/proc").unwrap();
        let refused = sync_and_clean(&file).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOTTY));
    }
}
