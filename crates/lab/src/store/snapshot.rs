//! A copy of the data as they are at one moment.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{PoisonError, RwLockReadGuard};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, XattrFlags, fsetxattr, ioctl_ficlone, linkat, openat,
};
use rustix::io::Errno;

use super::sweep::punch;
use super::{OURS, Store};

/// How much is copied at once.
const PIECE: usize = 1 << 20;

impl Store {
    /// Held while the data are changed. A snapshot waits for it, and it for a snapshot.
    pub(super) fn change(&self) -> RwLockReadGuard<'_, ()> {
        self.changes.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Copies the data into a new file, which a store can be opened from. Writes and discards wait
    /// meanwhile, so that all of it is of one moment. A store in a file whose file system can share
    /// blocks is copied at once. The file appears when it is whole.
    ///
    /// # Errors
    /// If there is such a file, if it can't be made or written, and if the drive was mapped
    /// beforehand: then it holds a pattern that takes no space here and would there.
    pub(crate) fn snapshot(&self, to: &Path) -> io::Result<()> {
        if to.symlink_metadata().is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "there is such a file already; name a new one",
            ));
        }
        let directory = to.parent().unwrap_or(Path::new("/"));
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let made = openat(CWD, directory, flags, Mode::RUSR | Mode::WUSR);
        let copy = File::from(made.map_err(|errno| match errno {
            Errno::OPNOTSUPP | Errno::ISDIR => io::Error::new(
                io::ErrorKind::Unsupported,
                "the file system there makes no file without a name; choose a place on ext4, XFS, \
                 btrfs or tmpfs",
            ),
            errno => errno.into(),
        })?);
        self.copy_to(&copy)?;
        copy.sync_all()?;
        // Without it `lab up --store` needs --force.
        let _ = fsetxattr(&copy, OURS, b"1", XattrFlags::empty());
        let unnamed = format!("/proc/self/fd/{}", copy.as_raw_fd());
        Ok(linkat(CWD, unnamed, CWD, to, AtFlags::SYMLINK_FOLLOW)?)
    }

    fn copy_to(&self, copy: &File) -> io::Result<()> {
        let still = self.changes.write();
        let _still = still.unwrap_or_else(PoisonError::into_inner);
        let over = self.lock();
        if !over.patterned.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the drive was made with --premapped, and what nobody wrote since takes no space \
                 that could be copied",
            ));
        }
        let freed = over.freed.clone();
        drop(over);
        copy.set_len(self.size)?;
        if ioctl_ficlone(copy, &self.file).is_err() {
            let mut buffer = vec![0; PIECE];
            for range in self.data()? {
                let mut at = range.start;
                while at < range.end {
                    let len = (range.end - at).min(PIECE as u64) as usize;
                    self.file.read_exact_at(&mut buffer[..len], at)?;
                    copy.write_all_at(&buffer[..len], at)?;
                    at += len as u64;
                }
            }
        }
        for range in freed.iter() {
            punch(copy, &range)?;
        }
        Ok(())
    }
}
