use std::ffi::CStr;
use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::*;
use crate::Result;

/// Removes a few names each time a directory is read, as if the others couldn't be found.
struct Finds {
    each_time: u64,
    /// Another process makes a name whenever the directory is about to be left.
    refilled: bool,
    /// Since the directory was last left.
    found: u64,
    visited: u64,
    removed: u64,
    failed: Vec<Errno>,
}

impl Visit for Finds {
    fn enter(&mut self, _: At<'_>, _: &Trail) -> Result<Enter> {
        Ok(Enter::Yes)
    }

    fn name(&mut self, at: At<'_>, entry: Entry<'_>, _: &Trail) -> Result<bool> {
        self.visited += 1;
        assert!(self.visited < 100, "it looks again and again");
        if self.found < self.each_time {
            rustix::fs::unlinkat(at.fd, entry.name, AtFlags::empty()).unwrap();
            self.found += 1;
            self.removed += 1;
        }
        Ok(true)
    }

    fn leave(&mut self, parent: BorrowedFd<'_>, name: &CStr, _: &Trail) -> Result<Left> {
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
    ) -> Result<bool> {
        self.failed.push(errno);
        Ok(false)
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
        files_first: true,
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

/// Removes files, or lets them stay, and notes what it visits.
struct Notes {
    stay: bool,
    visited: Vec<String>,
}

impl Visit for Notes {
    fn enter(&mut self, _: At<'_>, _: &Trail) -> Result<Enter> {
        Ok(Enter::Yes)
    }

    fn name(&mut self, at: At<'_>, entry: Entry<'_>, trail: &Trail) -> Result<bool> {
        let path = trail.of(entry.name);
        self.visited.push(path.display().to_string());
        if !self.stay {
            rustix::fs::unlinkat(at.fd, entry.name, AtFlags::empty()).unwrap();
        }
        Ok(!self.stay)
    }

    fn leave(&mut self, parent: BorrowedFd<'_>, name: &CStr, _: &Trail) -> Result<Left> {
        rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).unwrap();
        Ok(Left::Done)
    }

    fn failed(&mut self, _: Option<BorrowedFd<'_>>, _: &CStr, _: &Trail, _: Errno) -> Result<bool> {
        Ok(false)
    }

    fn removed(&self) -> u64 {
        self.visited.len() as u64
    }
}

/// Deeper than directories are open at a time, with files and directories on each level.
fn deep_tree(at: &Path) -> usize {
    let mut at = at.to_owned();
    let levels = walk::MOST_OPEN + 10;
    for level in 0..levels {
        fs::create_dir(&at).unwrap();
        for name in 0..20 {
            fs::write(at.join(format!("file{name}")), "").unwrap();
            fs::create_dir(at.join(format!("d{name}"))).unwrap();
        }
        fs::write(at.join("d7/within"), "").unwrap();
        at.push(format!("level{level}"));
    }
    levels * 21
}

#[test]
fn with_files_first_each_name_of_a_deep_tree_is_visited_once() {
    for stay in [true, false] {
        let outer = tempfile::tempdir().unwrap();
        let tree = outer.path().join("t");
        let files = deep_tree(&tree);
        let parent = File::open(outer.path()).unwrap();
        let root = Root {
            parent: parent.as_fd(),
            name: c"t",
            one_file_system: false,
            files_first: true,
        };
        let visited = Vec::new();
        let mut visit = Notes { stay, visited };
        let gone = walk(&root, &mut Trail::new(Path::new("t")), &mut visit).unwrap();
        assert_eq!((gone, tree.exists()), (!stay, stay));
        let last_own = visit
            .visited
            .iter()
            .rposition(|path| path.matches('/').count() == 1);
        let first_below = visit
            .visited
            .iter()
            .position(|path| path.matches('/').count() > 1);
        assert!(last_own < first_below, "{last_own:?} {first_below:?}");
        assert_eq!(visit.visited.len(), files);
        visit.visited.sort();
        visit.visited.dedup();
        assert_eq!(visit.visited.len(), files, "no name twice");
    }
}
