//! Where tests of `trimbench guard` work, and the command itself.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::loop_fs::{Fs, LoopFs};
use crate::common::run::{Done, Running, run, start, trimbench};
use crate::rm_place::{Ground, ground};

/// A file system of the test's own, with a directory for the states of its guards.
pub struct Place {
    fs: Ground,
    states: tempfile::TempDir,
}

impl Deref for Place {
    type Target = LoopFs;

    fn deref(&self) -> &LoopFs {
        &self.fs
    }
}

/// A file system with these options, or nothing where the machine lacks something.
pub fn place(kind: Fs, options: &str) -> Option<Place> {
    let fs = ground(kind, options, 512)?;
    let states = tempfile::tempdir_in("/dev/shm").unwrap();
    Some(Place { fs, states })
}

impl Place {
    /// `trimbench guard` in the root of the file system.
    pub fn guard(&self, arguments: &[&str]) -> Command {
        self.guard_in(self.path(), arguments)
    }

    /// The same in another directory.
    pub fn guard_in(&self, directory: &Path, arguments: &[&str]) -> Command {
        let mut command = trimbench();
        command.env("STATE_DIRECTORY", self.states());
        command.current_dir(directory).arg("guard").args(arguments);
        command
    }

    /// The same, to its end.
    pub fn guarded(&self, arguments: &[&str]) -> Done {
        run(self.guard(arguments))
    }

    /// Where the states lie.
    pub fn states(&self) -> PathBuf {
        self.states.path().join("guard")
    }

    /// The states that are there.
    pub fn all_states(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.states()).into_iter().flatten();
        all.map(|entry| entry.unwrap().path()).collect()
    }

    /// A guard that trims as fast as it can; it runs and has looked once.
    #[track_caller]
    pub fn trims(&self, arguments: &[&str]) -> Running {
        let fast = [".", "--slowdown", "100%"];
        let mut running = start(self.guard(&[&fast, arguments].concat()));
        running.until_said("trims what is freed", 1);
        let pid = running.pid().as_raw_nonzero().get();
        running.until("a status", || {
            let done = self.guarded(&["status", "--json", "."]);
            serde_json::from_str(&done.stdout).is_ok_and(|found: Value| found["pid"] == pid)
        });
        running
    }

    // Effect of --json: on_ext4_all_that_is_freed_is_trimmed
    /// `guard status --json`.
    #[track_caller]
    pub fn status(&self) -> Value {
        let done = self.guarded(&["status", "--json", "."]);
        serde_json::from_str(&done.succeeds().stdout).unwrap()
    }
}

/// Ends a guard as a service manager does, which must go well.
#[track_caller]
pub fn ended(running: Running) -> Done {
    running.signal(Signal::TERM);
    let done = running.wait();
    done.succeeds();
    done
}
