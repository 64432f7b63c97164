//! Removes files and trees as rm does: look at the arguments, rename them into a trash, free
//! what they hold, remove the names for good.

mod links;
mod lost;
mod on_disk;
mod places;
mod removal;
mod remover;
mod resume;
mod survey;
#[cfg(test)]
mod tests;
mod trash;
mod tree;
mod volumes;

use std::os::fd::AsFd;
use std::path::PathBuf;

use linux::holders::Search;
use rustix::fs::{Mode, OFlags};

use crate::event::{Event, Listener};
use crate::throttle::Summary;
use crate::{ReclaimError, Result, directory};
use places::{ASKED_ABOUT, Places};
use removal::Removal;
use survey::{Surveyed, survey};

pub use links::Stays;
pub use remover::{Spared, Why};
pub use resume::{Where, left_elsewhere, resume};
pub use volumes::Volumes;

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
    /// Bytes that come free with its files, without those of subvolumes.
    pub bytes: u64,
    /// The files in it that also have other names, which stay or which a later argument removes.
    pub stays: Stays,
    /// Whether `bytes` are a bound: its file system lets files share blocks.
    pub at_most: bool,
    /// Names in it, itself among them.
    pub names: u64,
    /// Why it is removed in place, where it is.
    pub in_place: Option<String>,
    /// Whether what it frees is paced.
    pub paced: bool,
    /// Why nothing on its file system is, in a sentence.
    pub unpaced: Option<String>,
    /// Whether it is a btrfs subvolume or snapshot, which is deleted as one.
    pub subvolume: bool,
    /// The subvolumes that are deleted as one, itself among them: the bytes that only each has,
    /// `None` where no quotas count them.
    pub subvolumes: Vec<Option<u64>>,
}

/// Returns the plan for each argument, and the number of arguments that can't be removed. It
/// changes nothing.
///
/// # Errors
/// [`ReclaimError::Interrupted`] if `listener` stops it.
pub fn intend(
    paths: &[PathBuf],
    options: &Options,
    volumes: &mut Volumes,
    listener: &mut Listener<'_>,
) -> Result<(Vec<Intention>, u64)> {
    volumes.count_links();
    let mut places = Places::new(options);
    let mut all: Vec<Intention> = Vec::new();
    let (arguments, failures) = places.look(paths, listener);
    for argument in arguments {
        let parent = places.parent(&argument);
        let surveyed = Surveyed {
            parent: parent.fd.as_fd(),
            name: &argument.name,
            path: &argument.path,
            one_file_system: options.one_file_system,
        };
        let names = survey(&surveyed, volumes, false, listener)?;
        let (bytes, subvolumes, enough) = volumes.take_amounts();
        let stays = volumes.end_argument();
        // Another file system may be mounted there.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let own = rustix::fs::openat(&parent.fd, &*argument.name, flags, Mode::empty());
        let on = own.as_ref().unwrap_or(&parent.fd).as_fd();
        let device = directory::device(on).unwrap_or(parent.device);
        volumes.unless_harmful(on, device)?;
        let unpaced = volumes.unpaced(on, device);
        let paced = enough && unpaced.is_none();
        let mut in_place = places.reason(&argument);
        if in_place.is_none()
            && !places.goes_at_once(&argument, paced)
            && places.is_asked_about(&argument, listener)?
        {
            in_place = Some(ASKED_ABOUT.to_owned());
        }
        all.push(Intention {
            path: argument.path,
            bytes,
            stays,
            at_most: directory::may_share_blocks(on),
            names,
            in_place,
            paced,
            unpaced,
            subvolume: argument.subvolume.is_some(),
            subvolumes,
        });
    }
    let search = Search::default();
    let paced = all.iter().any(|intention| intention.paced);
    if let Some(why) = search.is_blind().filter(|_| paced) {
        let why = remover::unknown(why);
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
    volumes: &mut Volumes,
    listener: &mut Listener<'_>,
) -> Outcome {
    let mut removal = Removal::new(options, volumes, listener);
    let ended = removal.all(paths);
    removal.close(ended)
}

impl Stopped {
    /// `begun`: whether anything was removed or freed before.
    fn new(error: &ReclaimError, begun: bool) -> Stopped {
        let refused = match error {
            ReclaimError::Refused(refusal) => Some(*refusal),
            _ => None,
        };
        let untouched = match error {
            ReclaimError::Refused(_) | ReclaimError::Harm(_) if !begun => "; nothing was removed",
            _ => "",
        };
        Stopped {
            interrupted: matches!(error, ReclaimError::Interrupted),
            refused,
            why: format!("{error}{untouched}"),
        }
    }
}
