//! A guarded directory, and the hidden directory in it.
//!
//! The hidden directory is `.trimbench-guard-` and eight random letters and digits, for this user
//! alone, with a locked owner file ([`linux::owner`]). It holds second names, whose names are the
//! inode numbers of their files, and the files of `control`. Nothing else in it is ever removed.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linux::owner::{Found, Held, is_named};
use pace::Goal;
use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;
use storage::FileSystem;

use super::allowance::Allowance;
use super::control::{self, Orders};
use super::error::GuardError;
use super::finder::FoundBy;
use super::inbox::Inbox;
use super::keep::{Descriptors, Keep};
use super::names::{Names, free_share, name_of};
use super::socket::Service;
use super::status::{Reported, Status, Totals, write};
use super::{Event, GuardOptions, Tell};
use crate::throttle::ThrottleOptions;

/// The beginning of a hidden directory's name.
pub(super) const PREFIX: &str = ".trimbench-guard-";
const OWNER: &str = "owner";
/// A link that is made and removed at the start, to find out whether the file system has hard
/// links.
const PROBE: &str = "probe";

/// One guarded directory.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    directory: OwnedFd,
    held: Held,
    pub(super) orders: Orders,
    pub(super) freed: Totals,
    pub(super) found_by: Option<FoundBy>,
    /// Descriptors of files, where those keep them.
    descriptors: Option<Arc<Descriptors>>,
    /// Notes that were printed already.
    told: RefCell<HashSet<String>>,
    hurried: bool,
    /// Where programs hand files over, if they may.
    inbox: Option<Inbox>,
    service: Option<Arc<Service>>,
}

impl Place {
    /// Takes charge of a directory, with the second names that an earlier guard left.
    pub(super) fn open(path: &Path, notes: &mut Vec<String>) -> Result<Place, GuardError> {
        let directory = open_directory(path)?;
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        refuse_overlay(&path)?;
        refuse_above(&directory, &path)?;
        let held = match adopt(&directory, &path)? {
            Some(held) => held,
            None => create(&directory, &path)?,
        };
        let place = Place {
            directory,
            held,
            orders: Orders::default(),
            freed: Totals::default(),
            found_by: None,
            descriptors: None,
            told: RefCell::default(),
            hurried: false,
            inbox: None,
            service: None,
            path,
        };
        if let Err(error) = place.probe() {
            place.close();
            return Err(error);
        }
        // An order that no guard took is none for this one.
        control::finish(place.hidden());
        let waiting = place.names().sums();
        if waiting.waiting_files > 0 {
            notes.push(format!(
                "{}: {} files with {} were deleted while no guard ran: they are freed now",
                units::names::quoted(&place.path),
                waiting.waiting_files,
                units::bytes(waiting.waiting_bytes)
            ));
        }
        Ok(place)
    }

    /// Lets programs hand files over, by a directory and by a socket.
    pub(super) fn open_inbox(
        &mut self,
        goal: Goal,
        options: &ThrottleOptions,
    ) -> Result<(), GuardError> {
        let failed = |source: io::Error| GuardError::Io {
            action: "make .trimbench/in in",
            path: self.path.clone(),
            source,
        };
        let inbox = Inbox::open(self.directory(), self.hidden());
        let inbox = inbox.map_err(|errno| failed(errno.into()))?;
        let on = self.directory.try_clone().map_err(failed)?;
        let allowance = Allowance::new(on, goal, options.clone());
        let service = Service::open(self, &inbox, allowance).map_err(failed)?;
        self.service = Some(Arc::new(service));
        self.inbox = Some(inbox);
        Ok(())
    }

    /// Returns the service that answers programs. It runs on a thread of its own.
    pub(super) fn service(&self) -> Option<Arc<Service>> {
        self.service.clone()
    }

    /// Takes what was handed over. By `paced`, large files wait to be freed; otherwise all is
    /// removed at once.
    pub(super) fn take_in(&self, paced: bool, tell: Tell<'_>) {
        let Some(inbox) = &self.inbox else { return };
        let taken = inbox.take(paced.then(|| self.keep()));
        let at = || units::names::quoted(self.path.join(".trimbench/in"));
        if taken.foreign > 0 {
            let why =
                "belong to another user than the guarded directory, or lie too deep, and stay";
            self.tell_once(tell, format!("{}: directories there {why}", at()));
        }
        if taken.failed > 0 {
            self.tell_once(tell, format!("{}: some names can't be removed", at()));
        }
    }

    /// Sees whether names can be opened safely, and hard links be made.
    fn probe(&self) -> Result<(), GuardError> {
        if let Err(errno) = super::scan::open_below(self.directory(), c".") {
            return Err(GuardError::NoOpenat2 {
                path: self.path.clone(),
                source: errno.into(),
            });
        }
        let (at, flags) = (self.held.directory(), AtFlags::empty());
        let _ = rustix::fs::unlinkat(at, PROBE, flags);
        let linked = rustix::fs::linkat(at, OWNER, at, PROBE, flags);
        let _ = rustix::fs::unlinkat(at, PROBE, flags);
        linked.map_err(|errno| refused(&self.path, errno))
    }

