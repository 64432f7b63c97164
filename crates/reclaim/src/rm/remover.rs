//! Removes names, and frees the space that they hold as the pacer allows.
//!
//! A [`Remover`] decides how each name is removed. Its [`Dialogue`] reports and asks, its [`Volumes`]
//! free on each file system.

mod dialogue;
mod emptied;
mod in_tree;
mod small;

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Instant;

use linux::holders::Search;
use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::arguments::frees;
use super::close::PauseByDevice;
use super::lost;
use super::on_disk::OnDisk;
use super::spared::{AllSpared, Spared};
use super::volumes::{Current, Paced, Volumes};
use super::{Asking, Summary};
use crate::Result;
use crate::event::{Listener, Problem};
use crate::rm::trash::Trash;
use crate::rm::tree::{At, Left, Root, Trail, walk};
use crate::volume::LARGE;
use dialogue::Dialogue;
use in_tree::InTree;

/// Files up to this size are also removed whole if one fits into a piece that small files share.
const MOST_WHOLE: u64 = 32 << 20;

/// Removes names one after the other.
pub(super) struct Remover<'a> {
    pub(super) dialogue: Dialogue<'a>,
    volumes: &'a mut Volumes,
    current: Current,
    /// A file was begun: the content of the trash has changed.
    pub(super) begun: bool,
    search: Search,
    /// When it was last looked whether a file that is removed whole is mounted.
    looked: Option<Instant>,
    on_disk: OnDisk,
    spared: AllSpared,
}

/// The place of an item.
pub(super) struct Item<'a> {
    /// The directory that it is in now.
    pub(super) parent: BorrowedFd<'a>,
    /// Its name there.
    pub(super) name: &'a CStr,
    /// The user's path of it.
    pub(super) path: &'a Path,
    /// The trash of its parent, if there is one.
    pub(super) trash: Option<&'a Trash>,
    pub(super) one_file_system: bool,
    pub(super) recursive: bool,
}

