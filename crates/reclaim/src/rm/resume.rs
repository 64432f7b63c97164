//! Resumes interrupted removals.

use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{Dir, Mode, OFlags};

use super::removal::{PauseByDevice, close, give_back, put_back};
use super::remover::{Item, Remover};
use super::survey::{Surveyed, survey};
use super::trash::journal::Entry;
use super::trash::{FILE, PREFIX, Trash, Unusable, remember};
use super::{Asking, Outcome, Stopped, Volumes};
use crate::event::{Event, Listener, Problem};
use crate::{ReclaimError, Result, directory};
use record::units::counted;
use record::units::names::quoted;

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
    volumes: &mut Volumes,
    listener: &mut Listener<'_>,
) -> Result<(Outcome, usize)> {
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
            let mut unreached = Vec::new();
            for noted in remember::all() {
                let (directory, name) = (&noted.directory, &noted.name);
                let parent = match open(directory) {
                    Ok(parent) => parent,
                    Err(_) if noted.is_gone() => {
                        noted.link.forget();
                        continue;
                    }
                    Err(error) => {
                        unreached.push((error, noted.link.path()));
                        continue;
                    }
                };
                let same = noted.was_in(parent.as_fd());
                match add(parent, directory, name, listener) {
                    Added::Gone if !same => {
                        listener(Event::Note(&format_args!(
                            "{} was in another directory than is there now, on a file system that \
                             isn't mounted, or that was renamed: it waits (noted in {})",
                            quoted(directory.join(name)),
                            quoted(noted.link.path())
                        )));
                    }
                    Added::Gone => noted.link.forget(),
                    Added::Held | Added::LeftAlone => {}
                }
            }
            note_unreached(&unreached, listener);
        }
    }
    let count = trashes.len();
    let mut outcome = resume_trashes(trashes, volumes, listener);
    outcome.failures += failures;
    Ok((outcome, count))
}

/// Reports in one sentence which directories can't be opened, each with the path of its note.
fn note_unreached(all: &[(ReclaimError, PathBuf)], listener: &mut Listener<'_>) {
    let Some((first, note)) = all.first() else {
        return;
    };
    let more = match all.len() as u64 {
        1 => String::new(),
        n => format!(" (nor in {})", counted(n - 1, "other place")),
    };
    listener(Event::Note(&format_args!(
        "{first}{more}; what lies there waits (noted in {})",
        quoted(linux::files::directory_of(note))
    )));
}

/// Returns the directories in which this user has left a trash and that are there now, and whether
/// others are noted.
pub fn left_elsewhere() -> (Vec<PathBuf>, bool) {
    let noted = remember::all();
    let is_there = |one: &&remember::Noted| one.directory.join(&one.name).is_dir();
    let there = noted.iter().filter(is_there);
    let mut found: Vec<PathBuf> = there.map(|one| one.directory.clone()).collect();
    found.dedup();
    (found, !noted.is_empty())
}

/// A name in a trash that is to be removed; its entry, unless it is a file that was half emptied.
struct Rest<'a> {
    trash: &'a Trash,
    /// The open directory that it is in: the trash, or of a subvolume that kept its name its own.
    parent: BorrowedFd<'a>,
    entry: Option<&'a Entry>,
    name: CString,
    path: PathBuf,
}

impl Rest<'_> {
    fn is_in_trash(&self) -> bool {
        self.parent.as_raw_fd() == self.trash.directory().as_raw_fd()
    }

    fn one_file_system(&self) -> bool {
        self.entry.is_some_and(|entry| entry.one_file_system)
    }
}

/// Removes what the journals of these trashes name.
fn resume_trashes(
    trashes: Vec<Trash>,
    volumes: &mut Volumes,
    listener: &mut Listener<'_>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut all = Vec::new();
    for trash in &trashes {
        outcome.failures += find_rests(trash, &mut all, listener);
    }
    let ended = remove_rests(&all, volumes, listener, &mut outcome);
    drop(all);
    let error = ended.as_ref().err();
    outcome.stopped = error.map(|error| Stopped::new(error, true));
    let (goes_on, pauses) = (ended.is_err(), ended.unwrap_or_default());
    outcome.left = close(trashes, &outcome, goes_on, &pauses, listener);
    outcome
}

