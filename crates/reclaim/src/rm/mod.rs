//! Removes files and trees as rm does: look at the arguments, rename them into a trash, free
//! what they hold, remove the names for good.

mod amounts;
mod arguments;
mod close;
mod large;
mod lost;
mod on_disk;
mod removal;
mod remover;
mod resume;
mod resume_trashes;
mod spared;
mod survey;
#[cfg(test)]
mod tests;
mod trash;
mod tree;

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use linux::holders::Search;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::ReclaimError;
use crate::event::{Event, Listener, Problem, Progress, Reporter, report};
use crate::reclaimer::Reclaimers;
use crate::rm::trash::Trash;
use crate::throttle::Summary;
use amounts::Amounts;
use arguments::{Argument, Parents};
use close::{Rested, close};
use removal::{Method, Removal, put_all_back, take};
use remover::{Item, LARGE, Remover};
use survey::{Surveyed, survey, would_ask};
use units::names::quoted;

pub use resume::{Where, resume};
pub use spared::{Spared, Why};

/// How the root directory and other devices are protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreserveRoot {
    /// They aren't protected.
    No,
    /// `/` isn't removed recursively.
    Yes,
    /// As `Yes`, and an argument on another device than its parent isn't removed either.
    All,
}

/// When the user is asked before something is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// Never.
    Never,
    /// Before a name to which this user may not write.
    Protected,
    /// Before every name.
    Always,
}

/// The options of a removal, as those of rm.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Remove directories and all that is in them.
    pub recursive: bool,
    /// An argument that doesn't exist is no failure.
    pub force: bool,
    /// Remove empty directories.
    pub empty_directories: bool,
    /// Stop where another file system, or any other mount, begins.
    pub one_file_system: bool,
    /// How `/` is protected.
    pub preserve_root: PreserveRoot,
    /// When to ask.
    pub asking: Asking,
    /// Rename into a trash before space is freed.
    pub trash: bool,
}

/// The result of a removal.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Names removed.
    pub names: u64,
    /// Names that stay although they should be removed. Each was reported through [`Event::Failed`].
    pub failures: u64,
    /// The summary of each file system that was paced.
    pub summary: Vec<Summary>,
    /// Files that were not emptied in pieces, by reason.
    pub spared: Vec<Spared>,
    /// Why it ended before all was done.
    pub stopped: Option<Stopped>,
    /// Trashes in which something is left to resume.
    pub left: Vec<PathBuf>,
}

/// Why a removal ended before all was done.
#[derive(Debug, Clone, PartialEq)]
pub struct Stopped {
    /// The user or the caller stopped it.
    pub interrupted: bool,
    /// The goal that the drive can't meet, and the one that it can.
    pub refused: Option<pace::Refusal>,
    /// The reason in words, for the user.
    pub why: String,
}

/// The plan for one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intention {
    /// The argument.
    pub path: PathBuf,
    /// Bytes that it holds.
    pub bytes: u64,
    /// Names in it, itself among them.
    pub names: u64,
    /// Why it is removed in place, where it is.
    pub in_place: Option<String>,
    /// Whether what it frees is paced.
    pub paced: bool,
    /// Why nothing on its file system is, in a sentence.
    pub unpaced: Option<String>,
}

/// Why something stays in its place.
const ASKED_ABOUT: &str = "it holds what is asked about";

