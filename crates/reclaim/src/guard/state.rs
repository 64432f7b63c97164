//! The directory of one guard's state, in a place where only root can rename or plant anything.
//!
//! It lies below `/var/lib/trimbench/guard`, or in the directory that systemd names
//! (`StateDirectory=`). Its name is the number of the file system's device, which is the same
//! through every mount point. The subvolumes of a btrfs have numbers of their own, so there it is the UUID.
//! The guard keeps the directory locked (`flock`) as long as it runs.
//!
//! Each directory on the way is opened by itself, and no symbolic link is followed. Each must belong
//! to root, and no other user may write to it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use linux::SysRoot;
use linux::mounts::DeviceNumber;
use linux::patience;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{note, orders, status};

/// Where the states lie, unless systemd names another directory.
const DIRECTORY: &str = "/var/lib/trimbench/guard";

/// A command that only looks holds the lock for less than this.
const LOOKS_FOR: Duration = Duration::from_secs(1);

/// The mode bits that let the group or other users write, and the one of a directory in which
/// users rename and remove only their own files.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

const OPEN: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The directory of one guard's state.
#[derive(Debug)]
pub(super) struct State {
    above: OwnedFd,
    name: String,
    directory: OwnedFd,
}

/// Returns where the states lie.
pub(super) fn home() -> PathBuf {
    let given = std::env::var("STATE_DIRECTORY").unwrap_or_default();
    // systemd names several, with colons between them.
    let first = given.split(':').next().map(PathBuf::from);
    first
        .filter(|path| path.is_absolute())
        .unwrap_or_else(|| DIRECTORY.into())
}

impl State {
    /// Makes the directory and locks it; `None` if another process has the lock.
    ///
    /// # Errors
    /// If one on the way can't be made or opened, or another user than root could change it.
    pub(super) fn lock(name: &str) -> io::Result<Option<State>> {
        let above = open(&home(), true)?;
        sweep(&above);
        loop {
            let opened = below(above.as_fd(), OsStr::new(name), true)?;
            let lock = || rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive);
            match patience::while_is(Errno::WOULDBLOCK, LOOKS_FOR, lock) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            }
            let state = State {
                above: above.try_clone()?,
                name: name.to_owned(),
                directory: opened,
            };
            // An ended guard may have removed it between the two calls.
            if state.is_in_place() {
                return Ok(Some(state));
            }
        }
    }

    /// Finds the directory that a guard has made; `None` where there is none.
    ///
    /// # Errors
    /// As [`lock`](State::lock).
    pub(super) fn find(name: &str) -> io::Result<Option<State>> {
        let none = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let above = match open(&home(), false) {
            Err(error) if none(&error) => return Ok(None),
            opened => opened?,
        };
        match below(above.as_fd(), OsStr::new(name), false) {
            Err(error) if none(&error) => Ok(None),
            opened => Ok(Some(State {
                directory: opened?,
                name: name.to_owned(),
                above,
            })),
        }
    }

    /// Returns the states of all guards that run, by name.
    ///
    /// # Errors
    /// As [`lock`](State::lock).
    pub(super) fn all() -> io::Result<Vec<State>> {
        let above = match open(&home(), false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut names = names(&above);
        names.sort();
        let found = names.iter().filter_map(|name| State::find(name).ok()?);
        Ok(found.filter(State::is_locked).collect())
    }

    /// Whether a guard has the lock.
    pub(super) fn is_locked(&self) -> bool {
        let lock = rustix::fs::flock(&self.directory, FlockOperation::NonBlockingLockShared);
        let _ = rustix::fs::flock(&self.directory, FlockOperation::Unlock);
        lock == Err(Errno::WOULDBLOCK)
    }

    /// Whether the directory still has its name. Root may have renamed it.
    pub(super) fn is_in_place(&self) -> bool {
        let Ok(own) = rustix::fs::fstat(&self.directory) else {
            return false;
        };
        rustix::fs::statat(&self.above, &self.name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|named| (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino))
    }

    /// The open directory.
    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Removes all but the notes, and the directory if there are none.
    pub(super) fn close(self) {
        orders::clear(self.directory());
        status::remove(self.directory());
        if !note::is_there(self.directory()) && self.is_in_place() {
            let _ = rustix::fs::unlinkat(&self.above, &self.name, AtFlags::REMOVEDIR);
        }
    }
}

/// The names in a directory that are text.
fn names(directory: &OwnedFd) -> Vec<String> {
    let entries = rustix::fs::Dir::read_from(directory).into_iter().flatten();
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(str::to_owned))
        .filter(|name| !name.starts_with('.'))
        .collect()
}

