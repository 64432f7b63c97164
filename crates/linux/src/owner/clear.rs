//! Removing what is ours, and nothing else, from an open directory.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::OwnerError;
use super::names::{Folder, Name, OWNER, OWNER_NEW, is_trash};

/// Removes all files and folders of ours from an open directory, the owner file
/// last, and returns the bytes they took. Whatever else is in it stays, and is
/// an error with the owner file still in place.
pub(super) fn empty(directory: &OwnedFd, path: &Path) -> Result<u64, OwnerError> {
    let mut found = Found::default();
    for name in names_in(directory, path)? {
        if name == OWNER {
            continue;
        }
        match name.to_str() {
            Some(text) if Folder::parse(text).is_some() || is_trash(text) => {
                found.folder(directory, text, path.join(text))?;
            }
            Some(text) if Name::parse(text).is_some() || text == OWNER_NEW => {
                found.file(directory, &name, path)?;
            }
            _ => found.strangers.push(path.join(name)),
        }
    }
    found.no_strangers(path)?;
    match rustix::fs::unlinkat(directory, OWNER, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(found.bytes),
        Err(errno) => Err(OwnerError::new("remove", path.join(OWNER), errno)),
    }
}

/// Removes all files from one folder of an open directory and leaves the folder.
/// Returns the bytes they took.
pub(super) fn empty_folder(
    directory: &OwnedFd,
    name: &str,
    path: &Path,
) -> Result<u64, OwnerError> {
    let mut found = Found::default();
    found.files_of_folder(directory, name, &path.join(name))?;
    found.no_strangers(path)?;
    Ok(found.bytes)
}

/// Removes the directory itself, which must be empty.
pub(super) fn remove_empty(parent: &OwnedFd, name: &str, path: &Path) -> Result<(), OwnerError> {
    match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(OwnerError::new("remove", path, errno)),
    }
}

/// The names that were removed, and those that were not.
#[derive(Debug, Default)]
struct Found {
    /// Taken on disk by what was removed.
    bytes: u64,
    /// Files that aren't ours.
    strangers: Vec<PathBuf>,
}

impl Found {
    /// Removes a file of ours; `path` is its directory's.
    fn file(&mut self, directory: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), OwnerError> {
        if !is_our_file(directory, name) {
            self.strangers.push(path.join(name));
            return Ok(());
        }
        let stat = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        match rustix::fs::unlinkat(directory, name, AtFlags::empty()) {
            Ok(()) => {
                // A file with a second name is freed, and counted, with its last one.
                let blocks = stat
                    .ok()
                    .filter(|stat| stat.st_nlink <= 1)
                    .map_or(0, |stat| u64::try_from(stat.st_blocks).unwrap_or(0));
                self.bytes = self.bytes.saturating_add(blocks.saturating_mul(512));
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(OwnerError::new("remove", path.join(name), errno)),
        }
    }

    /// Removes a folder of ours with all regular files in it. We make no folders
    /// within folders, so another directory in it is a stranger.
    fn folder(&mut self, directory: &OwnedFd, name: &str, path: PathBuf) -> Result<(), OwnerError> {
        let before = self.strangers.len();
        self.files_of_folder(directory, name, &path)?;
        if self.strangers.len() > before {
            return Ok(());
        }
        remove_empty(directory, name, &path)
    }

    /// Removes all regular files in a folder of ours.
    fn files_of_folder(
        &mut self,
        directory: &OwnedFd,
        name: &str,
        path: &Path,
    ) -> Result<(), OwnerError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                self.strangers.push(path.to_owned());
                return Ok(());
            }
            Err(errno) => return Err(OwnerError::new("empty", path, errno)),
        };
        if !is_our_folder(directory, &folder) {
            self.strangers.push(path.to_owned());
            return Ok(());
        }
        for file in names_in(&folder, path)? {
            self.file(&folder, &file, path)?;
        }
        Ok(())
    }

    /// An error that names the first stranger below `path`, if there is one.
    fn no_strangers(&self, path: &Path) -> Result<(), OwnerError> {
        let Some(first) = self.strangers.first() else {
            return Ok(());
        };
        let inside = first.strip_prefix(path).unwrap_or(first);
        let others = format!("{inside:?} in it is not ours and stays");
        Err(OwnerError::new(
            "remove",
            path,
            std::io::Error::other(others),
        ))
    }
}

/// Whether a name is a regular file of this user, and no link.
pub(super) fn is_our_file(directory: &OwnedFd, name: impl rustix::path::Arg) -> bool {
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_uid == rustix::process::geteuid().as_raw()
    })
}

/// Whether a folder is this user's, writable by nobody else, and on the same
/// file system as the directory it is in: nothing that was mounted there.
fn is_our_folder(directory: &OwnedFd, folder: &OwnedFd) -> bool {
    let (Ok(around), Ok(stat)) = (rustix::fs::fstat(directory), rustix::fs::fstat(folder)) else {
        return false;
    };
    stat.st_uid == rustix::process::geteuid().as_raw()
        && stat.st_mode & 0o022 == 0
        && stat.st_dev == around.st_dev
}

/// The names in a directory of ours; none when another process has removed it.
fn names_in(directory: &OwnedFd, path: &Path) -> Result<Vec<OsString>, OwnerError> {
    match entries(directory) {
        Err(Errno::NOENT) => Ok(Vec::new()),
        names => names.map_err(|errno| OwnerError::new("empty", path, errno)),
    }
}

/// The names in an open directory.
pub(super) fn entries(directory: impl AsFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsString::from_vec(name.to_vec()));
        }
    }
    Ok(names)
}