/// Finds what is left in a trash. Gives back what was swapped for an entry, and returns how many of
/// these failed.
fn find_rests<'a>(trash: &'a Trash, all: &mut Vec<Rest<'a>>, listener: &mut Listener<'_>) -> u64 {
    let mut failures = 0;
    let entries = trash.entries.iter();
    let entries = entries.map(|entry| (Some(entry), Trash::name(entry.number)));
    // The half-emptied file first: it has the place where others like it are emptied.
    for (entry, name) in [(None, FILE.to_owned())].into_iter().chain(entries) {
        let path = match entry {
            Some(entry) => entry.path.to_path(),
            None => trash.path().join("file"),
        };
        let shown = quoted(&path);
        if !trash.has(&name) {
            if let Some((parent, name)) = entry.and_then(|entry| trash.listed(entry)) {
                all.push(Rest {
                    trash,
                    parent,
                    entry,
                    name,
                    path,
                });
                continue;
            }
            if entry.is_some_and(|entry| trash.has_stayed(entry)) {
                listener(Event::Note(&format_args!(
                    "{shown} is there: it was not taken away, or there is another now"
                )));
            }
            continue;
        }
        // Another process had swapped it before the rename, and it wasn't given back any more.
        if let Some(entry) = entry
            && !trash.is_as_seen(entry.number, entry.directory)
            && let Ok(old) = CString::new(entry.name.as_bytes())
        {
            let failed = give_back(trash, entry.number, &old, &path, listener);
            if failed == 0 {
                listener(Event::Note(&format_args!(
                    "{shown} isn't what was to be removed: it has its name back"
                )));
            }
            failures += failed;
            continue;
        }
        all.push(Rest {
            trash,
            parent: trash.directory(),
            entry,
            name,
            path,
        });
    }
    failures
}

/// Removes what is left, and returns the pause after each small discard at the end.
fn remove_rests(
    all: &[Rest<'_>],
    volumes: &mut Volumes,
    listener: &mut Listener<'_>,
    outcome: &mut Outcome,
) -> Result<PauseByDevice> {
    for rest in all {
        let parent = rest.parent;
        let Some(device) = directory::device(parent) else {
            continue;
        };
        volumes.unless_harmful(parent, device)?;
        if volumes.paces(parent, device) {
            let surveyed = Surveyed {
                parent,
                name: &rest.name,
                path: &rest.path,
                one_file_system: rest.one_file_system(),
            };
            survey(&surveyed, volumes, true, listener)?;
        }
    }
    let mut remover = Remover::new(listener, volumes, Asking::Never);
    let removed = all.iter().try_for_each(|rest| {
        let item = Item {
            parent: rest.parent,
            name: &rest.name,
            path: &rest.path,
            trash: rest.is_in_trash().then_some(rest.trash),
            one_file_system: rest.one_file_system(),
            recursive: rest.entry.is_some_and(|entry| entry.directory),
        };
        if !remover.remove(&item)?
            && rest.is_in_trash()
            && let Some(entry) = rest.entry
            && let Ok(old) = CString::new(entry.name.as_bytes())
        {
            put_back(&mut remover, rest.trash, entry.number, &old, &rest.path);
        }
        Ok(())
    });
    let ended = removed.and_then(|()| remover.finish());
    outcome.add(&remover);
    ended.map(|(summary, pauses)| {
        outcome.summary = summary;
        pauses
    })
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
    ReclaimError::io("look for interrupted deletions in", path)(errno)
}

fn open(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| failed(path, errno))
}

/// Names of trashes in a directory, sorted.
fn names(path: &Path) -> Result<Vec<String>> {
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
