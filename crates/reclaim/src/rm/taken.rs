//! Arguments and how they go, and the taking away of their names.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::AtFlags;

use super::arguments::{Argument, Parents};
use super::survey::is_protected;
use super::{ASKED_ABOUT, Asking, Options, Outcome, Problem, Talk};
use crate::ReclaimError;
use crate::trash::journal::Entry;
use crate::trash::{Trash, Unusable};
use crate::watch::{Beat, Progress};
use units::names::quoted;

/// How an argument goes.
pub(super) enum Way {
    /// One call removes it, and frees little.
    Once,
    /// By way of the trash, under this number.
    Trash(u32),
    /// Where it is, for a reason that deserves saying.
    InPlace(Option<String>),
}

pub(super) struct Taken {
    pub(super) argument: Argument,
    pub(super) way: Way,
}

/// As if nothing had been asked for.
pub(super) fn put_all_back(all: &[Taken], trashes: &HashMap<usize, Trash>) {
    for taken in all {
        if let (Way::Trash(number), Some(trash)) = (&taken.way, trashes.get(&taken.argument.parent))
        {
            let _ = trash.put_back(*number, &taken.argument.name);
        }
    }
}

impl Argument {
    /// Whether somebody is asked about it, whatever is in it.
    pub(super) fn asks(&self, asking: Asking, parents: &Parents) -> bool {
        match asking {
            Asking::Never => false,
            Asking::Always => true,
            Asking::Protected => is_protected(parents.get(self.parent).fd.as_fd(), &self.name),
        }
    }
}

impl Taken {
    /// Whether it is a file that goes whole, out of the same directory.
    pub(super) fn goes_with(&self, other: &Taken) -> bool {
        let file = matches!(self.way, Way::Once) && !self.argument.is_directory();
        file && self.argument.parent == other.argument.parent
    }

    /// Whether somebody is asked about it, or about something in it.
    pub(super) fn asks(&self, asking: Asking, parents: &Parents) -> bool {
        let within = matches!(&self.way, Way::InPlace(Some(why)) if why == ASKED_ABOUT);
        within || self.argument.asks(asking, parents)
    }

    /// Whether something has its name still.
    pub(super) fn is_there(&self, parents: &Parents) -> bool {
        let parent = parents.get(self.argument.parent).fd.as_fd();
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::statat(parent, &*self.argument.name, flags).is_ok()
    }

    /// Where it is now: the directory, and its name there.
    pub(super) fn place<'a>(
        &self,
        parents: &'a Parents,
        trashes: &'a HashMap<usize, Trash>,
    ) -> (BorrowedFd<'a>, std::ffi::CString) {
        match (&self.way, trashes.get(&self.argument.parent)) {
            (Way::Trash(number), Some(trash)) => (trash.directory(), Trash::name(*number)),
            _ => (
                parents.get(self.argument.parent).fd.as_fd(),
                self.argument.name.clone(),
            ),
        }
    }
}

/// Takes names away, all of a directory into one trash. What bears another name now and may
/// not go is told, and a failure.
pub(super) fn take(
    all: &mut [Taken],
    options: &Options,
    parents: &Parents,
    trashes: &mut HashMap<usize, Trash>,
    talk: &mut dyn Talk,
    outcome: &mut Outcome,
) -> Result<(), ReclaimError> {
    let mut beat = Beat::default();
    let mut by_parent: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, taken) in all.iter().enumerate() {
        if matches!(taken.way, Way::Trash(_)) {
            by_parent
                .entry(taken.argument.parent)
                .or_default()
                .push(index);
        }
    }
    for (parent, members) in by_parent {
        // Each waits for the disk.
        beat.tick(talk, &Progress::default())?;
        let at = parents.get(parent);
        let entries: Vec<Entry> = (1..)
            .zip(&members)
            .map(|(number, &index)| entry(number, &all[index].argument, options))
            .collect();
        match Trash::create(&at.fd, &at.path, entries) {
            Err(Unusable(why)) => {
                for index in members {
                    let why = format!("no trash can be made beside it: {why}");
                    all[index].way = Way::InPlace(Some(why));
                }
            }
            Ok(trash) => {
                for (number, index) in (1..).zip(members) {
                    let taken = &mut all[index];
                    taken.way = match trash.take(number, &taken.argument.name) {
                        Ok(()) => Way::Trash(number),
                        Err(errno) => Way::InPlace(Some(format!(
                            "it can't be renamed: {}",
                            crate::words::of(errno)
                        ))),
                    };
                    // Whatever bears the name now is what was taken: somebody may have
                    // swapped it since it was looked at.
                    let argument = &taken.argument;
                    if let Way::Trash(number) = taken.way
                        && !trash.is_as_seen(number, argument.is_directory())
                    {
                        outcome.failures +=
                            give_back(&trash, number, &argument.name, &argument.path, talk);
                        taken.way = Way::InPlace(None);
                    }
                }
                trash.settle();
                trashes.insert(parent, trash);
            }
        }
    }
    Ok(())
}

/// Gives what isn't what was looked at its name back, or keeps it where no resume takes
/// it for the argument, and tells so. Returns how many failures that is: 0 or 1.
pub(super) fn give_back(
    trash: &Trash,
    number: u32,
    name: &CStr,
    path: &Path,
    talk: &mut dyn Talk,
) -> u64 {
    let Err(errno) = trash.put_back(number, name) else {
        return 0;
    };
    let kept = trash.keep(number);
    let kept = kept.unwrap_or_else(|_| trash.path().to_owned());
    talk.failed(
        path,
        &Problem::Words(format!(
            "somebody has swapped it meanwhile; what they put there is kept in {}, for it can't have its name back: {}",
            quoted(&kept),
            crate::words::of(errno)
        )),
    );
    1
}

pub(super) fn entry(number: u32, argument: &Argument, options: &Options) -> Entry {
    Entry {
        number,
        name: argument.name.as_bytes().into(),
        path: argument.path.as_os_str().as_bytes().into(),
        directory: argument.is_directory(),
        one_file_system: options.one_file_system,
    }
}
