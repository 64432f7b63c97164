//! Second names in a hidden directory.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::{AtFlags, Dir, FileType, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// A second name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SecondName {
    pub(super) inode: u64,
    /// Allocated bytes.
    pub(super) bytes: u64,
    /// The time of its last change, in seconds and nanoseconds since 1970. For a file without
    /// another name, this is when that name was removed.
    pub(super) since: (i64, i64),
}

/// All second names of a place.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    pub(super) live: Vec<SecondName>,
    /// Files that have no other name any more.
    pub(super) orphans: Vec<SecondName>,
}

/// Sums of the second names of a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondNames {
    /// Files in use that have a second name.
    pub guarded_files: u64,
    /// Their allocated bytes.
    pub guarded_bytes: u64,
    /// Files that lost all other names and wait to be freed.
    pub waiting_files: u64,
    /// Their allocated bytes.
    pub waiting_bytes: u64,
    /// How long the oldest of them has waited, in seconds.
    pub oldest_s: u64,
}

impl Names {
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.orphans.iter().map(|orphan| orphan.bytes).sum()
    }

    pub(super) fn sums(&self) -> SecondNames {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |now| now.as_secs());
        let oldest = self.orphans.iter().map(|orphan| orphan.since.0).min();
        let age = |since: i64| now.saturating_sub(u64::try_from(since).unwrap_or(0));
        SecondNames {
            guarded_files: self.live.len() as u64,
            guarded_bytes: self.live.iter().map(|name| name.bytes).sum(),
            waiting_files: self.orphans.len() as u64,
            waiting_bytes: self.waiting_bytes(),
            oldest_s: oldest.map_or(0, age),
        }
    }
}

/// Returns the name of a file in the hidden directory.
pub(super) fn name_of(inode: u64) -> String {
    inode.to_string()
}

/// Whether a name is one that a guard made, and of which file.
fn inode_of(name: &CStr) -> Option<u64> {
    let text = name.to_str().ok()?;
    let inode: u64 = text.parse().ok()?;
    (name_of(inode) == text).then_some(inode)
}

/// Looks at a second name.
pub(super) fn stat_of(hidden: BorrowedFd<'_>, inode: u64) -> Option<Stat> {
    let stat = rustix::fs::statat(hidden, name_of(inode), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    (regular && stat.st_ino == inode).then_some(stat)
}

/// Returns the allocated bytes of a file.
pub(super) fn bytes(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or(0) * 512
}

/// Removes a second name.
pub(super) fn remove(hidden: BorrowedFd<'_>, inode: u64) -> Result<(), Errno> {
    rustix::fs::unlinkat(hidden, name_of(inode), AtFlags::empty())
}

/// All second names in a hidden directory.
pub(super) fn names(hidden: BorrowedFd<'_>) -> Names {
    let mut names = Names::default();
    let Ok(entries) = Dir::read_from(hidden) else {
        return names;
    };
    for inode in entries.flatten().filter_map(|e| inode_of(e.file_name())) {
        let Some(stat) = stat_of(hidden, inode) else {
            continue;
        };
        let name = SecondName {
            inode,
            bytes: bytes(&stat),
            since: (stat.st_ctime, stat.st_ctime_nsec as i64),
        };
        match stat.st_nlink {
            0 => {}
            1 => names.orphans.push(name),
            _ => names.live.push(name),
        }
    }
    names
}

/// A path by which an open file can be named again, whatever became of its name.
pub(super) fn proc_path(file: impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

/// Returns the share of a file system that is free, 0 to 1.
pub(super) fn free_share(on: impl AsFd) -> f64 {
    rustix::fs::fstatvfs(on).map_or(1.0, |stat| {
        stat.f_bavail as f64 / (stat.f_blocks as f64).max(1.0)
    })
}
