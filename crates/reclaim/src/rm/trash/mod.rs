//! The trash: names are renamed into it before their space is freed.
//!
//! It is a directory `.trimbench-trash-*` in the same parent as the removed names, so that a rename
//! is enough. Only this user can reach it. It holds
//!
//! - `owner`, locked while a process works on it (see [`linux::owner`]);
//! - `journal`: the names that the entries had ([`journal`]), on disk before the first rename. It
//!   also lists read-only subvolumes, which can't be renamed and keep their names until their turn;
//! - `000001`, `000002` …: the names that the arguments gave;
//! - `file`: a large file from a directory in which other users can change names, while it is
//!   emptied;
//! - `kept-000001` …: a name that another process put in the place of an argument before the
//!   rename, and that couldn't have its name back. No journal lists it, and no resume removes it.

pub(crate) mod journal;
pub(crate) mod remember;

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use linux::owner::{Found, OwnedDirectory};
use linux::subvolume::Subvolume;
use rustix::fs::{AtFlags, FileType, RenameFlags, Stat};
use rustix::io::Errno;
use rustix::path::Arg;

use crate::directory;
use crate::event::{Listener, Progress, Reporter, report, silent};
use journal::Entry;

/// A trash's name begins so; eight letters and digits follow.
pub(crate) const PREFIX: &str = ".trimbench-trash-";

const JOURNAL: &str = "journal";

const OWNER: &str = "owner";

/// A large file while it is emptied.
pub(crate) const FILE: &std::ffi::CStr = c"file";

const KEPT: &str = "kept-";

/// A trash that this process holds.
#[derive(Debug)]
pub(crate) struct Trash {
    parent: Rc<OwnedFd>,
    held: OwnedDirectory,
    path: PathBuf,
    /// The arguments that were renamed into it, or were about to be.
    pub(crate) entries: Vec<Entry>,
    link: Option<remember::Link>,
}

/// The reason why a trash can't be made or worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unusable(pub String);

impl Trash {
    /// Makes a trash in a directory, and writes to the disk which names will be renamed into it.
    ///
    /// # Errors
    /// If nothing can be made there. Then nothing is left of the attempt.
    pub(crate) fn create(
        parent: &Rc<OwnedFd>,
        parent_path: &Path,
        entries: Vec<Entry>,
    ) -> Result<Trash, Unusable> {
        let held = OwnedDirectory::create(parent, parent_path, PREFIX)
            .map_err(|error| Unusable(crate::error::words(&error.source)))?;
        let path = parent_path.join(held.name());
        let trash = Trash {
            parent: Rc::clone(parent),
            held,
            path,
            entries,
            link: None,
        };
        let written = journal::write(trash.directory(), JOURNAL, &trash.entries);
        match written.and_then(|()| trash.keep_owner()) {
            Ok(()) => Ok(Trash {
                link: remember::remember(&trash.parent, trash.directory(), trash.held.name()),
                ..trash
            }),
            Err(errno) => {
                trash.close(false, &mut Pauses::new(Progress::default(), &mut silent));
                Err(Unusable(crate::error::words(&errno.into())))
            }
        }
    }

    /// Waits until the owner file is on the disk. Without it nobody could resume this trash after a
    /// power failure.
    fn keep_owner(&self) -> Result<(), Errno> {
        rustix::fs::fsync(directory::open(self.directory(), OWNER)?)
    }

    /// Opens a trash that an earlier process left, to resume it. Returns `None` where it no longer
    /// exists.
    ///
    /// # Errors
    /// If another process works on it, or if it isn't certainly this user's.
    pub(crate) fn find(
        parent: &Rc<OwnedFd>,
        parent_path: &Path,
        name: &str,
    ) -> Result<Option<Trash>, Unusable> {
        let held = match OwnedDirectory::find(parent, name) {
            Found::Owned(held) => held,
            Found::Gone => return Ok(None),
            Found::Left(because) => return Err(Unusable(because)),
            Found::InUse { pid } => {
                let who = pid.map_or(String::new(), |pid| format!(" (process {pid})"));
                return Err(Unusable(format!("another process works on it{who}")));
            }
        };
        let entries = match journal::read(held.directory(), JOURNAL) {
            Ok(entries) => entries,
            // Killed before the journal was whole: then nothing was renamed yet.
            Err(journal::Unreadable::Missing) => Vec::new(),
            Err(journal::Unreadable::Other(why)) => return Err(Unusable(why)),
        };
        Ok(Some(Trash {
            parent: Rc::clone(parent),
            link: remember::again(parent, held.directory(), held.name()),
            path: parent_path.join(name),
            held,
            entries,
        }))
    }

