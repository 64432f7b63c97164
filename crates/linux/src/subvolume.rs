//! Subvolumes and snapshots of btrfs (`linux/btrfs.h`, `linux/btrfs_tree.h`).
//!
//! The kernel deletes a subvolume in two steps. The call removes its name. Then the thread
//! `btrfs-cleaner` frees what no other subvolume has, one subvolume after the other. Until it has
//! finished one, the tree of roots has an orphan item for it.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};

/// `BTRFS_IOC_TREE_SEARCH`, `BTRFS_IOC_GET_SUBVOL_INFO` (Linux 4.18), and
/// `BTRFS_IOC_SNAP_DESTROY_V2` (Linux 5.7).
const TREE_SEARCH: libc::Ioctl = 0xd000_9411_u32 as libc::Ioctl;
const GET_SUBVOL_INFO: libc::Ioctl = 0x81f8_943c_u32 as libc::Ioctl;
const SNAP_DESTROY_V2: libc::Ioctl = 0x5000_943f_u32 as libc::Ioctl;

/// `BTRFS_SUBVOL_SPEC_BY_ID`: the subvolume is named by its number.
const BY_ID: u64 = 1 << 4;

/// `BTRFS_FIRST_FREE_OBJECTID`: the inode of each subvolume's root, and the least number that a
/// subvolume can have beside the file system's own.
const FIRST: u64 = 256;

/// `BTRFS_ROOT_SUBVOL_RDONLY`.
const READ_ONLY: u64 = 1;

const ROOT_TREE: u64 = 1;
const QUOTA_TREE: u64 = 8;
/// `BTRFS_ROOT_TREE_DIR_OBJECTID`, whose entry `default` names the default subvolume.
const ROOT_DIRECTORY: u64 = 6;
/// `BTRFS_ORPHAN_OBJECTID`: -5.
const ORPHANS: u64 = u64::MAX - 4;

const ORPHAN_ITEM: u32 = 48;
const DIR_ITEM: u32 = 84;
const ROOT_REF: u32 = 156;
const QGROUP_STATUS: u32 = 240;
const QGROUP_INFO: u32 = 242;

/// `BTRFS_QGROUP_STATUS_FLAG_INCONSISTENT`.
const INCONSISTENT: u64 = 1 << 2;

/// A subvolume or snapshot of a btrfs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subvolume {
    /// Its number, which no other subvolume of the file system ever gets.
    pub id: u64,
    /// Its UUID.
    pub uuid: [u8; 16],
    /// Whether it is read-only, as most snapshots are.
    pub read_only: bool,
}

/// Why the kernel, or its user, would not want a subvolume to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// It contains this subvolume, by the name that it has in its directory.
    Contains(String),
    /// It is the one that is mounted where no other is named.
    Default,
}

impl Subvolume {
    /// Returns the subvolume whose root is `name` in an open directory. `None` where it is none,
    /// where something is mounted over it, or where this user may not look (`CAP_SYS_ADMIN`).
    pub fn at(parent: BorrowedFd<'_>, name: &CStr) -> Option<Subvolume> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
        let root = rustix::fs::openat2(parent, name, flags, Mode::empty(), resolve).ok()?;
        if rustix::fs::fstat(&root).ok()?.st_ino != FIRST {
            return None;
        }
        let found = info(&root)?;
        pending(&root).is_ok().then_some(found)
    }

    /// Returns why it is not to be deleted; `None` where nothing is known against it.
    ///
    /// # Errors
    /// If the trees of the file system of `on` can't be read.
    pub fn kept(&self, on: impl AsFd) -> io::Result<Option<Kept>> {
        let items = search(&on, ROOT_TREE, self.id, ROOT_REF, 0)?;
        if let Some(child) = items.first() {
            // struct btrfs_root_ref: dirid, sequence, length of the name; the name.
            let name = child.data.get(18..).unwrap_or_default();
            let name = String::from_utf8_lossy(name).into_owned();
            return Ok(Some(Kept::Contains(name)));
        }
        let items = search(&on, ROOT_TREE, ROOT_DIRECTORY, DIR_ITEM, 0)?;
        // struct btrfs_dir_item begins with the key of what it names, and that with its number.
        let default = items
            .iter()
            .any(|item| item.data.ends_with(b"default") && item.number(0) == Some(self.id));
        Ok(default.then_some(Kept::Default))
    }

    /// Returns the bytes that only this subvolume has. `None` where no quotas count them, or where
    /// they are still being counted.
    pub fn exclusive(&self, on: impl AsFd) -> Option<u64> {
        let status = search(&on, QUOTA_TREE, 0, QGROUP_STATUS, 0).ok()?;
        if status.first()?.number(16)? & INCONSISTENT != 0 {
            return None;
        }
        let all = search(&on, QUOTA_TREE, 0, QGROUP_INFO, self.id).ok()?;
        // struct btrfs_qgroup_info_item: generation, referenced, compressed, exclusive.
        let own = all.iter().find(|item| item.offset == self.id)?;
        own.number(24)
    }

