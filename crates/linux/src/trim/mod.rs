//! Telling the device of what is free on a file system (`FITRIM`), and where a
//! file system may be cut into windows for it.

mod free;
mod unused;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

pub use free::FreeSpace;
pub use unused::{Chunk, Unused, chunks, placed_chunks};

/// `FITRIM`, `_IOWR('X', 121, struct fstrim_range)` of `include/uapi/linux/fs.h`.
const FITRIM: libc::Ioctl = 0xC018_5879_u32 as libc::Ioctl;

/// `struct fstrim_range`: what is to be trimmed, in bytes of the file system's
/// own address space (of btrfs its logical one).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Range {
    /// The first byte.
    pub start: u64,
    /// How many; `u64::MAX`: to the end.
    pub length: u64,
    /// Free extents shorter than this are left alone.
    pub minimum: u64,
}

/// Trims, and returns when the device has done it; how many bytes, as the file
/// system says. XFS says how long the range was (Linux 6.12 `xfs_ioc_trim`).
///
/// A fatal signal ends it early: ext4 looks for one after each free extent, XFS
/// and btrfs after each batch of them. The discards that were sent are done.
///
/// # Errors
/// The kernel's error: `EPERM` without CAP_SYS_ADMIN, `EOPNOTSUPP` or `ENOTTY` where nothing can be
/// trimmed, `EINVAL` for a range beyond the file system.
pub fn fitrim(directory: &File, range: Range) -> io::Result<u64> {
    let mut range = range;
    // SAFETY: the ioctl reads and writes one such structure, and keeps no
    // pointer to it.
    let result = unsafe { libc::ioctl(directory.as_raw_fd(), FITRIM, &raw mut range) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(range.length)
}

/// As `blkid` writes it; `None` of one that is all zeros.
pub fn written(uuid: &[u8; 16]) -> Option<String> {
    if *uuid == [0; 16] {
        return None;
    }
    let mut text = String::with_capacity(36);
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text += &format!("{byte:02x}");
    }
    Some(text)
}

/// `FS_IOC_GETFSUUID`, `_IOR(0x15, 0, struct fsuuid2)` of `include/uapi/linux/fs.h`
/// (Linux ≥ 6.9).
const GETFSUUID: libc::Ioctl = 0x8011_1500_u32 as libc::Ioctl;

/// The UUID of a mounted file system, as `blkid` writes it; `None` where the kernel (before
/// 6.9) or the file system doesn't tell.
pub fn uuid(directory: impl AsFd) -> Option<String> {
    // The length, then the bytes.
    let mut found = [0u8; 17];
    // SAFETY: the ioctl writes one structure of this size, and keeps no pointer
    // to it.
    let result =
        unsafe { libc::ioctl(directory.as_fd().as_raw_fd(), GETFSUUID, found.as_mut_ptr()) };
    if result < 0 || found[0] != 16 {
        return None;
    }
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&found[1..]);
    written(&uuid)
}

/// Whether an error of [`fitrim`] says that nothing can be trimmed there, as
/// fstrim(8) understands it.
pub fn is_unsupported(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EBADF | libc::ENOTTY | libc::EOPNOTSUPP | libc::ENOSYS)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_discards_says_so() {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let open = File::open(directory.path()).unwrap();
        let range = Range {
            start: 0,
            length: u64::MAX,
            minimum: 0,
        };
        let error = fitrim(&open, range).unwrap_err();
        let permitted = rustix::process::geteuid().is_root();
        assert!(is_unsupported(&error) || !permitted, "{error}");
        assert!(!is_unsupported(&io::Error::from_raw_os_error(libc::EIO)));
    }
}
