//! Where a btrfs keeps data in its logical address space: its chunks.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// `BTRFS_IOC_TREE_SEARCH`, `_IOWR(0x94, 17, struct btrfs_ioctl_search_args)` of
/// `include/uapi/linux/btrfs.h`.
const TREE_SEARCH: libc::Ioctl = 0xD000_9411_u32 as libc::Ioctl;

/// Sizes of the structure, of the key that it begins with and of what stands
/// before each item in the rest.
const ARGUMENTS: usize = 4096;
const KEY: usize = 104;
const HEADER: usize = 32;

/// `BTRFS_CHUNK_TREE_OBJECTID`, `BTRFS_FIRST_CHUNK_TREE_OBJECTID`,
/// `BTRFS_CHUNK_ITEM_KEY`.
const CHUNK_TREE: u64 = 3;
const FIRST_CHUNK: u64 = 256;
const CHUNK_ITEM: u32 = 228;

#[repr(C, align(8))]
struct Arguments([u8; ARGUMENTS]);

/// `BTRFS_BLOCK_GROUP_DUP`: two copies on one device.
const DUP: u64 = 1 << 5;

/// A chunk: where a part of the logical address space lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its logical addresses.
    pub logical: Range<u64>,
    /// The offset of its first copy on its device, in bytes, if the whole of it lies on one.
    pub physical: Option<u64>,
}

/// The logical ranges of all chunks, ascending.
pub fn chunks(directory: &File) -> io::Result<Vec<Range<u64>>> {
    let placed = placed_chunks(directory)?.into_iter();
    Ok(placed.map(|chunk| chunk.logical).collect())
}

/// All chunks, ascending, with their places.
///
/// # Errors
/// The kernel's error: it needs root, and btrfs.
pub fn placed_chunks(directory: &File) -> io::Result<Vec<Chunk>> {
    let mut found: Vec<Chunk> = Vec::new();
    let mut from = 0;
    loop {
        let mut arguments = Arguments(key(from));
        // SAFETY: the ioctl reads and writes one structure of this size, and
        // keeps no pointer to it.
        let result = unsafe { libc::ioctl(directory.as_raw_fd(), TREE_SEARCH, &raw mut arguments) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let before = found.len();
        items(&arguments.0, &mut found);
        match found.last() {
            Some(last) if found.len() > before && last.logical.end > from => {
                from = last.logical.end
            }
            _ => return Ok(found),
        }
    }
}

/// A search for chunks from a logical address on.
fn key(from: u64) -> [u8; ARGUMENTS] {
    let mut bytes = [0; ARGUMENTS];
    let long = [
        CHUNK_TREE,
        FIRST_CHUNK,
        FIRST_CHUNK,
        from,
        u64::MAX,
        0,
        u64::MAX,
    ];
    for (i, value) in long.iter().enumerate() {
        bytes[i * 8..i * 8 + 8].copy_from_slice(&value.to_ne_bytes());
    }
    for (i, value) in [CHUNK_ITEM, CHUNK_ITEM, u32::MAX].iter().enumerate() {
        let at = 56 + i * 4;
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

/// The chunks in the answer: `nr_items` of the key is their number.
fn items(bytes: &[u8; ARGUMENTS], found: &mut Vec<Chunk>) {
    let long = |at: usize| -> Option<u64> {
        Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
    };
    let short = |at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let stripes = |item: usize| -> Option<u16> {
        let place = item + 44;
        Some(u16::from_le_bytes(
            bytes.get(place..place + 2)?.try_into().ok()?,
        ))
    };
    let count = short(64).unwrap_or(0);
    let mut at = KEY;
    for _ in 0..count {
        let (Some(logical), Some(kind), Some(length)) =
            (long(at + 16), short(at + 24), short(at + 28))
        else {
            return;
        };
        // The item itself, as on the disk, is little-endian; its length comes first.
        if kind == CHUNK_ITEM
            && let Some(bytes) = long(at + HEADER).map(u64::from_le)
        {
            let one = stripes(at + HEADER) == Some(1)
                || long(at + HEADER + 24).is_some_and(|kind| u64::from_le(kind) & DUP != 0);
            found.push(Chunk {
                logical: logical..logical.saturating_add(bytes),
                physical: long(at + HEADER + 56).map(u64::from_le).filter(|_| one),
            });
        }
        at += HEADER + length as usize;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_and_nonsense_is_not() {
        let mut bytes = key(7);
        assert_eq!(bytes[24], 7);
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(64, &2u32.to_ne_bytes());
        for (at, logical) in [(KEY, 1u64 << 20), (KEY + HEADER + 80, 1 << 30)] {
            put(at + 16, &logical.to_ne_bytes());
            put(at + 24, &CHUNK_ITEM.to_ne_bytes());
            put(at + 28, &80u32.to_ne_bytes());
            put(at + HEADER, &(8u64 << 20).to_le_bytes());
            put(at + HEADER + 56, &(3u64 << 20).to_le_bytes());
        }
        // The first has one stripe, the second two on different devices.
        put(KEY + HEADER + 44, &1u16.to_le_bytes());
        put(KEY + HEADER + 80 + HEADER + 44, &2u16.to_le_bytes());
        let mut found = Vec::new();
        items(&bytes, &mut found);
        let chunk = |logical, physical| Chunk { logical, physical };
        let second = 1 << 30..(1 << 30) + (8 << 20);
        assert_eq!(
            found,
            [chunk(1 << 20..9 << 20, Some(3 << 20)), chunk(second, None)]
        );
        let mut nonsense = [0xff; ARGUMENTS];
        found.clear();
        items(&nonsense, &mut found);
        nonsense[64..68].copy_from_slice(&u32::MAX.to_ne_bytes());
        items(&nonsense, &mut found);
        assert!(found.is_empty());
    }
}
