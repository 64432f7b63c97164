//! Large files: emptied piece by piece, then removed.

use std::ffi::{CStr, CString, OsStr};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use linux::holders::{Candidate, Holder, Holders, Search};
use rustix::fs::{
    Access, AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, StatxAttributes, StatxFlags,
};
use rustix::io::Errno;

use super::{Remover, Why, named, unknown};
use crate::event::Problem;
use crate::rm::on_disk::{self, ExpectedDiscards};
use crate::rm::places::allocated;
use crate::rm::trash::{FILE, Trash, rename_new};
use crate::rm::tree::At;
use crate::{ReclaimError, Result};

impl Remover<'_> {
    /// Empties a large file, and removes its name.
    pub(super) fn large(
        &mut self,
        at: At<'_>,
        name: &CStr,
        path: &Path,
        trash: Option<&Trash>,
    ) -> Result<bool> {
        let place = match place(at, name, trash.map(Trash::directory)) {
            Ok(place) => place,
            Err(Errno::NOENT) => return Ok(true),
            Err(errno) => return self.stays(path, Problem::System(errno)),
        };
        let file = match place.open() {
            Ok(file) => file,
            Err(mut refused) => {
                let flags = AtFlags::SYMLINK_NOFOLLOW;
                let stat = rustix::fs::statat(place.at, &*place.name, flags).ok();
                refused.why = refused.why.map(|why| self.with_process(why, stat));
                return self.only_its_name(at, &place, path, refused);
            }
        };
        if place.unlink_first {
            return self.emptied_without_a_name(at, &place, path, file);
        }
        match place.holder(&file, &mut self.search) {
            None => self.emptied(at, &place, path, file),
            Some(why) => {
                let why = self.with_process(why, rustix::fs::fstat(&file).ok());
                let bytes = bytes_of(&file);
                drop(file);
                let refused = Refused {
                    why: Some(why),
                    bytes,
                };
                self.only_its_name(at, &place, path, refused)
            }
        }
    }

    /// Empties a file under its name, which is removed last.
    fn emptied(&mut self, at: At<'_>, place: &Place<'_>, path: &Path, file: File) -> Result<bool> {
        self.begun = true;
        let problem = match self.empty(at.device, &file) {
            Ok(()) => {
                let gone = self.unlink(place.at, &place.name, path)?;
                if !gone {
                    place.put_back();
                }
                return Ok(gone);
            }
            // rm would remove it.
            Err(ReclaimError::Free { source, .. }) if !is_stuck(&source) => {
                let refused = Refused {
                    why: Some(cannot_empty(&source)),
                    bytes: bytes_of(&file),
                };
                drop(file);
                return self.only_its_name(at, place, path, refused);
            }
            Err(ReclaimError::Free { source, .. }) => match Errno::from_io_error(&source) {
                Some(errno) => Problem::System(errno),
                None => Problem::Words(crate::error::words(&source)),
            },
            Err(error) => return Err(error),
        };
        place.put_back();
        self.stays(path, problem)
    }

    /// Removes a file's name first, and then empties the file if it has no other name and nobody
    /// has opened or mounted it before.
    fn emptied_without_a_name(
        &mut self,
        at: At<'_>,
        place: &Place<'_>,
        path: &Path,
        file: File,
    ) -> Result<bool> {
        if !self.unlink(place.at, &place.name, path)? {
            return Ok(false);
        }
        let why = match place.has_names(&file, 0) {
            true => place.holder(&file, &mut self.search),
            false => Some(Why::Named),
        };
        if let Some(why) = why {
            return self.closed(at.device, file, why).map(|()| true);
        }
        let emptied = match self.empty(at.device, &file) {
            Err(ReclaimError::Free { source, .. }) => {
                self.closed(at.device, file, cannot_empty(&source))
            }
            emptied => emptied,
        };
        if emptied.is_err() {
            let name = record::units::names::quoted(path);
            let what = format!("what was left of {name} went all at once");
            self.dialogue.note(&what);
        }
        emptied.map(|()| true)
    }

    /// Closes a file without a name that isn't emptied, when the pacer allows what that frees.
    fn closed(&mut self, device: u64, file: File, why: Why) -> Result<()> {
        let why = self.with_process(why, rustix::fs::fstat(&file).ok());
        let bytes = bytes_of(&file);
        let (frees, discards) = match why.stays() {
            true => (0, 0),
            false => (bytes, on_disk::of_file(&file, bytes)),
        };
        self.allow(device, discards)?;
        drop(file);
        self.freed(device, frees, frees - discards);
        self.spared.add(why, bytes);
        Ok(())
    }

    /// Removes the name of a file that isn't emptied.
    fn only_its_name(
        &mut self,
        at: At<'_>,
        place: &Place<'_>,
        path: &Path,
        refused: Refused,
    ) -> Result<bool> {
        let names = self.names();
        let gone = match &refused.why {
            Some(why) if !why.stays() => {
                let at = At { fd: place.at, ..at };
                let discards = on_disk::of_name(place.at, &place.name, refused.bytes);
                let expected = ExpectedDiscards::Now(discards);
                self.whole(at, &place.name, path, refused.bytes, expected)?
            }
            _ => self.unlink(place.at, &place.name, path)?,
        };
        if !gone {
            place.put_back();
        }
        if let Some(why) = refused.why
            && self.names() > names
        {
            self.spared.add(why, refused.bytes);
        }
        Ok(gone)
    }

    /// Adds the process that has a file open, if one is known.
    fn with_process(&mut self, why: Why, file: Option<Stat>) -> Why {
        match (why, file) {
            (Why::Open(None), Some(stat)) => {
                let own = std::process::id();
                let process = self.on_disk.open_files().process(&stat);
                Why::Open(process.filter(|pid| *pid != own).and_then(named))
            }
            (why, _) => why,
        }
    }

    fn empty(&mut self, device: u64, file: &File) -> Result<()> {
        match self.volumes.of(device) {
            Some(volume) => volume
                .empty(file, &mut |event| self.dialogue.hear(event))
                .map(drop),
            None => Ok(()),
        }
    }
}

