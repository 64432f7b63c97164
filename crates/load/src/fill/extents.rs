//! How many physically separate extents a file has: FIEMAP.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `FS_IOC_FIEMAP` of `include/uapi/linux/fs.h`.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
/// `FIEMAP_FLAG_SYNC`: delayed allocation is done first.
const FLAG_SYNC: u32 = 1;
/// `FIEMAP_EXTENT_LAST`.
const EXTENT_LAST: u32 = 1;
/// Extents asked for at once.
const BATCH: usize = 512;

/// `struct fiemap`, with room for its extents.
#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [Extent; BATCH],
}

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// Physically separate extents: neighbours on the device count as one.
pub(super) fn count(file: &File) -> io::Result<u64> {
    let mut spans = spans(file)?;
    spans.sort_unstable();
    let mut count = 0;
    let mut end = None;
    for (start, len) in spans {
        if end != Some(start) {
            count += 1;
        }
        end = Some(start + len);
    }
    Ok(count)
}

/// Start and length of every extent on the device.
fn spans(file: &File) -> io::Result<Vec<(u64, u64)>> {
    let mut spans = Vec::new();
    let mut map = Box::new(Fiemap {
        start: 0,
        length: u64::MAX,
        flags: FLAG_SYNC,
        mapped: 0,
        count: BATCH as u32,
        reserved: 0,
        extents: [Extent::default(); BATCH],
    });
    loop {
        // SAFETY: the kernel writes at most `count` extents behind the head.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut *map) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let found = &map.extents[..(map.mapped as usize).min(BATCH)];
        spans.extend(found.iter().map(|extent| (extent.physical, extent.length)));
        match found.last() {
            Some(last) if last.flags & EXTENT_LAST == 0 => {
                map.start = last.logical + last.length;
                map.length = u64::MAX - map.start;
            }
            _ => return Ok(spans),
        }
    }
}