/// Returns the plan for each argument, and the number of arguments that can't be removed. It
/// changes nothing.
///
/// # Errors
/// [`ReclaimError::Interrupted`] if `listener` stops it.
pub fn intend(
    paths: &[PathBuf],
    options: &Options,
    reclaimers: &mut dyn Reclaimers,
    listener: &mut Listener<'_>,
) -> Result<(Vec<Intention>, u64), ReclaimError> {
    let mut parents = Parents::default();
    let mut failures = 0;
    let mut all: Vec<Intention> = Vec::new();
    for argument in look(paths, options, &mut parents, listener, &mut failures) {
        let parent = parents.get(argument.parent);
        let mut amounts = Amounts::default();
        let surveyed = Surveyed {
            parent: parent.fd.as_fd(),
            name: &argument.name,
            path: &argument.path,
            one_file_system: options.one_file_system,
        };
        let names = survey(&surveyed, &mut amounts, None, listener)?;
        let bytes = amounts.each().map(|amount| amount.bytes).sum();
        // Another file system may be mounted there.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let own = rustix::fs::openat(&parent.fd, &*argument.name, flags, Mode::empty());
        let on = own.as_ref().unwrap_or(&parent.fd).as_fd();
        let paced = amounts.each().any(|amount| amount.bytes >= LARGE) && reclaimers.paces(on);
        let mut in_place = reason(&argument, options, &parents);
        if in_place.is_none()
            && !goes_at_once(&argument, options, paced)
            && is_asked_about(&argument, options, parent.fd.as_fd(), listener)?
        {
            in_place = Some(ASKED_ABOUT.to_owned());
        }
        let unpaced = reclaimers.unpaced(on);
        all.push(Intention {
            path: argument.path,
            bytes,
            names,
            in_place,
            paced,
            unpaced,
        });
    }
    let search = Search::default();
    let paced = all.iter().any(|intention| intention.paced);
    if let Some(why) = search.is_blind().filter(|_| paced) {
        let why = large::unknown(why);
        listener(Event::Note(&format_args!(
            "large files would be freed whole: {why}"
        )));
    }
    Ok((all, failures))
}

/// Removes what the paths name.
pub fn remove(
    paths: &[PathBuf],
    options: &Options,
    reclaimers: &mut dyn Reclaimers,
    listener: &mut Listener<'_>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut parents = Parents::default();
    let arguments = look(
        paths,
        options,
        &mut parents,
        listener,
        &mut outcome.failures,
    );
    let mut trashes = HashMap::new();
    let ended = begin(
        arguments,
        options,
        &parents,
        &mut trashes,
        reclaimers,
        listener,
        &mut outcome,
    );
    let (rested, error) = match ended {
        Ok(rested) => (rested, None),
        Err(error) => (Rested::new(), Some(error)),
    };
    outcome.left = close(trashes.into_values(), &outcome, &rested, listener);
    outcome.stopped = error.map(|error| Stopped::new(&error));
    outcome
}

impl Stopped {
    pub(crate) fn new(error: &ReclaimError) -> Stopped {
        Stopped {
            interrupted: matches!(error, ReclaimError::Interrupted),
            refused: match error {
                ReclaimError::Refused(refusal) => Some(*refusal),
                _ => None,
            },
            why: error.to_string(),
        }
    }
}

/// Returns the arguments that may be removed, and reports the others.
fn look(
    paths: &[PathBuf],
    options: &Options,
    parents: &mut Parents,
    listener: &mut Listener<'_>,
    failures: &mut u64,
) -> Vec<Argument> {
    // Each directory that arguments are in stays open, and so does its trash.
    linux::files::allow_most_open();
    let mut all = Vec::with_capacity(paths.len());
    let mut named = HashSet::new();
    for path in paths {
        let looked = parents.look(path, options).and_then(|argument| {
            let first = named.insert((argument.parent, argument.name.clone()));
            // The first removes it, unless somebody says no.
            match first || argument.asks(options.asking, parents) {
                true => Ok(argument),
                false => Err(Problem::System(Errno::NOENT)),
            }
        });
        match looked {
            Ok(argument) => all.push(argument),
            Err(Problem::System(Errno::NOENT | Errno::NOTDIR)) if options.force => {}
            Err(problem) => {
                *failures += 1;
                listener(Event::Failed(path, &problem));
            }
        }
    }
    all
}

