//! Finding and removing what a killed run left.

use std::ffi::OsString;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::clear::{empty, entries, remove_empty};
use super::names::PREFIX;
use super::owned::{Ownership, try_claim};
use super::{OwnerError, names};
use crate::SysRoot;
use crate::mounts::DeviceNumber;
use crate::sysroot::value;

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

// Other processes that work in directories of ours now: their locks tell.

/// Another process with a directory of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// The process.
    pub pid: u32,
    /// The directory, as the kernel names it.
    pub path: PathBuf,
    /// The number of its file system.
    pub device: DeviceNumber,
}

/// Lists the processes that hold a lock and have a directory of ours open. This process and its
/// ancestors are left out, and so are processes of others unless root asks.
pub fn others(sys: &SysRoot) -> Vec<Other> {
    let own = ancestors(sys, std::process::id());
    let text = sys.text("/proc/locks").unwrap_or_default();
    let mut found: Vec<Other> = Vec::new();
    for (pid, device) in text.lines().filter_map(holder) {
        if own.contains(&pid) || found.iter().any(|other| other.pid == pid) {
            continue;
        }
        if let Some(path) = directory(sys, pid) {
            found.push(Other { pid, path, device });
        }
    }
    found
}

/// The process that holds a lock of `flock`, and the file system of the locked file. One that waits
/// for a lock has an arrow in its line.
fn holder(line: &str) -> Option<(u32, DeviceNumber)> {
    let mut words = line.split_whitespace().skip(1);
    let (kind, _, _) = (words.next()?, words.next()?, words.next()?);
    let pid = words.next()?.parse().ok()?;
    let mut place = words.next()?.split(':');
    let mut number = || u32::from_str_radix(place.next()?, 16).ok();
    let (major, minor) = (number()?, number()?);
    (kind == "FLOCK").then_some((pid, DeviceNumber { major, minor }))
}

/// The first directory of ours that a process has open.
fn directory(sys: &SysRoot, pid: u32) -> Option<PathBuf> {
    let open = fs::read_dir(sys.path(format!("/proc/{pid}/fd"))).ok()?;
    let links = open
        .flatten()
        .filter_map(|one| fs::read_link(one.path()).ok());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX))
    };
    links.into_iter().find(is_ours)
}

/// A process with its parents.
fn ancestors(sys: &SysRoot, pid: u32) -> Vec<u32> {
    let parent = |pid: &u32| {
        let text = sys.text(format!("/proc/{pid}/status")).ok()?;
        let parent = value(&text, "PPid:")?.parse().ok();
        parent.filter(|parent| *parent > 0)
    };
    std::iter::successors(Some(pid), parent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_holders_of_flock_count() {
        let device = DeviceNumber {
            major: 254,
            minor: 17,
        };
        let held = "3: FLOCK  ADVISORY  WRITE 812 fe:11:10453505 0 EOF";
        assert_eq!(holder(held), Some((812, device)));
        for line in [
            "1: -> FLOCK  ADVISORY  WRITE 20405 fe:00:9980328 0 EOF",
            "2: POSIX  ADVISORY  WRITE 20405 fe:00:9980328 0 EOF",
            "",
        ] {
            assert_eq!(holder(line), None, "{line}");
        }
    }
}
