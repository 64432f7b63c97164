//! Finds out whether a large file can be emptied without touching any other.
//!
//! A file is emptied before its name is removed: then a crash leaves the rest to be freed gently,
//! and not all at once. But the file that is emptied must be the one that was named, and have no
//! other name.
//!
//! Where other users can change names, a link count of one proves nothing. Between the opening and
//! the count they may have removed the name by which the file was opened, and the count shows
//! another name. So the file is first renamed into the trash, where only this user can change
//! names, and then counted. The rename also proves that the name may be removed: a file that has to
//! stay must keep its content.
//!
//! Where there is no trash, the name is removed first: other users could otherwise open the file by
//! it and find it cut short. A link count of zero then proves that no name is left. The file is
//! emptied under its name only where [`is_safe`] holds.
//!
//! A bind mount of the file alone needs neither a name nor an open file. So mounts are looked at as
//! well.

use std::borrow::Cow;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use linux::mounted::MountedFiles;
use rustix::fs::{
    Access, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, StatxAttributes, StatxFlags,
};
use rustix::io::Errno;

use crate::rm::trash::{FILE, rename_new};
use crate::rm::tree::At;

/// How long the list of files mounted by themselves is used before it is read again: a process may
/// mount a file while others are removed. Reading it costs some microseconds for each process of
/// the machine.
const MOUNTS_HOLD: Duration = Duration::from_secs(1);

/// The files that are mounted by themselves, of the file system that was looked at last.
#[derive(Debug, Default)]
pub(super) struct Mounted(Option<(u64, Instant, MountedFiles)>);

impl Mounted {
    /// Returns whether `file` is mounted by itself, as of now; `None` where that can't be found
    /// out.
    pub(super) fn has_now(&mut self, file: &File) -> Option<bool> {
        self.0 = None;
        let stat = rustix::fs::fstat(file).ok()?;
        self.has(file.as_fd(), &stat)
    }

    /// Returns whether the file of `stat`, on the file system of `on`, is mounted by itself. `None`
    /// where that can't be found out.
    pub(super) fn has(&mut self, on: BorrowedFd<'_>, stat: &Stat) -> Option<bool> {
        let is_known = |(device, when, _): &(u64, Instant, MountedFiles)| {
            *device == stat.st_dev && when.elapsed() < MOUNTS_HOLD
        };
        if !self.0.as_ref().is_some_and(is_known) {
            let now = MountedFiles::now(on).ok()?;
            self.0 = Some((stat.st_dev, Instant::now(), now));
        }
        self.0.as_ref().map(|(.., files)| files.has(stat))
    }
}

/// Where a file is emptied.
pub(super) struct Place<'a> {
    pub(super) at: BorrowedFd<'a>,
    pub(super) name: CString,
    /// The name is removed before the content.
    pub(super) unlink_first: bool,
    /// The directory and name that it had before it was renamed into the trash.
    was: Option<(BorrowedFd<'a>, CString)>,
}

/// Whether a file can be emptied.
pub(super) enum Large {
    /// No other process has it; it is open for writing.
    Alone(File),
    /// Only its name is removed. The text says why, for a message that begins with the name; `None`
    /// where no message is needed.
    Shared(Option<Cow<'static, str>>),
}

/// Finds a place for a file.
pub(super) fn place<'a>(
    at: At<'a>,
    name: &CStr,
    trash: Option<BorrowedFd<'a>>,
) -> Result<Place<'a>, Errno> {
    let here = |unlink_first| Place {
        at: at.fd,
        name: name.to_owned(),
        unlink_first,
        was: None,
    };
    let Some(trash) = trash else {
        return Ok(here(!is_safe(at)));
    };
    // It was renamed into the trash, and so can be removed.
    if trash.as_raw_fd() == at.fd.as_raw_fd() {
        return Ok(here(false));
    }
    // One that had to stay there isn't replaced.
    match rename_new(at.fd, name, trash, FILE) {
        Ok(()) => Ok(Place {
            at: trash,
            name: FILE.to_owned(),
            unlink_first: false,
            was: Some((at.fd, name.to_owned())),
        }),
        Err(Errno::NOENT) => Err(Errno::NOENT),
        // A mount or a subvolume between here and there, or it may not move.
        Err(_) => Ok(here(!is_safe(at))),
    }
}

