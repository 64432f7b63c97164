//! Removes names, and frees what they hold as it is allowed.

mod in_tree;
mod small;

use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::amounts::Amounts;
use super::arguments::held;
use super::close::Rested;
use super::large::{self, Large, Mounted};
use super::lost;
use super::on_disk::{ExpectedDiscards, OnDisk};
use super::survey::is_protected;
use super::talk::{Problem, Question, Talk};
use super::{Asking, Summary};
use crate::reclaimer::{Reclaimer, Reclaimers};
use crate::rm::trash::Trash;
use crate::rm::tree::{At, Left, Root, Trail, walk};
use crate::watch::{Beat, tick};
use crate::{Progress, ReclaimError, Watch};
use in_tree::InTree;

/// Files from this size on are emptied piece by piece; smaller ones go whole.
pub(super) const LARGE: u64 = 1 << 20;

/// So do files up to this size where one fits into a piece that small files share.
const MOST_WHOLE: u64 = 32 << 20;

/// Removes names one after the other.
pub(super) struct Remover<'a> {
    pub(super) talk: &'a mut dyn Talk,
    pub(super) reclaimers: &'a mut dyn Reclaimers,
    /// By file system.
    open: HashMap<u64, Opened>,
    /// What a survey found.
    amounts: Amounts,
    pub(super) asking: Asking,
    /// Names gone.
    pub(super) names: u64,
    /// Names that stay although they should not.
    pub(super) failures: u64,
    /// What the user named, of which something is being removed.
    argument: PathBuf,
    /// The directory that this lies in, and whether it is a trash: proof that its file
    /// system could be written to.
    home: Option<(OwnedFd, bool)>,
    /// A file was begun: what is in the trash isn't what it was.
    pub(super) begun: bool,
    /// The device that was looked at last, and what is paced there: of a million
    /// names all but a few are on the same.
    last: Option<(u64, Paced)>,
    /// Devices of which it was said that nothing is paced there.
    full_speed: HashSet<u64>,
    /// It was said that space runs low.
    urgent: bool,
    mounted: Mounted,
    on_disk: OnDisk,
    /// Small files that others have open, and the bytes they hold.
    open_elsewhere: (u64, u64),
    beat: Beat,
    /// What was told last of what is freed.
    told: Progress,
}

/// What is paced on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paced {
    Nothing,
    LargeFiles,
    AllFiles,
}

/// A file system on which something that is paced is removed.
struct Opened {
    free: Box<dyn Reclaimer>,
    /// A directory on it.
    on: OwnedFd,
    /// What the user named there.
    argument: PathBuf,
}

/// Passes progress of all reclaimers on to the watcher.
struct Relay<'a> {
    talk: &'a mut dyn Talk,
    names: u64,
    urgent: &'a mut bool,
    told: &'a mut Progress,
}

impl Watch for Relay<'_> {
    fn tick(&mut self, progress: &Progress) -> ControlFlow<()> {
        if progress.urgent && !std::mem::replace(self.urgent, true) {
            self.talk.note(
                "little space is free: it goes faster now, whatever others feel, until there is more",
            );
        }
        *self.told = *progress;
        self.talk.tick(&Progress {
            names: self.names,
            ..*progress
        })
    }
}

/// Where an item lies.
pub(super) struct Item<'a> {
    /// The directory that it is in now.
    pub(super) parent: BorrowedFd<'a>,
    /// Its name there.
    pub(super) name: &'a CStr,
    /// What the user called it.
    pub(super) path: &'a Path,
    /// The trash of its parent, if there is one.
    pub(super) trash: Option<&'a Trash>,
    pub(super) one_file_system: bool,
    pub(super) recursive: bool,
}