/// Removes the states of file systems that are not mounted any more and that no guard has.
fn sweep(above: &OwnedFd) {
    let Ok(mounts) = linux::mounts::list(&SysRoot::host()) else {
        return;
    };
    let is_gone = |name: &str| {
        let device = DeviceNumber::parse(name);
        device.is_some_and(|device| mounts.iter().all(|mount| mount.device != device))
    };
    for name in names(above).into_iter().filter(|name| is_gone(name)) {
        let opened = below(above.as_fd(), OsStr::new(&name), false);
        let locked = opened.and_then(|directory| {
            rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
            let above = above.try_clone()?;
            Ok(State {
                above,
                name,
                directory,
            })
        });
        if let Ok(state) = locked {
            note::remove(state.directory());
            state.close();
        }
    }
}

/// Opens a directory by its absolute path, one component after the other.
fn open(path: &Path, make: bool) -> io::Result<OwnedFd> {
    let mut here = rustix::fs::openat(CWD, "/", OPEN, Mode::empty())?;
    for component in path.components() {
        if let Component::Normal(name) = component {
            here = below(here.as_fd(), name, make).map_err(|error| {
                let why = crate::error::words(&error);
                io::Error::new(
                    error.kind(),
                    format!("{}: {why}", record::units::names::quoted(path)),
                )
            })?;
        }
    }
    Ok(here)
}

/// Opens a directory below an open one, and makes it if it is missing.
fn below(above: BorrowedFd<'_>, name: &OsStr, make: bool) -> io::Result<OwnedFd> {
    let open = || rustix::fs::openat(above, name, OPEN, Mode::empty());
    let opened = match open() {
        Err(Errno::NOENT) if make => {
            match rustix::fs::mkdirat(above, name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
            open()
        }
        opened => opened,
    };
    let unsafe_ = |why: &str| {
        let name = record::units::names::quoted(Path::new(name));
        Err(io::Error::other(format!(
            "{name} {why}; remove it, or name another directory in STATE_DIRECTORY"
        )))
    };
    let opened = match opened {
        Err(Errno::NOTDIR | Errno::LOOP) => return unsafe_("is no directory"),
        opened => opened?,
    };
    let stat = rustix::fs::fstat(&opened)?;
    match (stat.st_uid, stat.st_mode) {
        (0, mode) if mode & OTHERS_WRITE == 0 || mode & STICKY != 0 => Ok(opened),
        (0, _) => unsafe_("can be written to by other users"),
        _ => unsafe_("does not belong to root"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn refused(path: &Path) -> String {
        open(path, true).unwrap_err().to_string()
    }

    #[test]
    fn the_state_of_a_file_system_that_is_gone_is_removed() {
        if testkit::gate::lacks(&[testkit::gate::Need::Root]) {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let above = open(home.path(), false).unwrap();
        let mounted = linux::mounts::list(&SysRoot::host()).unwrap();
        let present = mounted[0].device.to_string();
        // No device has such a number.
        for name in ["4095:1", "4095:2", &present, "btrfs-1"] {
            let state = below(above.as_fd(), OsStr::new(name), true).unwrap();
            crate::directory::make(&state, "debt-a", OFlags::empty()).unwrap();
        }
        let guarded = below(above.as_fd(), OsStr::new("4095:2"), false).unwrap();
        rustix::fs::flock(&guarded, FlockOperation::NonBlockingLockExclusive).unwrap();
        sweep(&above);
        let left = fs::read_dir(home.path()).unwrap();
        let mut left: Vec<_> = left
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let mut expected = ["4095:2", &present, "btrfs-1"];
        expected.sort();
        assert_eq!(left, expected);
    }

    #[test]
    fn a_directory_that_another_user_could_change_is_refused() {
        if testkit::gate::lacks(&[testkit::gate::Need::Root]) {
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let (one, two) = (home.path().join("one"), home.path().join("one/two"));
        open(&two, true).unwrap();
        assert_eq!(
            fs::metadata(&two).unwrap().permissions().mode() & 0o777,
            0o700
        );
        chown(&one, Some(65_534), None).unwrap();
        assert!(refused(&two).contains("'one' does not belong to root"));
        chown(&one, Some(0), None).unwrap();
        for mode in [0o770, 0o707] {
            fs::set_permissions(&one, Permissions::from_mode(mode)).unwrap();
            assert!(refused(&two).contains("'one' can be written to by other users"));
        }
        // In one with the sticky bit, others rename only what is theirs.
        fs::set_permissions(&one, Permissions::from_mode(0o1777)).unwrap();
        open(&two, true).unwrap();
        symlink(&two, home.path().join("link")).unwrap();
        assert!(refused(&home.path().join("link")).contains("is no directory"));
        assert!(refused(&home.path().join("link/three")).contains("is no directory"));
        fs::write(home.path().join("file"), "").unwrap();
        assert!(refused(&home.path().join("file")).contains("is no directory"));
    }
}
