//! Names in an open directory. Nothing here follows a symbolic link.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;

/// Returns whether the directory has this name.
pub(crate) fn has(directory: impl AsFd, name: impl Arg) -> bool {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Removes a name that isn't a directory's, if it can.
pub(crate) fn remove(directory: impl AsFd, name: impl Arg) {
    let _ = rustix::fs::unlinkat(directory, name, AtFlags::empty());
}

/// Opens a file for reading, and waits for no other end of a pipe.
pub(crate) fn open(directory: impl AsFd, name: impl Arg) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty()).map(File::from)
}

/// Opens a file of this user alone for reading and writing, and makes it if it is missing.
pub(crate) fn make(directory: impl AsFd, name: impl Arg, more: OFlags) -> Result<File, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
    rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
}

/// Opens a directory once more, so that it can be read and synced: it may be open as a path alone.
pub(crate) fn reopen(directory: impl AsFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, c".", flags, Mode::empty())
}

/// The kinds of XFS and btrfs.
pub(crate) const XFS: u64 = 0x5846_5342;
pub(crate) const BTRFS: u64 = 0x9123_683e;

/// Returns the kind of the file system of an open file or directory.
pub(crate) fn kind(open: impl AsFd) -> Option<u64> {
    rustix::fs::fstatfs(open)
        .map(|found| found.f_type as u64)
        .ok()
}

/// The kinds whose files never share blocks: ext2 to ext4, and tmpfs.
const UNSHARED: [u64; 2] = [0xef53, 0x0102_1994];

/// Returns whether files of this file system may share blocks, as reflinks and snapshots do.
pub(crate) fn may_share_blocks(open: impl AsFd) -> bool {
    kind(open).is_none_or(|kind| !UNSHARED.contains(&kind))
}

/// Returns the device number of an open file or directory, as `stat` shows it.
pub(crate) fn device(open: impl AsFd) -> Option<u64> {
    rustix::fs::fstat(open).map(|stat| stat.st_dev).ok()
}

/// Returns the absolute path that a variable of the environment gives.
pub(crate) fn given(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    path.filter(|path| path.is_absolute())
}

/// Returns the directory of this user's state for a purpose: `$XDG_STATE_HOME`, or `~/.local/state`,
/// and in it `trimbench`.
pub(crate) fn of_user(purpose: &str) -> Option<PathBuf> {
    let state = given("XDG_STATE_HOME").or_else(|| Some(given("HOME")?.join(".local/state")))?;
    Some(state.join("trimbench").join(purpose))
}
