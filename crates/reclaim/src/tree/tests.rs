use std::ffi::CStr;
use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::*;
use crate::ReclaimError;

/// Removes a few names each time a directory is read, as if the others couldn't be found.
struct Finds {
    each_time: u64,
    /// Somebody makes another name whenever the directory is about to be left.
    refilled: bool,
    /// Since the directory was last left.
    found: u64,
    visited: u64,
    removed: u64,
    failed: Vec<Errno>,
}

impl Visit for Finds {
    fn enter(&mut self, _: At<'_>, _: &Trail) -> Result<Enter, ReclaimError> {
        Ok(Enter::Yes)
    }

    fn name(&mut self, at: At<'_>, entry: Entry<'_>, _: &Trail) -> Result<bool, ReclaimError> {
        self.visited += 1;
        assert!(self.visited < 100, "it looks again and again");
        if self.found < self.each_time {
            rustix::fs::unlinkat(at.fd, entry.name, AtFlags::empty()).unwrap();
            self.found += 1;
            self.removed += 1;
        }
        Ok(true)
    }

    fn leave(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &CStr,
        _: &Trail,
    ) -> Result<Left, ReclaimError> {
        self.found = 0;
        if self.refilled {
            let directory = rustix::fs::openat(parent, name, OFlags::PATH, Mode::empty()).unwrap();
            let access = OFlags::CREATE | OFlags::WRONLY;
            rustix::fs::openat(&directory, "another", access, Mode::RUSR).unwrap();
        }
        Ok(
            match rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR) {
                Ok(()) => Left::Done,
                Err(_) => Left::NotEmpty,
            },
        )
    }

    fn failed(
        &mut self,
        _: Option<BorrowedFd<'_>>,
        _: &CStr,
        _: &Trail,
        errno: Errno,
    ) -> Result<bool, ReclaimError> {
        self.failed.push(errno);
        Ok(false)
    }

    fn flush(&mut self, _: At<'_>, _: &Trail) -> Result<bool, ReclaimError> {
        Ok(true)
    }

    fn removed(&self) -> u64 {
        self.removed
    }
}

/// Walks a directory of three names; whether it is gone, and what failed.
fn walked(each_time: u64, refilled: bool) -> (bool, Vec<Errno>) {
    let outer = tempfile::tempdir().unwrap();
    let tree = outer.path().join("t");
    fs::create_dir(&tree).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(tree.join(name), "").unwrap();
    }
    let parent = File::open(outer.path()).unwrap();
    let root = Root {
        parent: parent.as_fd(),
        name: c"t",
        one_file_system: false,
    };
    let mut visit = Finds {
        each_time,
        refilled,
        found: 0,
        visited: 0,
        removed: 0,
        failed: Vec::new(),
    };
    let gone = walk(&root, &mut Trail::new(Path::new("t")), &mut visit).unwrap();
    assert_eq!(gone, !tree.exists());
    (gone, visit.failed)
}

#[test]
fn names_left_out_at_first_are_met_later() {
    assert_eq!(walked(2, false), (true, vec![]));
}

#[test]
fn who_makes_names_for_ever_is_not_outwaited() {
    assert_eq!(walked(9, true), (false, vec![Errno::NOTEMPTY]));
}

#[test]
fn names_that_cannot_be_found_are_not_looked_for_for_ever() {
    assert_eq!(walked(0, false), (false, vec![Errno::NOTEMPTY]));
}
