//! Finds out who holds a file: whom it would be lost to if it were emptied.
//!
//! Beside its names, a file is kept by open descriptors and by mounts of it alone (`mount --bind
//! FILE …`, `docker run -v FILE:…`).
//!
//! - **Descriptors**: the kernel grants a write lease only for a file that nobody else has open,
//!   maps or executes, wherever the descriptor is ([`open_elsewhere`]). An overlay is the exception:
//!   a descriptor that was opened before a file was copied to the upper directory reads the copy,
//!   and doesn't have it open.
//! - **Mounts** need neither a name nor an open file. So all mount namespaces are listed: also
//!   those that no process is in, because a mount or a descriptor keeps them. A mount's path on its
//!   file system ends in the file's present name, or shows that it has none. Only such mounts are
//!   looked at from within their namespace.
//!
//! Anything that can't be found out is reported as unknown: a file is emptied only if it certainly
//! has no holder.
//! Nobody sees detached mounts (`open_tree`) and descriptors that were opened as a path alone
//! (`O_PATH`).

mod inside;
mod kernel;
mod look;
mod older;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use record::units::names::quoted;
use rustix::fs::{AtFlags, Mode, OFlags, Stat, StatxFlags};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;

use crate::files::open_elsewhere;
use crate::mounts::{DeviceNumber, Mount};
use look::{Found, Looks, Upper, WantedFile};

/// `BTRFS_FIRST_FREE_OBJECTID`: the inode of each subvolume's root.
const BTRFS_ROOT: u64 = 256;

/// Set by an overlay on what it copied to its upper directory.
const COPIED_UP: [&str; 2] = ["trusted.overlay.origin", "user.overlay.origin"];

/// The holders of a file beside its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holders {
    /// Nobody.
    Nobody,
    /// This.
    Held(Holder),
    /// It isn't known, for this reason.
    Unknown(Unknown),
}

/// A holder of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A descriptor, a mapping, a running program, or the kernel.
    Open,
    /// A mount at this path, in some mount namespace.
    Mount(PathBuf),
}

/// Why the holders of a file aren't known. It displays as a clause that follows "because".
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// This process isn't root.
    NotRoot,
    /// This process is in a pid or user namespace of its own.
    Container,
    /// A mount namespace can't be read.
    Namespace(Errno),
    /// The look would take too long.
    TooMany,
    /// A mount at this path may show the file, and can't be looked at.
    Hidden(PathBuf),
    /// The upper directory of the overlay at this path can't be found.
    Overlay(PathBuf),
    /// The file is in the upper directory of an overlay.
    Upper,
    /// The mount of the file's directory shows a part of a file system on which an overlay has its
    /// upper directory.
    Part,
    /// A lease can't be had.
    Lease(Errno),
}

impl From<Errno> for Unknown {
    fn from(errno: Errno) -> Unknown {
        Unknown::Namespace(errno)
    }
}

impl From<io::Error> for Unknown {
    fn from(error: io::Error) -> Unknown {
        Unknown::Namespace(Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unknown::NotRoot => f.write_str("only root sees all mounts; run it as root"),
            Unknown::Container => f.write_str(
                "the mounts of others can't be seen from a container; run it outside of it",
            ),
            Unknown::Namespace(errno) => {
                write!(f, "a mount namespace can't be read: {errno}")
            }
            Unknown::TooMany => f.write_str("there are too many mounts to look through"),
            Unknown::Hidden(point) => write!(
                f,
                "what is mounted at {} in a mount namespace can't be looked at",
                quoted(point)
            ),
            Unknown::Overlay(point) => write!(
                f,
                "the upper directory of the overlay at {} can't be found",
                quoted(point)
            ),
            Unknown::Upper => f.write_str("an overlay uses it as its upper layer"),
            Unknown::Part => f.write_str(
                "its directory was reached by a bind mount, and an overlay has its upper directory \
                 on the same file system",
            ),
            Unknown::Lease(errno) => {
                write!(f, "whether a process has it open is unknown: {errno}")
            }
        }
    }
}

/// A file whose holders are looked for. No other user may be able to give it a name, to open or to
/// mount it any more by the name that it has.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The file, open nowhere else in this process.
    pub file: &'a File,
    /// Its present name, or the last that it had.
    pub name: &'a OsStr,
    /// The directory in which others could reach it.
    pub directory: BorrowedFd<'a>,
}

/// Looks for holders of one file after the other. It remembers the mounts that it has seen.
pub struct Search {
    looks: Looks,
    /// Why nothing can be known here at all.
    blind: Option<Unknown>,
    /// The device and the root of a mount, by a directory's `st_dev` and the mount's number.
    mounts: HashMap<(u64, u64), (DeviceNumber, bool)>,
}

impl fmt::Debug for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Search")
            .field("examined", &self.looks.examined)
            .finish_non_exhaustive()
    }
}

impl Default for Search {
    fn default() -> Search {
        Search {
            looks: Looks::new(),
            blind: blind(),
            mounts: HashMap::new(),
        }
    }
}

impl Search {
    /// Returns why nothing can be known here of any file, if that is so.
    pub fn is_blind(&self) -> Option<&Unknown> {
        self.blind.as_ref()
    }

