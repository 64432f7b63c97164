//! Large files: emptied piece by piece, then removed.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, Stat};
use rustix::io::Errno;

use super::Remover;
use super::small::named;
use crate::event::Problem;
use crate::rm::large::{self, Place, Refused};
use crate::rm::on_disk::ExpectedDiscards;
use crate::rm::spared::Why;
use crate::rm::trash::Trash;
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
        let place = match large::place(at, name, trash.map(Trash::directory)) {
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
                let bytes = allocated(&file);
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
                    bytes: allocated(&file),
                };
                drop(file);
                return self.only_its_name(at, place, path, refused);
            }
            Err(ReclaimError::Free { source, .. }) => match Errno::from_io_error(&source) {
                Some(errno) => Problem::System(errno),
                None => Problem::Words(crate::words::of_io(&source)),
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
        let bytes = allocated(&file);
        let frees = if why.stays() { 0 } else { bytes };
        self.allow(device, frees)?;
        drop(file);
        self.freed(device, frees);
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
                let frees = ExpectedDiscards::Now(refused.bytes);
                self.whole(at, &place.name, path, frees)?
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
    let why = crate::words::of_io(error);
    Why::AtOnce(format!("emptying failed: {why}"))
}

/// Bytes that a file still has on the disk.
fn allocated(file: &File) -> u64 {
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