    /// The path of the guarded directory at the start, for messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The guarded directory.
    pub(super) fn directory(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }

    /// The hidden directory.
    pub(super) fn hidden(&self) -> BorrowedFd<'_> {
        self.held.directory()
    }

    /// The second names as they are now.
    pub(super) fn names(&self) -> Names {
        self.keep().all()
    }

    /// Keeps files by descriptors from now on, also those that wait under a second name.
    pub(super) fn hold_descriptors(&mut self) {
        self.forget_live();
        let by_name = Keep::Names(self.hidden());
        let held = Descriptors::new();
        for orphan in by_name.all().orphans {
            let name = name_of(orphan.inode);
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let opened = rustix::fs::openat(self.hidden(), name, flags, Mode::empty());
            let added = opened.and_then(|file| Keep::Descriptors(&held).add(file, orphan.inode));
            if added.is_ok() {
                let _ = by_name.remove(orphan.inode);
            }
        }
        self.descriptors = Some(Arc::new(held));
    }

    /// The descriptors of files, where those keep them.
    pub(super) fn descriptors(&self) -> Option<Arc<Descriptors>> {
        self.descriptors.clone()
    }

    /// Keeps files here.
    pub(super) fn keep(&self) -> Keep<'_> {
        match &self.descriptors {
            Some(held) => Keep::Descriptors(held),
            None => Keep::Names(self.hidden()),
        }
    }

    /// The share of the file system that is free, 0 to 1.
    pub(super) fn free_share(&self) -> f64 {
        free_share(self.hidden())
    }

    /// Whether so many bytes are more than may wait.
    pub(super) fn is_over(&self, held: u64, most: f64) -> bool {
        rustix::fs::fstatvfs(self.hidden()).is_ok_and(|stat| {
            let size = stat.f_blocks.saturating_mul(stat.f_frsize) as f64;
            held as f64 > size * most
        })
    }

    /// Takes an order, if there is one.
    pub(super) fn take_orders(&mut self, goal: &mut Goal, tell: Tell<'_>) {
        let Some(request) = control::take(self.hidden()) else {
            return;
        };
        if let Some(slowdown) = request.slowdown {
            goal.slowdown = slowdown;
        }
        if let Some(ms) = request.max_latency_ms {
            goal.max_latency = Some(std::time::Duration::from_secs_f64(ms / 1e3));
        }
        if let Some(service) = &self.service {
            service.set_goal(*goal);
        }
        self.orders.add(&request);
        let words = request.in_words();
        tell(Event::Note(format!(
            "{}: {words}",
            units::names::quoted(&self.path)
        )));
    }

    /// Writes down how it stands, for `status`.
    pub(super) fn report(&mut self, names: &Names, options: &GuardOptions) {
        let status = Status::of(&self.path, options, self.found_by, &self.freed);
        let reported = status.reported.map(|reported| Reported {
            held: self.descriptors.is_some().then(|| names.sums()),
            ..reported
        });
        // It is only read by people: a full disk must not end a guard.
        let _ = write(self.held.directory(), &reported);
    }

    /// Writes the report of a guard by trims, for `status`.
    pub(super) fn report_as(&self, reported: Reported) {
        let _ = write(self.held.directory(), &Some(reported));
    }

    /// Reports a note that wasn't reported before.
    pub(super) fn tell_once(&self, tell: Tell<'_>, sentence: String) {
        if self.told.borrow_mut().insert(sentence.clone()) {
            tell(Event::Note(sentence));
        }
    }

    /// Reports that more waits than is allowed, once until less does.
    pub(super) fn note_hurry(&mut self, most: f64, tell: Tell<'_>) {
        let share = units::percent(most);
        let why = format!("more than {share} of the file system waits to be freed");
        self.note_hurry_because(&why, tell);
    }

    /// Reports a note once for another reason.
    pub(super) fn note_hurry_because(&mut self, why: &str, tell: Tell<'_>) {
        if !std::mem::replace(&mut self.hurried, true) {
            tell(Event::Note(format!(
                "{}: {why}; others may lose half until less does",
                units::names::quoted(&self.path)
            )));
        }
    }

    /// Ends an order to drain, because nothing waits any more.
    pub(super) fn drained(&mut self) {
        self.orders.drain = false;
        control::drained(self.hidden());
    }

    /// Removes the second names of files without another name, which frees them at once.
    pub(super) fn forget_orphans(&self) {
        for name in self.names().orphans {
            let _ = self.keep().remove(name.inode);
        }
    }

    /// Removes the second names of files that have another name. Frees nothing.
    pub(super) fn forget_live(&mut self) {
        for name in self.names().live {
            // It may have lost its other name just now.
            let keep = self.keep();
            let alone = keep
                .stat(name.inode)
                .is_none_or(|stat| keep.is_alone(&stat));
            if !alone {
                let _ = keep.remove(name.inode);
            }
        }
    }

    /// Reports that an order is carried out to the process that gave it.
    pub(super) fn finish_orders(&self) {
        control::finish(self.hidden());
    }

    /// Removes the hidden directory if no second name is in it, and releases it.
    pub(super) fn close(mut self) {
        if let Some(inbox) = self.inbox.take() {
            inbox.close(self.directory());
        }
        let names = Keep::Names(self.hidden()).all();
        if names.live.is_empty() && names.orphans.is_empty() {
            control::clear(self.hidden());
            if self.orders.remove {
                super::by_trim::forget_notes(self.hidden());
            }
            let _ = self.held.remove(&self.directory);
        }
    }
}

