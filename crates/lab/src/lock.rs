//! Locked files show which processes live.
//!
//! The kernel drops a lock however its process ends, so none is ever stale. The
//! file's text is the process's number, for messages and for signals.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::Pid;

use crate::mounts::wait_until;

/// How long to wait for a lock that another process holds for a moment only. It may be looking
/// whether the file is locked, or be a child of the holder, from its fork to its exec.
pub(crate) const GLANCE: Duration = Duration::from_millis(500);

/// Takes a lock for this process, for as long as the file lives; makes the file
/// if it isn't there.
///
/// # Errors
/// `EWOULDBLOCK` where another process has it; otherwise the system's error.
pub(crate) fn claim(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    try_for_a_moment(&file)?;
    sign(file)
}

/// Takes a lock on an existing file, if no other process has it.
pub(crate) fn lock_if_free(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().write(true).open(path)?;
    match try_for_a_moment(&file) {
        Err(Errno::WOULDBLOCK) => Ok(None),
        locked => {
            locked?;
            Ok(still_there(path, &file)?.then_some(sign(file)?))
        }
    }
}

/// Waits until no other process has a lock, and takes it. `None`: the file doesn't exist, or was
/// removed while this waited.
pub(crate) fn wait_and_lock(path: &Path) -> io::Result<Option<File>> {
    let file = match OpenOptions::new().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    block(&file, FlockOperation::LockExclusive)?;
    if !still_there(path, &file)? {
        return Ok(None);
    }
    sign(file).map(Some)
}

/// Waits until no process has a lock, without taking it.
pub(crate) fn wait(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        opened => block(&opened?, FlockOperation::LockShared),
    }
}

/// Locks a directory, waiting for it.
pub(crate) fn directory(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    block(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

/// Returns the process that has a lock now; `None` if none has.
pub(crate) fn holder(path: &Path) -> Option<Pid> {
    let file = File::open(path).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        return None;
    }
    let text = fs::read_to_string(path).ok()?;
    Pid::from_raw(text.trim().parse().ok()?)
}

fn try_for_a_moment(file: &File) -> rustix::io::Result<()> {
    try_for(file, GLANCE)
}

/// Locks an open file, waiting for it at most for `at_most`.
///
/// # Errors
/// `EWOULDBLOCK` if another process still has it then; otherwise the system's error.
pub(crate) fn try_for(file: &File, at_most: Duration) -> rustix::io::Result<()> {
    let mut outcome = Ok(());
    wait_until(at_most, || {
        outcome = flock(file, FlockOperation::NonBlockingLockExclusive);
        outcome != Err(Errno::WOULDBLOCK)
    });
    outcome
}

fn block(file: &File, how: FlockOperation) -> io::Result<()> {
    loop {
        match flock(file, how) {
            Err(Errno::INTR) => {}
            outcome => return Ok(outcome?),
        }
    }
}

/// Returns whether the path still leads to the file. The last holder may have removed it, and
/// another process may have made a new one.
fn still_there(path: &Path, file: &File) -> io::Result<bool> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        there => Ok(there?.ino() == file.metadata()?.ino()),
    }
}

fn sign(mut file: File) -> io::Result<File> {
    file.set_len(0)?;
    write!(file, "{}", std::process::id())?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_it_and_the_others_learn_who() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        assert!(wait_and_lock(&path).unwrap().is_none() && holder(&path).is_none());
        let held = claim(&path).unwrap();
        assert!(claim(&path).is_err());
        assert!(lock_if_free(&path).unwrap().is_none());
        let me = holder(&path).unwrap().as_raw_nonzero().get();
        assert_eq!(me.cast_unsigned(), std::process::id());
        drop(held);
        assert!(holder(&path).is_none());
        wait(&path).unwrap();
        assert!(lock_if_free(&path).unwrap().is_some());
    }

    #[test]
    fn a_lock_of_a_file_that_went_meanwhile_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = claim(&path).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait_and_lock(&path).unwrap().is_none());
            std::thread::sleep(Duration::from_millis(50));
            // Whoever waits would take the old file for the new one.
            fs::remove_file(&path).unwrap();
            fs::write(&path, "").unwrap();
            drop(held);
            assert!(waiting.join().unwrap());
        });
    }
}
