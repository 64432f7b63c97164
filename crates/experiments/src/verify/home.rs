//! The directory of a test on a mounted file system, held by a locked owner file.
//!
//! Its name begins with [`PREFIX`]. A file `kept` in it says that a state file refers to it, so
//! that the next test leaves it alone.

use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use linux::owner::{Found, OwnedDirectory, is_named};
use record::units::names::shown;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::verify::VerifyError;

/// The name of a test's directory begins so.
pub(crate) const PREFIX: &str = ".trimbench-verify-";
/// The directory in which `trimbench rm` frees a file is called so.
const TRASH: &str = ".trimbench-trash-";
const KEPT: &str = "kept";

/// A directory of this test's own. Dropping it removes it, unless it is kept.
#[derive(Debug)]
pub(crate) struct Home {
    parent: OwnedFd,
    held: Option<OwnedDirectory>,
    path: PathBuf,
    kept: AtomicBool,
}

impl Home {
    /// Makes one in a directory.
    pub(crate) fn create(parent_path: &Path) -> Result<Home, VerifyError> {
        let parent = open_directory(parent_path)?;
        let held = OwnedDirectory::create(&parent, parent_path, PREFIX)?;
        Ok(Home::of(parent, parent_path, held))
    }

    /// Holds the one that an earlier process kept.
    pub(crate) fn find(parent_path: &Path, name: &str) -> Result<Home, VerifyError> {
        let parent = open_directory(parent_path)?;
        let path = parent_path.join(name);
        let gone = |why: String| VerifyError::Home {
            path: path.clone(),
            why,
        };
        match OwnedDirectory::find(&parent, name) {
            Found::Owned(held) => {
                let mut home = Home::of(parent, parent_path, held);
                *home.kept.get_mut() = true;
                Ok(home)
            }
            Found::InUse { pid } => Err(gone(match pid {
                Some(pid) => format!("process {pid} works in it"),
                None => "another process works in it".to_owned(),
            })),
            Found::Left(why) => Err(gone(why)),
            Found::Gone => Err(gone(
                "it does not exist: it was removed, or the file system lost it though it was synced"
                    .to_owned(),
            )),
        }
    }

    fn of(parent: OwnedFd, parent_path: &Path, held: OwnedDirectory) -> Home {
        Home {
            parent,
            path: parent_path.join(held.name()),
            held: Some(held),
            kept: AtomicBool::new(false),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its name in its parent.
    pub(crate) fn name(&self) -> String {
        self.held
            .as_ref()
            .map_or_else(String::new, |held| held.name().to_owned())
    }

    /// Leaves the directory when this is dropped, and lets no other test remove it.
    pub(crate) fn keep(&self) -> Result<(), VerifyError> {
        let kept = self
            .open(KEPT, true, false)
            .and_then(|file| file.sync_all());
        kept.map_err(|source| VerifyError::Io {
            path: self.path.clone(),
            what: "keep",
            source,
        })?;
        self.kept.store(true, Ordering::Relaxed);
        Ok(())
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

    /// Gives one of its files another name.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(self.held()?, from, self.held()?, to)?)
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
        if let Some(held) = self.held.take().filter(|_| !*self.kept.get_mut()) {
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
            Found::Owned(held) if has(&held, KEPT) => notes.push(format!(
                "{} belongs to a state file: check it with --state, or remove it with rm -r",
                shown(&path)
            )),
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

fn has(held: &OwnedDirectory, name: &str) -> bool {
    rustix::fs::statat(held.directory(), name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

/// Removes the files of a test and the trashes of `trimbench rm`, then the directory. Whatever
/// else is in it stays, and so does the directory.
fn empty(held: OwnedDirectory, parent: &OwnedFd) -> Result<(), Errno> {
    remove_files(
        held.directory()
            .try_clone_to_owned()
            .map_err(|_| Errno::MFILE)?,
        true,
    )?;
    held.remove(parent)
}

fn remove_files(directory: OwnedFd, top: bool) -> Result<(), Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(&directory)? {
        names.push(entry?.file_name().to_owned());
    }
    for name in names {
        let Ok(text) = name.to_str() else { continue };
        if matches!(text, "." | "..") {
            continue;
        }
        let stat = rustix::fs::statat(&directory, &*name, AtFlags::SYMLINK_NOFOLLOW)?;
        let own = stat.st_uid == rustix::process::geteuid().as_raw();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile if own && (!top || is_ours(text)) => {
                rustix::fs::unlinkat(&directory, &*name, AtFlags::empty())?;
            }
            FileType::Directory if own && top && is_named(text, TRASH) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let trash = rustix::fs::openat(&directory, &*name, flags, Mode::empty())?;
                remove_files(trash, false)?;
                rustix::fs::unlinkat(&directory, &*name, AtFlags::REMOVEDIR)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn is_ours(name: &str) -> bool {
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    name == KEPT || numbered("slot-") || numbered("doomed-")
}

/// The name of a slot's file.
pub(crate) fn slot_name(number: u32) -> String {
    format!("slot-{number:06}")
}

/// The name of a file that is about to be removed.
pub(crate) fn doomed_name(number: u64) -> String {
    format!("doomed-{number:06}")
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
    fn a_kept_home_stays_and_is_found_again() {
        let parent = tempfile::tempdir().unwrap();
        let home = Home::create(parent.path()).unwrap();
        home.keep().unwrap();
        let name = home.name();
        assert!(Home::find(parent.path(), &name).is_err(), "it is in use");
        drop(home);
        let notes = sweep(parent.path()).unwrap();
        assert!(notes[0].contains("--state"), "{notes:?}");
        Home::find(parent.path(), &name).unwrap().remove().unwrap();
        assert!(!parent.path().join(&name).exists());
        assert!(Home::find(parent.path(), &name).is_err());
    }

    #[test]
    fn a_killed_tests_home_is_swept() {
        let parent = tempfile::tempdir().unwrap();
        let home = Home::create(parent.path()).unwrap();
        home.open(&doomed_name(3), true, false).unwrap();
        // Dropped without removing anything, as the kernel closes what a killed process had open.
        home.kept.store(true, Ordering::Relaxed);
        drop(home);
        assert_eq!(sweep(parent.path()).unwrap(), Vec::<String>::new());
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
