//! New files as the kernel reports them, by fanotify.

use std::collections::HashSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use linux::fanotify::{Change, Changes, Handle};
use rustix::fs::{Mode, OFlags};

use super::keep::Keep;
use super::scan::{Linked, Rules, Scanned, is_left_alone, link, open_below, scan};

/// How often files that are still being written are looked at.
const GROWING_EVERY: Duration = Duration::from_secs(1);

/// So many files that are being written are followed; others are found when they are closed, or by
/// a scan.
const MOST_GROWING: usize = 10_000;

/// So many directories elsewhere are remembered.
const MOST_ELSEWHERE: usize = 10_000;

/// A directory lies at most so deep below the guarded one.
const DEEPEST: usize = 101;

/// Follows the changes on one file system.
#[derive(Debug)]
pub(super) struct Events {
    changes: Changes,
    /// Files that were created, not closed since, and too small yet.
    growing: HashSet<(Handle, CString)>,
    /// Directories elsewhere on the file system, which need no second look.
    elsewhere: HashSet<Handle>,
    looked: Instant,
}

impl Events {
    /// Begins to follow the file system of an open directory.
    ///
    /// # Errors
    /// Where the kernel reports nothing, or directories can't be opened by what it reports.
    pub(super) fn of(directory: BorrowedFd<'_>) -> io::Result<Events> {
        Ok(Events {
            changes: Changes::of(directory)?,
            growing: HashSet::new(),
            elsewhere: HashSet::new(),
            looked: Instant::now(),
        })
    }

    /// All was scanned: other directories may lie below the guarded one now.
    pub(super) fn scanned(&mut self) {
        self.elsewhere.clear();
    }

    /// Waits for changes, for at most so long, and gives new large files their second names.
    /// Returns whether all must be scanned, because reports were lost.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn follow(
        &mut self,
        at: (BorrowedFd<'_>, Keep<'_>),
        rules: &Rules,
        at_most: Duration,
        scanned: &mut Scanned,
    ) -> io::Result<bool> {
        let mut lost = false;
        for change in self.changes.wait(at_most)? {
            match change {
                Change::Lost => lost = true,
                Change::Name {
                    directory,
                    name,
                    is_directory,
                    closed,
                } if !is_left_alone(&name) => {
                    self.look(at, rules, (directory, name), is_directory, closed, scanned);
                }
                Change::Name { .. } => {}
            }
        }
        if self.looked.elapsed() >= GROWING_EVERY {
            self.looked = Instant::now();
            self.growing.retain(|(directory, name)| {
                let linked = within(directory, at.0, scanned)
                    .map(|open| link(open.as_fd(), name, at.1, rules));
                linked.is_some_and(|linked| {
                    scanned.add(linked);
                    linked == Linked::Small
                })
            });
        }
        Ok(lost)
    }

    fn look(
        &mut self,
        (guarded, keep): (BorrowedFd<'_>, Keep<'_>),
        rules: &Rules,
        named: (Handle, CString),
        is_directory: bool,
        closed: bool,
        scanned: &mut Scanned,
    ) {
        if self.elsewhere.contains(&named.0) {
            return;
        }
        let Some(open) = within(&named.0, guarded, scanned) else {
            if self.elsewhere.len() >= MOST_ELSEWHERE {
                self.elsewhere.clear();
            }
            self.elsewhere.insert(named.0);
            return;
        };
        if is_directory {
            // It may have been elsewhere before.
            self.elsewhere.clear();
            // With all that was moved or made in it meanwhile.
            if let Ok(new) = open_below(open.as_fd(), &named.1) {
                let more = scan(new.as_fd(), keep, rules, &|| true);
                scanned.take_in(more);
            }
            return;
        }
        let linked = link(open.as_fd(), &named.1, keep, rules);
        scanned.add(linked);
        match linked {
            Linked::Small if !closed && self.growing.len() < MOST_GROWING => {
                self.growing.insert(named);
            }
            _ => {
                self.growing.remove(&named);
            }
        }
    }
}

/// Opens a directory if it lies below the guarded one.
fn within(handle: &Handle, guarded: BorrowedFd<'_>, scanned: &Scanned) -> Option<OwnedFd> {
    let open = handle.open(guarded).ok()?;
    let inode = |of: BorrowedFd<'_>| rustix::fs::fstat(of).ok().map(|stat| stat.st_ino);
    let known = inode(open.as_fd())?;
    if !scanned.directories.contains(&known) {
        return None;
    }
    // Another directory may have the number of one that is gone: its parents decide.
    let top = inode(guarded)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = open.try_clone().ok()?;
    for _ in 0..=DEEPEST {
        let here = inode(at.as_fd())?;
        if here == top {
            return Some(open);
        }
        at = rustix::fs::openat(&at, c"..", flags, Mode::empty()).ok()?;
        if inode(at.as_fd())? == here {
            return None;
        }
    }
    None
}
