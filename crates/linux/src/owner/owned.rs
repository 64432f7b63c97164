//! A directory of ours for another purpose than a run, held in the same way: by
//! a locked owner file in it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::OwnerError;
use super::claim::{Owner, create_in};
use super::clear::{entries, is_our_file};
use super::names::{self, OWNER, OWNER_NEW};
use crate::patience::while_is;

/// So long it may take until a file is gone that was unlinked while it was open, and closed since:
/// NFS keeps it as `.nfs*`, FUSE as `.fuse_hidden*`.
const SOON: Duration = Duration::from_millis(100);

/// A directory that this process alone works in. Dropping it releases it and removes nothing.
#[derive(Debug)]
pub struct OwnedDirectory {
    directory: OwnedFd,
    name: String,
    /// Holds the lock on `owner`; none once that is removed.
    lock: Option<OwnedFd>,
}

/// The result of an attempt to hold a directory that bears a name like ours.
#[derive(Debug)]
pub enum Found {
    /// Its maker is gone, and we hold it now.
    Owned(OwnedDirectory),
    /// A living process holds it.
    InUse {
        /// The process that made it.
        pid: Option<u32>,
    },
    /// It isn't certain that it is ours. Why, to be read after "because".
    Left(String),
    /// It isn't there any more, or was empty and has been removed.
    Gone,
}

impl OwnedDirectory {
    /// Creates a directory `PREFIX????????`, with eight random letters and
    /// digits, for this user alone. `parent_path` is for messages.
    ///
    /// # Errors
    /// Where nothing can be created in the parent, or what was created isn't this user's
    /// alone: whoever may rename it there can have put another in its place.
    pub fn create(
        parent: &OwnedFd,
        parent_path: &Path,
        prefix: &str,
    ) -> Result<OwnedDirectory, OwnerError> {
        let (name, directory, lock) = create_in(parent, parent_path, prefix)?;
        let path = parent_path.join(&name);
        let owned = OwnedDirectory {
            directory,
            name,
            lock: Some(lock),
        };
        let Err(because) = is_private(&owned.directory) else {
            return Ok(owned);
        };
        let _ = owned.remove(parent);
        let because = io::Error::other(because);
        Err(OwnerError::new("use the directory", path, because))
    }

    /// Holds a directory that a process has left which is gone. It must belong to
    /// this user, be writable by nobody else, and have an owner file of our form.
    pub fn find(parent: &OwnedFd, name: &str) -> Found {
        match try_claim(parent, name) {
            Ownership::Gone => Found::Gone,
            Ownership::Left(because) => Found::Left(because),
            Ownership::InUse { pid } => Found::InUse { pid },
            Ownership::Unclaimed { directory } => {
                // Killed before it had an owner file: then it is empty, but for one without its
                // name yet that nobody is writing.
                if is_left_alone(&directory) {
                    let _ = rustix::fs::unlinkat(&directory, OWNER_NEW, AtFlags::empty());
                }
                match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
                    Ok(()) | Err(Errno::NOENT) => Found::Gone,
                    Err(_) => Found::Left("it has no owner file that says it is ours".to_owned()),
                }
            }
            Ownership::Ours {
                directory, lock, ..
            } => Found::Owned(OwnedDirectory {
                directory,
                name: name.to_owned(),
                lock: Some(lock),
            }),
        }
    }

    /// The open directory.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Its name in its parent.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Removes the owner file, and frees its block; the directory must hold nothing else.
    ///
    /// # Errors
    /// When something else is in it: then it stays, and is still ours.
    pub fn disown(&mut self) -> Result<(), Errno> {
        let others = entries(&self.directory)?;
        if others.iter().any(|name| name != OWNER && name != OWNER_NEW) {
            return Err(Errno::NOTEMPTY);
        }
        for name in [OWNER_NEW, OWNER] {
            match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
        }
        // A block is freed when nobody has its file open any more.
        self.lock = None;
        Ok(())
    }

    /// Removes the owner file, unless that was done before, and the directory, which must hold
    /// nothing else.
    ///
    /// # Errors
    /// When something else is in it: then all stays, and is still ours if it wasn't disowned.
    pub fn remove(mut self, parent: &OwnedFd) -> Result<(), Errno> {
        if self.lock.is_some() {
            self.disown()?;
        }
        remove_empty(parent, &self.name, SOON)
    }
}

