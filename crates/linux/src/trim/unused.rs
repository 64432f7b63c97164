//! The free space of a btrfs on one device: within its chunks, and outside them.

use std::fs::File;
use std::io;
use std::ops::Range;

use crate::btrfs_tree::{Item, Key, search};

/// `BTRFS_DEV_TREE_OBJECTID`, `BTRFS_FREE_SPACE_TREE_OBJECTID`.
const DEVICE_TREE: u64 = 4;

const FREE_SPACE_TREE: u64 = 10;

/// `BTRFS_DEV_EXTENT_KEY`, `BTRFS_FREE_SPACE_EXTENT_KEY`, `BTRFS_FREE_SPACE_BITMAP_KEY`.
const DEVICE_EXTENT: u32 = 204;

const FREE_EXTENT: u32 = 199;

const FREE_BITMAP: u32 = 200;

/// `BTRFS_DEVICE_RANGE_RESERVED`: no chunk lies before it.
const RESERVED: u64 = 1 << 20;

/// The free space of a btrfs on one device, as of its last commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unused {
    /// Free extents within chunks, in logical bytes, and how many copies each has on the device.
    pub within: Vec<(Range<u64>, u16)>,
    /// Free space outside chunks, in bytes of the device.
    pub outside: Vec<Range<u64>>,
}

impl Unused {
    /// Of the file system of a directory; `None` where it can't be known: not btrfs, not root, more
    /// than one device, or no tree of free space (`space_cache=v1`).
    pub fn of(directory: &File) -> Option<Unused> {
        let (devices, chunks) = layout(directory).ok()?;
        let [device] = devices[..] else {
            return None;
        };
        Some(Unused {
            within: within(directory, &chunks, device.block_bytes).ok()?,
            outside: outside(directory, device).ok()?,
        })
    }
}

const FIRST: Key = Key {
    object: 0,
    kind: 0,
    offset: 0,
};

fn within(
    directory: &File,
    chunks: &[Chunk],
    block_bytes: u64,
) -> io::Result<Vec<(Range<u64>, u16)>> {
    let mut free = Vec::new();
    search(directory, FREE_SPACE_TREE, FIRST, Key::LAST, |item| {
        extents(&item, block_bytes, &mut free);
    })?;
    free.sort_by_key(|range: &Range<u64>| range.start);
    let copies = |range: &Range<u64>| {
        let behind = chunks.partition_point(|chunk| chunk.logical.start <= range.start);
        chunks[..behind].last().map_or(1, |chunk| chunk.stripes)
    };
    Ok(free
        .into_iter()
        .map(|range| (range.clone(), copies(&range)))
        .collect())
}

/// The free extents of an item: one, or those that a bitmap has set.
fn extents(item: &Item<'_>, block_bytes: u64, free: &mut Vec<Range<u64>>) {
    let start = item.key.object;
    match item.key.kind {
        FREE_EXTENT => free.push(start..start.saturating_add(item.key.offset)),
        FREE_BITMAP => {
            let blocks = item.bytes.len() as u64 * 8;
            let is_free = |block: u64| item.bytes[block as usize / 8] >> (block % 8) & 1 == 1;
            let at = |block: u64| start.saturating_add(block.saturating_mul(block_bytes));
            let mut block = 0;
            while block < blocks {
                let first = block;
                while block < blocks && is_free(block) {
                    block += 1;
                }
                if block > first {
                    free.push(at(first)..at(block));
                }
                block += 1;
            }
        }
        _ => {}
    }
}

fn outside(directory: &File, device: Device) -> io::Result<Vec<Range<u64>>> {
    let mut used = Vec::new();
    search(directory, DEVICE_TREE, FIRST, Key::LAST, |item| {
        // `struct btrfs_dev_extent`: its length is the last field.
        if item.key.kind == DEVICE_EXTENT
            && item.key.object == device.id
            && let Some(length) = item.long(24)
        {
            used.push(item.key.offset..item.key.offset.saturating_add(length));
        }
    })?;
    Ok(between(&used, device.bytes))
}

/// The gaps between ascending ranges, up to an end.
fn between(used: &[Range<u64>], end: u64) -> Vec<Range<u64>> {
    let mut at = RESERVED;
    let mut found = Vec::new();
    for range in used.iter().cloned().chain(std::iter::once(end..end)) {
        if range.start > at {
            found.push(at..range.start);
        }
        at = at.max(range.end);
    }
    found
}

// Where a btrfs keeps data in its logical address space: its chunks, and its devices.

/// `BTRFS_CHUNK_TREE_OBJECTID`, `BTRFS_DEV_ITEM_KEY`, `BTRFS_CHUNK_ITEM_KEY`.
const CHUNK_TREE: u64 = 3;

const DEVICE_ITEM: u32 = 216;

const CHUNK_ITEM: u32 = 228;

/// `BTRFS_BLOCK_GROUP_DUP`: two copies on one device.
const DUP: u64 = 1 << 5;

