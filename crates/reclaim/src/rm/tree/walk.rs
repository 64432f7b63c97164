//! The walk itself: no recursion, a bounded number of open directories.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags, SeekFrom};
use rustix::io::Errno;

use super::{Batch, Entry, Kind, Trail};
use crate::{ReclaimError, Result};

/// Directories that are open at a time.
pub(crate) const MOST_OPEN: usize = 48;
/// How often a directory in which something was left is read from the start. Each time some names
/// were removed, but another process that makes names there could keep the walk busy forever.
const MOST_ROUNDS: u32 = 32;
/// The bytes of the buffer for names; one call brings some 8,000 of them.
const BUFFER: usize = 256 << 10;

/// Where a walk begins.
#[derive(Debug)]
pub(crate) struct Root<'a> {
    /// An open directory.
    pub(crate) parent: BorrowedFd<'a>,
    /// The name in it that is walked.
    pub(crate) name: &'a CStr,
    /// Stop where another file system, or any other mount, begins.
    pub(crate) one_file_system: bool,
    /// Of the names that one call brings, visit files first and in the order of their inodes.
    pub(crate) files_first: bool,
}

/// Whether to walk into a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Enter {
    /// Yes.
    Yes,
    /// No, and it stays.
    No,
}

/// An open directory on the way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At<'a> {
    /// The directory.
    pub(crate) fd: BorrowedFd<'a>,
    /// The device number of its file system, as `stat` shows it.
    pub(crate) device: u64,
    /// No user but this one (and root) can change the names in it.
    pub(crate) private: bool,
}

