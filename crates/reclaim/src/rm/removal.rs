//! One removal: renames the arguments into trashes, frees what they hold, and removes the names.

use std::collections::{BTreeMap, HashMap};
use std::ffi::CStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use record::units::names::quoted;
use rustix::io::Errno;

use super::places::{Argument, Method, Places, Planned};
use super::remover::{Item, Remover};
use super::survey::{Surveyed, survey};
use super::trash::journal::Entry;
use super::trash::{Trash, Unusable};
use super::{Options, Outcome, Stopped, Volumes};
use crate::error::words;
use crate::event::{Event, Listener, Problem, Progress, Reporter, report};
use crate::rm::trash::Pauses;
use crate::{ReclaimError, Result};

/// A removal.
pub(super) struct Removal<'a> {
    places: Places<'a>,
    volumes: &'a mut Volumes,
    listener: &'a mut Listener<'a>,
    outcome: Outcome,
    /// Something was removed or freed.
    begun: bool,
}

impl<'a> Removal<'a> {
    /// Has removed nothing so far.
    pub(super) fn new(
        options: &'a Options,
        volumes: &'a mut Volumes,
        listener: &'a mut Listener<'a>,
    ) -> Removal<'a> {
        Removal {
            places: Places::new(options),
            volumes,
            listener,
            outcome: Outcome::default(),
            begun: false,
        }
    }

    /// Removes the empty trashes, and returns what the removal came to.
    pub(super) fn close(self, ended: Result<PauseByDevice>) -> Outcome {
        let mut outcome = self.outcome;
        let error = ended.as_ref().err();
        outcome.stopped = error.map(|error| Stopped::new(error, self.begun));
        let trashes = self.places.trashes.into_values();
        let put_back = !self.begun && matches!(error, Some(ReclaimError::Refused(_)));
        let goes_on = error.is_some() && !put_back;
        let pauses = ended.unwrap_or_default();
        outcome.left = close(trashes, &outcome, goes_on, &pauses, self.listener);
        outcome
    }

    /// Removes what the paths name. Returns the pause after each small discard at the end.
    pub(super) fn all(&mut self, paths: &[PathBuf]) -> Result<PauseByDevice> {
        let (arguments, failures) = self.places.look(paths, self.listener);
        self.outcome.failures = failures;
        let mut all = self.plan(arguments)?;
        for planned in all
            .iter()
            .filter(|one| !matches!(one.method, Method::Unlink))
        {
            let parent = self.places.parent(&planned.argument);
            self.volumes
                .try_goal(parent.fd.as_fd(), parent.device, self.listener)?;
        }
        // The last moment at which nothing has happened.
        report(self.listener, Progress::default())?;
        if let Err(error) = self.rename_into_trashes(&mut all) {
            self.places.put_all_back(&all);
            return Err(error);
        }
        self.survey(&all)?;
        self.free(&all)
    }

    /// Returns how each argument is removed, in the order of removal.
    fn plan(&mut self, arguments: Vec<Argument>) -> Result<Vec<Planned>> {
        let mut all = Vec::with_capacity(arguments.len());
        let mut reporter = Reporter::default();
        for argument in arguments {
            reporter.report(self.listener, Progress::default())?;
            let parent = self.places.parent(&argument);
            self.volumes
                .unless_harmful(parent.fd.as_fd(), parent.device)?;
            let paces = self.volumes.paces(parent.fd.as_fd(), parent.device);
            let method = self.places.method(&argument, paces, self.listener)?;
            all.push(Planned { argument, method });
        }
        // What goes at once isn't kept in sight by what takes long, unless somebody is asked in turn.
        if !all.iter().any(|planned| self.places.asks_within(planned)) {
            all.sort_by_key(|planned| !matches!(planned.method, Method::Unlink));
        }
        Ok(all)
    }

    /// Renames arguments into trashes, one for each directory. A name that changed meanwhile and
    /// can't go back is reported, and counts as a failure.
    fn rename_into_trashes(&mut self, all: &mut [Planned]) -> Result<()> {
        let mut reporter = Reporter::default();
        let mut by_parent: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (index, planned) in all.iter().enumerate() {
            if matches!(planned.method, Method::Trash(_)) {
                let members = by_parent.entry(planned.argument.parent).or_default();
                members.push(index);
            }
        }
        for (parent, members) in by_parent {
            // Each waits for the disk.
            reporter.report(self.listener, Progress::default())?;
            let at = self.places.parents.get(parent);
            let entries: Vec<Entry> = (1..)
                .zip(&members)
                .map(|(number, &index)| entry(number, &all[index].argument, self.places.options))
                .collect();
            let trash = match Trash::create(&at.fd, &at.path, entries) {
                Ok(trash) => trash,
                Err(Unusable(why)) => {
                    for index in members {
                        let why = format!("no trash can be made beside it: {why}");
                        all[index].method = Method::InPlace(Some(why));
                    }
                    continue;
                }
            };
            for (number, index) in (1..).zip(members) {
                let Planned { argument, method } = &mut all[index];
                *method = match trash.rename_in(number, &argument.name) {
                    // Another process may have swapped the name between the look and the rename.
                    Ok(()) if !trash.is_as_seen(number, argument.is_directory()) => {
                        let (name, path) = (&argument.name, &argument.path);
                        self.outcome.failures +=
                            give_back(&trash, number, name, path, self.listener);
                        Method::InPlace(None)
                    }
                    Ok(()) => Method::Trash(number),
                    Err(Errno::ROFS) if argument.subvolume.is_some() => Method::Listed,
                    Err(errno) => Method::InPlace(Some(format!(
                        "it can't be renamed: {}",
                        words(&errno.into())
                    ))),
                };
            }
            trash.settle();
            self.places.trashes.insert(parent, trash);
        }
        Ok(())
    }

    /// Adds up what there is to free where freeing is paced.
    fn survey(&mut self, all: &[Planned]) -> Result<()> {
        for planned in all {
            let argument = &planned.argument;
            let parent = self.places.parent(argument);
            let paces = self.volumes.paces(parent.fd.as_fd(), parent.device);
            // Everything in a trash is on the parent's file system.
            let stays_there = || {
                !matches!(planned.method, Method::InPlace(_))
                    || self.places.parents.elsewhere(argument).is_none()
            };
            if !paces && stays_there() {
                continue;
            }
            let (at, name) = self.places.of(planned);
            let surveyed = Surveyed {
                parent: at,
                name: &name,
                path: &argument.path,
                one_file_system: self.places.options.one_file_system,
            };
            survey(&surveyed, self.volumes, true, self.listener)?;
        }
        Ok(())
    }

    /// Frees what the arguments hold, and removes them.
    fn free(&mut self, all: &[Planned]) -> Result<PauseByDevice> {
        let places = &self.places;
        let mut remover = Remover::new(self.listener, self.volumes, places.options.asking);
        let mut at = 0;
        let ended = places.remove(&mut remover, all, &mut at);
        let ended = ended.and_then(|()| remover.finish());
        self.begun = remover.names() > 0 || remover.begun;
        match &ended {
            Ok(_) => {}
            Err(_) if at == all.len() => {}
            // A goal that can't be met: as if nothing had been asked for.
            Err(ReclaimError::Refused(_) | ReclaimError::Harm(_)) if !self.begun => {
                places.put_all_back(all);
            }
            Err(_) => places.note_untouched(&all[at..], &mut remover),
        }
        self.outcome.add(&remover);
        ended.map(|(summary, pauses)| {
            self.outcome.summary = summary;
            pauses
        })
    }
}

