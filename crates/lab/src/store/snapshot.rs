//! A copy of the data as they are at one moment.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLockReadGuard};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, XattrFlags, fsetxattr, ioctl_ficlone, linkat, openat,
};
use rustix::io::Errno;
use ssd::extents::Extents;

use super::copy::Copy;
use super::sweep::punch;
use super::{OURS, Store, lock};

/// A snapshot that has begun: the moment is set, and the data need not be copied yet.
#[derive(Debug)]
pub(crate) struct Begun {
    copy: Arc<Copy>,
    /// Ranges that were discarded and not punched out at that moment.
    freed: Extents,
}

impl Store {
    /// Held while the data are changed. The beginning of a snapshot waits for it.
    pub(super) fn change(&self) -> RwLockReadGuard<'_, ()> {
        self.changes.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Before the file changes in a range: snapshots under way copy it first.
    pub(super) fn preserve(&self, range: &Range<u64>) {
        // Not under the lock: copying takes time.
        let copies = lock(&self.copies).clone();
        for copy in copies {
            copy.preserve(&self.file, range);
        }
    }

    /// Copies the data into a new file, which a store can be opened from. All of it is of the
    /// moment at which this begins; the data may change meanwhile. A store in a file whose file
    /// system can share blocks is copied at once. The file appears when it is whole.
    ///
    /// # Errors
    /// If there is such a file, if it can't be made or written, and if the drive was mapped
    /// beforehand. Such a drive holds a pattern that takes no space here, and would take it there.
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
        let file = File::from(made.map_err(|errno| match errno {
            Errno::OPNOTSUPP | Errno::ISDIR => io::Error::new(
                io::ErrorKind::Unsupported,
                "the file system there makes no file without a name; choose a place on ext4, XFS, \
                 btrfs or tmpfs",
            ),
            errno => errno.into(),
        })?);
        let begun = self.begin_snapshot(file)?;
        let copied = self.finish_snapshot(begun)?;
        let file = copied.file();
        file.sync_all()?;
        // Without it `lab up --store` needs --force.
        let _ = fsetxattr(file, OURS, b"1", XattrFlags::empty());
        let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(linkat(CWD, unnamed, CWD, to, AtFlags::SYMLINK_FOLLOW)?)
    }

    /// Sets a snapshot's moment. Until [`Store::finish_snapshot`] every change copies first what
    /// it overwrites.
    pub(crate) fn begin_snapshot(&self, to: File) -> io::Result<Begun> {
        to.set_len(self.size)?;
        // Sharing blocks writes out the file first: the less is left then, the shorter others wait.
        let _ = self.file.sync_data();
        let still = self.changes.write();
        let _still = still.unwrap_or_else(PoisonError::into_inner);
        let shared = ioctl_ficlone(&to, &self.file).is_ok();
        // The sweeper punches out what is freed, and looks at both under this lock.
        let over = self.lock();
        if !over.patterned.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the drive was made with premapped=true, and what was not written since takes no space \
                 that could be copied",
            ));
        }
        let copy = Arc::new(Copy::new(to, self.size));
        if shared {
            copy.skip_all();
        }
        lock(&self.copies).push(Arc::clone(&copy));
        Ok(Begun {
            copy,
            freed: over.freed.clone(),
        })
    }

    /// Copies what of a snapshot isn't copied yet.
    pub(crate) fn finish_snapshot(&self, begun: Begun) -> io::Result<Arc<Copy>> {
        let Begun { copy, freed } = begun;
        let done = copy.finish(&self.file);
        lock(&self.copies).retain(|other| !Arc::ptr_eq(other, &copy));
        done?;
        for range in freed.iter() {
            punch(copy.file(), &range)?;
        }
        Ok(copy)
    }
}
