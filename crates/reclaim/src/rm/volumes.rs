//! The volumes of a removal: one for each file system, looked at once.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use linux::mounts::{DeviceNumber, Mount};
use pace::{Policy, Work};
use rustix::fs::Stat;

use super::links::{Links, Stays};
use super::lost;
use super::places::{allocated, share};
use super::removal::PauseByDevice;
use super::tree::At;
use crate::event::{Event, Listener};
use crate::throttle::{EarlyObservation, Pacing, Stack, Summary, Unpaced};
use crate::volume::{LARGE, Volume, try_latency};
use crate::{ReclaimError, Result, directory};

/// The longest discard that any file system sends for one file's part.
const UNIT: u64 = 128 << 20;

/// The file systems of a removal, and how freeing is paced on each.
#[derive(Debug)]
pub struct Volumes {
    pacing: Pacing,
    /// By the number that stands for the file system.
    systems: HashMap<u64, System>,
    /// The device number that was met first of the same file system. The subvolumes of a btrfs have
    /// a number each, and share drives and discards.
    first: HashMap<u64, u64>,
    /// The same, by what the list of mounts calls all of them.
    mounted: HashMap<DeviceNumber, u64>,
    /// The device that was looked at last, and what is paced there: of a million names all but a
    /// few are on the same.
    last: Option<(u64, Paced)>,
    /// The names of files with several, where the bytes must be exact.
    links: Option<Links>,
    /// The bytes that only each surveyed subvolume has, where quotas count them.
    subvolumes: Vec<Option<u64>>,
}

/// The files of a file system that are paced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Paced {
    Nothing,
    LargeFiles,
    AllFiles,
}

/// One file system.
#[derive(Debug)]
struct System {
    /// Its storage stack; or why nothing is paced there.
    stack: Result<Stack, Unpaced>,
    amount: Amount,
    /// Its devices, observed before the work is known.
    early: Option<EarlyObservation>,
    /// It was tried whether the goal can be met there.
    tried: bool,
    /// It was noted that nothing is paced there.
    noted: bool,
    opened: Option<Opened>,
}

/// The bytes that are expected of a subvolume that has so many alone.
fn expected(exclusive: Option<u64>) -> u64 {
    exclusive.unwrap_or(0).max(LARGE)
}

/// The amount to be freed on one file system, as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    /// Bytes, by allocated blocks.
    bytes: u64,
    /// The fewest extents that they can lie in.
    extents: u64,
    /// The bytes of the largest file; `None` where no file was surveyed.
    largest: Option<u64>,
}

/// A file system on which something that is paced is removed.
#[derive(Debug)]
struct Opened {
    volume: Volume,
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

impl Volumes {
    /// None so far; each will be paced in this way.
    pub fn new(pacing: Pacing) -> Volumes {
        Volumes {
            pacing,
            systems: HashMap::new(),
            first: HashMap::new(),
            mounted: HashMap::new(),
            last: None,
            links: None,
            subvolumes: Vec::new(),
        }
    }

    /// Returns the number that stands for the file system of an open directory on `device`.
    fn number(&mut self, on: BorrowedFd<'_>, device: u64) -> u64 {
        if let Some(&first) = self.first.get(&device) {
            return first;
        }
        if directory::device(on) != Some(device) {
            return device;
        }
        let mount = match DeviceNumber::from_raw(device).is_anonymous() {
            true => Mount::of(format!("/proc/self/fd/{}", on.as_raw_fd())).ok(),
            false => None,
        };
        let first = mount.map_or(device, |mount| {
            *self.mounted.entry(mount.device).or_insert(device)
        });
        self.first.insert(device, first);
        first
    }

    /// Returns the number for a device that was met before.
    fn known(&self, device: u64) -> u64 {
        self.first.get(&device).copied().unwrap_or(device)
    }

    /// Returns the file system of an open directory on `device`. It is looked at once.
    fn system(&mut self, on: BorrowedFd<'_>, device: u64) -> &mut System {
        let number = self.number(on, device);
        let policy = self.pacing.policy;
        self.systems.entry(number).or_insert_with(|| System {
            stack: match policy {
                Policy::Burst => Err("nothing is to be paced".to_owned().into()),
                _ => Stack::paced_at(on),
            },
            amount: Amount::default(),
            early: None,
            tried: false,
            noted: false,
            opened: None,
        })
    }

    /// Takes a file system for one that is this.
    #[cfg(test)]
    pub(super) fn assume(&mut self, on: BorrowedFd<'_>, stack: Stack) {
        if let Some(device) = directory::device(on) {
            self.system(on, device).stack = Ok(stack);
        }
    }

    /// Returns why freeing isn't paced on a file system, in a sentence; `None` where it is. Where it
    /// isn't, the remover doesn't look how much a file holds.
    pub(super) fn unpaced(&mut self, on: BorrowedFd<'_>, device: u64) -> Option<String> {
        let stack = &self.system(on, device).stack;
        stack.as_ref().err().map(ToString::to_string)
    }