impl Places<'_> {
    /// Removes the arguments one after the other, and small files of one directory together. `at` is
    /// the index of the present one.
    fn remove(&self, remover: &mut Remover<'_>, all: &[Planned], at: &mut usize) -> Result<()> {
        while let Some(planned) = all.get(*at) {
            let argument = &planned.argument;
            let rest = &all[*at..];
            let together = rest.iter().take_while(|next| next.goes_with(planned));
            let files: Vec<&Argument> = together.map(|planned| &planned.argument).collect();
            if files.len() > 1 {
                remover.remove_files(self.parent(argument).fd.as_fd(), &files)?;
                *at += files.len();
                continue;
            }
            let trash = self.trashes.get(&argument.parent);
            let (parent, name) = self.of(planned);
            let item = Item {
                parent,
                name: &name,
                path: &argument.path,
                trash,
                one_file_system: self.options.one_file_system,
                recursive: self.options.recursive && argument.is_directory(),
            };
            let names = remover.names();
            let gone = remover.remove(&item);
            let name = quoted(&argument.path);
            match (&gone, &planned.method) {
                (Err(error), Method::InPlace(_)) if !matches!(error, ReclaimError::Refused(_)) => {
                    remover.dialogue.note(&format_args!(
                        "what is left of {name}, if anything, is where it was, and can't be resumed"
                    ));
                }
                (Ok(_), Method::InPlace(Some(why))) if remover.names() > names => {
                    remover
                        .dialogue
                        .note(&format_args!("{name} was removed in place: {why}"));
                }
                (Ok(false), Method::Trash(number)) => {
                    if let Some(trash) = trash {
                        put_back(remover, trash, *number, &argument.name, &argument.path);
                    }
                }
                _ => {}
            }
            gone?;
            *at += 1;
        }
        Ok(())
    }

    /// Notes which arguments are still in their old places, where no resume looks for them. If the
    /// removal ended at one that is removed in place, that one was noted already.
    fn note_untouched(&self, rest: &[Planned], remover: &mut Remover<'_>) {
        let ended_in_place =
            matches!(rest, [first, ..] if matches!(first.method, Method::InPlace(_)));
        let mut stay = rest
            .iter()
            .skip(usize::from(ended_in_place))
            .filter(|planned| {
                !matches!(planned.method, Method::Trash(_) | Method::Listed)
                    && self.is_there(&planned.argument)
            });
        let Some(first) = stay.next() else { return };
        let name = quoted(&first.argument.path);
        remover.dialogue.note(&match stay.count() {
            0 => format!("{name} was not begun with, and isn't resumed"),
            more => format!("{name} and {more} more were not begun with, and aren't resumed"),
        });
    }
}

