//! Frees one file that has lost all names but its second one.
//!
//! A file is emptied only if nothing can need it. Either its one name lies in the hidden directory,
//! where no other user can reach it, or it has no name and the guard holds a descriptor. No process
//! has it open or mapped, and no mount shows it. Until all this holds the file waits, whole.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use linux::SysRoot;
use linux::files::open_elsewhere;
use linux::mounted::MountedFiles;
use rustix::io::Errno;
use storage::FileSystem;

use super::keep::Keep;
use super::names::{SecondName, proc_path};
use super::place::Place;
use super::watching::Watching;
use crate::ReclaimError;
use crate::reclaimer::PacedReclaimer;

/// The result for one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is freed, in pieces.
    Freed,
    /// Its name is removed without looking further; with the reason, in a sentence.
    Whole(String),
    /// Another process has it open.
    InUse,
    /// It has another name, or no longer exists.
    Waits,
}

/// The ways in which a file can be opened.
enum Opened {
    Alone(File),
    InUse,
    /// It is unknown whether another process uses it.
    Unknown(String),
    Waits,
}

/// Frees files of one place.
pub(super) struct Freeing<'a> {
    keep: Keep<'a>,
    hidden: BorrowedFd<'a>,
    path: PathBuf,
    /// The mounts when all files that are freed had lost their other names: none can be mounted
    /// since.
    mounted: Option<MountedFiles>,
    /// The file system brings changes to the disk in their order.
    ordered: bool,
}

impl<'a> Freeing<'a> {
    pub(super) fn of(place: &'a Place) -> Freeing<'a> {
        Freeing {
            keep: place.keep(),
            hidden: place.hidden(),
            path: place.path().to_owned(),
            mounted: MountedFiles::now(place.hidden()).ok(),
            ordered: is_ordered(place.hidden()),
        }
    }

    /// Whether a file can be freed now, as far as that is known beforehand.
    pub(super) fn is_ready(&self, orphan: &SecondName) -> bool {
        !matches!(self.open(orphan.inode), Opened::InUse)
    }

    /// Brings the removal of the other names to the disk, where the file system has no order of its
    /// own. Otherwise a program could find its file again after a power failure, and nothing in it.
    pub(super) fn settle(&mut self, _: &mut Watching<'_>) -> Result<(), ReclaimError> {
        if !self.ordered {
            rustix::fs::syncfs(self.hidden).map_err(|errno| ReclaimError::Io {
                action: "sync the file system of",
                path: self.path.clone(),
                source: errno.into(),
            })?;
        }
        Ok(())
    }

    /// Frees a file.
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`], or the kernel's error. The rest of the file waits then.
    pub(super) fn free(
        &mut self,
        orphan: &SecondName,
        reclaimer: &mut PacedReclaimer,
        watching: &mut Watching<'_>,
    ) -> Result<Outcome, ReclaimError> {
        let outcome = match self.open(orphan.inode) {
            Opened::Alone(file) => {
                reclaimer.empty(&file, watching)?;
                Outcome::Freed
            }
            Opened::InUse => return Ok(Outcome::InUse),
            Opened::Waits => return Ok(Outcome::Waits),
            Opened::Unknown(why) => {
                reclaimer.allow(orphan.bytes, watching)?;
                reclaimer.freed(orphan.bytes);
                Outcome::Whole(format!(
                    "{}: a file of {} was freed at once, because {why}",
                    units::names::quoted(&self.path),
                    units::bytes(orphan.bytes)
                ))
            }
        };
        match self.keep.remove(orphan.inode) {
            Ok(()) | Err(Errno::NOENT) => Ok(outcome),
            Err(errno) => Err(ReclaimError::Io {
                action: "remove a second name in",
                path: self.path.clone(),
                source: errno.into(),
            }),
        }
    }

    /// Opens a file for writing if no other process has it in any way.
    fn open(&self, inode: u64) -> Opened {
        let keep = self.keep;
        let Some(stat) = keep.stat(inode).filter(|stat| keep.is_alone(stat)) else {
            return Opened::Waits;
        };
        let file = match keep.open(inode) {
            Ok(file) => file,
            // It is executed.
            Err(Errno::TXTBSY) => return Opened::InUse,
            Err(Errno::NOENT) => return Opened::Waits,
            Err(errno) => {
                let why = crate::words::of(errno);
                return Opened::Unknown(format!("it can't be opened for writing: {why}"));
            }
        };
        let alone = rustix::fs::fstat(&file)
            .is_ok_and(|now| keep.is_alone(&now) && now.st_ino == stat.st_ino);
        if !alone {
            return Opened::Waits;
        }
        match self.mounted.as_ref().map(|mounted| mounted.has(&stat)) {
            Some(false) => {}
            Some(true) => return Opened::InUse,
            None => return Opened::Unknown("the mounts can't be listed".to_owned()),
        }
        match open_elsewhere(&file) {
            Ok(false) => Opened::Alone(file),
            Ok(true) => Opened::InUse,
            Err(error) => Opened::Unknown(format!(
                "whether a process has it open is unknown: {}",
                crate::words::of_io(&error)
            )),
        }
    }
}

/// Whether a file system brings changes to the disk in their order: by a journal or a tree.
fn is_ordered(on: BorrowedFd<'_>) -> bool {
    let Ok(found) = storage::describe(proc_path(on.as_fd())) else {
        return false;
    };
    let top = found.devices.iter().find(|device| device.level == 0);
    let journal = top.is_some_and(|top| FileSystem::has_journal(&SysRoot::host(), &top.name));
    FileSystem::named(&found.target).keeps_order(journal)
}