/// Whether one call removes it, and frees little or isn't paced.
fn goes_at_once(argument: &Argument, options: &Options, paces: bool) -> bool {
    match argument.is_directory() {
        true => !options.recursive,
        false => !paces || argument.bytes() < LARGE,
    }
}

/// Whether one will be asked about something in it, and is to see where that is.
fn is_asked_about(
    argument: &Argument,
    options: &Options,
    parent: BorrowedFd<'_>,
    listener: &mut Listener<'_>,
) -> Result<bool, ReclaimError> {
    Ok(options.asking == Asking::Protected && would_ask(argument, parent, listener)?)
}

/// Returns why an argument isn't renamed first, as far as that is known before.
fn reason(argument: &Argument, options: &Options, parents: &Parents) -> Option<String> {
    if !options.trash || options.asking == Asking::Always {
        return Some("as asked".to_owned());
    }
    parents.elsewhere(argument).map(str::to_owned)
}

fn begin(
    arguments: Vec<Argument>,
    options: &Options,
    parents: &Parents,
    trashes: &mut HashMap<usize, Trash>,
    reclaimers: &mut dyn Reclaimers,
    listener: &mut Listener<'_>,
    outcome: &mut Outcome,
) -> Result<Rested, ReclaimError> {
    let mut paced: HashMap<u64, bool> = HashMap::new();
    let mut all = Vec::with_capacity(arguments.len());
    let mut reporter = Reporter::default();
    for argument in arguments {
        reporter.report(listener, Progress::default())?;
        let parent = parents.get(argument.parent);
        let paces = *paced
            .entry(parent.device)
            .or_insert_with(|| reclaimers.paces(parent.fd.as_fd()));
        let method = if goes_at_once(&argument, options, paces) {
            Method::Unlink
        } else if is_asked_about(&argument, options, parent.fd.as_fd(), listener)? {
            Method::InPlace(Some(ASKED_ABOUT.to_owned()))
        } else {
            match reason(&argument, options, parents) {
                // Whoever is asked about each name sees where it goes.
                Some(_) if options.asking == Asking::Always => Method::InPlace(None),
                Some(why) => Method::InPlace(Some(why)),
                None => Method::Trash(0),
            }
        };
        all.push(Removal { argument, method });
    }
    // What goes at once isn't kept in sight by what takes long, unless somebody is asked in turn.
    if !all
        .iter()
        .any(|removal| removal.asks(options.asking, parents))
    {
        all.sort_by_key(|removal| !matches!(removal.method, Method::Unlink));
    }
    let large = all
        .iter()
        .filter(|removal| !matches!(removal.method, Method::Unlink));
    let mut tried = HashSet::new();
    for removal in large {
        let parent = parents.get(removal.argument.parent);
        if tried.insert(parent.device) {
            reclaimers.try_goal(parent.fd.as_fd(), listener)?;
        }
    }
    // The last moment at which nothing has happened.
    report(listener, Progress::default())?;
    if let Err(error) = take(&mut all, options, parents, trashes, listener, outcome) {
        put_all_back(&all, trashes);
        return Err(error);
    }
    let mut amounts = Amounts::default();
    for removal in &all {
        let parent = parents.get(removal.argument.parent);
        let paces = paced.get(&parent.device).is_some_and(|&paced| paced);
        // Everything in a trash is on the parent's file system.
        let stays_there = || {
            !matches!(removal.method, Method::InPlace(_))
                || parents.elsewhere(&removal.argument).is_none()
        };
        if !paces && stays_there() {
            continue;
        }
        let (at, name) = removal.place(parents, trashes);
        let path = &removal.argument.path;
        let surveyed = Surveyed {
            parent: at,
            name: &name,
            path,
            one_file_system: options.one_file_system,
        };
        survey(&surveyed, &mut amounts, Some(&mut *reclaimers), listener)?;
    }
    let mut remover = Remover::new(listener, reclaimers, amounts, options.asking);
    let mut at = 0;
    let ended = match run(&mut remover, &all, options, parents, trashes, &mut at) {
        Ok(()) => remover.finish().map(|(summary, rested)| {
            outcome.summary = summary;
            rested
        }),
        // A goal that can't be met: as if nothing had been asked for.
        Err(error @ ReclaimError::Refused(_)) if remover.names() == 0 && !remover.begun => {
            put_all_back(&all, trashes);
            Err(error)
        }
        Err(error) => {
            untouched(&all[at..], parents, &mut |event| {
                remover.dialogue.hear(event)
            });
            Err(error)
        }
    };
    outcome.names += remover.names();
    outcome.failures += remover.failures();
    outcome.spared = remover.spared();
    ended
}