/// Returns whether a file may be emptied under its name.
///
/// Other users must not be able to change the name, or to reach it: they could open the file while
/// it shrinks, or give it another name. And this user must be able to remove the name afterwards,
/// because a file that has to stay must keep its content.
fn is_safe(at: At<'_>) -> bool {
    let may = Access::WRITE_OK | Access::EXEC_OK;
    let fixed = StatxAttributes::IMMUTABLE | StatxAttributes::APPEND;
    at.private
        && rustix::fs::fstat(at.fd).is_ok_and(|stat| stat.st_mode & 0o011 == 0)
        && rustix::fs::accessat(at.fd, ".", may, AtFlags::EACCESS).is_ok()
        && rustix::fs::statx(at.fd, "", AtFlags::EMPTY_PATH, StatxFlags::TYPE)
            .is_ok_and(|found| !found.stx_attributes.intersects(fixed))
}

impl Place<'_> {
    /// Opens the file, and finds out whether another process or mount has it.
    pub(super) fn open(&self, mounted: &mut Mounted) -> Large {
        let opened = match self.try_open() {
            // Its owner may remove a file that nobody may write to, and nobody needs its mode.
            Err(Errno::ACCESS) if !self.unlink_first => {
                let mode = Mode::RUSR | Mode::WUSR;
                let regular = rustix::fs::statat(self.at, &*self.name, AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|stat| {
                        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
                    });
                match regular {
                    true => rustix::fs::chmodat(self.at, &*self.name, mode, AtFlags::empty())
                        .and_then(|()| self.try_open()),
                    false => Err(Errno::ACCESS),
                }
            }
            opened => opened,
        };
        let file = match opened {
            Ok(file) => file,
            Err(Errno::TXTBSY) => {
                return Large::Shared(Some(
                    "is being executed: its space comes free when that ends".into(),
                ));
            }
            // It isn't there, or something is mounted over it: the removal says so.
            Err(Errno::NOENT | Errno::XDEV) => return Large::Shared(None),
            Err(errno) => {
                return Large::Shared(Some(Cow::Owned(format!(
                    "was removed all at once: it can't be opened for writing: {}",
                    crate::words::of(errno)
                ))));
            }
        };
        let alone = |stat: &Stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1
        };
        let Some(stat) = rustix::fs::fstat(&file).ok().filter(alone) else {
            return Large::Shared(None);
        };
        // Without its name a mount is harder to tell.
        let elsewhere = match self.unlink_first {
            true => mounted.has_now(&file),
            false => mounted.has(file.as_fd(), &stat),
        };
        match elsewhere {
            Some(false) => {}
            Some(true) => {
                return Large::Shared(Some(
                    "is mounted elsewhere: its space comes free when it is unmounted, all at once"
                        .into(),
                ));
            }
            None => {
                return Large::Shared(Some(
                    "was removed all at once: whether it is mounted elsewhere is unknown".into(),
                ));
            }
        }
        match linux::files::open_elsewhere(&file) {
            Ok(false) => Large::Alone(file),
            Ok(true) => Large::Shared(Some(
                "is open elsewhere: its space comes free when it is closed, all at once".into(),
            )),
            Err(_) => Large::Shared(Some(
                "was removed all at once: whether a process has it open is unknown".into(),
            )),
        }
    }

    fn try_open(&self) -> Result<File, Errno> {
        let flags =
            OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        // A file that is mounted there is another than the one whose name goes.
        let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
        rustix::fs::openat2(self.at, &*self.name, flags, Mode::empty(), resolve).map(File::from)
    }

    /// Renames the file back to its old name, because it stays.
    pub(super) fn put_back(&self) {
        if let Some((at, name)) = &self.was {
            let _ = rename_new(self.at, &self.name, *at, name);
        }
    }
}
