//! A blkio cgroup for the foreground.
//!
//! The loop driver has one worker for each blkio cgroup that sends it requests. A worker waits for
//! a discard until it is done (Linux 6.12 drivers/block/loop.c, `lo_fallocate`). File systems
//! discard from kernel threads, in the root cgroup.
//!
//! So reads of the root cgroup wait behind a discard, whatever the drive does. Reads of any other
//! cgroup wait for the drive alone, not for the driver. A process that measures on such a device
//! has to be in a cgroup of its own: this one. A process that discards or commits must not be in
//! it: btrfs with `discard=sync`, fstrim and raw devices discard in the caller.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::error::LabError;
use crate::lab::Lab;
use crate::mounts::wait_until;
use crate::place::Place;

const ROOT: &str = "/sys/fs/cgroup";
const PREFIX: &str = "trimbench-lab-";

/// The foreground's cgroup of a drive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreground {
    dir: PathBuf,
}

impl Lab {
    /// The blkio cgroup of a drive's foreground, made if it isn't there; it is
    /// removed with the drive.
    ///
    /// # Errors
    /// If there is no such drive, or cgroups can't be made here.
    pub fn foreground_cgroup(&self, name: &str) -> Result<Foreground, LabError> {
        let place = self.place(name)?;
        let hierarchy = hierarchy(Path::new(ROOT)).ok_or_else(|| LabError::Refused {
            name: name.to_owned(),
            why: format!("no blkio or io controller of cgroups is mounted under {ROOT}"),
        })?;
        let dir = hierarchy.join(group_name(&place));
        match fs::create_dir(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(LabError::io("cannot make cgroup", &dir)(error))
            }
            _ => Ok(Foreground { dir }),
        }
    }

    /// Replaces this process by a command in the drive's foreground cgroup;
    /// returns only if that fails.
    pub fn exec(&self, name: &str, command: &mut Command) -> LabError {
        let entered = self.foreground_cgroup(name).and_then(|group| group.enter());
        match entered {
            Err(error) => error,
            Ok(()) => {
                let error = command.exec();
                let program = PathBuf::from(command.get_program());
                LabError::NotRun { program, error }
            }
        }
    }
}

impl Foreground {
    /// Its directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Whether threads of a process can be in it by themselves
    /// ([`linux::cgroup::visit`]): version 1 has that, version 2's io controller
    /// knows only processes.
    pub fn takes_threads(&self) -> bool {
        linux::cgroup::has_threads(&self.dir)
    }

    /// Moves this process into it, with all its threads and those it will start.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn enter(&self) -> Result<(), LabError> {
        self.add(std::process::id())
    }

    /// Moves a process into it, with all its threads.
    ///
    /// # Errors
    /// The kernel's error, e.g. that there is no such process.
    pub fn add(&self, pid: u32) -> Result<(), LabError> {
        let procs = self.dir.join("cgroup.procs");
        fs::write(&procs, pid.to_string()).map_err(LabError::io("cannot write", procs))
    }
}

/// Returns where cgroups for block I/O are made: version 1's blkio, or version 2 with its io
/// controller handed down.
fn hierarchy(root: &Path) -> Option<PathBuf> {
    let blkio = root.join("blkio");
    if blkio.join("cgroup.procs").exists() {
        return Some(blkio);
    }
    [root.to_owned(), root.join("unified")]
        .into_iter()
        .find(|v2| {
            let has = |file: &str| {
                let text = fs::read_to_string(v2.join(file)).unwrap_or_default();
                text.split_whitespace().any(|c| c == "io")
            };
            has("cgroup.subtree_control")
                || has("cgroup.controllers")
                    && fs::write(v2.join("cgroup.subtree_control"), "+io").is_ok()
        })
}

/// Returns the name of a drive's cgroup: the machine has one tree of them for all laboratories.
fn group_name(place: &Place) -> String {
    let root = place.dir().parent().unwrap_or(Path::new("/"));
    format!("{PREFIX}{}{}", place.name(), suffix(root))
}

/// Returns the end of the names of a laboratory's cgroups: `@` and its place, in characters that a
/// name can have.
fn suffix(root: &Path) -> String {
    let plain: String = root
        .to_string_lossy()
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => c,
            _ => '.',
        })
        .collect();
    // A name has 255 bytes.
    let start = plain.len().saturating_sub(150);
    format!("@{}", plain[start..].trim_start_matches('.'))
}

/// Removes a drive's cgroup; its processes return to the root.
pub(crate) fn remove(place: &Place) {
    let Some(hierarchy) = hierarchy(Path::new(ROOT)) else {
        return;
    };
    let dir = hierarchy.join(group_name(place));
    // Who is just starting a process is in it twice.
    wait_until(Duration::from_secs(2), || {
        let inside = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
        for pid in inside.lines() {
            let _ = fs::write(hierarchy.join("cgroup.procs"), pid);
        }
        fs::remove_dir(&dir).is_ok() || !dir.exists()
    });
}

/// The cgroups there are of a laboratory's drives.
pub(crate) fn remaining(root: &Path) -> Vec<PathBuf> {
    let hierarchy = hierarchy(Path::new(ROOT));
    let entries = hierarchy.and_then(|dir| fs::read_dir(dir).ok());
    let suffix = suffix(root);
    let mut dirs: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            name.starts_with(PREFIX) && name.ends_with(&*suffix)
        })
        .map(|entry| entry.path())
        .collect();
    dirs.sort();
    dirs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_controller_of_either_version() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(hierarchy(root), None);
        fs::write(root.join("cgroup.controllers"), "cpu memory").unwrap();
        assert_eq!(hierarchy(root), None, "no io controller");
        fs::write(root.join("cgroup.controllers"), "cpu io memory").unwrap();
        assert_eq!(hierarchy(root), Some(root.to_owned()));
        let wanted = fs::read_to_string(root.join("cgroup.subtree_control")).unwrap();
        assert_eq!(wanted, "+io");

        fs::create_dir(root.join("blkio")).unwrap();
        fs::write(root.join("blkio/cgroup.procs"), "").unwrap();
        assert_eq!(hierarchy(root), Some(root.join("blkio")));
    }
}