/// Why the space of a file comes free with its name, by the error of a truncation.
fn cannot_empty(error: &io::Error) -> Why {
    let why = crate::error::words(error);
    Why::AtOnce(format!("emptying failed: {why}"))
}

/// Bytes that a file still has on the disk.
fn bytes_of(file: &File) -> u64 {
    file.metadata()
        .map_or(0, |found| linux::files::allocated_bytes(&found))
}

/// Returns whether this error of a truncation means that nothing can be removed here.
fn is_stuck(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        None | Some(Errno::ROFS | Errno::IO)
    )
}

// Finds out whether a large file can be emptied without touching any other.
//
// A file is emptied before its name is removed: then a crash leaves the rest to be freed gently,
// and not all at once. But the file that is emptied must be the one that was named, and have no
// other name.
//
// Where other users can change names, a link count of one proves nothing. Between the opening and
// the count they may have removed the name by which the file was opened, and the count shows
// another name. So the file is first renamed into the trash, where only this user can change
// names, and then counted. The rename also proves that the name may be removed: a file that has to
// stay must keep its content.
//
// Where there is no trash, the name is removed first: other users could otherwise open the file by
// it and find it cut short. A link count of zero then proves that no name is left. The file is
// emptied under its name only where [`is_safe`] holds.
//
// Then holders are looked for ([`linux::holders`]), after the rename or the removal: nobody else
// can reach the file any more, so none can come. A file that may have one is never emptied.

/// Where a file is emptied.
pub(super) struct Place<'a> {
    pub(super) at: BorrowedFd<'a>,
    pub(super) name: CString,
    /// The name is removed before the content.
    pub(super) unlink_first: bool,
    /// The directory and name that it had before it was renamed into the trash.
    was: Option<(BorrowedFd<'a>, CString)>,
}

/// A file that isn't emptied.
pub(super) struct Refused {
    /// Why; `None` where the removal of the name shows it.
    pub(super) why: Option<Why>,
    /// The bytes that it holds.
    pub(super) bytes: u64,
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
    /// Opens the file for writing, if this is its only name.
    pub(super) fn open(&self) -> Result<File, Refused> {
        let refused = |why, bytes| Refused { why, bytes };
        let stat = rustix::fs::statat(self.at, &*self.name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let stat = stat
            .filter(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
            .ok_or_else(|| refused(None, 0))?;
        let opened = match self.try_open() {
            // Its owner may remove a file that nobody may write to, and nobody needs its mode.
            Err(Errno::ACCESS) if !self.unlink_first => {
                let mode = Mode::RUSR | Mode::WUSR;
                rustix::fs::chmodat(self.at, &*self.name, mode, AtFlags::empty())
                    .and_then(|()| self.try_open())
            }
            opened => opened,
        };
        let bytes = allocated(&stat);
        let file = opened.map_err(|errno| match errno {
            Errno::TXTBSY => refused(Some(Why::Open(None)), bytes),
            // It isn't there, or something is mounted over it: the removal says so.
            Errno::NOENT | Errno::XDEV => refused(None, bytes),
            errno => {
                let why = crate::error::words(&errno.into());
                let why = format!("opening for writing failed: {why}");
                refused(Some(Why::AtOnce(why)), bytes)
            }
        })?;
        match self.has_names(&file, 1) {
            true => Ok(file),
            false => Err(refused(Some(Why::Named), bytes)),
        }
    }

    /// Whether an open file is a regular one with so many names.
    pub(super) fn has_names(&self, file: &File, names: u64) -> bool {
        #[allow(clippy::useless_conversion, reason = "its width is the processor's")]
        let has = |stat: &rustix::fs::Stat| u64::from(stat.st_nlink) == names;
        rustix::fs::fstat(file).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && has(&stat)
        })
    }

    /// Returns why the file can't be emptied, if it can't: it has a holder, or may have one.
    pub(super) fn holder(&self, file: &File, search: &mut Search) -> Option<Why> {
        let directory = self.was.as_ref().map_or(self.at, |(was, _)| *was);
        let candidate = Candidate {
            file,
            name: OsStr::from_bytes(self.name.as_bytes()),
            directory,
        };
        match search.holders(&candidate) {
            Holders::Nobody => None,
            Holders::Held(Holder::Open) => Some(Why::Open(None)),
            Holders::Held(Holder::Mount(point)) => Some(Why::Mounted(point)),
            Holders::Unknown(why) => Some(Why::AtOnce(unknown(&why))),
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
