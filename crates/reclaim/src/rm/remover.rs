//! Removes names, and frees the space that they hold as the pacer allows.
//!
//! A [`Remover`] decides how each name is removed. Its [`Dialogue`] reports and asks, its [`Volumes`]
//! free on each file system.

mod dialogue;
mod emptied;
mod in_tree;
mod subvolume;

use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use linux::holders::Search;
use linux::subvolume::Subvolume;
use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::on_disk::OnDisk;
use super::places::frees;
use super::removal::PauseByDevice;
use super::volumes::{Current, Paced, Volumes};
use super::{Asking, Summary, lost};
use crate::Result;
use crate::event::{Listener, Problem};
use crate::rm::on_disk::ExpectedDiscards;
use crate::rm::places::Argument;
use crate::rm::trash::Trash;
use crate::rm::tree::{At, Left, Root, Trail, walk};
use crate::volume::LARGE;
use dialogue::{AllSpared, Dialogue};
use in_tree::InTree;

pub(super) use dialogue::unknown;
pub use dialogue::{Spared, Why};
pub(super) use subvolume::kept;

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
        if item.recursive
            && let Some(found) = Subvolume::at(item.parent, item.name)
        {
            let wanted = self
                .dialogue
                .may_remove(item.parent, item.name, item.path, stat)?;
            return Ok(wanted && self.subvolume(item, &found)?);
        }
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
            return self.whole(at, name, path, bytes, expected);
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

// Removes files whole: small ones, and larger ones where they fit into a piece.
//
// A deletion of many of them is as fast as its cheapest step. So a small file costs one `stat` for
// its size and one `unlink`. The volume grants pieces that many files share, and commits once
// for each piece.

/// Files that are removed whole are looked at for mounts this far apart at least.
const LOOKS_APART: Duration = Duration::from_secs(1);

impl Remover<'_> {
    /// Removes files of one directory.
    pub(in crate::rm) fn remove_files(
        &mut self,
        parent: BorrowedFd<'_>,
        files: &[&Argument],
    ) -> Result<()> {
        let Some(first) = files.first() else {
            return Ok(());
        };
        self.current = Current::new(parent, &first.path, false);
        self.remove_all_files(parent, files)
            .map_err(|error| lost::explained(error, parent, &first.path))
    }

    fn remove_all_files(&mut self, parent: BorrowedFd<'_>, files: &[&Argument]) -> Result<()> {
        let at = match At::of(parent) {
            Ok(at) => at,
            Err(errno) => {
                for file in files {
                    self.stays(&file.path, Problem::System(errno))?;
                }
                return Ok(());
            }
        };
        for file in files {
            self.dialogue.step()?;
            self.name(at, &file.name, &file.path, None)?;
        }
        Ok(())
    }

    /// Returns whether a large file may be removed whole, as one of many: no other process seems to
    /// have it, and it fits into a piece.
    fn goes_whole(
        &mut self,
        at: At<'_>,
        name: &CStr,
        stat: &Stat,
        expected: ExpectedDiscards,
    ) -> Result<bool> {
        let ExpectedDiscards::Now(bytes) = expected else {
            return Ok(false);
        };
        // This only spares a wait for discards that don't come.
        if self.looked.is_none_or(|at| at.elapsed() >= LOOKS_APART) {
            self.looked = Some(Instant::now());
            let name = OsStr::from_bytes(name.to_bytes());
            if self.search.is_mounted(at.fd, name, stat) {
                return Ok(false);
            }
        }
        match self.volumes.of(at.device) {
            Some(volume) => volume.fits(bytes, &mut |event| self.dialogue.hear(event)),
            None => Ok(true),
        }
    }

    /// Removes a name and its whole file, which `holds` so many bytes, when the pacer allows that.
    fn whole(
        &mut self,
        at: At<'_>,
        name: &CStr,
        path: &Path,
        holds: u64,
        expected: ExpectedDiscards,
    ) -> Result<bool> {
        let bytes = expected.now();
        self.allow(at.device, bytes)?;
        let names = self.names();
        let hidden = bytes >= LARGE && may_be_open_unseen(at.fd, name);
        let gone = self.unlink(at.fd, name, path)?;
        // A file that was gone before is freed by nobody here.
        if self.names() > names {
            let exempt = match expected {
                ExpectedDiscards::Now(_) => holds.saturating_sub(bytes),
                ExpectedDiscards::OnClose(..) => 0,
            };
            self.freed(at.device, bytes + exempt, exempt);
            if let (true, Some(volume)) = (hidden, self.volumes.of(at.device)) {
                volume.settle(&mut |event| self.dialogue.hear(event))?;
            }
            if let ExpectedDiscards::OnClose(bytes, process) = expected {
                self.spared.add(Why::Open(process.and_then(named)), bytes);
            }
        }
        Ok(gone)
    }

    /// Waits until so many bytes may be freed at once.
    fn allow(&mut self, device: u64, bytes: u64) -> Result<()> {
        match self.volumes.of(device) {
            Some(volume) => volume.allow(bytes, &mut |event| self.dialogue.hear(event)),
            None => Ok(()),
        }
    }

    /// Reports to the volume that so many bytes were freed, and that no discards come for `exempt`
    /// of them.
    fn freed(&mut self, device: u64, bytes: u64, exempt: u64) {
        if let Some(volume) = self.volumes.of(device) {
            volume.freed(bytes, exempt);
        }
    }
}

/// Returns whether another process may have a file open without this user seeing it: the kernel
/// shows that to the file's owner and to root.
fn may_be_open_unseen(at: BorrowedFd<'_>, name: &CStr) -> bool {
    let user = rustix::process::geteuid();
    let stat = || rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW);
    !user.is_root() && stat().is_ok_and(|stat| stat.st_uid != user.as_raw())
}

/// Returns a process in words; `None` if it has ended.
fn named(pid: u32) -> Option<String> {
    let stat = linux::tasks::Thread { pid, tid: pid }.stat()?;
    Some(format!(
        "{} (pid {pid})",
        record::units::names::shown(stat.comm)
    ))
}