impl<'a> At<'a> {
    fn new(directory: &'a OwnedFd, device: u64, private: bool) -> At<'a> {
        At {
            fd: directory.as_fd(),
            device,
            private,
        }
    }

    /// Looks at an open directory.
    ///
    /// # Errors
    /// The error of `fstat`.
    pub(crate) fn of(fd: BorrowedFd<'a>) -> Result<At<'a>, Errno> {
        let stat = rustix::fs::fstat(fd)?;
        Ok(At {
            fd,
            device: stat.st_dev,
            private: is_private(&stat),
        })
    }
}

/// Returns whether no other user can make, rename or remove names there. The group's bits are the
/// mask of an access control list, so a list that lets others write shows in them.
fn is_private(stat: &rustix::fs::Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o022 == 0
}

/// The actions of a walk. The visitor reports failures with single names; an error ends the walk.
pub(crate) trait Visit {
    /// A directory, opened, before anything in it.
    fn enter(&mut self, at: At<'_>, trail: &Trail) -> Result<Enter>;
    /// Visits a name that isn't a directory, or whose kind is unknown. `Ok(false)`: it stays, and
    /// so do the directories above it.
    fn name(&mut self, at: At<'_>, entry: Entry<'_>, trail: &Trail) -> Result<bool>;
    /// Removes a directory with another device number than `parent` as one. `None`: it is to be walked;
    /// else whether it is gone.
    fn whole(&mut self, _parent: BorrowedFd<'_>, _name: &CStr, _: &Trail) -> Result<Option<bool>> {
        Ok(None)
    }
    /// Leaves a directory, called `name` in `parent`, after all in it was visited. As far as is
    /// known nothing in it stays.
    fn leave(&mut self, parent: BorrowedFd<'_>, name: &CStr, trail: &Trail) -> Result<Left>;
    /// A directory can't be walked. It stays unless this returns `Ok(true)`.
    fn failed(
        &mut self,
        parent: Option<BorrowedFd<'_>>,
        name: &CStr,
        trail: &Trail,
        errno: Errno,
    ) -> Result<bool>;
    /// How many names it has removed so far, those of directories among them.
    fn removed(&self) -> u64;
}

/// How a directory was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// It was removed, or was only looked at.
    Done,
    /// It contains a name that wasn't visited: read it once more.
    NotEmpty,
    /// It stays.
    Stays,
}

/// A directory on the way down.
struct Level {
    /// `None` while it is closed.
    directory: Option<OwnedFd>,
    device: u64,
    inode: u64,
    private: bool,
    /// In its parent.
    name: CString,
    batch: Batch,
    /// Where to read on if it is closed: behind the last name that was visited.
    cookie: u64,
    /// The trail's length above it.
    trail: usize,
    /// Something in it stays.
    stays: bool,
    /// The visitor's count of removed names when it was last read from the start, and how often it
    /// was.
    removed: u64,
    rounds: u32,
}

/// Walks a directory tree, the deepest first. Returns whether nothing stays.
///
/// # Errors
/// The error with which the visitor ends it.
pub(crate) fn walk(root: &Root<'_>, trail: &mut Trail, visit: &mut dyn Visit) -> Result<bool> {
    let mut walk = Walk {
        root,
        trail,
        levels: Vec::new(),
        buffer: vec![MaybeUninit::uninit(); BUFFER],
        device: 0,
    };
    walk.run(visit)
}

struct Walk<'a> {
    root: &'a Root<'a>,
    trail: &'a mut Trail,
    levels: Vec<Level>,
    buffer: Vec<MaybeUninit<u8>>,
    /// The root's.
    device: u64,
}

impl Walk<'_> {
    fn run(&mut self, visit: &mut dyn Visit) -> Result<bool> {
        let opened = open(self.root.parent, self.root.name, false);
        let opened = opened.and_then(|fd| Ok((rustix::fs::fstat(&fd)?, fd)));
        let top = match opened {
            Ok((stat, directory)) => {
                self.device = stat.st_dev;
                let trail = self.trail.path().as_os_str().len();
                Level::new(directory, &stat, self.root.name, trail, visit.removed())
            }
            // It was removed by somebody else.
            Err(Errno::NOENT) => return Ok(true),
            Err(errno) => {
                let (parent, name) = (self.root.parent, self.root.name);
                return visit.failed(Some(parent), name, self.trail, errno);
            }
        };
        if visit.enter(top.at()?, self.trail)? == Enter::No {
            return Ok(false);
        }
        self.levels.push(top);
        loop {
            let Some(level) = self.levels.last_mut() else {
                return Ok(true);
            };
            let Some((entry, cookie)) = level.batch.next() else {
                if self.refill(visit)? {
                    continue;
                }
                if let Some(whole) = self.leave(visit)? {
                    return Ok(whole);
                }
                continue;
            };
            level.cookie = cookie;
            let kind = entry.kind;
            // What nobody tells is tried as a directory: that fails on all else.
            if matches!(kind, Kind::Directory | Kind::Unknown) {
                let name = entry.name.to_owned();
                self.descend(&name, visit)?;
                continue;
            }
            if let Some(directory) = &level.directory {
                let at = At::new(directory, level.device, level.private);
                level.stays |= !visit.name(at, entry, self.trail)?;
            }
        }
    }

    /// Reads on in the present directory. Returns false at its end.
    fn refill(&mut self, visit: &mut dyn Visit) -> Result<bool> {
        let Some(level) = self.levels.last_mut() else {
            return Ok(false);
        };
        let Some(directory) = &level.directory else {
            return Ok(false);
        };
        match Batch::read(directory.as_fd(), &mut self.buffer) {
            Ok(mut batch) => {
                if self.root.files_first {
                    batch.files_first();
                }
                level.batch = batch;
            }
            // It was removed by somebody else.
            Err(Errno::NOENT) => return Ok(false),
            Err(errno) => {
                let told = visit.failed(None, &level.name, self.trail, errno)?;
                level.stays |= !told;
                return Ok(false);
            }
        }
        Ok(level.batch.has_more())
    }

    /// Enters a directory of the present one.
    fn descend(&mut self, name: &CStr, visit: &mut dyn Visit) -> Result<()> {
        let Some(level) = self.levels.last_mut() else {
            return Ok(());
        };
        let Some(parent) = &level.directory else {
            return Ok(());
        };
        let at = At::new(parent, level.device, level.private);
        let enter = || {
            open(parent.as_fd(), name, self.root.one_file_system)
                .and_then(|fd| Ok((rustix::fs::fstat(&fd)?, fd)))
                .and_then(|(stat, fd)| match stat.st_dev == self.device {
                    false if self.root.one_file_system => Err(Errno::XDEV),
                    _ => Ok((stat, fd)),
                })
        };
        let mut opened = enter();
        if opened
            .as_ref()
            .is_ok_and(|(stat, _)| stat.st_dev != level.device)
        {
            // The kernel frees nothing of a subvolume that is open.
            drop(opened);
            let up = self.trail.down(name);
            let gone = visit.whole(parent.as_fd(), name, self.trail)?;
            self.trail.up(up);
            if let Some(gone) = gone {
                level.stays |= !gone;
                return Ok(());
            }
            opened = enter();
        }
        let (stat, directory) = match opened {
            Ok(opened) => opened,
            Err(Errno::NOENT) => return Ok(()),
            // Or it has just been swapped for something else.
            Err(Errno::NOTDIR | Errno::LOOP) => {
                let kind = Kind::Unknown;
                let entry = Entry { name, kind };
                level.stays |= !visit.name(at, entry, self.trail)?;
                return Ok(());
            }
            Err(errno) => {
                let up = self.trail.down(name);
                let gone = visit.failed(Some(parent.as_fd()), name, self.trail, errno)?;
                self.trail.up(up);
                level.stays |= !gone;
                return Ok(());
            }
        };
        let up = self.trail.down(name);
        let below = Level::new(directory, &stat, name, up, visit.removed());
        if visit.enter(below.at()?, self.trail)? == Enter::No {
            self.trail.up(up);
            level.stays = true;
            return Ok(());
        }
        self.levels.push(below);
        // The top stays open: nobody can tell where its `..` leads by now.
        if let Some(far) = self.levels.len().checked_sub(MOST_OPEN)
            && let Some(level) = self.levels.get_mut(far).filter(|_| far > 0)
        {
            level.close();
        }
        Ok(())
    }

    /// Leaves the present directory. Returns `Some` at the top: whether nothing stays.
    fn leave(&mut self, visit: &mut dyn Visit) -> Result<Option<bool>> {
        let Some(mut level) = self.levels.pop() else {
            return Ok(Some(true));
        };
        let mut lost = None;
        if let Some(above) = self.levels.last_mut()
            && above.directory.is_none()
            && let Some(directory) = &level.directory
        {
            lost = above.reopen(directory).err();
        }
        let above = self.levels.last();
        let parent = match above {
            Some(above) => above.directory.as_ref().map(|fd| fd.as_fd()),
            None => Some(self.root.parent),
        };
        let left = match (lost, parent) {
            (Some(errno), _) => {
                visit.failed(None, &level.name, self.trail, errno)?;
                Left::Stays
            }
            (None, Some(parent)) if !level.stays => visit.leave(parent, &level.name, self.trail)?,
            _ => Left::Stays,
        };
        if left == Left::NotEmpty {
            // Some file systems leave names out while others are being removed. Others list
            // names that can't be found: where none went, none will.
            let again = visit.removed() > level.removed && level.rounds < MOST_ROUNDS;
            if again && level.rewind(visit.removed()).is_ok() {
                self.levels.push(level);
                return Ok(None);
            }
            visit.failed(None, &level.name, self.trail, Errno::NOTEMPTY)?;
        }
        self.trail.up(level.trail);
        let stays = left != Left::Done;
        let Some(above) = self.levels.last_mut() else {
            return Ok(Some(!stays));
        };
        above.stays |= stays;
        if above.directory.is_none() {
            // Where it was is lost, and with it all that is above: each is given up in turn.
            above.stays = true;
        }
        Ok(None)
    }
}

impl Level {
    fn new(
        directory: OwnedFd,
        stat: &rustix::fs::Stat,
        name: &CStr,
        trail: usize,
        removed: u64,
    ) -> Level {
        Level {
            directory: Some(directory),
            device: stat.st_dev,
            inode: stat.st_ino,
            private: is_private(stat),
            name: name.to_owned(),
            batch: Batch::default(),
            cookie: 0,
            trail,
            stays: false,
            removed,
            rounds: 1,
        }
    }

