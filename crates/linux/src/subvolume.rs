//! Subvolumes and snapshots of btrfs (`linux/btrfs.h`, `linux/btrfs_tree.h`).
//!
//! The kernel deletes a subvolume in two steps. The call removes its name. Then the thread
//! `btrfs-cleaner` frees what no other subvolume has, one subvolume after the other. Until it has
//! finished one, the tree of roots has an orphan item for it.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::btrfs_tree::{self, Item, Key};
use crate::tasks::{Thread, processes};

/// `BTRFS_IOC_GET_SUBVOL_INFO` (Linux 4.18), and `BTRFS_IOC_SNAP_DESTROY_V2` (Linux 5.7).
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
        let mut kept = None;
        search(&on, ROOT_TREE, (self.id, ROOT_REF, 0), |child| {
            // struct btrfs_root_ref: dirid, sequence, length of the name; the name.
            let name = child.bytes.get(18..).unwrap_or_default();
            let name = || Kept::Contains(String::from_utf8_lossy(name).into_owned());
            kept.get_or_insert_with(name);
        })?;
        search(&on, ROOT_TREE, (ROOT_DIRECTORY, DIR_ITEM, 0), |item| {
            // struct btrfs_dir_item begins with the key of what it names, and that with its number.
            if item.bytes.ends_with(b"default") && item.long(0) == Some(self.id) {
                kept.get_or_insert(Kept::Default);
            }
        })?;
        Ok(kept)
    }

    /// Returns the bytes that only this subvolume has. `None` where no quotas count them, or where
    /// they are still being counted.
    pub fn exclusive(&self, on: impl AsFd) -> Option<u64> {
        let mut flags = None;
        search(&on, QUOTA_TREE, (0, QGROUP_STATUS, 0), |status| {
            flags = flags.or(status.long(16));
        })
        .ok()?;
        if flags? & INCONSISTENT != 0 {
            return None;
        }
        let mut exclusive = None;
        search(&on, QUOTA_TREE, (0, QGROUP_INFO, self.id), |item| {
            // struct btrfs_qgroup_info_item: generation, referenced, compressed, exclusive.
            if item.key.offset == self.id {
                exclusive = item.long(24);
            }
        })
        .ok()?;
        exclusive
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
    let mut all = Vec::new();
    search(on, ROOT_TREE, (ORPHANS, ORPHAN_ITEM, FIRST), |item| {
        all.push(item.key.offset);
    })?;
    Ok(all)
}

/// Returns the kernel's threads that free deleted subvolumes: one for each mounted btrfs.
pub fn cleaners() -> Vec<Thread> {
    let all = processes().into_iter();
    let all = all.map(|pid| Thread { pid, tid: pid });
    all.filter(|one| {
        let stat = one.stat();
        stat.is_some_and(|stat| stat.kernel && stat.comm == "btrfs-cleaner")
    })
    .collect()
}

/// Whether a thread with this kernel stack accounts btrfs' quotas. The commit that ends a deletion there
/// (in Linux 6.18) has work that comes without quotas too: the discards of `discard=sync`.
pub fn accounts_quotas<'a>(stack: impl IntoIterator<Item = &'a str>) -> bool {
    let mut frames = stack.into_iter();
    frames.any(|frame| {
        frame.contains("qgroup") && !frame.starts_with("btrfs_qgroup_cleanup_dropped_subvolume")
    })
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

/// Visits the items of one object and kind from an offset on, in the order of their offsets.
fn search(
    on: impl AsFd,
    tree: u64,
    (object, kind, from): (u64, u32, u64),
    visit: impl FnMut(Item<'_>),
) -> io::Result<()> {
    let key = |offset| Key {
        object,
        kind,
        offset,
    };
    btrfs_tree::search(on, tree, key(from), key(u64::MAX), visit)
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

    /// Linux 6.18, each from the innermost function.
    #[test]
    fn discards_of_the_commit_after_a_deletion_are_not_the_cost_of_quotas() {
        let discards = ["blkdev_issue_discard", "btrfs_finish_extent_commit"];
        let accounts = ["btrfs_find_all_roots", "btrfs_qgroup_account_extents"];
        let outer = [
            "btrfs_commit_transaction",
            "btrfs_qgroup_cleanup_dropped_subvolume",
            "btrfs_drop_snapshot",
        ];
        for (inner, expected) in [(discards, false), (accounts, true)] {
            let stack = inner.into_iter().chain(outer);
            assert_eq!(accounts_quotas(stack), expected, "{inner:?}");
        }
    }
}