/// A chunk: where a part of the logical address space lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its logical addresses.
    pub logical: Range<u64>,
    /// The offset of its first copy on its device, in bytes, if the whole of it lies on one.
    pub physical: Option<u64>,
    /// Its stripes or copies.
    pub stripes: u16,
}

/// A device of a btrfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Device {
    /// Its number.
    pub(super) id: u64,
    /// Its size in bytes.
    pub(super) bytes: u64,
    /// Bytes in a block of the file system.
    pub(super) block_bytes: u64,
}

/// The logical ranges of all chunks, ascending.
///
/// # Errors
/// The kernel's error: it needs root, and btrfs.
pub fn chunks(directory: &File) -> io::Result<Vec<Range<u64>>> {
    let placed = placed_chunks(directory)?.into_iter();
    Ok(placed.map(|chunk| chunk.logical).collect())
}

/// All chunks, ascending, with their places.
///
/// # Errors
/// The kernel's error: it needs root, and btrfs.
pub fn placed_chunks(directory: &File) -> io::Result<Vec<Chunk>> {
    Ok(layout(directory)?.1)
}

/// All devices, and all chunks, ascending.
pub(super) fn layout(directory: &File) -> io::Result<(Vec<Device>, Vec<Chunk>)> {
    let (mut devices, mut chunks) = (Vec::new(), Vec::new());
    let from = Key {
        object: 0,
        kind: 0,
        offset: 0,
    };
    search(directory, CHUNK_TREE, from, Key::LAST, |item| {
        match item.key.kind {
            DEVICE_ITEM => devices.extend(device(&item)),
            CHUNK_ITEM => chunks.extend(chunk(&item)),
            _ => {}
        }
    })?;
    Ok((devices, chunks))
}

/// `struct btrfs_dev_item`.
fn device(item: &Item<'_>) -> Option<Device> {
    Some(Device {
        id: item.long(0)?,
        bytes: item.long(8)?,
        block_bytes: item.int(32)?.into(),
    })
}

/// `struct btrfs_chunk`, with its first stripe.
fn chunk(item: &Item<'_>) -> Option<Chunk> {
    let logical = item.key.offset;
    let stripes = item.short(44)?;
    let on_one = stripes == 1 || item.long(24)? & DUP != 0;
    Some(Chunk {
        logical: logical..logical.saturating_add(item.long(0)?),
        physical: item.long(56).filter(|_| on_one),
        stripes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_an_extent_or_a_bitmap() {
        let mut free = Vec::new();
        let mut add = |kind, offset, bytes: &[u8]| {
            let object = 1 << 20;
            let key = Key {
                object,
                kind,
                offset,
            };
            extents(&Item { key, bytes }, 4096, &mut free);
        };
        add(FREE_EXTENT, 65536, &[]);
        // Blocks 1, 2 and 7 to 9.
        add(FREE_BITMAP, 16 * 4096, &[0b1000_0110, 0b0000_0011]);
        add(198, 5, &[]);
        let at = |block: u64| (1 << 20) + block * 4096;
        assert_eq!(free, [at(0)..at(16), at(1)..at(3), at(7)..at(10)]);
    }

    #[test]
    fn what_no_chunk_uses_is_between_them() {
        const MIB: u64 = 1 << 20;
        let used = [MIB..9 * MIB, 9 * MIB..12 * MIB, 20 * MIB..30 * MIB];
        let hole = 12 * MIB..20 * MIB;
        assert_eq!(between(&used, 40 * MIB), [hole.clone(), 30 * MIB..40 * MIB]);
        assert_eq!(between(&used, 30 * MIB), [hole]);
        assert!(between(&[], MIB).is_empty());
    }

    #[test]
    fn other_file_systems_have_none() {
        assert_eq!(Unused::of(&File::open("/proc").unwrap()), None);
    }

    #[test]
    fn a_chunk_on_one_device_has_a_place() {
        let key = Key {
            object: 256,
            kind: CHUNK_ITEM,
            offset: 1 << 30,
        };
        let of = |kind: u64, stripes: u16| {
            let mut bytes = [0; 80];
            bytes[..8].copy_from_slice(&(8u64 << 20).to_le_bytes());
            bytes[24..32].copy_from_slice(&kind.to_le_bytes());
            bytes[44..46].copy_from_slice(&stripes.to_le_bytes());
            bytes[56..64].copy_from_slice(&(3u64 << 20).to_le_bytes());
            let bytes = &bytes;
            chunk(&Item { key, bytes })
        };
        let expected = |physical, stripes| {
            Some(Chunk {
                logical: 1 << 30..(1 << 30) + (8 << 20),
                physical,
                stripes,
            })
        };
        assert_eq!(of(1, 1), expected(Some(3 << 20), 1));
        assert_eq!(of(4 | DUP, 2), expected(Some(3 << 20), 2));
        assert_eq!(of(8, 2), expected(None, 2));
        let bytes = &[0; 20];
        assert_eq!(chunk(&Item { key, bytes }), None);
        assert_eq!(device(&Item { key, bytes }), None);
    }
}
