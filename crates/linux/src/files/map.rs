//! Where a file's bytes lie: `FIEMAP`, a stretch of the file at a time.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::FileError;

/// Extents asked for in one call: 14 KiB of them.
const BATCH: usize = 256;

/// One extent of a file: bytes that lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileExtent {
    /// The first byte's offset in the file.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// The first byte's offset on the file system; means nothing where it
    /// isn't on disk.
    pub physical: u64,
    /// Another file or a snapshot has it too: freeing it here frees nothing.
    pub shared: bool,
    /// It has a place on disk. Data that are still to be written, or lie in the inode, have none.
    pub on_disk: bool,
    /// Its data lie in the inode or in the file system's tree: it has no place of its own.
    pub inline: bool,
    /// It has a place on disk, and nothing was ever written there: preallocated.
    pub unwritten: bool,
}

impl FileExtent {
    /// The offset behind its last byte.
    pub fn end(&self) -> u64 {
        self.start.saturating_add(self.length)
    }
}

/// `struct fiemap_extent` (Linux, include/uapi/linux/fiemap.h).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

const LAST: u32 = 0x1;

const UNKNOWN: u32 = 0x2;

const DELALLOC: u32 = 0x4;

const INLINE: u32 = 0x200;

const SHARED: u32 = 0x2000;

const UNWRITTEN: u32 = 0x800;

/// `_IOWR('f', 11, struct fiemap)`.
const FS_IOC_FIEMAP: u32 = 0xc020_660b;

/// `struct fiemap` (Linux, include/uapi/linux/fiemap.h) with room for extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [RawExtent; BATCH],
}

/// The extents that have bytes in `start..end`, in order, as the file system
/// tells them: the first and the last may reach over the edges. Nothing is
/// written out for it. Bytes beyond the file's length count where they are
/// allocated.
///
/// # Errors
/// [`FileError::Extents`] where the file system doesn't tell (tmpfs, FUSE, network).
pub fn extents_within(file: &File, start: u64, end: u64) -> Result<Vec<FileExtent>, FileError> {
    let mut found: Vec<FileExtent> = Vec::new();
    let mut at = start;
    while at < end {
        let mut request = Request {
            start: at,
            length: end - at,
            flags: 0,
            mapped: 0,
            count: BATCH as u32,
            reserved: 0,
            extents: [RawExtent::default(); BATCH],
        };
        // SAFETY: the request is FIEMAP's; `request` has room for as many extents as it says, and
        // lives through the call.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP as _, &raw mut request) };
        if result == -1 {
            return Err(FileError::Extents(io::Error::last_os_error()));
        }
        let extents = &request.extents[..(request.mapped as usize).min(BATCH)];
        let before = at;
        for raw in extents {
            let extent = FileExtent {
                start: raw.logical,
                length: raw.length,
                physical: raw.physical,
                shared: raw.flags & SHARED != 0,
                on_disk: raw.flags & (UNKNOWN | DELALLOC | INLINE) == 0,
                inline: raw.flags & INLINE != 0,
                unwritten: raw.flags & UNWRITTEN != 0,
            };
            at = at.max(extent.end());
            if extent.end() > start && extent.start < end {
                found.push(extent);
            }
        }
        let last = extents.last().is_none_or(|raw| raw.flags & LAST != 0);
        // A file that changes meanwhile mustn't keep us here.
        if last || extents.len() < BATCH || at == before {
            break;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_sparse_file_has_extents_where_it_was_written() {
        let file = tempfile::tempfile().unwrap();
        let block = vec![7u8; 64 << 10];
        for at in [0_u64, 1 << 20, 8 << 20] {
            file.write_all_at(&block, at).unwrap();
        }
        file.sync_all().unwrap();
        let all = match extents_within(&file, 0, u64::MAX) {
            Ok(all) => all,
            Err(FileError::Extents(_)) => return testkit::gate::skip("need FIEMAP"),
            Err(error) => panic!("{error}"),
        };
        assert_eq!(all.iter().map(|e| e.length).sum::<u64>(), 192 << 10);
        assert!(all.iter().all(|e| e.on_disk && !e.shared && e.physical > 0));
        assert!(all.is_sorted_by_key(|e| e.start));
        let tail = extents_within(&file, 2 << 20, u64::MAX).unwrap();
        assert_eq!(tail.iter().map(|e| e.start).min(), Some(8 << 20));
        assert_eq!(extents_within(&file, 2 << 20, 4 << 20).unwrap(), []);
        assert_eq!(extents_within(&file, 5, 5).unwrap(), []);
    }

    #[test]
    fn many_extents_take_several_calls() {
        let file = tempfile::tempfile().unwrap();
        for i in 0..600_u64 {
            file.write_all_at(&[1], (i * 64) << 10).unwrap();
        }
        file.sync_all().unwrap();
        if let Ok(all) = extents_within(&file, 0, u64::MAX) {
            assert_eq!(all.len(), 600);
        }
    }
}
