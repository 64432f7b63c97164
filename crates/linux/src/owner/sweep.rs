//! Finding and removing what a killed run left.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::OwnerError;
use super::clear::{empty, entries, remove_empty};
use super::names;
use super::owned::{Ownership, try_claim};

/// The result of a sweep for a directory that bears a name like ours.
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
    let mut found: Vec<OsString> = entries(&parent).map_err(failed)?;
    found.retain(|name| name.to_str().is_some_and(names::is_directory));
    found.sort();
    Ok(found
        .iter()
        .filter_map(|name| name.to_str())
        .filter_map(|name| sweep_one(&parent, name, parent_path.join(name)))
        .collect())
}

/// `None` when the directory vanished meanwhile.
fn sweep_one(parent: &OwnedFd, name: &str, path: PathBuf) -> Option<Swept> {
    let left = |path: PathBuf, because: String| Some(Swept::Left { path, because });
    match try_claim(parent, name) {
        Ownership::Gone => None,
        Ownership::Left(because) => left(path, because),
        Ownership::InUse { pid } => Some(Swept::InUse { path, pid }),
        Ownership::Unclaimed { directory } => without_owner(parent, name, &directory, path),
        Ownership::Ours { directory, pid, .. } => {
            let removed = empty(&directory, &path)
                .and_then(|bytes| remove_empty(parent, name, &path).map(|()| bytes));
            match removed {
                Ok(bytes) => Some(Swept::Removed { path, bytes, pid }),
                Err(error) => left(path, error.to_string()),
            }
        }
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