impl<'a> Remover<'a> {
    pub(super) fn new(
        listener: &'a mut Listener<'a>,
        volumes: &'a mut Volumes,
        asking: Asking,
    ) -> Remover<'a> {
        Remover {
            dialogue: Dialogue::new(listener, asking),
            volumes,
            current: Current::default(),
            begun: false,
            search: Search::default(),
            looked: None,
            on_disk: OnDisk::default(),
            spared: AllSpared::default(),
        }
    }

    /// The number of names that were removed.
    pub(super) fn names(&self) -> u64 {
        self.dialogue.names
    }

    /// The number of names that stay although they should not.
    pub(super) fn failures(&self) -> u64 {
        self.dialogue.failures
    }

    /// The files that weren't emptied in pieces.
    pub(super) fn spared(&self) -> Vec<Spared> {
        self.spared.all()
    }

    /// Removes all that an item is. Returns whether nothing of it stays.
    pub(super) fn remove(&mut self, item: &Item<'_>) -> Result<bool> {
        self.current = Current::new(item.parent, item.path, item.trash.is_some());
        self.remove_all(item)
            .map_err(|error| lost::explained(error, item.parent, item.path))
    }

    fn remove_all(&mut self, item: &Item<'_>) -> Result<bool> {
        self.dialogue.step()?;
        let stat = match rustix::fs::statat(item.parent, item.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(true),
            Err(errno) => return self.stays(item.path, Problem::System(errno)),
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return self.directory(item, &stat);
        }
        match At::of(item.parent) {
            Ok(at) => self.name(at, item.name, item.path, item.trash),
            Err(errno) => self.stays(item.path, Problem::System(errno)),
        }
    }

    /// Removes one name that is no directory, unless the user doesn't want it.
    fn name(
        &mut self,
        at: At<'_>,
        name: &CStr,
        path: &Path,
        trash: Option<&Trash>,
    ) -> Result<bool> {
        let stat = match rustix::fs::statat(at.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(true),
            Err(errno) => return self.stays(path, Problem::System(errno)),
        };
        match self.dialogue.may_remove(at.fd, name, path, &stat)? {
            true => self.paced(at, name, path, &stat, trash),
            false => Ok(false),
        }
    }

    fn directory(&mut self, item: &Item<'_>, stat: &Stat) -> Result<bool> {
        let mut trail = Trail::new(item.path);
        if item.recursive {
            let root = Root {
                parent: item.parent,
                name: item.name,
                one_file_system: item.one_file_system,
                // A user who is asked sees them in the directory's own order.
                files_first: self.dialogue.asking != Asking::Always,
            };
            let mut visit = InTree {
                remover: self,
                trash: item.trash,
            };
            return walk(&root, &mut trail, &mut visit);
        }
        if !self
            .dialogue
            .may_remove(item.parent, item.name, item.path, stat)?
        {
            return Ok(false);
        }
        let left = self.leave(item.parent, item.name, &trail)?;
        if left == Left::NotEmpty {
            return self.stays(item.path, Problem::System(Errno::NOTEMPTY));
        }
        Ok(left == Left::Done)
    }

    /// Waits until all is discarded, on every file system. Returns each summary, and the pause
    /// after each of the last small discards.
    pub(super) fn finish(&mut self) -> Result<(Vec<Summary>, PauseByDevice)> {
        self.volumes.finish(&mut |event| self.dialogue.hear(event))
    }

    /// Removes one name that is no directory, paced where that is called for.
    fn paced(
        &mut self,
        at: At<'_>,
        name: &CStr,
        path: &Path,
        stat: &Stat,
        trash: Option<&Trash>,
    ) -> Result<bool> {
        let bytes = frees(stat);
        if bytes >= LARGE {
            self.volumes
                .note_full_speed(at, &mut |event| self.dialogue.hear(event));
        }
        let is_paced = match self.volumes.paced(at) {
            Paced::Nothing => false,
            Paced::LargeFiles => bytes >= LARGE,
            Paced::AllFiles => bytes > 0,
        };
        if !is_paced {
            let names = self.names();
            let gone = self.unlink(at.fd, name, path)?;
            if self.names() > names {
                self.spared.name_removed(stat);
            }
            return Ok(gone);
        }
        self.spared.name_removed(stat);
        self.volumes
            .prepare(at, &self.current, &mut |event| self.dialogue.hear(event))?;
        if bytes > MOST_WHOLE {
            return self.large(at, name, path, trash);
        }
        let expected = self.on_disk.of(at.fd, name, stat);
        if bytes < LARGE || self.goes_whole(at, name, stat, expected)? {
            return self.whole(at, name, path, expected);
        }
        self.large(at, name, path, trash)
    }

    fn unlink(&mut self, at: BorrowedFd<'_>, name: &CStr, path: &Path) -> Result<bool> {
        match rustix::fs::unlinkat(at, name, AtFlags::empty()) {
            Ok(()) => {
                self.dialogue.gone(path, false);
                Ok(true)
            }
            // Another process was faster.
            Err(Errno::NOENT) => Ok(true),
            Err(errno) => self.stays(path, Problem::System(errno)),
        }
    }

    /// Reports that a name stays, and returns false. It is an error where nothing else can be
    /// removed either.
    fn stays(&mut self, path: &Path, problem: Problem) -> Result<bool> {
        if let (Problem::System(errno), Some((trash, true))) = (&problem, &self.current.home)
            && let Some(error) = lost::read_only(trash.as_fd(), Some(*errno), path)
        {
            return Err(error);
        }
        self.dialogue.stays(path, &problem);
        Ok(false)
    }

    fn leave(&mut self, parent: BorrowedFd<'_>, name: &CStr, trail: &Trail) -> Result<Left> {
        match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) => self.dialogue.gone(trail.path(), true),
            Err(Errno::NOENT) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => return Ok(Left::NotEmpty),
            Err(errno) => {
                self.stays(trail.path(), Problem::System(errno))?;
                return Ok(Left::Stays);
            }
        }
        Ok(Left::Done)
    }
}
