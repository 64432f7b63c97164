//! Keeps the content of a file whose names are removed: by a second name, or by an open descriptor.
//!
//! A second name survives a crash of the guard. It changes the link count, at which some programs
//! look: RocksDB then unlinks whole what it would free slowly, and some backup tools copy the file
//! again. A descriptor changes nothing, and the kernel frees the files at once when the guard ends.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::names::{self, Names, SecondName, bytes, name_of, proc_path};

/// How a guard keeps files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hold {
    /// By a second name.
    #[default]
    Link,
    /// By an open descriptor.
    Descriptor,
}

/// This many descriptors stay free for everything else.
const SPARE: u64 = 256;

/// The descriptors of a place, by inode.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    files: Mutex<HashMap<u64, OwnedFd>>,
    most: usize,
}

impl Descriptors {
    /// As many as the process may have.
    pub(super) fn new() -> Descriptors {
        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: limit.maximum.or(limit.current),
            maximum: limit.maximum,
        };
        let _ = setrlimit(Resource::Nofile, raised);
        let most = getrlimit(Resource::Nofile).current.unwrap_or(1 << 20);
        Descriptors {
            files: Mutex::default(),
            most: usize::try_from(most.saturating_sub(SPARE)).unwrap_or(usize::MAX),
        }
    }

    fn files(&self) -> MutexGuard<'_, HashMap<u64, OwnedFd>> {
        self.files
            .lock()
            .unwrap_or_else(|broken| broken.into_inner())
    }
}

/// Where the files of a place are kept.
#[derive(Debug, Clone, Copy)]
pub(super) enum Keep<'a> {
    /// By names in this hidden directory.
    Names(BorrowedFd<'a>),
    /// By descriptors.
    Descriptors(&'a Descriptors),
}

/// By descriptors where there are any, else by names in the hidden directory.
pub(super) fn keep<'a>(hidden: &'a OwnedFd, descriptors: Option<&'a Descriptors>) -> Keep<'a> {
    match descriptors {
        Some(held) => Keep::Descriptors(held),
        None => Keep::Names(hidden.as_fd()),
    }
}

impl Keep<'_> {
    /// Keeps a file that is open as a path. Returns whether it was kept before.
    ///
    /// # Errors
    /// The kernel's; `ENOENT` if its names were removed meanwhile.
    pub(super) fn add(self, file: OwnedFd, inode: u64) -> Result<bool, Errno> {
        match self {
            Keep::Names(hidden) => {
                let source = proc_path(&file);
                let second = name_of(inode);
                let flags = AtFlags::SYMLINK_FOLLOW;
                match rustix::fs::linkat(CWD, source, hidden, second, flags) {
                    Ok(()) => Ok(false),
                    Err(Errno::EXIST) => Ok(true),
                    Err(errno) => Err(errno),
                }
            }
            Keep::Descriptors(held) => {
                let mut files = held.files();
                if files.contains_key(&inode) {
                    return Ok(true);
                }
                if files.len() >= held.most {
                    return Err(Errno::MFILE);
                }
                files.insert(inode, file);
                Ok(false)
            }
        }
    }

    /// All files that are kept.
    pub(super) fn all(self) -> Names {
        let held = match self {
            Keep::Names(hidden) => return names::names(hidden),
            Keep::Descriptors(held) => held,
        };
        let mut names = Names::default();
        for (&inode, file) in held.files().iter() {
            let Ok(stat) = rustix::fs::fstat(file) else {
                continue;
            };
            let name = SecondName {
                inode,
                bytes: bytes(&stat),
                since: (stat.st_ctime, stat.st_ctime_nsec as i64),
            };
            match stat.st_nlink {
                0 => names.orphans.push(name),
                _ => names.live.push(name),
            }
        }
        names
    }

    /// Looks at a file that is kept.
    pub(super) fn stat(self, inode: u64) -> Option<Stat> {
        match self {
            Keep::Names(hidden) => names::stat_of(hidden, inode),
            Keep::Descriptors(held) => rustix::fs::fstat(held.files().get(&inode)?).ok(),
        }
    }

    /// Whether a file has lost all names but the one that keeps it.
    pub(super) fn is_alone(self, stat: &Stat) -> bool {
        match self {
            Keep::Names(_) => stat.st_nlink == 1,
            Keep::Descriptors(_) => stat.st_nlink == 0,
        }
    }

    /// Keeps a file no longer, which frees it if it is alone.
    pub(super) fn remove(self, inode: u64) -> Result<(), Errno> {
        match self {
            Keep::Names(hidden) => names::remove(hidden, inode),
            Keep::Descriptors(held) => held.files().remove(&inode).map(drop).ok_or(Errno::NOENT),
        }
    }

    /// Opens a file for reading and writing. If its mode forbids that, changes the mode, which no
    /// program needs any more.
    pub(super) fn open(self, inode: u64) -> Result<File, Errno> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let (at, name, flags) = match self {
            Keep::Names(hidden) => (hidden, name_of(inode), flags | OFlags::NOFOLLOW),
            Keep::Descriptors(held) => {
                let files = held.files();
                let file = files.get(&inode).ok_or(Errno::NOENT)?;
                // Through this link the file itself is opened, which has no name any more.
                let path = proc_path(file);
                let open = || rustix::fs::open(&path, flags, Mode::empty());
                return match open() {
                    Err(Errno::ACCESS) => {
                        rustix::fs::chmod(&path, mode)?;
                        open()
                    }
                    opened => opened,
                }
                .map(File::from);
            }
        };
        let open = || rustix::fs::openat(at.as_fd(), &name, flags, Mode::empty());
        match open() {
            Err(Errno::ACCESS) => {
                rustix::fs::chmodat(at, &name, mode, AtFlags::empty())?;
                open()
            }
            opened => opened,
        }
        .map(File::from)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_descriptor_keeps_a_file_without_a_name_of_its_own() {
        let here = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = here.path().join("file");
        std::fs::write(&path, "content").unwrap();
        let inode = path.metadata().unwrap().ino();
        let held = Descriptors::new();
        let keep = Keep::Descriptors(&held);
        let open = || rustix::fs::open(&path, OFlags::PATH, Mode::empty()).unwrap();
        assert_eq!(keep.add(open(), inode), Ok(false));
        assert_eq!(keep.add(open(), inode), Ok(true));
        assert_eq!(path.metadata().unwrap().nlink(), 1);
        assert_eq!((keep.all().live.len(), keep.all().orphans.len()), (1, 0));
        std::fs::remove_file(&path).unwrap();
        assert_eq!((keep.all().live.len(), keep.all().orphans.len()), (0, 1));
        assert!(keep.is_alone(&keep.stat(inode).unwrap()));
        let mut text = String::new();
        keep.open(inode).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "content");
        keep.remove(inode).unwrap();
        assert_eq!(keep.remove(inode), Err(Errno::NOENT));
        assert!(keep.stat(inode).is_none());
    }
}