    /// The open directory.
    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.held.directory()
    }

    /// Its path when it was made, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name that an entry has in here.
    pub(crate) fn name(number: u32) -> CString {
        // Digits hold no NUL.
        CString::new(format!("{number:06}")).unwrap_or_default()
    }

    /// Renames a name of the parent into the trash.
    ///
    /// # Errors
    /// The error of the rename.
    pub(crate) fn rename_in(&self, number: u32, from: &std::ffi::CStr) -> Result<(), Errno> {
        rename_new(
            self.parent.as_fd(),
            from,
            self.directory(),
            &Trash::name(number),
        )
    }

    /// Waits until the renames into the trash are on the disk.
    ///
    /// XFS and btrfs write them in order with the frees that follow, so nothing is done there.
    /// Elsewhere a power failure could otherwise show the old name with no content behind it.
    pub(crate) fn settle(&self) {
        if let Some(directory::XFS | directory::BTRFS) = directory::kind(self.directory()) {
            return;
        }
        for changed in [self.directory(), self.parent.as_fd()] {
            let _ = directory::reopen(changed).and_then(rustix::fs::fsync);
        }
    }

    /// Gives an entry its old name back, unless another process has made one of that name.
    ///
    /// # Errors
    /// The error of the rename.
    pub(crate) fn put_back(&self, number: u32, to: &std::ffi::CStr) -> Result<(), Errno> {
        rename_new(
            self.directory(),
            &Trash::name(number),
            self.parent.as_fd(),
            to,
        )
    }

    /// Renames an entry so that no resume removes it as that entry. Returns its new path.
    ///
    /// # Errors
    /// The error of the rename.
    pub(crate) fn keep(&self, number: u32) -> Result<PathBuf, Errno> {
        let kept = format!("{KEPT}{number:06}");
        let (at, name) = (self.directory(), Trash::name(number));
        rustix::fs::renameat(at, &*name, at, &*kept)?;
        Ok(self.path.join(kept))
    }

    /// Returns whether an entry's being a directory is as it was when the argument was looked at.
    pub(crate) fn is_as_seen(&self, number: u32, directory: bool) -> bool {
        let name = Trash::name(number);
        rustix::fs::statat(self.directory(), &*name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| is_directory(&stat) == directory)
    }

    /// Returns whether the trash contains this name.
    pub(crate) fn has(&self, name: &std::ffi::CStr) -> bool {
        directory::has(self.directory(), name)
    }

    /// Whether there is something where an entry was.
    pub(crate) fn has_stayed(&self, entry: &Entry) -> bool {
        directory::has(&*self.parent, entry.name.as_bytes())
    }

    /// Returns the directory that the trash is in, and the entry's name there, if it is a subvolume
    /// that has kept its name.
    pub(crate) fn listed(&self, entry: &Entry) -> Option<(BorrowedFd<'_>, CString)> {
        let (parent, uuid) = (self.parent.as_fd(), entry.subvolume?);
        let name = CString::new(entry.name.as_bytes()).ok()?;
        let found = Subvolume::at(parent, &name)?;
        (found.uuid == uuid).then_some((parent, name))
    }

    /// Removes the journal, the owner file and the directory if nothing else is in it, nor, where a
    /// resume `goes_on`, subvolumes that it lists are left. Returns whether nothing is left to
    /// resume.
    ///
    /// Each of them frees a block, whose discard can take a slow drive as long as a large one. So
    /// they are removed one by one, with a pause after each.
    pub(crate) fn close(mut self, goes_on: bool, pauses: &mut Pauses<'_>) -> bool {
        let lists = || {
            self.entries
                .iter()
                .any(|entry| self.listed(entry).is_some())
        };
        let lists = goes_on && lists();
        if !self.is_gone()
            && let Some(to_be_removed) = self.others().or(lists.then_some(true))
        {
            // What is only kept needs no note.
            let to_be_removed = to_be_removed || lists;
            if let (false, Some(link)) = (to_be_removed, self.link) {
                link.forget();
            }
            return !to_be_removed;
        }
        // What was freed before this isn't committed either.
        pauses.after(self.directory());
        for name in [JOURNAL, journal::NEW] {
            directory::remove(self.directory(), name);
        }
        pauses.after(self.directory());
        if self.held.disown().is_ok() {
            pauses.after(self.directory());
        }
        // An empty directory without an owner file is nobody's: whoever resumes removes it.
        let gone = self.is_gone() || self.held.remove(&self.parent).is_ok();
        // The last discard, too, comes before the end is told.
        pauses.after(&self.parent);
        if gone && let Some(link) = self.link {
            link.forget();
        }
        gone
    }

    /// Returns whether another process has removed the trash.
    fn is_gone(&self) -> bool {
        rustix::fs::fstat(self.directory()).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Returns whether anything in it, apart from its own files, is still to be removed; `None`
    /// where there is nothing else.
    fn others(&self) -> Option<bool> {
        let Ok(names) = rustix::fs::Dir::read_from(self.directory()) else {
            return Some(true);
        };
        let own = [
            &b"."[..],
            b"..",
            OWNER.as_bytes(),
            b"owner.new",
            JOURNAL.as_bytes(),
        ];
        names
            .map(|entry| match entry {
                Ok(entry) => entry.file_name().to_bytes().to_owned(),
                // It may be anything that is still to be removed.
                Err(_) => FILE.to_bytes().to_owned(),
            })
            .filter(|name| !own.contains(&&name[..]) && name != journal::NEW.as_bytes())
            .map(|name| !name.starts_with(KEPT.as_bytes()))
            .reduce(|one, other| one || other)
    }
}

fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// Returns whether a path leads into a trash. A user who asked for a deletion doesn't know such
/// names.
pub(crate) fn is_within(path: &Path) -> bool {
    let is_trash = |name: &str| linux::owner::is_named(name, PREFIX);
    path.iter().any(|part| part.to_str().is_some_and(is_trash))
}

/// Renames without replacing anything.
pub(crate) fn rename_new(
    from: BorrowedFd<'_>,
    name: impl Arg + Copy,
    to: BorrowedFd<'_>,
    new: impl Arg + Copy,
) -> Result<(), Errno> {
    match rustix::fs::renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
        // A file system that doesn't know how to refuse: look before.
        Err(Errno::INVAL | Errno::NOSYS) => {
            match rustix::fs::statat(to, new, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(_) => Err(Errno::EXIST),
                Err(Errno::NOENT) => rustix::fs::renameat(from, name, to, new),
                Err(errno) => Err(errno),
            }
        }
        renamed => renamed,
    }
}

// Pauses after the blocks that a trash itself frees.

/// The shortest pause that other I/O would notice, and the longest.
const NOTICED: Duration = Duration::from_millis(50);

const LONGEST: Duration = Duration::from_secs(2);

/// The pauses after each of the last, small discards, in which the foreground gets the drive.
pub(crate) struct Pauses<'a> {
    each: Duration,
    /// The listener has ended the deletion.
    stopped: bool,
    progress: Progress,
    listener: &'a mut Listener<'a>,
}

impl<'a> Pauses<'a> {
    /// None, until their length is set.
    pub(crate) fn new(progress: Progress, listener: &'a mut Listener<'a>) -> Pauses<'a> {
        Pauses {
            each: Duration::ZERO,
            stopped: false,
            progress,
            listener,
        }
    }

    /// How long each is from now on.
    pub(crate) fn set(&mut self, each: Duration) {
        self.each = each.min(LONGEST);
    }

    /// Commits the changes of a directory and pauses, unless the pause is too short to matter.
    /// After the listener has ended the deletion there is no pause: all that is left is small.
    fn after(&mut self, directory: impl AsFd) {
        if self.stopped || self.each < NOTICED {
            return;
        }
        let _ = crate::directory::reopen(directory).and_then(rustix::fs::fsync);
        let until = Instant::now() + self.each;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if report(self.listener, self.progress).is_err() {
                self.stopped = true;
                return;
            }
            std::thread::sleep(left.min(Reporter::EVERY));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Reply};

    /// A listener that ends the deletion after this many events.
    fn patience(mut left: u32) -> impl FnMut(Event<'_>) -> Reply {
        move |_| match left.checked_sub(1) {
            None => Reply::Stop,
            Some(less) => {
                left = less;
                Reply::Yes
            }
        }
    }

    #[test]
    fn after_a_stop_there_are_no_more_pauses() {
        let directory = tempfile::tempdir().unwrap();
        let directory = std::fs::File::open(directory.path()).unwrap();
        let mut patience = patience(2);
        let mut pauses = Pauses::new(Progress::default(), &mut patience);
        pauses.set(LONGEST);
        pauses.after(&directory);
        assert!(pauses.stopped);
        pauses.set(LONGEST);
        pauses.after(&directory);
    }

    #[test]
    fn a_pause_that_nobody_notices_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let directory = std::fs::File::open(directory.path()).unwrap();
        // It would be stopped at its first look.
        let mut patience = patience(0);
        let mut pauses = Pauses::new(Progress::default(), &mut patience);
        pauses.set(NOTICED / 2);
        pauses.after(&directory);
        assert!(!pauses.stopped);
    }
}
