//! A place to mount on that is unmounted and removed, however its process ends.
//!
//! A child process ([`Watcher`]) waits for the end of this one, be it by `kill -9`, and unmounts.
//! If both are killed, the next [`MountPoint::make`] does it: a lock that the kernel drops tells
//! which places are abandoned.

use std::ffi::CString;
use std::fmt::Display;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use crate::files::{make_own_directory, own_directory};
use crate::patience::while_is;
use crate::watcher::{Undo, Watcher};

/// For so long a file that was just closed may keep a mount busy: the kernel closes what a killed
/// process had open a moment later.
const BUSY_FOR: Duration = Duration::from_secs(10);

/// A directory to mount on.
#[derive(Debug)]
pub struct MountPoint {
    directory: PathBuf,
    lock_file: PathBuf,
    watcher: Option<Watcher>,
    /// Held as long as the place is in use.
    _lock: File,
}

/// Takes a place away.
struct Removal {
    directory: CString,
    lock_file: CString,
}

impl Undo for Removal {
    fn undo(&self, _: BorrowedFd<'_>) -> bool {
        while rustix::mount::unmount(self.directory.as_c_str(), UnmountFlags::DETACH).is_ok() {}
        let gone = rustix::fs::rmdir(self.directory.as_c_str());
        let _ = rustix::fs::unlink(self.lock_file.as_c_str());
        matches!(gone, Ok(()) | Err(Errno::NOENT))
    }
}

impl MountPoint {
    /// Makes the directory `base/NUMBER`, of this process's number, and takes away what killed
    /// processes left in `base`.
    ///
    /// # Errors
    /// When it can't be made or watched.
    pub fn make(base: &Path) -> io::Result<MountPoint> {
        make_own_directory(base)?;
        sweep(base);
        let number = std::process::id();
        let (directory, lock_file) = (base.join(number.to_string()), lock_file(base, number));
        let lock = locked(&lock_file)?.ok_or(Errno::WOULDBLOCK)?;
        fs::create_dir_all(&directory)?;
        let removal = Removal {
            directory: c_string(&directory)?,
            lock_file: c_string(&lock_file)?,
        };
        let watcher = Watcher::start(&lock, Some(lock.as_fd()), &removal)?;
        Ok(MountPoint {
            directory,
            lock_file,
            watcher: Some(watcher),
            _lock: lock,
        })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Mounts a device on it, with the options that the file system itself knows.
    ///
    /// # Errors
    /// The kernel's error; `EINVAL` for an option that it doesn't know.
    pub fn mount(&self, device: &Path, kind: &str, options: &str) -> io::Result<()> {
        let options = CString::new(options).map_err(io::Error::other)?;
        // A device that was just written to can be busy for a moment (udev).
        Ok(while_is(Errno::BUSY, BUSY_FOR, || {
            rustix::mount::mount(
                device,
                &self.directory,
                kind,
                MountFlags::empty(),
                Some(options.as_c_str()),
            )
        })?)
    }

    /// Unmounts; a place where nothing is mounted stays so.
    ///
    /// # Errors
    /// The kernel's error, when it is still in use after ten seconds.
    pub fn unmount(&self) -> io::Result<()> {
        let unmounted = while_is(Errno::BUSY, BUSY_FOR, || {
            rustix::mount::unmount(&self.directory, UnmountFlags::empty())
        });
        match unmounted {
            Err(Errno::INVAL) => Ok(()),
            done => Ok(done?),
        }
    }
}

impl Drop for MountPoint {
    fn drop(&mut self) {
        // The child unmounts and removes it, as it would if this process were killed.
        if let Some(watcher) = self.watcher.take() {
            watcher.restore();
        }
        let _ = fs::remove_file(&self.lock_file);
    }
}

/// Opens a file with a lock of its own; `None` while another process has it.
pub(crate) fn locked(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let file = options.open(path)?;
    let free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    Ok(free.then_some(file))
}

/// The lock's file of a thing of this name.
pub(crate) fn lock_file(base: &Path, name: impl Display) -> PathBuf {
    base.join(format!("{name}.lock"))
}

pub(crate) fn c_string(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

/// Takes away the places in `base` whose lock nobody holds: what killed processes left. A `base` in
/// which another user could have put places is left alone.
pub fn sweep(base: &Path) {
    if own_directory(base).is_err() {
        return;
    }
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let Ok(number) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let lock_file = lock_file(base, number);
        let lock = locked(&lock_file).ok().flatten();
        if let (Some(lock), Ok(directory), Ok(lock_file)) =
            (lock, c_string(&entry.path()), c_string(&lock_file))
        {
            let removal = Removal {
                directory,
                lock_file,
            };
            removal.undo(lock.as_fd());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_goes_with_its_process_and_with_the_next_one() {
        let base = tempfile::tempdir().unwrap();
        // Left by a process that was killed together with its watcher.
        fs::create_dir(base.path().join("4194305")).unwrap();
        fs::write(base.path().join("4194305.lock"), "").unwrap();
        fs::create_dir(base.path().join("of-somebody-else")).unwrap();
        let place = MountPoint::make(base.path()).unwrap();
        assert!(place.path().is_dir());
        assert!(!base.path().join("4194305").exists());
        place.unmount().unwrap_or_else(|error| {
            assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}");
        });
        drop(place);
        let left: Vec<_> = fs::read_dir(base.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