    /// Returns who holds a file.
    pub fn holders(&mut self, of: &Candidate<'_>) -> Holders {
        let found = match &self.blind {
            Some(unknown) => Err(unknown.clone()),
            None => self.mounts(of),
        };
        decide(found, open_elsewhere(of.file))
    }

    /// Returns whether a file of this status in an open directory is mounted by itself, as far as
    /// that is known.
    pub fn is_mounted(&mut self, directory: BorrowedFd<'_>, name: &OsStr, stat: &Stat) -> bool {
        let found = match &self.blind {
            Some(_) => None,
            None => self.look(directory, name, (stat.st_dev, stat.st_ino)).ok(),
        };
        found.is_some_and(|found| found.mounted.is_some())
    }

    /// The mounts of a file, and whether an overlay may have it open.
    fn mounts(&mut self, of: &Candidate<'_>) -> Result<Found, Unknown> {
        let metadata = of.file.metadata()?;
        let found = self.look(of.directory, of.name, (metadata.dev(), metadata.ino()))?;
        if COPIED_UP.iter().any(|name| has_attribute(of.file, name)) {
            return Err(Unknown::Upper);
        }
        let uppers: Vec<&Upper> = found.uppers.values().collect();
        if let Some(lost) = uppers.iter().find(|upper| upper.directories.is_empty()) {
            return Err(Unknown::Overlay(lost.point.clone()));
        }
        let uppers: Vec<_> = uppers.iter().flat_map(|upper| &upper.directories).collect();
        if uppers.iter().any(|(device, _)| *device == metadata.dev()) {
            let (_, shows_all) = self.mount(of.directory)?;
            let top = climb(of.directory, metadata.dev(), |directory| {
                match uppers.contains(&&directory) {
                    true => Err(Unknown::Upper),
                    false => Ok(()),
                }
            })?;
            // Directories above a bind mount's root can't be climbed to.
            if !shows_all && top != BTRFS_ROOT {
                return Err(Unknown::Part);
            }
        }
        Ok(found)
    }

    fn look(
        &mut self,
        directory: BorrowedFd<'_>,
        name: &OsStr,
        id: (u64, u64),
    ) -> Result<Found, Unknown> {
        let (device, _) = self.mount(directory)?;
        self.looks.look(&WantedFile { id, device, name })
    }

    /// The device of the mount that a directory is on, and whether it shows all of it.
    fn mount(&mut self, directory: BorrowedFd<'_>) -> Result<(DeviceNumber, bool), Unknown> {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
        let found = rustix::fs::statx(directory, "", AtFlags::EMPTY_PATH, wanted)?;
        let device = rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor);
        let key = (device, found.stx_mnt_id);
        if let Some(&known) = self.mounts.get(&key) {
            return Ok(known);
        }
        let mount = Mount::of(format!("/proc/self/fd/{}", directory.as_raw_fd()))
            .map_err(|_| Unknown::Namespace(Errno::NOENT))?;
        let found = (mount.device, mount.root == Path::new("/"));
        self.mounts.insert(key, found);
        Ok(found)
    }
}

/// Decides by what was found whether a file has holders. A known holder goes before a doubt.
fn decide(mounts: Result<Found, Unknown>, open: io::Result<bool>) -> Holders {
    match (mounts, open) {
        (_, Ok(true)) => Holders::Held(Holder::Open),
        (
            Ok(Found {
                mounted: Some(point),
                ..
            }),
            _,
        ) => Holders::Held(Holder::Mount(point)),
        (Err(unknown), _) => Holders::Unknown(unknown),
        (
            Ok(Found {
                hidden: Some(point),
                ..
            }),
            _,
        ) => Holders::Unknown(Unknown::Hidden(point)),
        (_, Err(error)) => {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            Holders::Unknown(Unknown::Lease(errno))
        }
        (Ok(_), Ok(false)) => Holders::Nobody,
    }
}

/// Returns why this process can't see all mounts, if it can't.
fn blind() -> Option<Unknown> {
    let all = CapabilitySet::SYS_ADMIN | CapabilitySet::SYS_CHROOT | CapabilitySet::SYS_PTRACE;
    let is_first = crate::host::is_in_first_namespaces() == Some(true);
    match rustix::thread::capabilities(None) {
        _ if !is_first => Some(Unknown::Container),
        Ok(own) if own.effective.contains(all) => None,
        _ => Some(Unknown::NotRoot),
    }
}

fn has_attribute(file: &File, name: &str) -> bool {
    let found = rustix::fs::fgetxattr(file, name, &mut [0; 256][..]);
    matches!(found, Ok(_) | Err(Errno::RANGE))
}

/// Visits a directory and all above it on its device. Returns the inode of the topmost.
fn climb(
    from: BorrowedFd<'_>,
    device: u64,
    mut visit: impl FnMut((u64, u64)) -> Result<(), Unknown>,
) -> Result<u64, Unknown> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = rustix::io::fcntl_dupfd_cloexec(from, 0)?;
    let mut last = None;
    loop {
        let stat = rustix::fs::fstat(&at)?;
        // The root directory is above itself.
        if stat.st_dev != device || last == Some(stat.st_ino) {
            return Ok(last.unwrap_or(stat.st_ino));
        }
        visit((stat.st_dev, stat.st_ino))?;
        last = Some(stat.st_ino);
        at = rustix::fs::openat(&at, "..", flags, Mode::empty())?;
    }
}
