//! How many pieces a file is in: each becomes a discard of its own.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::FileError;

/// The head of `struct fiemap` (Linux, include/uapi/linux/fiemap.h), without
/// room for extents: with a count of 0 the kernel only counts them.
#[repr(C)]
#[derive(Default)]
pub(super) struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
}

impl Fiemap {
    /// Asks for at most so many extents, whose room follows the head.
    pub(super) fn asking(start: u64, length: u64, extents: u32) -> Fiemap {
        Fiemap {
            start,
            length,
            extent_count: extents,
            ..Fiemap::default()
        }
    }

    /// The number of extents that the kernel returned.
    pub(super) fn mapped(&self) -> usize {
        self.mapped_extents as usize
    }
}

/// `_IOWR('f', 11, struct fiemap)`.
pub(super) const FS_IOC_FIEMAP: u32 = 0xc020_660b;

/// Count of a file's extents, after writing out what isn't allocated yet.
///
/// # Errors
/// [`FileError::Extents`] where the file system doesn't tell (tmpfs, FUSE, network).
pub fn extents(file: &File) -> Result<u64, FileError> {
    // Instead of FIEMAP_FLAG_SYNC: some kernels ignore that when only counting.
    file.sync_data().map_err(FileError::Extents)?;
    let mut map = Fiemap {
        length: u64::MAX,
        ..Fiemap::default()
    };
    // SAFETY: the request is FIEMAP's, `map` has its layout and lives through
    // the call, and an extent count of 0 tells the kernel that nothing follows it.
    let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut map) };
    if result == -1 {
        return Err(FileError::Extents(io::Error::last_os_error()));
    }
    Ok(u64::from(map.mapped_extents))
}
