//! Goes on with what was interrupted.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{Dir, Mode, OFlags};

use crate::ReclaimError;
use crate::free::Freers;
use crate::rm::{Outcome, Talk, go_on};
use crate::trash::{PREFIX, Trash, Unusable, remember};

/// Where to look for trashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// In this directory; or the trash itself.
    Directory(PathBuf),
    /// Wherever this user has left one.
    All,
}

/// Goes on with all trashes there that nobody works on. Returns what came of
/// it, and how many there were.
///
/// # Errors
/// If the directory can't be read.
pub fn resume(
    place: &Where,
    freers: &mut dyn Freers,
    talk: &mut dyn Talk,
) -> Result<(Outcome, usize), ReclaimError> {
    // All trashes stay open.
    linux::files::allow_most_open();
    let (mut trashes, mut failures) = (Vec::new(), 0);
    let mut add = |directory: &Path, name: &str, talk: &mut dyn Talk| {
        let parent = open(directory)?;
        match Trash::find(&Rc::new(parent), directory, name) {
            Ok(Some(trash)) => trashes.push(trash),
            Ok(None) => {}
            Err(Unusable(because)) => {
                failures += 1;
                let path = directory.join(name);
                let problem = format!("it is left alone, because {because}");
                talk.failed(&path, &crate::rm::Problem::Words(problem));
            }
        }
        Ok::<(), ReclaimError>(())
    };
    match place {
        Where::Directory(directory) => {
            let named = directory.file_name().and_then(|name| name.to_str());
            let parent = directory.parent();
            match (named, parent) {
                (Some(name), Some(parent)) if linux::owner::is_named(name, PREFIX) => {
                    add(or_here(parent), name, talk)?;
                }
                _ => {
                    for name in names(directory)? {
                        add(directory, &name, talk)?;
                    }
                }
            }
        }
        Where::All => {
            for (directory, name, note) in remember::all() {
                match add(&directory, &name, talk) {
                    Ok(()) if !directory.join(&name).exists() => {
                        let _ = std::fs::remove_file(note);
                    }
                    Ok(()) => {}
                    // Its file system isn't mounted now: the note stays.
                    Err(error) => talk.note(&format!("{error}; what lies there waits")),
                }
            }
        }
    }
    let count = trashes.len();
    let mut outcome = go_on(trashes, freers, talk);
    outcome.failures += failures;
    Ok((outcome, count))
}

fn or_here(path: &Path) -> &Path {
    match path.as_os_str().is_empty() {
        true => Path::new("."),
        false => path,
    }
}

fn failed(path: &Path, errno: rustix::io::Errno) -> ReclaimError {
    ReclaimError::Io {
        action: "look for interrupted deletions in",
        path: path.to_owned(),
        source: errno.into(),
    }
}

fn open(path: &Path) -> Result<std::os::fd::OwnedFd, ReclaimError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| failed(path, errno))
}

/// Names of trashes in a directory, sorted.
fn names(path: &Path) -> Result<Vec<String>, ReclaimError> {
    let mut found = Vec::new();
    for entry in Dir::read_from(open(path)?).map_err(|errno| failed(path, errno))? {
        let entry = entry.map_err(|errno| failed(path, errno))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if linux::owner::is_named(&name, PREFIX) {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}
