//! What a small file really holds on the disk.
//!
//! `st_blocks` also counts what has a place in memory alone: data that wait to be
//! written, and what XFS reserves for a file that grows. No discard ever comes
//! for those. They are written, or given back, within minutes; so only of files
//! that were changed lately it is asked where their extents are. Nor does any come,
//! yet, for a file that somebody has open.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use linux::files::extents_within;
use rustix::fs::{Mode, OFlags, ResolveFlags, Stat};

use super::arguments::held;

/// XFS gives back what it reserved after 300 s (`speculative_prealloc_lifetime`);
/// data are written after some 35 s (`dirty_expire_centisecs`, and a round of the
/// writer).
const LATELY: Duration = Duration::from_secs(330);

/// `XFS_SUPER_MAGIC` (Linux, include/uapi/linux/magic.h).
const XFS: rustix::fs::FsWord = 0x5846_5342;

/// What will be discarded when a name goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Owed {
    /// So many bytes.
    Now(u64),
    /// So many, but when somebody else closes it.
    Later(u64),
}

impl Owed {
    /// Bytes for which discards come when this name goes.
    pub(super) fn now(self) -> u64 {
        match self {
            Owed::Now(bytes) => bytes,
            Owed::Later(_) => 0,
        }
    }
}

/// Looks at a small file.
pub(super) fn on_disk(at: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> Owed {
    let bytes = held(stat);
    // One that may not even be read is taken for what it seems to be.
    let Some(file) = (bytes > 0).then(|| open(at, name)).flatten() else {
        return Owed::Now(bytes);
    };
    if linux::files::open_elsewhere(&file).is_ok_and(|open| open) {
        return Owed::Later(bytes);
    }
    match is_fresh(stat).then(|| extents(&file)).flatten() {
        Some(found) => Owed::Now(found.min(bytes)),
        None => Owed::Now(bytes),
    }
}

fn open(at: BorrowedFd<'_>, name: &CStr) -> Option<File> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    let file = rustix::fs::openat2(at, name, flags, Mode::empty(), resolve).ok()?;
    Some(File::from(file))
}

/// By the time of its last change, which nobody can set.
fn is_fresh(stat: &Stat) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let changed = Duration::from_secs(u64::try_from(stat.st_ctime).unwrap_or(0));
    now.is_ok_and(|now| now.saturating_sub(changed) < LATELY)
}

fn extents(file: &File) -> Option<u64> {
    // The kernel refuses offsets that no file can have.
    let extents = extents_within(file, 0, i64::MAX as u64).ok()?;
    // XFS sends none for what was never written.
    let skips = extents.iter().any(|extent| extent.unwritten)
        && rustix::fs::fstatfs(file).is_ok_and(|found| found.f_type == XFS);
    let owned = extents
        .iter()
        .filter(|e| e.on_disk && !e.shared && !(skips && e.unwritten));
    Some(owned.map(|extent| extent.length).sum())
}
