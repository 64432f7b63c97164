//! A directory of our own inside the target, removed whatever happens.
//!
//! The directory is named `.trimbench-` and eight random letters and digits, and everything in it
//! bears a name from a fixed list. A program that names its files itself (a task, a deleter, fio)
//! has a [`Folder`] in it, where all regular files are ours and nothing else is. A file `owner`
//! says whose the directory is and is locked while that process lives; the kernel drops the lock
//! however the process ends. So a later start can tell leftovers (an owner file of our form that
//! nobody holds) from directories in use and from other people's.
//!
//! Files that aren't certainly ours are left and reported. Nothing here follows a symbolic link:
//! the directory is opened once, must belong to this user alone, and everything below it is named
//! relative to that open directory.
//!
//! ```
//! use linux::files::Caching;
//! use linux::owner::{Name, Swept, WorkDir, sweep};
//!
//! # let parent = std::env::temp_dir().join(format!("doc-{}", std::process::id()));
//! # std::fs::create_dir(&parent)?;
//! let work = WorkDir::create(&parent)?;
//! work.create_file(Name::Victim(1), Caching::Buffered)?;
//! assert!(matches!(sweep(&parent)?[..], [Swept::InUse { .. }]));
//! work.remove()?;
//! # std::fs::remove_dir(&parent)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod claim;
mod clear;
mod names;
mod owned;
mod sweep;

pub use names::{Folder, Name};
pub use owned::{Found, OwnedDirectory, is_named};
pub use sweep::{Other, Swept, others, sweep};

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, IFlags, Mode};

use crate::files::{self, Caching, FileError};

/// An error with our directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}: {source}", path = record::units::names::shown(path))]
pub struct OwnerError {
    /// The call that failed, e.g. `create`.
    pub action: &'static str,
    /// On what.
    pub path: PathBuf,
    /// Why it failed.
    pub source: io::Error,
}

impl OwnerError {
    fn new(action: &'static str, path: impl Into<PathBuf>, source: impl Into<io::Error>) -> Self {
        OwnerError {
            action,
            path: path.into(),
            source: source.into(),
        }
    }
}

/// A directory of our own. Dropping it removes it with all that we created in it.
#[derive(Debug)]
pub struct WorkDir {
    /// The directory that it is in, so that a renamed path leads nowhere else.
    parent: OwnedFd,
    directory: OwnedFd,
    name: String,
    path: PathBuf,
    /// Holds the lock on `owner`.
    _lock: OwnedFd,
    removed: bool,
}

impl WorkDir {
    /// Creates a directory with a random name in `parent`.
    pub fn create(parent: impl AsRef<Path>) -> Result<WorkDir, OwnerError> {
        claim::create(parent.as_ref())
    }

    /// The directory's path, as it was when it was created.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of one of its files, for messages and outside programs.
    pub fn path_of(&self, name: Name) -> PathBuf {
        self.path.join(name.to_string())
    }

    /// The open directory.
    pub fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// Lets btrfs overwrite files that are created from now on in place, where it can: not below a
    /// compressed directory. Other file systems do so anyway.
    pub fn overwrite_in_place(&self) {
        let flags = rustix::fs::ioctl_getflags(&self.directory);
        let _ = flags
            .and_then(|flags| rustix::fs::ioctl_setflags(&self.directory, flags | IFlags::NOCOW));
    }

    /// Creates one of its files, for reading and writing.
    pub fn create_file(&self, name: Name, caching: Caching) -> Result<File, FileError> {
        let text = name.to_string();
        files::create_at(
            &self.directory,
            Path::new(&text),
            &self.path_of(name),
            caching,
        )
    }

    /// Creates one of its folders, for this user alone, and returns its path.
    pub fn create_folder(&self, folder: Folder) -> Result<PathBuf, OwnerError> {
        let path = self.path_of_folder(folder);
        rustix::fs::mkdirat(&self.directory, folder.to_string(), Mode::RWXU)
            .map_err(|errno| OwnerError::new("create the directory", &path, errno))?;
        Ok(path)
    }

    /// The path of one of its folders.
    pub fn path_of_folder(&self, folder: Folder) -> PathBuf {
        self.path.join(folder.to_string())
    }

    /// Creates a file in one of its folders, for reading and writing. The name
    /// is one component of a path.
    pub fn create_file_in(
        &self,
        folder: Folder,
        name: &str,
        caching: Caching,
    ) -> Result<File, FileError> {
        let inside = Path::new(&folder.to_string()).join(name);
        files::create_at(&self.directory, &inside, &self.path.join(&inside), caching)
    }

    /// Removes all files from one of its folders, which stays. Returns the bytes
    /// that they took.
    ///
    /// # Errors
    /// When something else is in it, which stays, or the file system refuses.
    pub fn empty_folder(&self, folder: Folder) -> Result<u64, OwnerError> {
        clear::empty_folder(&self.directory, &folder.to_string(), &self.path)
    }

    /// Gives a file a second name, so that removing the first frees nothing.
    pub fn link(&self, from: Name, to: Name) -> Result<(), OwnerError> {
        rustix::fs::linkat(
            &self.directory,
            from.to_string(),
            &self.directory,
            to.to_string(),
            AtFlags::empty(),
        )
        .map_err(|errno| OwnerError::new("give a second name to", self.path_of(from), errno))
    }

    /// Removes the directory and all that we created in it.
    ///
    /// # Errors
    /// When something else is in it, which stays, or the file system refuses.
    pub fn remove(mut self) -> Result<(), OwnerError> {
        self.clear()
    }

    fn clear(&mut self) -> Result<(), OwnerError> {
        if self.removed {
            return Ok(());
        }
        self.removed = true;
        clear::empty(&self.directory, &self.path)?;
        clear::remove_empty(&self.parent, &self.name, &self.path)
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // Nobody is left to tell; what stays is found by the next sweep.
        let _ = self.clear();
    }
}

#[cfg(test)]
mod tests;
