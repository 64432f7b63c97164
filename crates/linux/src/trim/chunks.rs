//! Where a btrfs keeps data in its logical address space: its chunks, and its devices.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::search::{Item, Key, search};

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
    search(directory, CHUNK_TREE, from, |item| match item.key.kind {
        DEVICE_ITEM => devices.extend(device(&item)),
        CHUNK_ITEM => chunks.extend(chunk(&item)),
        _ => {}
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
