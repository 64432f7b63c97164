//! Removes names, and frees the space that they hold as the pacer allows.
//!
//! A [`Remover`] decides how each name is removed. Its [`Dialogue`] reports and asks, its
//! [`PacedSystems`] have a reclaimer for each file system.

mod dialogue;
mod emptied;
mod in_tree;
mod paced_systems;
mod small;

use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Instant;

use linux::holders::Search;
use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::amounts::Amounts;
use super::arguments::held;
use super::close::Rested;
use super::lost;
use super::on_disk::OnDisk;
use super::spared::{AllSpared, Spared};
use super::{Asking, Summary};
use crate::ReclaimError;
use crate::event::{Listener, Problem};
use crate::reclaimer::Reclaimers;
use crate::rm::trash::Trash;
use crate::rm::tree::{At, Left, Root, Trail, walk};
use dialogue::Dialogue;
use in_tree::InTree;
use paced_systems::{Current, Paced, PacedSystems};

/// Files of at least this many bytes are emptied piece by piece; smaller ones are removed whole.
pub(super) const LARGE: u64 = 1 << 20;

/// Files up to this size are also removed whole if one fits into a piece that small files share.
const MOST_WHOLE: u64 = 32 << 20;

/// Removes names one after the other.
pub(super) struct Remover<'a> {
    pub(super) dialogue: Dialogue<'a>,
    systems: PacedSystems<'a>,
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
        reclaimers: &'a mut dyn Reclaimers,
        amounts: Amounts,
        asking: Asking,
    ) -> Remover<'a> {
        Remover {
            dialogue: Dialogue::new(listener, asking),
            systems: PacedSystems::new(reclaimers, amounts),
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
    pub(super) fn remove(&mut self, item: &Item<'_>) -> Result<bool, ReclaimError> {
        self.current = Current::new(item.parent, item.path, item.trash.is_some());
        self.remove_all(item)
            .map_err(|error| lost::explained(error, item.parent, item.path))
    }

    fn remove_all(&mut self, item: &Item<'_>) -> Result<bool, ReclaimError> {
        self.dialogue.step()?;
        let stat = match rustix::fs::statat(item.parent, item.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(true),
            Err(errno) => return self.stays(item.path, Problem::System(errno)),
        };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return self.directory(item, &stat);
        }
        let at = match At::of(item.parent) {
            Ok(at) => at,
            Err(errno) => return self.stays(item.path, Problem::System(errno)),
        };
        if !self.dialogue.asked(at.fd, item.name, item.path, &stat)? {
            return Ok(false);
        }
        self.paced(at, item.name, item.path, &stat, item.trash)
    }

    fn directory(&mut self, item: &Item<'_>, stat: &Stat) -> Result<bool, ReclaimError> {
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
            .asked(item.parent, item.name, item.path, stat)?
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
    pub(super) fn finish(&mut self) -> Result<(Vec<Summary>, Rested), ReclaimError> {
        self.systems.finish(&mut self.dialogue)
    }

    /// Removes one name that is no directory, paced where that is called for.
    fn paced(
        &mut self,
        at: At<'_>,
        name: &CStr,
        path: &Path,
        stat: &Stat,
        trash: Option<&Trash>,
    ) -> Result<bool, ReclaimError> {
        let bytes = held(stat);
        if bytes >= LARGE {
            self.systems.note_full_speed(at, &mut self.dialogue);
        }
        let is_paced = match self.systems.paced(at) {
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
        self.systems
            .prepare(at, &self.current, &mut self.dialogue)?;
        if bytes > MOST_WHOLE {
            return self.large(at, name, path, trash);
        }
        let expected = self.on_disk.of(at.fd, name, stat);
        if bytes < LARGE || self.goes_whole(at, name, stat, expected)? {
            return self.whole(at, name, path, expected);
        }
        self.large(at, name, path, trash)
    }

    fn unlink(
        &mut self,
        at: BorrowedFd<'_>,
        name: &CStr,
        path: &Path,
    ) -> Result<bool, ReclaimError> {
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
    fn stays(&mut self, path: &Path, problem: Problem) -> Result<bool, ReclaimError> {
        if let (Problem::System(errno), Some((trash, true))) = (&problem, &self.current.home)
            && let Some(error) = lost::read_only(trash.as_fd(), Some(*errno), path)
        {
            return Err(error);
        }
        self.dialogue.stays(path, &problem);
        Ok(false)
    }

    fn leave(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        trail: &Trail,
    ) -> Result<Left, ReclaimError> {
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
