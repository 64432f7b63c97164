//! The directory of a test on a mounted file system, held by a locked owner file.
//!
//! Its name begins with [`PREFIX`].

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use linux::owner::{Found, OwnedDirectory, is_named};
use record::units::names::shown;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::verify::VerifyError;

/// The name of a test's directory begins so.
pub(crate) const PREFIX: &str = ".trimbench-verify-";

/// A directory of this test's own. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Home {
    parent: OwnedFd,
    held: Option<OwnedDirectory>,
    path: PathBuf,
}

impl Home {
    /// Makes one in a directory.
    pub(crate) fn create(parent_path: &Path) -> Result<Home, VerifyError> {
        let parent = open_directory(parent_path)?;
        let held = OwnedDirectory::create(&parent, parent_path, PREFIX)?;
        Ok(Home {
            parent,
            path: parent_path.join(held.name()),
            held: Some(held),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn held(&self) -> io::Result<BorrowedFd<'_>> {
        let held = self.held.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(held.directory())
    }

    /// Opens one of its files for reading and writing.
    pub(crate) fn open(&self, name: &str, create: bool, direct: bool) -> io::Result<File> {
        let mut flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        flags.set(OFlags::CREATE, create);
        flags.set(OFlags::DIRECT, direct);
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(rustix::fs::openat(self.held()?, name, flags, mode)?.into())
    }

    /// Removes one of its files.
    pub(crate) fn unlink(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.held()?, name, AtFlags::empty())?)
    }

    /// Opens the directory itself.
    pub(crate) fn directory(&self) -> io::Result<File> {
        Ok(File::from(self.held()?.try_clone_to_owned()?))
    }

    /// Forces all of the file system to the medium.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(self.held()?)?)
    }

    /// Removes the directory now.
    ///
    /// # Errors
    /// Where something in it is not ours, or the file system refuses. The rest stays.
    pub(crate) fn remove(mut self) -> Result<(), String> {
        let path = self.path.clone();
        let held = self.held.take();
        held.map_or(Ok(()), |held| empty(held, &self.parent))
            .map_err(|errno| {
                format!(
                    "{} could not be removed: {errno}; the next `trimbench verify` there tries it",
                    shown(&path)
                )
            })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if let Some(held) = self.held.take() {
            // The next test finds what stays.
            let _ = empty(held, &self.parent);
        }
    }
}

/// Removes what killed tests left in a directory. Returns a note for each that stays.
pub(crate) fn sweep(parent_path: &Path) -> Result<Vec<String>, VerifyError> {
    let parent = open_directory(parent_path)?;
    let failed = |errno: Errno| VerifyError::Home {
        path: parent_path.to_owned(),
        why: format!("it can't be read: {errno}"),
    };
    let mut notes = Vec::new();
    for entry in Dir::read_from(&parent).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if !is_named(name, PREFIX) {
            continue;
        }
        let path = parent_path.join(name);
        match OwnedDirectory::find(&parent, name) {
            Found::Owned(held) => {
                if let Err(errno) = empty(held, &parent) {
                    notes.push(format!("{} could not be removed: {errno}", shown(&path)));
                }
            }
            Found::Left(why) => notes.push(format!("{} stays, because {why}", shown(&path))),
            Found::InUse { .. } | Found::Gone => {}
        }
    }
    Ok(notes)
}

fn open_directory(path: &Path) -> Result<OwnedFd, VerifyError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| VerifyError::Home {
        path: path.to_owned(),
        why: format!("it can't be opened as a directory: {errno}"),
    })
}

/// Removes the files of a test, then the directory. Whatever else is in it stays, and so does the
/// directory.
fn empty(held: OwnedDirectory, parent: &OwnedFd) -> Result<(), Errno> {
    let directory = held.directory();
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        names.push(entry?.file_name().to_owned());
    }
    for name in names {
        let Ok(text) = name.to_str() else { continue };
        if !is_ours(text) {
            continue;
        }
        let stat = rustix::fs::statat(directory, &*name, AtFlags::SYMLINK_NOFOLLOW)?;
        let own = stat.st_uid == rustix::process::geteuid().as_raw();
        if own && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            rustix::fs::unlinkat(directory, &*name, AtFlags::empty())?;
        }
    }
    held.remove(parent)
}

fn is_ours(name: &str) -> bool {
    let number = name.strip_prefix("slot-");
    number.is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
}

/// The name of a slot's file.
pub(crate) fn slot_name(number: u32) -> String {
    format!("slot-{number:06}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_goes_with_its_files_and_leaves_a_strangers() {
        let parent = tempfile::tempdir().unwrap();
        let home = Home::create(parent.path()).unwrap();
        home.open(&slot_name(1), true, false).unwrap();
        let path = home.path().to_owned();
        drop(home);
        assert!(!path.exists());
        let home = Home::create(parent.path()).unwrap();
        let theirs = home.path().join("theirs");
        std::fs::write(&theirs, "x").unwrap();
        assert!(home.remove().is_err());
        assert!(theirs.exists());
    }

    #[test]
    fn a_killed_tests_home_is_swept() {
        let parent = tempfile::tempdir().unwrap();
        let mut home = Home::create(parent.path()).unwrap();
        home.open(&slot_name(3), true, false).unwrap();
        // Closed without removing anything, as the kernel closes what a killed process had open.
        drop(home.held.take());
        assert_eq!(sweep(parent.path()).unwrap(), Vec::<String>::new());
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
