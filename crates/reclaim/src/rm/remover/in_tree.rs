//! The steps at each place of a tree.

use std::ffi::CStr;
use std::os::fd::BorrowedFd;

use linux::subvolume::Subvolume;
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::{Item, Remover, kept};
use crate::Result;
use crate::event::{Problem, Question};
use crate::rm::Asking;
use crate::rm::survey::is_protected;
use crate::rm::trash::Trash;
use crate::rm::tree::{At, Enter, Entry, Kind, Left, Trail, Visit};
use crate::rm::volumes::Paced;

/// The remover on its way through a tree.
pub(super) struct InTree<'r, 'a> {
    pub(super) remover: &'r mut Remover<'a>,
    pub(super) trash: Option<&'r Trash>,
}

impl Visit for InTree<'_, '_> {
    fn enter(&mut self, at: At<'_>, trail: &Trail) -> Result<Enter> {
        let remover = &mut *self.remover;
        remover.dialogue.step()?;
        remover.volumes.unless_harmful(at.fd, at.device)?;
        remover
            .volumes
            .note_full_speed(at, &mut |event| remover.dialogue.hear(event));
        let protected = remover.dialogue.asking != Asking::Never && is_protected(at.fd, c".");
        let ask = match remover.dialogue.asking {
            Asking::Never => false,
            Asking::Protected => protected,
            Asking::Always => !is_empty(at.fd),
        };
        if ask
            && !remover
                .dialogue
                .ask(trail.path(), Question::Descend, protected)?
        {
            return Ok(Enter::No);
        }
        Ok(Enter::Yes)
    }

    fn name(&mut self, at: At<'_>, entry: Entry<'_>, trail: &Trail) -> Result<bool> {
        let remover = &mut *self.remover;
        remover.dialogue.step()?;
        let holds_space = entry.kind != Kind::Other;
        if remover.dialogue.asking == Asking::Never
            && !(holds_space && remover.volumes.paced(at) != Paced::Nothing)
        {
            // As little as possible for each name: this is what a million files wait for.
            return match rustix::fs::unlinkat(at.fd, entry.name, AtFlags::empty()) {
                Ok(()) => {
                    remover.dialogue.gone(&trail.of(entry.name), false);
                    Ok(true)
                }
                Err(Errno::NOENT) => Ok(true),
                Err(errno) => remover.stays(&trail.of(entry.name), Problem::System(errno)),
            };
        }
        let path = trail.of(entry.name);
        remover.name(at, entry.name, &path, self.trash)
    }

    fn whole(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        trail: &Trail,
    ) -> Result<Option<bool>> {
        let found = Subvolume::at(parent, name).filter(|found| {
            self.remover.dialogue.asking == Asking::Never && kept(found, parent, false).is_none()
        });
        let Some(found) = found else { return Ok(None) };
        let item = Item {
            parent,
            name,
            path: trail.path(),
            trash: self.trash,
            one_file_system: false,
            recursive: true,
        };
        self.remover.subvolume(&item, &found).map(Some)
    }

    fn leave(&mut self, parent: BorrowedFd<'_>, name: &CStr, trail: &Trail) -> Result<Left> {
        let remover = &mut *self.remover;
        let what = Question::Remove("directory");
        // One that may not be written to was asked about before anything in it.
        if remover.dialogue.asking == Asking::Always {
            let protected = is_protected(parent, name);
            if !remover.dialogue.ask(trail.path(), what, protected)? {
                return Ok(Left::Stays);
            }
        }
        remover.leave(parent, name, trail)
    }

    fn failed(
        &mut self,
        parent: Option<BorrowedFd<'_>>,
        name: &CStr,
        trail: &Trail,
        errno: Errno,
    ) -> Result<bool> {
        let remover = &mut *self.remover;
        if let (Errno::ACCESS, Some(parent)) = (errno, parent) {
            let protected = remover.dialogue.asking != Asking::Never && is_protected(parent, name);
            let asks = protected || remover.dialogue.asking == Asking::Always;
            if asks
                && !remover
                    .dialogue
                    .ask(trail.path(), Question::Attempt, protected)?
            {
                return Ok(false);
            }
            if rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).is_ok() {
                // It can't be read, and was empty.
                remover.dialogue.gone(trail.path(), true);
                return Ok(true);
            }
        }
        let problem = match errno {
            Errno::XDEV => Problem::OtherDevice,
            Errno::STALE => Problem::Words("it was moved meanwhile".to_owned()),
            errno => Problem::System(errno),
        };
        remover.stays(trail.path(), problem)
    }

    fn removed(&self) -> u64 {
        self.remover.names()
    }
}

fn is_empty(directory: BorrowedFd<'_>) -> bool {
    rustix::fs::Dir::read_from(directory).is_ok_and(|entries| {
        !entries.flatten().any(|entry| {
            let name = entry.file_name().to_bytes();
            name != b"." && name != b".."
        })
    })
}
