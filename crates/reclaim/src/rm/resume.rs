//! Resumes interrupted removals.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{Dir, Mode, OFlags};

use crate::ReclaimError;
use crate::event::{Event, Listener, Problem};
use crate::reclaimer::Reclaimers;
use crate::rm::Outcome;
use crate::rm::resume_trashes::resume_trashes;
use crate::rm::trash::{PREFIX, Trash, Unusable, remember};

/// Where to look for trashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// In this directory, which may also be the trash itself.
    Directory(PathBuf),
    /// Wherever this user has left one.
    All,
}

/// Resumes all trashes there that no process works on. Returns the result, and the number of
/// trashes.
///
/// # Errors
/// [`ReclaimError::Io`] if the directory can't be read.
pub fn resume(
    place: &Where,
    reclaimers: &mut dyn Reclaimers,
    listener: &mut Listener<'_>,
) -> Result<(Outcome, usize), ReclaimError> {
    // All trashes stay open.
    linux::files::allow_most_open();
    let (mut trashes, mut failures) = (Vec::new(), 0);
    let mut add = |parent: OwnedFd, directory: &Path, name: &str, listener: &mut Listener<'_>| {
        match Trash::find(&Rc::new(parent), directory, name) {
            Ok(Some(trash)) => {
                trashes.push(trash);
                Added::Held
            }
            Ok(None) => Added::Gone,
            Err(Unusable(because)) => {
                failures += 1;
                let path = directory.join(name);
                let problem = Problem::Words(format!("it is left alone, because {because}"));
                listener(Event::Failed(&path, &problem));
                Added::LeftAlone
            }
        }
    };
    match place {
        Where::Directory(directory) => {
            let named = directory.file_name().and_then(|name| name.to_str());
            let parent = directory.parent();
            match (named, parent) {
                (Some(name), Some(parent)) if linux::owner::is_named(name, PREFIX) => {
                    let parent = or_here(parent);
                    add(open(parent)?, parent, name, listener);
                }
                _ => {
                    for name in names(directory)? {
                        add(open(directory)?, directory, &name, listener);
                    }
                }
            }
        }
        Where::All => {
            for noted in remember::all() {
                let (directory, name) = (&noted.directory, &noted.name);
                let parent = match open(directory) {
                    Ok(parent) => parent,
                    Err(error) => {
                        listener(Event::Note(&format_args!("{error}; what lies there waits")));
                        continue;
                    }
                };
                let same = noted.was_in(parent.as_fd());
                match add(parent, directory, name, listener) {
                    Added::Gone if !same => {
                        listener(Event::Note(&format_args!(
                            "{} was in another directory than is there now, on a file system that \
                             isn't mounted, or that was renamed: it waits (noted in {})",
                            units::names::quoted(directory.join(name)),
                            units::names::quoted(noted.link.path())
                        )));
                    }
                    Added::Gone => noted.link.forget(),
                    Added::Held | Added::LeftAlone => {}
                }
            }
        }
    }
    let count = trashes.len();
    let mut outcome = resume_trashes(trashes, reclaimers, listener);
    outcome.failures += failures;
    Ok((outcome, count))
}

/// The result of looking for one trash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Added {
    Held,
    Gone,
    LeftAlone,
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

fn open(path: &Path) -> Result<OwnedFd, ReclaimError> {
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
