//! A task's directory, opened once: its files are named relative to that handle,
//! so nothing that happens to the path meanwhile can lead out of it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::error::LoadError;

/// The directory; every name given must be that of a file directly in it.
#[derive(Debug)]
pub(super) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

impl Folder {
    /// Opens it; a symbolic link in its place is refused.
    pub(super) fn open(path: &Path) -> Result<Folder, LoadError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty()));
        match opened {
            Ok(fd) => Ok(Folder {
                fd,
                path: path.to_owned(),
            }),
            Err(errno) => Err(LoadError::File {
                path: path.to_owned(),
                what: "open the directory",
                source: errno.into(),
            }),
        }
    }

    /// A new file, for writing; one that is there already is an error.
    pub(super) fn create(&self, name: &str) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let fd = retry_on_intr(|| rustix::fs::openat(&self.fd, name, flags, mode))?;
        Ok(File::from(fd))
    }

    /// Gives `from` the name `to`; what had it before is gone.
    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let fd = &self.fd;
        Ok(retry_on_intr(|| rustix::fs::renameat(fd, from, fd, to))?)
    }

    /// Looks at a file.
    pub(super) fn stat(&self, name: &str) -> io::Result<()> {
        retry_on_intr(|| rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW))?;
        Ok(())
    }

    /// Removes a file.
    pub(super) fn unlink(&self, name: &str) -> io::Result<()> {
        let unlink = || rustix::fs::unlinkat(&self.fd, name, AtFlags::empty());
        Ok(retry_on_intr(unlink)?)
    }

    /// Removes a file if it is there.
    pub(super) fn unlink_if_there(&self, name: &str) -> io::Result<()> {
        match self.unlink(name) {
            Err(error) if error.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => Ok(()),
            done => done,
        }
    }

    /// Makes its entries durable: fsync of the directory.
    pub(super) fn fsync(&self) -> io::Result<()> {
        Ok(retry_on_intr(|| rustix::fs::fsync(&self.fd))?)
    }

    /// The error of a call on a file while a task is being prepared.
    pub(super) fn failed(&self, name: &str, what: &'static str, source: io::Error) -> LoadError {
        LoadError::File {
            path: self.path.join(name),
            what,
            source,
        }
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errno(result: io::Result<impl Sized>) -> Option<i32> {
        result.err().and_then(|error| error.raw_os_error())
    }

    #[test]
    fn files_are_made_renamed_and_removed_in_it() {
        let dir = tempfile::tempdir().expect("directory");
        let folder = Folder::open(dir.path()).expect("opens");
        folder.create("a").expect("creates");
        assert_eq!(errno(folder.create("a")), Some(libc::EEXIST));
        folder.rename("a", "b").expect("renames");
        folder.stat("b").expect("is there");
        assert_eq!(errno(folder.stat("a")), Some(libc::ENOENT));
        folder.fsync().expect("syncs");
        folder.unlink_if_there("b").expect("removes");
        folder.unlink_if_there("b").expect("isn't there any more");
        assert_eq!(errno(folder.unlink("b")), Some(libc::ENOENT));
    }

    #[test]
    fn no_symbolic_link_is_followed() {
        let dir = tempfile::tempdir().expect("directory");
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        std::fs::create_dir(&real).expect("directory");
        std::os::unix::fs::symlink(&real, &link).expect("link");
        let error = Folder::open(&link).expect_err("a link");
        assert!(error.to_string().contains("link: can't open the directory"));

        let folder = Folder::open(&real).expect("opens");
        let outside = dir.path().join("outside");
        std::os::unix::fs::symlink(&outside, real.join("data")).expect("link");
        assert_eq!(errno(folder.create("data")), Some(libc::EEXIST));
        assert!(!outside.exists());
    }

    #[test]
    fn it_stays_the_same_directory_when_its_path_leads_elsewhere() {
        let dir = tempfile::tempdir().expect("directory");
        let (path, moved) = (dir.path().join("mine"), dir.path().join("moved"));
        std::fs::create_dir(&path).expect("directory");
        let folder = Folder::open(&path).expect("opens");
        std::fs::rename(&path, &moved).expect("moves");
        std::fs::create_dir(&path).expect("another one");
        folder.create("a").expect("creates");
        assert!(moved.join("a").exists() && !path.join("a").exists());
    }
}