impl Outcome {
    /// Adds what a remover did.
    pub(super) fn add(&mut self, remover: &Remover<'_>) {
        self.names += remover.names();
        self.failures += remover.failures();
        self.spared = remover.spared();
    }
}

/// Gives an entry of which something stays its old name back, or notes where it is.
pub(super) fn put_back(
    remover: &mut Remover<'_>,
    trash: &Trash,
    number: u32,
    name: &CStr,
    path: &Path,
) {
    if let Err(errno) = trash.put_back(number, name) {
        remover.dialogue.note(&format_args!(
            "what remains of {} is in {}: it can't have its name back: {}",
            quoted(path),
            quoted(trash.path()),
            words(&errno.into())
        ));
    }
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
        words(&errno.into())
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
        subvolume: argument.subvolume.map(|subvolume| subvolume.uuid),
    }
}

// Removes empty trashes at the end.

/// The pause after each small discard at the end, by the device number of a directory.
pub(super) type PauseByDevice = HashMap<u64, Duration>;

/// Removes the trashes that are empty. `goes_on`: a resume is to delete the subvolumes that a trash
/// lists. Returns the paths of those that stay; one that another process has removed is not among
/// them.
pub(super) fn close(
    trashes: impl IntoIterator<Item = Trash>,
    outcome: &Outcome,
    goes_on: bool,
    lengths: &PauseByDevice,
    listener: &mut Listener<'_>,
) -> Vec<PathBuf> {
    let freed = outcome.summary.iter().map(|summary| summary.freed).sum();
    let done = Progress {
        total_bytes: freed,
        freed_bytes: freed,
        names: outcome.names,
        ..Progress::default()
    };
    // Another subvolume than the one that was worked on has another number.
    let longest = lengths.values().copied().max().unwrap_or_default();
    let mut pauses = Pauses::new(done, listener);
    let mut left: Vec<PathBuf> = trashes
        .into_iter()
        .filter_map(|trash| {
            let device = crate::directory::device(trash.directory());
            let each = device.and_then(|device| lengths.get(&device));
            pauses.set(each.copied().unwrap_or(longest));
            let path = trash.path().to_owned();
            (!trash.close(goes_on, &mut pauses)).then_some(path)
        })
        .collect();
    left.sort();
    left
}
