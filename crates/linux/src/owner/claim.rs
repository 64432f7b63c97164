//! Making the directory ours: the locked file that says so.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::clear::entries;
use super::names::{self, OWNER, OWNER_NEW};
use super::{OwnerError, WorkDir};

const FORMAT: &str = "trimbench.owner/1";
/// An owner file is a few hundred bytes; nothing longer is read.
const LONGEST: u64 = 4096;
const ATTEMPTS: u32 = 16;

/// The content of `owner`, as JSON. Only `format` decides anything; the rest is for people and for
/// messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Owner {
    /// Always [`FORMAT`].
    format: String,
    /// Of the process that made the directory.
    pub(super) pid: u32,
    /// When that began, in clock ticks since boot: field 22 of `/proc/PID/stat`.
    started_ticks: u64,
    /// `/proc/sys/kernel/random/boot_id`.
    boot: String,
    /// Host name, for file systems shared by several.
    host: String,
}

impl Owner {
    fn of_this_process() -> Owner {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Owner {
            format: FORMAT.to_owned(),
            pid: std::process::id(),
            started_ticks: started_ticks(&read("/proc/self/stat")).unwrap_or(0),
            boot: read("/proc/sys/kernel/random/boot_id").trim().to_owned(),
            host: rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned(),
        }
    }

    /// Reads an owner file; `None` when it doesn't have our form.
    pub(super) fn read(file: &File) -> Option<Owner> {
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).ok()?;
        let owner: Owner = serde_json::from_str(&text).ok()?;
        (owner.format == FORMAT).then_some(owner)
    }
}

/// The process name before it may hold spaces and brackets: count from its end.
fn started_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(19)?.parse().ok()
}

/// Creates the directory of a run and its owner file in a parent directory.
pub(super) fn create(parent_path: &Path) -> Result<WorkDir, OwnerError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = rustix::fs::open(parent_path, flags, Mode::empty())
        .map_err(|errno| OwnerError::new("open the directory", parent_path, errno))?;
    let (name, directory, lock) = create_in(&parent, parent_path, names::PREFIX)?;
    Ok(WorkDir {
        parent,
        directory,
        path: parent_path.join(&name),
        name,
        _lock: lock,
        removed: false,
    })
}

/// Creates a directory `PREFIX????????` in an open one, with its owner file.
/// Returns its name, itself, and what holds the lock.
pub(super) fn create_in(
    parent: &OwnedFd,
    parent_path: &Path,
    prefix: &str,
) -> Result<(String, OwnedFd, OwnedFd), OwnerError> {
    let mut last = Errno::EXIST;
    for _ in 0..ATTEMPTS {
        let name = names::random(prefix).map_err(|errno| {
            OwnerError::new("find a name for a directory in", parent_path, errno)
        })?;
        let path = parent_path.join(&name);
        match rustix::fs::mkdirat(parent, &name, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => continue,
            Err(errno) => return Err(OwnerError::new("create the directory", path, errno)),
        }
        match claim(parent, &name) {
            Ok((directory, lock)) => return Ok((name, directory, lock)),
            Err(errno) => {
                // A sweep may have seen the empty directory and removed it; file
                // systems say different things then. Then the name is free again.
                match rustix::fs::unlinkat(parent, &name, AtFlags::REMOVEDIR) {
                    Err(Errno::NOENT) => last = errno,
                    _ => return Err(OwnerError::new("claim the directory", path, errno)),
                }
            }
        }
    }
    Err(OwnerError::new("create a directory in", parent_path, last))
}

/// Opens the fresh directory and puts the owner file into it, complete and
/// locked from the moment it has its name.
fn claim(parent: &OwnedFd, name: &str) -> Result<(OwnedFd, OwnedFd), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    // Who may rename here can have put another in its place, with what is no business of ours.
    if !entries(&directory)?.is_empty() {
        return Err(Errno::EXIST);
    }
    let mode = Mode::RUSR | Mode::WUSR;
    let access = OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::openat(&directory, c".", access | OFlags::TMPFILE, mode) {
        Ok(nameless) => {
            let lock = write_owner(nameless)?;
            let proc = format!("/proc/self/fd/{}", lock.as_raw_fd());
            match rustix::fs::linkat(CWD, proc, &directory, OWNER, AtFlags::SYMLINK_FOLLOW) {
                Ok(()) => return Ok((directory, lock)),
                // Without /proc the file must have a name from the start. But a
                // directory that was swept away says the same: the next step tells.
                Err(Errno::NOENT | Errno::OPNOTSUPP | Errno::INVAL) => {}
                Err(errno) => return Err(errno),
            }
        }
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
        Err(errno) => return Err(errno),
    }
    let exclusive = access | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let owner = rustix::fs::openat(&directory, OWNER_NEW, exclusive, mode)?;
    let named = write_owner(owner).and_then(|lock| {
        rustix::fs::renameat(&directory, OWNER_NEW, &directory, OWNER)?;
        Ok(lock)
    });
    if named.is_err() {
        // A full disk: what is left must be empty, or nobody knows whose it is.
        let _ = rustix::fs::unlinkat(&directory, OWNER_NEW, AtFlags::empty());
    }
    named.map(|lock| (directory, lock))
}

fn write_owner(fd: OwnedFd) -> Result<OwnedFd, Errno> {
    rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive)?;
    let mut file = File::from(fd);
    let text = serde_json::to_vec(&Owner::of_this_process()).unwrap_or_default();
    let as_errno = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    file.write_all(&text).map_err(as_errno)?;
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_start_behind_any_process_name() {
        let fields: Vec<String> = (3..=30).map(|field| field.to_string()).collect();
        let stat = format!("77 (a) b (c) {}", fields.join(" "));
        assert_eq!(started_ticks(&stat), Some(22));
        assert_eq!(started_ticks("77 (x"), None);
    }

    #[test]
    fn what_was_put_in_the_place_of_a_new_directory_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let backup = parent.path().join(".new-abcdefgh");
        std::fs::create_dir(&backup).unwrap();
        std::fs::write(backup.join("journal"), "precious").unwrap();
        let open = OwnedFd::from(File::open(parent.path()).unwrap());
        assert_eq!(claim(&open, ".new-abcdefgh").unwrap_err(), Errno::EXIST);
        let names = std::fs::read_dir(&backup).unwrap().count();
        assert_eq!(names, 1);
    }

    #[test]
    fn only_our_form_is_an_owner() {
        let read = |text: &str| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            io::Seek::rewind(&mut file).unwrap();
            Owner::read(&file)
        };
        let own = Owner::of_this_process();
        let text = serde_json::to_string(&own).unwrap();
        assert_eq!(read(&text), Some(own));
        assert_eq!(read(&text.replace("owner/1", "owner/9")), None);
        assert_eq!(read(""), None);
        assert_eq!(read("{}"), None);
        assert_eq!(read(&format!("{}{text}", " ".repeat(5000))), None);
    }
}