    /// Removes its name. The kernel frees afterwards what only this subvolume has, when no process
    /// has a file of it open ([`pending`]).
    ///
    /// # Errors
    /// The kernel's error; `ENOTTY` before Linux 5.7.
    pub fn delete(&self, on: impl AsFd) -> io::Result<()> {
        // struct btrfs_ioctl_vol_args_v2: fd, transid, flags, four unused, and the number.
        let mut arguments = [0_u64; 512];
        (arguments[2], arguments[7]) = (BY_ID, self.id);
        call(on.as_fd(), SNAP_DESTROY_V2, &mut arguments)
    }
}

/// Returns the numbers of the subvolumes that were deleted and are not yet freed.
///
/// # Errors
/// `EPERM` without the right to look (`CAP_SYS_ADMIN`), `ENOTTY` where it isn't btrfs.
pub fn pending(on: impl AsFd) -> io::Result<Vec<u64>> {
    let items = search(on, ROOT_TREE, ORPHANS, ORPHAN_ITEM, FIRST)?;
    Ok(items.iter().map(|item| item.offset).collect())
}

fn info(root: &OwnedFd) -> Option<Subvolume> {
    // struct btrfs_ioctl_get_subvol_info_args: number, name[256], parent, directory, generation,
    // flags, UUID …: 504 bytes.
    let mut found = [0_u64; 63];
    call(root.as_fd(), GET_SUBVOL_INFO, &mut found).ok()?;
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&found[37].to_ne_bytes());
    uuid[8..].copy_from_slice(&found[38].to_ne_bytes());
    Some(Subvolume {
        id: found[0],
        uuid,
        read_only: found[36] & READ_ONLY != 0,
    })
}

/// An item of a tree.
struct Item {
    offset: u64,
    data: Vec<u8>,
}

impl Item {
    /// Returns the number at this place of its data, which are little-endian.
    fn number(&self, at: usize) -> Option<u64> {
        let bytes = self.data.get(at..at + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    }
}

/// Returns the items of one object and kind from an offset on, in the order of their offsets.
fn search(
    on: impl AsFd,
    tree: u64,
    object: u64,
    kind: u32,
    mut from: u64,
) -> io::Result<Vec<Item>> {
    let mut found = Vec::new();
    loop {
        // struct btrfs_ioctl_search_args: 104 bytes of a key, then room for items.
        let mut arguments = [0_u64; 512];
        let (kinds, most) = (halves([kind; 2]), halves([4096, 0]));
        let key = [
            tree,
            object,
            object,
            from,
            u64::MAX,
            0,
            u64::MAX,
            kinds,
            most,
        ];
        arguments[..key.len()].copy_from_slice(&key);
        call(on.as_fd(), TREE_SEARCH, &mut arguments)?;
        let count = half(arguments[8], 0);
        let bytes: Vec<u8> = arguments[13..]
            .iter()
            .flat_map(|w| w.to_ne_bytes())
            .collect();
        let mut rest = &bytes[..];
        for _ in 0..count {
            // struct btrfs_ioctl_search_header: transid, objectid, offset, type, length.
            let Some((header, behind)) = rest.split_at_checked(32) else {
                break;
            };
            let word = |i: usize| {
                header[i * 8..][..8]
                    .try_into()
                    .map_or(0, u64::from_ne_bytes)
            };
            let length = half(word(3), 1) as usize;
            let Some((data, behind)) = behind.split_at_checked(length) else {
                break;
            };
            rest = behind;
            found.push(Item {
                offset: word(2),
                data: data.to_vec(),
            });
        }
        match found.last().and_then(|item| item.offset.checked_add(1)) {
            Some(next) if count > 0 => from = next,
            _ => return Ok(found),
        }
    }
}

/// Returns one of the two numbers that share a word in memory.
fn half(word: u64, which: usize) -> u32 {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    u32::from_ne_bytes([[a, b, c, d], [e, f, g, h]][which])
}

/// Returns the word that these two numbers share in memory.
fn halves([first, second]: [u32; 2]) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

/// Makes a request whose argument is as long as this array.
fn call<const WORDS: usize>(
    on: BorrowedFd<'_>,
    request: libc::Ioctl,
    argument: &mut [u64; WORDS],
) -> io::Result<()> {
    debug_assert_eq!(request as usize >> 16 & 0x3fff, WORDS * 8);
    // SAFETY: the request's number holds the size of its argument, which is that of the array, and
    // the array lives through the call.
    let done = unsafe { libc::ioctl(on.as_raw_fd(), request, argument.as_mut_ptr()) };
    match done {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_file_systems_have_none() {
        let proc = std::fs::File::open("/proc").unwrap();
        assert_eq!(Subvolume::at(proc.as_fd(), c"self"), None);
        let refused = pending(&proc).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOTTY));
    }
}
