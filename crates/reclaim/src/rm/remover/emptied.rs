//! Large files: emptied piece by piece, then removed.

use std::borrow::Cow;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::Remover;
use crate::ReclaimError;
use crate::rm::large::{self, Large, Place};
use crate::rm::on_disk::ExpectedDiscards;
use crate::rm::talk::Problem;
use crate::rm::trash::Trash;
use crate::rm::tree::At;

impl Remover<'_> {
    /// Empties a large file, and removes its name.
    pub(super) fn large(
        &mut self,
        at: At<'_>,
        name: &CStr,
        path: &Path,
        trash: Option<&Trash>,
    ) -> Result<bool, ReclaimError> {
        let place = match large::place(at, name, trash.map(Trash::directory)) {
            Ok(place) => place,
            Err(Errno::NOENT) => return Ok(true),
            Err(errno) => return self.stays(path, Problem::System(errno)),
        };
        match place.open(&mut self.mounted) {
            Large::Alone(file) if place.unlink_first => {
                self.emptied_without_a_name(at, &place, path, file)
            }
            Large::Alone(file) => self.emptied(at, &place, path, file),
            Large::Shared(why) => self.only_its_name(&place, path, why),
        }
    }

    /// Empties a file under its name, which is removed last.
    fn emptied(
        &mut self,
        at: At<'_>,
        place: &Place<'_>,
        path: &Path,
        file: File,
    ) -> Result<bool, ReclaimError> {
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
                let bytes = ExpectedDiscards::Now(allocated(&file));
                drop(file);
                let at = At { fd: place.at, ..at };
                let gone = self.whole(at, &place.name, path, bytes)?;
                match gone {
                    true => self.note_all_at_once(path, &source),
                    false => place.put_back(),
                }
                return Ok(gone);
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

    /// Removes a file's name first, and then empties the file if it has no other name. No process
    /// may have opened or mounted it before its name was removed.
    fn emptied_without_a_name(
        &mut self,
        at: At<'_>,
        place: &Place<'_>,
        path: &Path,
        file: File,
    ) -> Result<bool, ReclaimError> {
        let gone = self.unlink(place.at, &place.name, path)?;
        let nameless = rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_nlink == 0);
        let ours = gone
            && nameless
            && self.mounted.has_now(&file) == Some(false)
            && linux::files::open_elsewhere(&file).is_ok_and(|is| !is);
        if !ours {
            return Ok(gone);
        }
        let emptied = match self.empty(at.device, &file) {
            Err(ReclaimError::Free { source, .. }) => {
                let bytes = allocated(&file);
                self.allow(at.device, bytes).map(|()| {
                    drop(file);
                    self.freed(at.device, bytes);
                    self.note_all_at_once(path, &source);
                })
            }
            emptied => emptied,
        };
        if emptied.is_err() {
            let name = units::names::quoted(path);
            let what = format!("what was left of {name} went all at once");
            self.dialogue.talk.note(&what);
        }
        emptied.map(|()| gone)
    }

    /// Removes the name of a file that another process has, or may have. `why` is noted.
    fn only_its_name(
        &mut self,
        place: &Place<'_>,
        path: &Path,
        why: Option<Cow<'static, str>>,
    ) -> Result<bool, ReclaimError> {
        let gone = self.unlink(place.at, &place.name, path)?;
        match (gone, why) {
            (true, Some(why)) => {
                let name = units::names::quoted(path);
                self.dialogue.talk.note(&format!("{name} {why}"));
            }
            (true, None) => {}
            (false, _) => place.put_back(),
        }
        Ok(gone)
    }

    fn empty(&mut self, device: u64, file: &File) -> Result<(), ReclaimError> {
        match self.systems.of(device) {
            Some(reclaimer) => reclaimer.empty(file, &mut self.dialogue),
            None => Ok(()),
        }
    }

    /// Notes that a file's space came free with its name.
    fn note_all_at_once(&mut self, path: &Path, why: &io::Error) {
        let (name, why) = (units::names::quoted(path), crate::words::of_io(why));
        let what = format!("{name} was removed all at once: it can't be emptied: {why}");
        self.dialogue.talk.note(&what);
    }
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
