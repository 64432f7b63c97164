//! The file systems that a removal meets, and a reclaimer for each that is paced.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};

use super::LARGE;
use super::dialogue::Dialogue;
use crate::ReclaimError;
use crate::event::Event;
use crate::reclaimer::{Reclaimer, Reclaimers};
use crate::rm::Summary;
use crate::rm::amounts::Amounts;
use crate::rm::close::Rested;
use crate::rm::lost;
use crate::rm::tree::At;

/// The reclaimers of all file systems.
pub(super) struct PacedSystems<'a> {
    reclaimers: &'a mut dyn Reclaimers,
    /// By file system.
    open: HashMap<u64, Opened>,
    /// The amounts that a survey found.
    amounts: Amounts,
    /// The device that was looked at last, and what is paced there: of a million
    /// names all but a few are on the same.
    last: Option<(u64, Paced)>,
    /// Devices of which it was reported that nothing is paced there.
    full_speed: HashSet<u64>,
}

/// The files of a file system that are paced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paced {
    Nothing,
    LargeFiles,
    AllFiles,
}

/// A file system on which something that is paced is removed.
struct Opened {
    reclaimer: Box<dyn Reclaimer>,
    /// A directory on it.
    on: OwnedFd,
    /// The user's argument there.
    argument: PathBuf,
}

/// The argument that is being removed.
#[derive(Default)]
pub(super) struct Current {
    /// The user's argument.
    pub(super) argument: PathBuf,
    /// The directory that it lies in, and whether that is a trash: a trash proves that the file
    /// system could be written to.
    pub(super) home: Option<(OwnedFd, bool)>,
}

impl Current {
    pub(super) fn new(parent: BorrowedFd<'_>, path: &Path, is_trash: bool) -> Current {
        let home = parent.try_clone_to_owned().ok();
        Current {
            argument: path.to_owned(),
            home: home.map(|home| (home, is_trash)),
        }
    }
}

impl<'a> PacedSystems<'a> {
    pub(super) fn new(reclaimers: &'a mut dyn Reclaimers, amounts: Amounts) -> PacedSystems<'a> {
        PacedSystems {
            reclaimers,
            open: HashMap::new(),
            amounts,
            last: None,
            full_speed: HashSet::new(),
        }
    }

    /// Returns the files that are paced where a device is.
    pub(super) fn paced(&mut self, at: At<'_>) -> Paced {
        if let Some((device, paced)) = self.last
            && device == at.device
        {
            return paced;
        }
        let paced = match self.reclaimers.paces(at.fd) {
            false => Paced::Nothing,
            true if self.reclaimers.paces_small(at.fd) => Paced::AllFiles,
            true if self.amounts.may_hold(at.device, LARGE) => Paced::LargeFiles,
            // A file that has grown since goes at once, as the small ones do.
            true => Paced::Nothing,
        };
        self.last = Some((at.device, paced));
        paced
    }

    /// Reports once that nothing is paced there, if so.
    pub(super) fn note_full_speed(&mut self, at: At<'_>, dialogue: &mut Dialogue<'_>) {
        if self.full_speed.insert(at.device)
            && let Some(why) = self.reclaimers.unpaced(at.fd)
        {
            dialogue.note(&format_args!("at full speed: {why}"));
        }
    }

    /// Makes the reclaimer where a device is, unless it is there.
    pub(super) fn prepare(
        &mut self,
        at: At<'_>,
        current: &Current,
        dialogue: &mut Dialogue<'_>,
    ) -> Result<(), ReclaimError> {
        let system = self.amounts.systems().find(at.fd, at.device);
        if self.open.contains_key(&system) {
            return Ok(());
        }
        let on = self.place_on(at, current)?;
        let amount = self.amounts.of(at.device);
        let mut listener = |event: Event<'_>| dialogue.hear(event);
        let reclaimer = self
            .reclaimers
            .reclaimer(on.as_fd(), amount, &mut listener)?;
        let argument = current.argument.clone();
        let opened = Opened {
            reclaimer,
            on,
            argument,
        };
        self.open.insert(system, opened);
        Ok(())
    }

    /// Returns a directory on the same file system that can be kept open.
    ///
    /// A directory that is about to be removed is chosen only if there is no other. While it is
    /// open, the kernel keeps all that was in it, and each removal above looks through all of that.
    fn place_on(&mut self, at: At<'_>, current: &Current) -> Result<OwnedFd, ReclaimError> {
        let home = current.home.as_ref().map(|(home, _)| home.as_fd());
        let systems = self.amounts.systems();
        let is_there = |home: &BorrowedFd<'_>| {
            rustix::fs::fstat(home).is_ok_and(|stat| {
                systems.find(*home, stat.st_dev) == systems.find(at.fd, at.device)
            })
        };
        let on = home.filter(is_there).unwrap_or(at.fd);
        // One that was opened as a path alone can't be synced.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(on, c".", flags, Mode::empty())
            .or_else(|_| rustix::io::fcntl_dupfd_cloexec(on, 0))
            .map_err(|errno| ReclaimError::Io {
                action: "keep open the directory of",
                path: current.argument.clone(),
                source: errno.into(),
            })
    }

    /// The reclaimer where a device is; `None` where nothing is paced.
    pub(super) fn of(&mut self, device: u64) -> Option<&mut dyn Reclaimer> {
        let system = self.amounts.systems().known(device);
        let opened = self.open.get_mut(&system)?;
        Some(&mut *opened.reclaimer)
    }

    /// Waits until all is discarded, on every file system. Returns each summary, and the pause
    /// after each of the last small discards.
    pub(super) fn finish(
        &mut self,
        dialogue: &mut Dialogue<'_>,
    ) -> Result<(Vec<Summary>, Rested), ReclaimError> {
        let (mut all, mut rested) = (Vec::new(), Rested::new());
        for (_, opened) in self.open.drain() {
            let summary = opened
                .reclaimer
                .finish(&mut |event| dialogue.hear(event))
                .map_err(|error| lost::explained(error, opened.on.as_fd(), &opened.argument))?;
            if let Ok(stat) = rustix::fs::fstat(&opened.on) {
                let rest = summary
                    .as_ref()
                    .map_or(Duration::ZERO, |summary| summary.rest);
                rested.insert(stat.st_dev, rest);
            }
            all.extend(summary);
        }
        Ok((all, rested))
    }
}