    /// Returns whether freeing is paced on a file system.
    pub(super) fn paces(&mut self, on: BorrowedFd<'_>, device: u64) -> bool {
        self.system(on, device).stack.is_ok()
    }

    /// Refuses a file system whose discards destroy data.
    ///
    /// # Errors
    /// [`ReclaimError::Harm`] there.
    pub(super) fn unless_harmful(&mut self, on: BorrowedFd<'_>, device: u64) -> Result<()> {
        match &self.system(on, device).stack {
            Err(Unpaced::Harm(harm)) => Err(harm.clone().into()),
            _ => Ok(()),
        }
    }

    /// Notes once that nothing is paced on a file system, if so.
    pub(super) fn note_full_speed(&mut self, at: At<'_>, listener: &mut Listener<'_>) {
        let system = self.system(at.fd, at.device);
        if let (Err(why), false) = (&system.stack, system.noted) {
            listener(Event::Note(&format_args!("at full speed: {why}")));
            system.noted = true;
        }
    }

    /// Returns the files that are paced on a file system.
    ///
    /// btrfs with `discard=async` discards what small files held minutes later, with everything else
    /// that has become free beside them: pacing their names would not pace that. A chunk or a rate
    /// that the user asked for holds for them all the same.
    pub(super) fn paced(&mut self, at: At<'_>) -> Paced {
        if let Some((device, paced)) = self.last
            && device == at.device
        {
            return paced;
        }
        let adapts = matches!(self.pacing.policy, Policy::Adaptive(_));
        let system = self.system(at.fd, at.device);
        let may_be_large = system.amount.largest.is_none_or(|largest| largest >= LARGE);
        let paced = match &system.stack {
            Err(_) => Paced::Nothing,
            Ok(stack) if !(adapts && stack.discards_later()) => Paced::AllFiles,
            Ok(_) if may_be_large => Paced::LargeFiles,
            // A file that has grown since goes at once, as the small ones do.
            Ok(_) => Paced::Nothing,
        };
        self.last = Some((at.device, paced));
        paced
    }

    /// Adds a file to be freed on the file system of an open directory, whose device this is.
    pub(super) fn add(&mut self, on: BorrowedFd<'_>, device: u64, file: &Stat) {
        let links = self.links.as_mut();
        let bytes = links.map_or_else(|| share(file), |links| links.frees(file));
        let amount = &mut self.system(on, device).amount;
        amount.largest = amount.largest.max(Some(allocated(file)));
        amount.bytes = amount.bytes.saturating_add(bytes);
        amount.extents = amount.extents.saturating_add(bytes.div_ceil(UNIT));
    }

    /// Adds a subvolume that only it has so many bytes of, as far as that is known. How many it
    /// frees shows when the kernel has freed them.
    pub(super) fn add_subvolume(
        &mut self,
        on: BorrowedFd<'_>,
        device: u64,
        exclusive: Option<u64>,
    ) {
        self.subvolumes.push(exclusive);
        let amount = &mut self.system(on, device).amount;
        let bytes = expected(exclusive);
        amount.bytes = amount.bytes.saturating_add(bytes);
        amount.extents = amount.extents.saturating_add(bytes.div_ceil(UNIT));
    }

    /// Returns the bytes of files that were added in all, the bytes that only each added subvolume
    /// has, and whether one file system has enough to be paced. Nothing counts as added any more.
    pub(super) fn take_amounts(&mut self) -> (u64, Vec<Option<u64>>, bool) {
        let all = self.systems.values_mut();
        let all = all.map(|system| std::mem::take(&mut system.amount).bytes);
        let (sum, enough) = all.fold((0_u64, false), |(sum, enough), bytes| {
            (sum.saturating_add(bytes), enough || bytes >= LARGE)
        });
        let subvolumes = std::mem::take(&mut self.subvolumes);
        let beside: u64 = subvolumes.iter().copied().map(expected).sum();
        (sum.saturating_sub(beside), subvolumes, enough)
    }

    /// From now on the bytes of a file with several names count with its last name.
    pub(super) fn count_links(&mut self) {
        self.links = Some(Links::default());
    }

    /// Ends an argument. Returns what stays of it.
    pub(super) fn end_argument(&mut self) -> Stays {
        self.links
            .as_mut()
            .map_or_else(Stays::default, Links::end_argument)
    }

    /// Begins to observe the devices of a file system once enough was added that is paced, while the
    /// caller still looks for more. Returns whether it waits for more.
    pub(super) fn anticipate(&mut self, on: BorrowedFd<'_>, device: u64) -> bool {
        let adapts = matches!(self.pacing.policy, Policy::Adaptive(_));
        let system = self.system(on, device);
        let stack = system.stack.as_ref().ok();
        let stack = stack.filter(|stack| stack.is_paced());
        let (Some(stack), None) = (stack, &system.early) else {
            return false;
        };
        let counts = match adapts && stack.discards_later() {
            true => system.amount.largest >= Some(LARGE),
            false => true,
        };
        if system.amount.bytes < LARGE || !counts {
            return true;
        }
        let stack = stack.clone();
        if let Ok(own) = directory::reopen(on) {
            let early = EarlyObservation::start(own, stack, self.pacing.clone());
            self.system(on, device).early = Some(early);
        }
        false
    }

