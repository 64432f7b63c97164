//! Reading the items of a btrfs tree: `BTRFS_IOC_TREE_SEARCH`.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `BTRFS_IOC_TREE_SEARCH`, `_IOWR(0x94, 17, struct btrfs_ioctl_search_args)` of
/// `include/uapi/linux/btrfs.h`.
const TREE_SEARCH: libc::Ioctl = 0xD000_9411_u32 as libc::Ioctl;

/// Sizes of the structure, of the key that it begins with and of what stands
/// before each item in the rest.
const ARGUMENTS: usize = 4096;
const KEY: usize = 104;
const HEADER: usize = 32;

/// Where the key counts items.
const COUNT: usize = 64;

#[repr(C, align(8))]
struct Arguments([u8; ARGUMENTS]);

/// The key of an item. Items are in the order of their keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) object: u64,
    pub(crate) kind: u32,
    pub(crate) offset: u64,
}

impl Key {
    /// The key behind, if there is one.
    fn next(self) -> Option<Key> {
        let Key {
            object,
            kind,
            offset,
        } = self;
        if let Some(offset) = offset.checked_add(1) {
            return Some(Key { offset, ..self });
        }
        // A kind has eight bits on the disk.
        let (object, kind) = match kind {
            ..255 => (object, kind + 1),
            _ => (object.checked_add(1)?, 0),
        };
        Some(Key {
            object,
            kind,
            offset: 0,
        })
    }
}

/// An item, as it is on the disk: little-endian.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item<'a> {
    pub(crate) key: Key,
    pub(crate) bytes: &'a [u8],
}

impl Item<'_> {
    /// The number of eight bytes at a place; `None` behind the end.
    pub(crate) fn long(&self, at: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at.checked_add(8)?)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The number of four bytes at a place.
    pub(crate) fn int(&self, at: usize) -> Option<u32> {
        let bytes = self.bytes.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// The number of two bytes at a place.
    pub(crate) fn short(&self, at: usize) -> Option<u16> {
        let bytes = self.bytes.get(at..at.checked_add(2)?)?;
        Some(u16::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl Key {
    /// The last of all.
    pub(crate) const LAST: Key = Key {
        object: u64::MAX,
        kind: u32::MAX,
        offset: u64::MAX,
    };
}

/// Visits the items of a tree from a key on, in their order, none of whose numbers exceeds that of
/// `most`.
///
/// # Errors
/// The kernel's error: it needs root, and btrfs; `ENOENT` where there is no such tree.
pub(crate) fn search(
    on: impl AsFd,
    tree: u64,
    from: Key,
    most: Key,
    mut visit: impl FnMut(Item<'_>),
) -> io::Result<()> {
    let mut from = Some(from);
    while let Some(first) = from {
        let mut arguments = Arguments(question(tree, first, most));
        // SAFETY: the ioctl reads and writes one structure of this size, and
        // keeps no pointer to it.
        let result =
            unsafe { libc::ioctl(on.as_fd().as_raw_fd(), TREE_SEARCH, &raw mut arguments) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        from = items(&arguments.0, &mut visit).filter(|&next| next > first);
    }
    Ok(())
}

/// A search for items of a tree.
fn question(tree: u64, from: Key, most: Key) -> [u8; ARGUMENTS] {
    let mut bytes = [0; ARGUMENTS];
    // The tree; the least and greatest object, offset and transaction.
    let long = [
        tree,
        from.object,
        most.object,
        from.offset,
        most.offset,
        0,
        u64::MAX,
    ];
    for (i, value) in long.iter().enumerate() {
        bytes[i * 8..i * 8 + 8].copy_from_slice(&value.to_ne_bytes());
    }
    // The least and greatest kind, and how many items.
    for (i, value) in [from.kind, most.kind, u32::MAX].iter().enumerate() {
        let at = 56 + i * 4;
        bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }
    bytes
}

/// Visits the items in an answer; the key to go on from, unless there were none.
fn items(bytes: &[u8; ARGUMENTS], visit: &mut impl FnMut(Item<'_>)) -> Option<Key> {
    let long = |at: usize| -> Option<u64> {
        Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
    };
    let int = |at: usize| -> Option<u32> {
        Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let mut next = None;
    let mut at = KEY;
    for _ in 0..int(COUNT)? {
        // The transaction stands before the key.
        let head = (long(at + 8), long(at + 16), int(at + 24), int(at + 28));
        let (Some(object), Some(offset), Some(kind), Some(length)) = head else {
            return next;
        };
        let key = Key {
            object,
            kind,
            offset,
        };
        let begin = at + HEADER;
        let Some(bytes) = bytes.get(begin..begin.saturating_add(length as usize)) else {
            return next;
        };
        visit(Item { key, bytes });
        next = key.next();
        at = begin + length as usize;
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a search, from keys and the bytes of their items.
    fn answer(found: &[(Key, Vec<u8>)]) -> [u8; ARGUMENTS] {
        let mut bytes = [0; ARGUMENTS];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        put(COUNT, &(found.len() as u32).to_ne_bytes());
        let mut at = KEY;
        for (key, item) in found {
            put(at + 8, &key.object.to_ne_bytes());
            put(at + 16, &key.offset.to_ne_bytes());
            put(at + 24, &key.kind.to_ne_bytes());
            put(at + 28, &(item.len() as u32).to_ne_bytes());
            put(at + HEADER, item);
            at += HEADER + item.len();
        }
        bytes
    }

    #[test]
    fn items_are_read_and_nonsense_is_not() {
        let key = |object, kind, offset| Key {
            object,
            kind,
            offset,
        };
        let found = [
            (key(1, 216, 1), vec![7, 0, 0, 0]),
            (key(256, 228, u64::MAX), 9u64.to_le_bytes().to_vec()),
        ];
        let mut seen = Vec::new();
        let next = items(&answer(&found), &mut |item| {
            seen.push((item.key, item.int(0), item.long(0)));
        });
        assert_eq!(
            seen,
            [(found[0].0, Some(7), None), (found[1].0, Some(9), Some(9))]
        );
        assert_eq!(next, Some(key(256, 229, 0)));
        assert_eq!(key(3, 255, u64::MAX).next(), Some(key(4, 0, 0)));
        assert_eq!(key(u64::MAX, 255, u64::MAX).next(), None);

        seen.clear();
        for byte in [0, 0xff] {
            items(&[byte; ARGUMENTS], &mut |item| {
                seen.push((item.key, None, None));
            });
        }
        // What claims more items than fit ends with the last whole one.
        let mut many = answer(&found);
        many[COUNT..COUNT + 4].copy_from_slice(&u32::MAX.to_ne_bytes());
        items(&many, &mut |_| {});
        assert!(seen.is_empty(), "{seen:?}");
    }
}
