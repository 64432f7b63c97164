//! Finding and removing what a killed run left.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::OwnerError;
use super::claim::Owner;
use super::names::{self, Name, OWNER, OWNER_NEW};

/// What a sweep did with a directory that bears a name like ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Swept {
    /// It was ours and nobody held it: removed.
    Removed {
        /// The directory.
        path: PathBuf,
        /// Bytes that its files took on disk.
        bytes: u64,
        /// The process that had made it.
        pid: Option<u32>,
    },
    /// A living process holds it.
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process that made it.
        pid: Option<u32>,
    },
    /// Left (or what is left of it), because it isn't certain that it is ours.
    Left {
        /// The directory.
        path: PathBuf,
        /// Why, to be read after "because".
        because: String,
    },
}

/// Looks through a directory for directories of ours that nobody holds, and
/// removes them. Reports each directory that bears a name like ours.
///
/// Removing a leftover frees its bytes, so discards may follow: let them pass
/// before measuring.
///
/// # Errors
/// When the directory can't be read.
pub fn sweep(parent: impl AsRef<Path>) -> Result<Vec<Swept>, OwnerError> {
    let parent_path = parent.as_ref();
    let failed = |errno: Errno| OwnerError::new("look for leftovers in", parent_path, errno);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::open(parent_path, flags, Mode::empty()).map_err(failed)?;
    let mut found = entries(&parent).map_err(failed)?;
    found.retain(|name| names::is_directory(name));
    found.sort();
    Ok(found
        .iter()
        .filter_map(|name| sweep_one(&parent, name, parent_path.join(name)))
        .collect())
}

/// `None` when the directory vanished meanwhile.
fn sweep_one(parent: &OwnedFd, name: &str, path: PathBuf) -> Option<Swept> {
    let left = |path: PathBuf, because: &str| {
        Some(Swept::Left {
            path,
            because: because.to_owned(),
        })
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = match rustix::fs::openat(parent, name, flags, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return None,
        Err(Errno::NOTDIR | Errno::LOOP) => return left(path, "it is not a directory"),
        Err(errno) => return left(path, &format!("it can't be opened: {errno}")),
    };
    match rustix::fs::fstat(&directory) {
        Err(errno) => return left(path, &format!("it can't be examined: {errno}")),
        Ok(stat) if stat.st_uid != rustix::process::geteuid().as_raw() => {
            return left(path, "it belongs to another user");
        }
        Ok(stat) if stat.st_mode & 0o022 != 0 => {
            return left(path, "others may write to it");
        }
        Ok(_) => {}
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let owner = match rustix::fs::openat(&directory, OWNER, flags, Mode::empty()) {
        Ok(owner) => owner,
        Err(_) => return without_owner(parent, name, &directory, path),
    };
    if !is_our_file(&directory, OWNER) {
        return left(path, "its owner file is not a file of ours");
    }
    let file = File::from(owner);
    let form = Owner::read(&file);
    let pid = form.as_ref().map(|owner| owner.pid);
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) if pid.is_some() => return Some(Swept::InUse { path, pid }),
        Err(errno) => return left(path, &format!("its owner file can't be locked: {errno}")),
    }
    if form.is_none() {
        return left(path, "its owner file doesn't have our form");
    }
    let removed = empty(&directory, &path)
        .and_then(|bytes| remove_empty(parent, name, &path).map(|()| bytes));
    match removed {
        Ok(bytes) => Some(Swept::Removed { path, bytes, pid }),
        Err(error) => left(path, &error.to_string()),
    }
}

/// A run that is killed between making the directory and the owner file
/// leaves an empty directory; it holds nobody's data, so it may go. One that
/// isn't empty, nobody knows whose it is.
fn without_owner(
    parent: &OwnedFd,
    name: &str,
    directory: &OwnedFd,
    path: PathBuf,
) -> Option<Swept> {
    if entries(directory).is_ok_and(|names| names.is_empty())
        && rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).is_ok()
    {
        return Some(Swept::Removed {
            path,
            bytes: 0,
            pid: None,
        });
    }
    // The maker may have finished its claim, or removed all, meanwhile.
    Some(Swept::Left {
        path,
        because: "it has no owner file that says it is ours".to_owned(),
    })
}

/// Removes all files of ours from an open directory, the owner file last, and
/// returns the bytes they took. Whatever else is in it stays, and is an error
/// with the owner file still in place.
pub(super) fn empty(directory: &OwnedFd, path: &Path) -> Result<u64, OwnerError> {
    let failed = |errno: Errno| OwnerError::new("empty", path, errno);
    let mut bytes = 0u64;
    let mut strangers = Vec::new();
    let names = match entries(directory) {
        // Somebody removed the directory itself: there is nothing left to do.
        Err(Errno::NOENT) => return Ok(0),
        names => names.map_err(failed)?,
    };
    for name in names {
        if name == OWNER {
            continue;
        }
        let known = Name::parse(&name).is_some() || name == OWNER_NEW;
        if !known || !is_our_file(directory, &name) {
            strangers.push(name);
            continue;
        }
        let stat = rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW);
        match rustix::fs::unlinkat(directory, &name, AtFlags::empty()) {
            Ok(()) => {
                // A file with a second name is freed, and counted, with its last one.
                let blocks = stat
                    .ok()
                    .filter(|stat| stat.st_nlink <= 1)
                    .map_or(0, |stat| u64::try_from(stat.st_blocks).unwrap_or(0));
                bytes = bytes.saturating_add(blocks.saturating_mul(512));
            }
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(OwnerError::new("remove", path.join(&name), errno)),
        }
    }
    if let Some(first) = strangers.first() {
        let others = format!("{first:?} in it is not ours and stays");
        return Err(OwnerError::new(
            "remove",
            path,
            std::io::Error::other(others),
        ));
    }
    match rustix::fs::unlinkat(directory, OWNER, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(bytes),
        Err(errno) => Err(OwnerError::new("remove", path.join(OWNER), errno)),
    }
}

/// Removes the directory itself, which must be empty.
pub(super) fn remove_empty(parent: &OwnedFd, name: &str, path: &Path) -> Result<(), OwnerError> {
    match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(OwnerError::new("remove", path, errno)),
    }
}

/// Whether a name is a regular file of this user, and no link.
fn is_our_file(directory: &OwnedFd, name: &str) -> bool {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_uid == rustix::process::geteuid().as_raw()
    })
}

/// The names in an open directory. One that isn't text can't be ours, and is
/// rendered so that it doesn't become so.
fn entries(directory: impl AsFd) -> Result<Vec<String>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(names)
}
