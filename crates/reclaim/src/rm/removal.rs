//! How each argument is removed, and the renaming into trashes.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::AtFlags;

use super::arguments::{Argument, Parents};
use super::survey::is_protected;
use super::{ASKED_ABOUT, Asking, Options, Outcome};
use crate::ReclaimError;
use crate::event::{Event, Listener, Problem, Progress, Reporter};
use crate::rm::trash::journal::Entry;
use crate::rm::trash::{Trash, Unusable};
use units::names::quoted;

/// How an argument is removed.
pub(super) enum Method {
    /// By one call that frees little.
    Unlink,
    /// Through the trash, under this number.
    Trash(u32),
    /// Where it is, with the reason for the user.
    InPlace(Option<String>),
}

/// An argument, and how it is removed.
pub(super) struct Removal {
    pub(super) argument: Argument,
    pub(super) method: Method,
}

/// Renames every argument that is in a trash back to its old name.
pub(super) fn put_all_back(all: &[Removal], trashes: &HashMap<usize, Trash>) {
    for removal in all {
        if let (Method::Trash(number), Some(trash)) =
            (&removal.method, trashes.get(&removal.argument.parent))
        {
            let _ = trash.put_back(*number, &removal.argument.name);
        }
    }
}

impl Argument {
    /// Returns whether the user is asked about this name, whatever is in it.
    pub(super) fn asks(&self, asking: Asking, parents: &Parents) -> bool {
        match asking {
            Asking::Never => false,
            Asking::Always => true,
            Asking::Protected => is_protected(parents.get(self.parent).fd.as_fd(), &self.name),
        }
    }
}

impl Removal {
    /// Returns whether both are files to be unlinked whole from the same directory.
    pub(super) fn goes_with(&self, other: &Removal) -> bool {
        let file = matches!(self.method, Method::Unlink) && !self.argument.is_directory();
        file && self.argument.parent == other.argument.parent
    }

    /// Returns whether the user is asked about this name, or about one in it.
    pub(super) fn asks(&self, asking: Asking, parents: &Parents) -> bool {
        let within = matches!(&self.method, Method::InPlace(Some(why)) if why == ASKED_ABOUT);
        within || self.argument.asks(asking, parents)
    }

    /// Returns whether the name still exists.
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
        match (&self.method, trashes.get(&self.argument.parent)) {
            (Method::Trash(number), Some(trash)) => (trash.directory(), Trash::name(*number)),
            _ => (
                parents.get(self.argument.parent).fd.as_fd(),
                self.argument.name.clone(),
            ),
        }
    }
}

/// Renames arguments into trashes, one for each directory. A name that changed meanwhile and
/// can't go back is reported, and counts as a failure.
pub(super) fn take(
    all: &mut [Removal],
    options: &Options,
    parents: &Parents,
    trashes: &mut HashMap<usize, Trash>,
    listener: &mut Listener<'_>,
    outcome: &mut Outcome,
) -> Result<(), ReclaimError> {
    let mut reporter = Reporter::default();
    let mut by_parent: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, removal) in all.iter().enumerate() {
        if matches!(removal.method, Method::Trash(_)) {
            by_parent
                .entry(removal.argument.parent)
                .or_default()
                .push(index);
        }
    }
    for (parent, members) in by_parent {
        // Each waits for the disk.
        reporter.report(listener, Progress::default())?;
        let at = parents.get(parent);
        let entries: Vec<Entry> = (1..)
            .zip(&members)
            .map(|(number, &index)| entry(number, &all[index].argument, options))
            .collect();
        match Trash::create(&at.fd, &at.path, entries) {
            Err(Unusable(why)) => {
                for index in members {
                    let why = format!("no trash can be made beside it: {why}");
                    all[index].method = Method::InPlace(Some(why));
                }
            }
            Ok(trash) => {
                for (number, index) in (1..).zip(members) {
                    let removal = &mut all[index];
                    removal.method = match trash.take(number, &removal.argument.name) {
                        Ok(()) => Method::Trash(number),
                        Err(errno) => Method::InPlace(Some(format!(
                            "it can't be renamed: {}",
                            crate::words::of(errno)
                        ))),
                    };
                    // Another process may have swapped the name between the look and the rename.
                    let argument = &removal.argument;
                    if let Method::Trash(number) = removal.method
                        && !trash.is_as_seen(number, argument.is_directory())
                    {
                        outcome.failures +=
                            give_back(&trash, number, &argument.name, &argument.path, listener);
                        removal.method = Method::InPlace(None);
                    }
                }
                trash.settle();
                trashes.insert(parent, trash);
            }
        }
    }
    Ok(())
}

/// Gives an entry that was swapped for the argument its old name back. If that fails, keeps the
/// entry where no resume removes it as the argument, and reports it. Returns the number of
/// failures: 0 or 1.
pub(super) fn give_back(
    trash: &Trash,
    number: u32,
    name: &CStr,
    path: &Path,
    listener: &mut Listener<'_>,
) -> u64 {
    let Err(errno) = trash.put_back(number, name) else {
        return 0;
    };
    let kept = trash.keep(number);
    let kept = kept.unwrap_or_else(|_| trash.path().to_owned());
    let problem = Problem::Words(format!(
        "another program has swapped it meanwhile; what it put there is kept in {}, for it can't have its name back: {}",
        quoted(&kept),
        crate::words::of(errno)
    ));
    listener(Event::Failed(path, &problem));
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