    fn at(&self) -> Result<At<'_>> {
        // A level is open when it is made.
        let directory = self.directory.as_ref().ok_or(ReclaimError::Interrupted)?;
        Ok(At::new(directory, self.device, self.private))
    }

    /// Closes it, and forgets the names that were not visited: they are read again. Where
    /// names stay they are kept: with files first, some that were visited come behind them.
    fn close(&mut self) {
        self.directory = None;
        match self.stays || !self.batch.has_more() {
            true => self.cookie = self.batch.end(),
            false => self.batch = Batch::default(),
        }
    }

    /// Opens it from a directory in it, and reads on from where it was.
    fn reopen(&mut self, from: &OwnedFd) -> Result<(), Errno> {
        let directory = open(from.as_fd(), c"..", false)?;
        let stat = rustix::fs::fstat(&directory)?;
        if (stat.st_dev, stat.st_ino) != (self.device, self.inode) {
            // Somebody has moved what we are in.
            return Err(Errno::STALE);
        }
        rustix::fs::seek(&directory, SeekFrom::Start(self.cookie))?;
        self.directory = Some(directory);
        Ok(())
    }

    fn rewind(&mut self, removed: u64) -> Result<(), Errno> {
        if let Some(directory) = &self.directory {
            rustix::fs::seek(directory, SeekFrom::Start(0))?;
        }
        (self.removed, self.cookie) = (removed, 0);
        self.rounds += 1;
        self.batch = Batch::default();
        Ok(())
    }
}

/// Opens a directory by its name in another, and nothing but a directory.
///
/// Reading it changes no access time where this user may ask for that. Otherwise the first commit
/// would write thousands of changed inodes (btrfs: 800 blocks for 1,400 directories).
fn open(parent: BorrowedFd<'_>, name: &CStr, same_mount: bool) -> Result<OwnedFd, Errno> {
    match open_with(parent, name, same_mount, OFlags::NOATIME) {
        // Only a directory's owner may ask.
        Err(Errno::PERM) => open_with(parent, name, same_mount, OFlags::empty()),
        opened => opened,
    }
}

fn open_with(
    parent: BorrowedFd<'_>,
    name: &CStr,
    same_mount: bool,
    more: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
    if same_mount {
        let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
        match rustix::fs::openat2(parent, name, flags, Mode::empty(), resolve) {
            // An older kernel, or a sandbox: then devices must do.
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {}
            opened => return opened,
        }
    }
    rustix::fs::openat(parent, name, flags, Mode::empty())
}