/// Opens a directory that a user named. Its own path may hold symbolic links.
pub(super) fn open_directory(path: &Path) -> Result<OwnedFd, GuardError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOTDIR => GuardError::NotADirectory { path: path.into() },
        errno => GuardError::Io {
            action: "open the directory",
            path: path.into(),
            source: errno.into(),
        },
    })
}

/// Names of hidden directories in an open directory.
pub(super) fn hidden_in(directory: BorrowedFd<'_>) -> Vec<String> {
    let entries = Dir::read_from(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
        .filter(|name| is_named(name, PREFIX))
        .collect()
}

/// Opens the hidden directory that an earlier guard left; `None` where there is none.
pub(super) fn adopt(directory: &OwnedFd, path: &Path) -> Result<Option<Held>, GuardError> {
    let mut adopted = None;
    for name in hidden_in(directory.as_fd()) {
        match Held::find(directory, &name) {
            // Of two, the second is for the next start: its files are whole or wait.
            Found::Held(held) if adopted.is_none() => adopted = Some(held),
            Found::Held(_) | Found::Gone => {}
            Found::InUse { pid } => {
                return Err(GuardError::Guarded {
                    path: path.into(),
                    pid,
                });
            }
            // Somebody else can have put it there, to keep guards away.
            Found::Left(_) if !is_own(directory, &name) => {}
            Found::Left(because) => {
                return Err(GuardError::Unusable {
                    path: path.join(name),
                    because,
                });
            }
        }
    }
    Ok(adopted)
}

/// Whether something belongs to this user.
fn is_own(directory: &OwnedFd, name: &str) -> bool {
    let own = rustix::process::geteuid().as_raw();
    rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| stat.st_uid == own)
}

/// Makes a hidden directory, and waits until it is on the disk with its owner file.
fn create(directory: &OwnedFd, path: &Path) -> Result<Held, GuardError> {
    let held =
        Held::create(directory, path, PREFIX).map_err(|error| {
            match Errno::from_io_error(&error.source) {
                Some(Errno::ROFS) => GuardError::ReadOnly { path: path.into() },
                _ => GuardError::Io {
                    action: "make a hidden directory in",
                    path: path.into(),
                    source: error.source,
                },
            }
        })?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(owner) = rustix::fs::openat(held.directory(), OWNER, flags, Mode::empty()) {
        let _ = rustix::fs::fsync(owner);
    }
    for directory in [held.directory(), directory.as_fd()] {
        let _ = rustix::fs::fsync(directory);
    }
    // Two that started at the same moment: at least one sees the other.
    let others = hidden_in(directory.as_fd());
    for name in others.iter().filter(|name| *name != held.name()) {
        if let Found::InUse { pid } = Held::find(directory, name) {
            let _ = held.remove(directory);
            let path = path.into();
            return Err(GuardError::Guarded { path, pid });
        }
    }
    Ok(held)
}

fn refuse_overlay(path: &Path) -> Result<(), GuardError> {
    match storage::describe(path) {
        Ok(found) if FileSystem::named(&found.target) == FileSystem::Overlay => {
            Err(GuardError::Overlay { path: path.into() })
        }
        _ => Ok(()),
    }
}

/// Refuses a directory above which, on the same file system, another guard works.
fn refuse_above(directory: &OwnedFd, path: &Path) -> Result<(), GuardError> {
    let failed = |errno: Errno| GuardError::Io {
        action: "examine",
        path: path.into(),
        source: io::Error::from(errno),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut here = rustix::fs::fstat(directory).map_err(failed)?;
    let mut at = None;
    loop {
        let from = at.as_ref().unwrap_or(directory);
        // Where a parent can't be read, a guard of this user can't be there.
        let Ok(parent) = rustix::fs::openat(from, c"..", flags, Mode::empty()) else {
            return Ok(());
        };
        let above = rustix::fs::fstat(&parent).map_err(failed)?;
        if above.st_dev != here.st_dev || above.st_ino == here.st_ino {
            return Ok(());
        }
        for name in hidden_in(parent.as_fd()) {
            if let Found::InUse { pid } = Held::find(&parent, &name) {
                return Err(GuardError::Nested {
                    path: path.into(),
                    other: crate::throttle::shown(&parent),
                    pid,
                });
            }
        }
        (here, at) = (above, Some(parent));
    }
}

/// Why there are no hard links.
fn refused(path: &Path, errno: Errno) -> GuardError {
    let path = path.to_owned();
    match errno {
        Errno::ROFS => GuardError::ReadOnly { path },
        Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK => GuardError::NoLinks {
            path,
            source: errno.into(),
        },
        errno => GuardError::Io {
            action: "make a hard link in",
            path,
            source: errno.into(),
        },
    }
}