fn run(
    remover: &mut Remover<'_>,
    all: &[Removal],
    options: &Options,
    parents: &Parents,
    trashes: &HashMap<usize, Trash>,
    at: &mut usize,
) -> Result<(), ReclaimError> {
    let mut rest = all;
    while let [removal, after @ ..] = rest {
        *at = all.len() - rest.len();
        let argument = &removal.argument;
        let together = rest
            .iter()
            .take_while(|next| next.goes_with(removal))
            .count();
        if together > 1 {
            let (files, after) = rest.split_at(together);
            let files: Vec<&Argument> = files.iter().map(|removal| &removal.argument).collect();
            remover.remove_files(parents.get(argument.parent).fd.as_fd(), &files)?;
            rest = after;
            continue;
        }
        rest = after;
        let trash = trashes.get(&argument.parent);
        let (parent, name) = removal.place(parents, trashes);
        let item = Item {
            parent,
            name: &name,
            path: &argument.path,
            trash,
            one_file_system: options.one_file_system,
            recursive: options.recursive && argument.is_directory(),
        };
        let names = remover.names();
        let gone = match (remover.remove(&item), &removal.method) {
            (Err(error), Method::InPlace(_)) if !matches!(error, ReclaimError::Refused(_)) => {
                let name = quoted(&argument.path);
                remover.dialogue.note(&format_args!(
                    "what is left of {name}, if anything, is where it was, and can't be resumed"
                ));
                return Err(error);
            }
            (gone, _) => gone?,
        };
        match &removal.method {
            Method::InPlace(Some(why)) if remover.names() > names => {
                let name = quoted(&argument.path);
                let said = format_args!("{name} was removed in place: {why}");
                remover.dialogue.note(&said);
            }
            Method::Trash(number) if !gone => {
                let put = trash.map(|trash| trash.put_back(*number, &argument.name));
                put_back_told(remover, put, argument, trash);
            }
            _ => {}
        }
    }
    Ok(())
}

/// Notes which arguments are still in their old places, where no resume looks for them. If the
/// removal ended at one that is removed in place, that one was noted already.
fn untouched(rest: &[Removal], parents: &Parents, listener: &mut Listener<'_>) {
    let ended_in_place = matches!(rest, [first, ..] if matches!(first.method, Method::InPlace(_)));
    let stays = |removal: &&Removal| {
        !matches!(removal.method, Method::Trash(_)) && removal.is_there(parents)
    };
    let mut stay = rest.iter().skip(usize::from(ended_in_place)).filter(stays);
    let Some(first) = stay.next() else { return };
    let name = quoted(&first.argument.path);
    listener(Event::Note(&match stay.count() {
        0 => format!("{name} was not begun with, and isn't resumed"),
        more => format!("{name} and {more} more were not begun with, and aren't resumed"),
    }));
}

fn put_back_told(
    remover: &mut Remover<'_>,
    put: Option<Result<(), Errno>>,
    argument: &Argument,
    trash: Option<&Trash>,
) {
    if let (Some(Err(errno)), Some(trash)) = (put, trash) {
        remover.dialogue.note(&format_args!(
            "what remains of {} is in {}: it can't have its name back: {}",
            quoted(&argument.path),
            quoted(trash.path()),
            crate::words::of(errno)
        ));
    }
}
