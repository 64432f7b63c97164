//! Notes where trashes lie that aren't empty yet, so that all can be resumed at once.
//!
//! Each note is a symbolic link in a directory of this user: `$XDG_STATE_HOME` (or
//! `~/.local/state`) `/trimbench/trash`. Root's is in `/var/lib` where that directory is another
//! user's, because `sudo` may leave `HOME` as it was.
//!
//! The link's name ends with the identity of the directory and its file system. If another
//! directory is there now, because of a mount or a rename, the trash isn't taken to be gone. Where
//! no note can be made, the trash is found by its directory alone.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::directory;

/// Separates the trash's name from the identity of its directory.
const ON: &str = "@";

/// Ends the name of a note that is being written.
const NEW: &str = "~";

const MSDOS: u64 = 0x4d44;
const EXFAT: u64 = 0x2011_bab0;

/// The note of one trash.
#[derive(Debug)]
pub(crate) struct Link {
    notes: OwnedFd,
    name: OsString,
}

impl Link {
    /// For messages.
    pub(crate) fn path(&self) -> PathBuf {
        let notes = std::fs::read_link(format!("/proc/self/fd/{}", self.notes.as_raw_fd()));
        notes.unwrap_or_default().join(&self.name)
    }

    pub(crate) fn forget(self) {
        directory::remove(&self.notes, &self.name);
    }
}

/// A trash that was noted.
#[derive(Debug)]
pub(crate) struct Noted {
    /// The directory it was in.
    pub(crate) directory: PathBuf,
    pub(crate) name: String,
    pub(crate) link: Link,
}

impl Noted {
    /// Whether an open directory is the one that the trash was in.
    pub(crate) fn was_in(&self, directory: BorrowedFd<'_>) -> bool {
        let here = identity(directory);
        let name = self.link.name.to_str().and_then(|name| name.split_once(ON));
        name.is_some_and(|(_, there)| here.is_some_and(|here| here == there))
    }

    /// Whether the directory is gone from its file system, which is mounted where it was.
    pub(crate) fn is_gone(&self) -> bool {
        let name = self.link.name.to_str().and_then(|name| name.split_once(ON));
        let system = name.and_then(|(_, there)| Some(there.rsplit_once('-')?.0));
        let is_there = |path: &&Path| !matches!(path.try_exists(), Ok(false));
        let above = self.directory.ancestors().find(is_there);
        let above = above.filter(|above| *above != self.directory);
        // As the trash's directory was opened: the kernel doesn't tell a UUID by a path's descriptor.
        let opened = |above| rustix::fs::open(above, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let here = above.and_then(|above| system_of(opened(above).ok()?.as_fd()));
        here.is_some() && here.as_deref() == system
    }
}

/// Where notes may lie, the first that is ours.
fn places() -> impl Iterator<Item = PathBuf> {
    let root = rustix::process::geteuid().is_root();
    let system = root.then(|| PathBuf::from("/var/lib/trimbench/trash"));
    directory::of_user("trash").into_iter().chain(system)
}

/// Notes where a new trash lies; `None` where that isn't possible.
pub(crate) fn remember(parent: &OwnedFd, trash: BorrowedFd<'_>, name: &str) -> Option<Link> {
    let path = std::fs::read_link(format!("/proc/self/fd/{}", trash.as_raw_fd())).ok()?;
    let notes = places().find_map(|place| make(&place))?;
    let of = name.trim_start_matches('.');
    let name = format!("{of}{ON}{}", identity(parent.as_fd())?);
    // One of the same name may say where it lay before.
    let new = format!("{name}{NEW}");
    directory::remove(&notes, &new);
    rustix::fs::symlinkat(path, &notes, &new).ok()?;
    rustix::fs::renameat(&notes, &new, &notes, &name).ok()?;
    Some(Link {
        notes,
        name: name.into(),
    })
}

/// Notes where a trash that may have been noted before lies now, and that alone.
pub(crate) fn again(parent: &OwnedFd, trash: BorrowedFd<'_>, name: &str) -> Option<Link> {
    let link = remember(parent, trash, name)?;
    forget_others(&link, name.trim_start_matches('.'));
    Some(link)
}

/// All that were noted, each once.
pub(crate) fn all() -> Vec<Noted> {
    let mut found: Vec<Noted> = places().flat_map(|place| all_of(&place)).collect();
    let order = |one: &Noted, other: &Noted| {
        (&one.directory, &one.name).cmp(&(&other.directory, &other.name))
    };
    found.sort_by(order);
    found.dedup_by(|one, other| order(one, other).is_eq());
    found
}

fn all_of(place: &Path) -> Vec<Noted> {
    let Some(notes) = open(place) else {
        return Vec::new();
    };
    let Ok(entries) = rustix::fs::Dir::read_from(&notes) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let path = rustix::fs::readlinkat(&notes, entry.file_name(), Vec::new()).ok()?;
            let path = PathBuf::from(OsString::from_vec(path.into_bytes()));
            let name = path.file_name()?.to_str()?.to_owned();
            let note = entry.file_name().to_str().ok()?;
            let is_ours = linux::owner::is_named(&name, super::PREFIX)
                && note.starts_with(name.trim_start_matches('.'));
            is_ours.then_some(Noted {
                directory: path.parent().map(Path::to_owned)?,
                name,
                link: Link {
                    notes: notes.try_clone().ok()?,
                    name: std::ffi::OsStr::from_bytes(note.as_bytes()).to_owned(),
                },
            })
        })
        .collect()
}

/// Makes the directory of the notes, and opens it; nothing is made in another user's home.
fn make(place: &Path) -> Option<OwnedFd> {
    let there = place.ancestors().find_map(|path| path.metadata().ok())?;
    if there.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(place).ok()?;
    open(place)
}

/// Removes all other notes of a trash.
fn forget_others(link: &Link, of: &str) {
    let Ok(entries) = rustix::fs::Dir::read_from(&link.notes) else {
        return;
    };
    for entry in entries.flatten() {
        let other = entry.file_name().to_bytes();
        if other.starts_with(of.as_bytes()) && other != link.name.as_bytes() {
            directory::remove(&link.notes, entry.file_name());
        }
    }
}

/// Opens the directory of the notes, which must be this user's: what is in it is removed by name.
fn open(place: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let notes = rustix::fs::open(place, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&notes).ok()?;
    let ours = stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o002 == 0;
    ours.then_some(notes)
}

/// Returns the identity of a directory, which doesn't change with its device or name: its inode and
/// its file system's UUID. Where there is no UUID, and on btrfs, it has the file system's number,
/// which also differs between the subvolumes of one btrfs.
fn identity(at: BorrowedFd<'_>) -> Option<String> {
    let inode = match directory::kind(at)? {
        // They number what they meet, anew with each mount.
        MSDOS | EXFAT => 0,
        _ => rustix::fs::fstat(at).ok()?.st_ino,
    };
    Some(format!("{}-{inode:x}", system_of(at)?))
}

/// Returns the part of an identity that is the file system's.
fn system_of(at: BorrowedFd<'_>) -> Option<String> {
    let kind = directory::kind(at)?;
    let uuid = linux::trim::uuid(at).filter(|_| kind != directory::BTRFS);
    let fsid = || Some(format!("{:016x}", rustix::fs::fstatvfs(at).ok()?.f_fsid));
    uuid.or_else(fsid)
}