impl<'a> Remover<'a> {
    pub(super) fn new(
        talk: &'a mut dyn Talk,
        reclaimers: &'a mut dyn Reclaimers,
        amounts: Amounts,
        asking: Asking,
    ) -> Remover<'a> {
        Remover {
            talk,
            reclaimers,
            open: HashMap::new(),
            amounts,
            asking,
            names: 0,
            failures: 0,
            argument: PathBuf::new(),
            home: None,
            begun: false,
            last: None,
            full_speed: HashSet::new(),
            urgent: false,
            mounted: Mounted::default(),
            on_disk: OnDisk::default(),
            open_elsewhere: (0, 0),
            beat: Beat::default(),
            told: Progress::default(),
        }
    }

    /// Removes all that an item is. Returns whether nothing of it stays.
    pub(super) fn remove(&mut self, item: &Item<'_>) -> Result<bool, ReclaimError> {
        self.begin_with(item.parent, item.path, item.trash.is_some());
        self.remove_all(item)
            .map_err(|error| lost::explained(error, item.parent, item.path))
    }

    fn begin_with(&mut self, parent: BorrowedFd<'_>, path: &Path, is_trash: bool) {
        self.argument = path.to_owned();
        let home = parent.try_clone_to_owned();
        self.home = home.ok().map(|home| (home, is_trash));
    }

    fn remove_all(&mut self, item: &Item<'_>) -> Result<bool, ReclaimError> {
        self.step()?;
        let stat = match rustix::fs::statat(item.parent, item.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(true),
            Err(errno) => return self.stays(item.path, Problem::System(errno)),
        };
        let mut trail = Trail::new(item.path);
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            if !item.recursive {
                if !self.asked(item.parent, item.name, item.path, &stat)? {
                    return Ok(false);
                }
                let left = self.leave(item.parent, item.name, &trail)?;
                if left == Left::NotEmpty {
                    return self.stays(item.path, Problem::System(Errno::NOTEMPTY));
                }
                return Ok(left == Left::Done);
            }
            let root = Root {
                parent: item.parent,
                name: item.name,
                one_file_system: item.one_file_system,
                // Whoever is asked sees them in the directory's own order.
                files_first: self.asking != Asking::Always,
            };
            let mut visit = InTree {
                remover: self,
                trash: item.trash,
            };
            return walk(&root, &mut trail, &mut visit);
        }
        let at = match At::of(item.parent) {
            Ok(at) => at,
            Err(errno) => return self.stays(item.path, Problem::System(errno)),
        };
        if !self.asked(at.fd, item.name, item.path, &stat)? {
            return Ok(false);
        }
        self.paced(at, item.name, item.path, &stat, item.trash)
    }

    /// To be called before each name: whether it is to end.
    fn step(&mut self) -> Result<(), ReclaimError> {
        let names = self.names;
        let progress = Progress { names, ..self.told };
        self.beat.tick(self.talk, &progress)
    }

    /// Asks. Somebody who is asked may also want it to end.
    fn ask(&mut self, path: &Path, what: Question, protected: bool) -> Result<bool, ReclaimError> {
        let yes = self.talk.ask(path, what, protected);
        let names = self.names;
        let progress = Progress { names, ..self.told };
        tick(self.talk, &progress).map(|()| yes)
    }

    /// Waits until all is discarded, on every file system. Returns what each deletion came to, and
    /// the pause after each of the last small discards.
    pub(super) fn finish(&mut self) -> Result<(Vec<Summary>, Rested), ReclaimError> {
        let (files, bytes) = self.open_elsewhere;
        if files > 0 {
            let (plural, verb) = if files == 1 { ("", "is") } else { ("s", "are") };
            self.talk.note(&format!(
                "{files} small file{plural} of {} {verb} open elsewhere: their space comes free when closed",
                units::bytes(bytes)
            ));
        }
        let (mut all, mut rested) = (Vec::new(), Rested::new());
        for (_, opened) in self.open.drain() {
            let mut relay = Relay {
                talk: self.talk,
                names: self.names,
                urgent: &mut self.urgent,
                told: &mut self.told,
            };
            let summary = opened
                .free
                .finish(&mut relay)
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

    /// Makes what frees where a device is, unless it is there.
    fn prepare(&mut self, at: At<'_>) -> Result<(), ReclaimError> {
        let system = self.amounts.systems().find(at.fd, at.device);
        if self.open.contains_key(&system) {
            return Ok(());
        }
        let on = self.place_on(at)?;
        let amount = self.amounts.of(at.device);
        let (free, notes) = self.reclaimers.reclaimer(on.as_fd(), amount)?;
        for note in notes {
            self.talk.note(&note);
        }
        let argument = self.argument.clone();
        let opened = Opened { free, on, argument };
        self.open.insert(system, opened);
        Ok(())
    }

    /// A directory on the same file system that can be kept open: not one that is
    /// about to be removed where there is another, for while it is open the kernel keeps
    /// all that it was in, and each removal above looks through all of those.
    fn place_on(&mut self, at: At<'_>) -> Result<OwnedFd, ReclaimError> {
        let home = self.home.as_ref().map(|(home, _)| home.as_fd());
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
                path: self.argument.clone(),
                source: errno.into(),
            })
    }

    fn what_is_paced(&mut self, at: At<'_>) -> Paced {
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

    /// Says that nothing is paced there, if so; once.
    fn tell_full_speed(&mut self, at: At<'_>) {
        if self.full_speed.insert(at.device)
            && let Some(why) = self.reclaimers.unpaced(at.fd)
        {
            self.talk.note(&format!("at full speed: {why}"));
        }
    }

    /// What frees where a device is, and who looks on.
    fn free(&mut self, device: u64) -> Option<(&mut Box<dyn Reclaimer>, Relay<'_>)> {
        let system = self.amounts.systems().known(device);
        let free = &mut self.open.get_mut(&system)?.free;
        let relay = Relay {
            talk: &mut *self.talk,
            names: self.names,
            urgent: &mut self.urgent,
            told: &mut self.told,
        };
        Some((free, relay))
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
            self.tell_full_speed(at);
        }
        let is_paced = match self.what_is_paced(at) {
            Paced::Nothing => false,
            Paced::LargeFiles => bytes >= LARGE,
            Paced::AllFiles => bytes > 0,
        };
        if !is_paced {
            return self.unlink(at.fd, name, path);
        }
        self.prepare(at)?;
        if bytes > MOST_WHOLE {
            return self.large(at, name, path, trash);
        }
        let expected = self.on_disk.of(at.fd, name, stat);
        if bytes < LARGE || self.goes_whole(at, stat, expected)? {
            return self.whole(at, name, path, expected);
        }
        self.large(at, name, path, trash)
    }

    /// Empties a large file, and removes its name.
    fn large(
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
        let emptied = match place.open(&mut self.mounted) {
            Large::Alone(file) if place.unlink_first => {
                let gone = self.unlink(place.at, &place.name, path)?;
                // Only what has no name any more is emptied, else it was another file; and what
                // nobody has opened or mounted before it went.
                let nameless = rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_nlink == 0);
                let ours = gone
                    && nameless
                    && self.mounted.has_now(&file) == Some(false)
                    && linux::files::open_elsewhere(&file).is_ok_and(|is| !is);
                let emptied = match (ours, self.free(at.device)) {
                    (true, Some((free, mut relay))) => free.empty(&file, &mut relay),
                    _ => Ok(()),
                };
                let emptied = match emptied {
                    Err(ReclaimError::Free { source, .. }) => {
                        let bytes = allocated(&file);
                        self.allow(at.device, bytes).map(|()| {
                            drop(file);
                            self.freed(at.device, bytes);
                            self.all_at_once(path, &source);
                        })
                    }
                    emptied => emptied,
                };
                if emptied.is_err() && ours {
                    let name = units::names::quoted(path);
                    let said = format!("what was left of {name} went all at once");
                    self.talk.note(&said);
                }
                return emptied.map(|()| gone);
            }
            Large::Alone(file) => {
                self.begun = true;
                let emptied = match self.free(at.device) {
                    Some((free, mut relay)) => free.empty(&file, &mut relay),
                    None => Ok(()),
                };
                match emptied {
                    // rm would remove it.
                    Err(ReclaimError::Free { source, .. }) if !is_stuck(&source) => {
                        let bytes = allocated(&file);
                        drop(file);
                        let at = At { fd: place.at, ..at };
                        let gone =
                            self.whole(at, &place.name, path, ExpectedDiscards::Now(bytes))?;
                        match gone {
                            true => self.all_at_once(path, &source),
                            false => place.put_back(),
                        }
                        return Ok(gone);
                    }
                    emptied => emptied,
                }
            }
            Large::Shared(why) => {
                let gone = self.unlink(place.at, &place.name, path)?;
                match (gone, why) {
                    (true, Some(why)) => {
                        let name = units::names::quoted(path);
                        self.talk.note(&format!("{name} {why}"));
                    }
                    (true, None) => {}
                    (false, _) => place.put_back(),
                }
                return Ok(gone);
            }
        };
        match emptied {
            Ok(()) => {}
            Err(ReclaimError::Free { source, .. }) => {
                place.put_back();
                let problem = match Errno::from_io_error(&source) {
                    Some(errno) => Problem::System(errno),
                    None => Problem::Words(crate::words::of_io(&source)),
                };
                return self.stays(path, problem);
            }
            Err(error) => return Err(error),
        }
        let gone = self.unlink(place.at, &place.name, path)?;
        if !gone {
            place.put_back();
        }
        Ok(gone)
    }

    /// Says that a file's space came free with its name.
    fn all_at_once(&mut self, path: &Path, why: &std::io::Error) {
        let (name, why) = (units::names::quoted(path), crate::words::of_io(why));
        let what = format!("{name} was removed all at once: it can't be emptied: {why}");
        self.talk.note(&what);
    }

    fn unlink(
        &mut self,
        at: BorrowedFd<'_>,
        name: &CStr,
        path: &Path,
    ) -> Result<bool, ReclaimError> {
        match rustix::fs::unlinkat(at, name, AtFlags::empty()) {
            Ok(()) => {
                self.gone(path, false);
                Ok(true)
            }
            // Somebody else was faster.
            Err(Errno::NOENT) => Ok(true),
            Err(errno) => self.stays(path, Problem::System(errno)),
        }
    }

    fn gone(&mut self, path: &Path, directory: bool) {
        self.names += 1;
        self.talk.removed(path, directory);
    }

    /// Tells that a name stays: false. An error where nothing else can go either.
    fn stays(&mut self, path: &Path, problem: Problem) -> Result<bool, ReclaimError> {
        if let (Problem::System(errno), Some((trash, true))) = (&problem, &self.home)
            && let Some(error) = lost::read_only(trash.as_fd(), Some(*errno), path)
        {
            return Err(error);
        }
        self.failures += 1;
        self.talk.failed(path, &problem);
        Ok(false)
    }

    /// Whether a name may go, if that is to be asked.
    fn asked(
        &mut self,
        at: BorrowedFd<'_>,
        name: &CStr,
        path: &Path,
        stat: &Stat,
    ) -> Result<bool, ReclaimError> {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let protected =
            self.asking != Asking::Never && kind != FileType::Symlink && is_protected(at, name);
        let what = match kind {
            FileType::RegularFile if stat.st_size == 0 => "regular empty file",
            FileType::RegularFile => "regular file",
            FileType::Directory => "directory",
            FileType::Symlink => "symbolic link",
            FileType::Fifo => "fifo",
            FileType::Socket => "socket",
            FileType::BlockDevice => "block special file",
            FileType::CharacterDevice => "character special file",
            _ => "weird file",
        };
        match self.asking {
            Asking::Never => Ok(true),
            Asking::Protected if !protected => Ok(true),
            _ => self.ask(path, Question::Remove(what), protected),
        }
    }

    fn leave(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        trail: &Trail,
    ) -> Result<Left, ReclaimError> {
        match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) => self.gone(trail.path(), true),
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

/// Bytes that a file still has on the disk.
fn allocated(file: &File) -> u64 {
    file.metadata()
        .map_or(0, |found| linux::files::allocated_bytes(&found))
}

/// Whether nothing can be removed where a truncation says that.
fn is_stuck(error: &std::io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        None | Some(Errno::ROFS | Errno::IO)
    )
}
