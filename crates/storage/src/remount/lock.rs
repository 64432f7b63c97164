//! The lock of a file system whose options are switched.
//!
//! The options are the same for all mounts of one file system, and no directory is in all of them. So
//! the lock is a file named after the device. The mount's root is locked as well, because another
//! container has another `/run`.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use linux::mounts::DeviceNumber;
use rustix::fs::{AtFlags, Mode, OFlags};

/// Where the files are.
const LOCKS: &str = "/run/trimbench";

/// A locked file, which is removed when this is dropped.
#[derive(Debug)]
pub(super) struct LockFile {
    directory: File,
    name: String,
    file: OwnedFd,
}

impl LockFile {
    /// Makes and locks the file of a device; `None` where it can't be made, as without root, and where
    /// another user could put it into place.
    ///
    /// # Errors
    /// Those of `lock`, which locks an open file.
    pub(super) fn lock<E>(
        device: DeviceNumber,
        lock: impl Fn(BorrowedFd<'_>) -> Result<(), E>,
    ) -> Result<Option<LockFile>, E> {
        let _ = rustix::fs::mkdir(LOCKS, Mode::RWXU | Mode::XGRP | Mode::XOTH);
        let name = format!("remount-{device}");
        loop {
            let Some((directory, file)) = open(&name) else {
                return Ok(None);
            };
            lock(file.as_fd())?;
            // Its last holder may have removed it between the two calls.
            if is_in_place(&directory, &name, &file) {
                return Ok(Some(LockFile {
                    directory,
                    name,
                    file,
                }));
            }
        }
    }
}

impl AsFd for LockFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
    }
}

fn open(name: &str) -> Option<(File, OwnedFd)> {
    let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = linux::files::own_directory(Path::new(LOCKS)).ok()?;
    let file = rustix::fs::openat(&directory, name, flags, Mode::RUSR | Mode::WUSR).ok()?;
    Some((directory, file))
}

fn is_in_place(directory: &File, name: &str, file: &OwnedFd) -> bool {
    let named = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    let own = rustix::fs::fstat(file);
    named.is_ok_and(|named| own.is_ok_and(|own| own.st_ino == named.st_ino))
}