/// Removes a directory in which nothing is, or nothing but what goes soon: so long it is tried.
fn remove_empty(parent: &OwnedFd, name: &str, soon: Duration) -> Result<(), Errno> {
    let removed = while_is(Errno::NOTEMPTY, soon, || {
        rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
    });
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// Whether a name is this prefix and eight letters or digits.
pub fn is_named(name: &str, prefix: &str) -> bool {
    names::begins(name, prefix)
}

/// Whose a directory is.
pub(super) enum Ownership {
    /// It vanished meanwhile.
    Gone,
    /// It isn't certain that it is ours. Why, to be read after "because".
    Left(String),
    /// A living process holds it.
    InUse { pid: Option<u32> },
    /// It is this user's, and has no owner file.
    Unclaimed { directory: OwnedFd },
    /// It is ours, and we hold it now.
    Ours {
        directory: OwnedFd,
        lock: OwnedFd,
        pid: Option<u32>,
    },
}

/// Whether a directory is this user's, and nobody else may write to it; else why not.
fn is_private(directory: &OwnedFd) -> Result<(), String> {
    match rustix::fs::fstat(directory) {
        Err(errno) => Err(format!("it can't be examined: {errno}")),
        Ok(stat) if stat.st_uid != rustix::process::geteuid().as_raw() => {
            Err("it belongs to another user".to_owned())
        }
        Ok(stat) if stat.st_mode & 0o022 != 0 => Err("others may write to it".to_owned()),
        Ok(_) => Ok(()),
    }
}

/// Whether an owner file without its name yet is all that a directory of ours holds, and whoever
/// began to write it is gone.
fn is_left_alone(directory: &OwnedFd) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    entries(directory).is_ok_and(|names| names.iter().all(|name| name == OWNER_NEW))
        && is_our_file(directory, OWNER_NEW)
        && rustix::fs::openat(directory, OWNER_NEW, flags, Mode::empty())
            .and_then(|file| rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive))
            .is_ok()
}

/// Opens a directory once, looks whose it is, and locks its owner file.
pub(super) fn try_claim(parent: &OwnedFd, name: &str) -> Ownership {
    let left = |because: &str| Ownership::Left(because.to_owned());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::openat(parent, name, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ownership::Gone,
        Err(Errno::NOTDIR | Errno::LOOP) => return left("it is not a directory"),
        Err(errno) => return left(&format!("it can't be opened: {errno}")),
    };
    if let Err(because) = is_private(&directory) {
        return Ownership::Left(because);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let owner = match rustix::fs::openat(&directory, OWNER, flags, Mode::empty()) {
        Ok(owner) => owner,
        Err(_) => return Ownership::Unclaimed { directory },
    };
    if !is_our_file(&directory, OWNER) {
        return left("its owner file is not a file of ours");
    }
    let file = File::from(owner);
    let form = Owner::read(&file);
    let pid = form.as_ref().map(|owner| owner.pid);
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) if pid.is_some() => return Ownership::InUse { pid },
        Err(errno) => return left(&format!("its owner file can't be locked: {errno}")),
    }
    if form.is_none() {
        return left("its owner file doesn't have our form");
    }
    let lock = file.into();
    Ownership::Ours {
        directory,
        lock,
        pid,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A directory that is held, in a parent of its own.
    fn held() -> (tempfile::TempDir, OwnedFd, OwnedDirectory, PathBuf) {
        let parent = tempfile::tempdir().unwrap();
        let open = OwnedFd::from(File::open(parent.path()).unwrap());
        let held = OwnedDirectory::create(&open, parent.path(), ".held-").unwrap();
        let path = parent.path().join(held.name());
        (parent, open, held, path)
    }

    #[test]
    fn what_goes_soon_is_waited_for() {
        let (_parent, open, mut held, path) = held();
        held.disown().unwrap();
        // As NFS keeps what was unlinked while it was open.
        let kept = path.join(".nfs0001");
        fs::write(&kept, "").unwrap();
        std::thread::scope(|threads| {
            threads.spawn(|| {
                std::thread::sleep(Duration::from_millis(30));
                fs::remove_file(&kept).unwrap();
            });
            remove_empty(&open, held.name(), Duration::from_secs(60)).unwrap();
        });
        assert!(!path.exists());
        // Whoever finds it gone has nothing to do.
        held.remove(&open).unwrap();
    }

    #[test]
    fn what_stays_keeps_the_directory() {
        for disowned in [false, true] {
            let (_parent, open, mut held, path) = held();
            if disowned {
                held.disown().unwrap();
            }
            fs::write(path.join("theirs"), "").unwrap();
            assert_eq!(held.remove(&open), Err(Errno::NOTEMPTY));
            assert!(path.join("theirs").exists());
            assert_eq!(path.join(OWNER).exists(), !disowned);
        }
    }
}