    /// Tries once whether the goal can be met on a file system, before anything is changed there.
    ///
    /// # Errors
    /// [`ReclaimError::Refused`] if it can't be.
    pub(super) fn try_goal(
        &mut self,
        on: BorrowedFd<'_>,
        device: u64,
        listener: &mut Listener<'_>,
    ) -> Result<()> {
        let system = self.system(on, device);
        let tried = std::mem::replace(&mut system.tried, true);
        let stack = system.stack.clone();
        match (self.pacing.policy, &self.pacing.card, stack) {
            // A card has told already.
            (Policy::Adaptive(goal), None, Ok(stack)) if !tried => match goal.max_latency {
                Some(asked) => try_latency(on, stack, asked, &self.pacing, listener),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Starts to free on a file system, unless that has begun. Where nothing is paced it does
    /// nothing.
    pub(super) fn prepare(
        &mut self,
        at: At<'_>,
        current: &Current,
        listener: &mut Listener<'_>,
    ) -> Result<()> {
        let system = self.system(at.fd, at.device);
        if system.opened.is_some() {
            return Ok(());
        }
        let Ok(stack) = system.stack.clone() else {
            return Ok(());
        };
        let work = Work::new(system.amount.bytes, system.amount.extents);
        let observed = system.early.take().and_then(EarlyObservation::take);
        let on = self.place_on(at, current)?;
        let volume = Volume::of(on.as_fd(), stack, observed, &self.pacing, &work, listener)?;
        self.system(at.fd, at.device).opened = Some(Opened {
            volume,
            on,
            argument: current.argument.clone(),
        });
        Ok(())
    }

    /// Returns a directory on the same file system that can be kept open.
    ///
    /// A directory that is about to be removed is chosen only if there is no other. While it is
    /// open, the kernel keeps all that was in it, and each removal above looks through all of that.
    fn place_on(&mut self, at: At<'_>, current: &Current) -> Result<OwnedFd> {
        let home = current.home.as_ref().map(|(home, _)| home.as_fd());
        let number = self.number(at.fd, at.device);
        let is_there = |home: &BorrowedFd<'_>| {
            directory::device(*home).is_some_and(|device| self.number(*home, device) == number)
        };
        let on = home.filter(is_there).unwrap_or(at.fd);
        directory::reopen(on)
            .or_else(|_| rustix::io::fcntl_dupfd_cloexec(on, 0))
            .map_err(ReclaimError::io(
                "keep open the directory of",
                &current.argument,
            ))
    }

    /// Returns the volume of a device; `None` where nothing is paced.
    pub(super) fn of(&mut self, device: u64) -> Option<&mut Volume> {
        let system = self.systems.get_mut(&self.known(device))?;
        Some(&mut system.opened.as_mut()?.volume)
    }

    /// Waits until all is discarded, on every file system. Returns each summary, and the pause
    /// after each of the last small discards.
    pub(super) fn finish(
        &mut self,
        listener: &mut Listener<'_>,
    ) -> Result<(Vec<Summary>, PauseByDevice)> {
        let (mut all, mut pauses) = (Vec::new(), PauseByDevice::new());
        for opened in self
            .systems
            .values_mut()
            .filter_map(|system| system.opened.take())
        {
            let (on, argument) = (opened.on.as_fd(), &opened.argument);
            let summary = opened.volume.finish(listener);
            let summary = summary.map_err(|error| lost::explained(error, on, argument))?;
            if let Some(device) = directory::device(on) {
                pauses.insert(device, summary.rest);
            }
            all.push(summary);
        }
        Ok((all, pauses))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_file_with_two_names_is_as_large_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let (file, on) = (place.path().join("file"), std::fs::File::open(place.path()));
        std::fs::write(&file, [0; 100]).unwrap();
        let mut stat = rustix::fs::stat(&file).unwrap();
        let (on, device) = (on.unwrap(), stat.st_dev);
        let mut volumes = Volumes::new(Pacing::new(Policy::Burst));
        let largest = |volumes: &mut Volumes| volumes.system(on.as_fd(), device).amount.largest;
        assert_eq!(largest(&mut volumes), None, "nobody has looked yet");
        stat.st_blocks = 100;
        volumes.add(on.as_fd(), device, &stat);
        (stat.st_blocks, stat.st_nlink) = (3000, 2);
        volumes.add(on.as_fd(), device, &stat);
        assert_eq!(largest(&mut volumes), Some(3000 * 512));
        assert_eq!(volumes.take_amounts(), ((100 + 1500) * 512, vec![], false));
        assert_eq!(largest(&mut volumes), None);
    }
}
