//! One type of event for all that a deletion or a trim reports and asks.

use std::fmt::Display;
use std::path::Path;
use std::time::{Duration, Instant};

use record::units::names::quoted;
use rustix::io::Errno;

use crate::error::words;
use crate::throttle::Summary;
use crate::{ReclaimError, Result};

/// A report or a question.
#[derive(Clone, Copy)]
pub enum Event<'a> {
    /// How far it is. It comes at least ten times a second.
    Progress(Progress),
    /// Anything else that the user should know: a sentence without a full stop.
    Note(&'a dyn Display),
    /// A guard has trimmed free space.
    Trimmed {
        /// Where the file system is mounted.
        mount: &'a Path,
        /// Bytes for whose trim the kernel was asked since the last such event. Space that is freed
        /// twice counts twice.
        bytes: u64,
        /// Of these, the bytes that were discarded: the kernel skips what it knows to be trimmed.
        discarded: u64,
        /// How long ago that was, or the guard's start, in seconds.
        within_s: f64,
        /// How long the devices were busy with these trims, in seconds.
        busy_s: f64,
        /// The throttle's figures of the last series of trims.
        summary: Option<&'a Summary>,
    },
    /// A name was removed.
    Removed {
        /// The name.
        path: &'a Path,
        /// It was a directory's.
        directory: bool,
    },
    /// A name stays, and why.
    Failed(&'a Path, &'a Problem),
    /// Whether to do something with a name.
    Question {
        /// The name.
        path: &'a Path,
        /// The step that needs an answer.
        what: Question,
        /// This user may not write to it.
        protected: bool,
    },
}

/// The answer to an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// Go on; to a question: do it.
    Yes,
    /// To a question: don't do it.
    No,
    /// End with [`ReclaimError::Interrupted`](crate::ReclaimError::Interrupted), as an answer to
    /// progress or to a question.
    Stop,
}

/// Receives the events of a deletion or a trim.
pub type Listener<'a> = dyn FnMut(Event<'_>) -> Reply + 'a;

/// A listener that ignores all events, and says yes to every question.
pub fn silent(_: Event<'_>) -> Reply {
    Reply::Yes
}

/// The progress of a deletion or a trim.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Bytes to be freed in all, by allocated blocks; 0 where it isn't known. Of a trim: bytes of the
    /// file system to be looked at in all.
    pub total_bytes: u64,
    /// Bytes freed so far; those trimmed by this run.
    pub freed_bytes: u64,
    /// Names removed so far.
    pub names: u64,
    /// Bytes freed whose discards are pending.
    pub debt_bytes: u64,
    /// The controller's estimate of how much longer other I/O waits than before.
    pub added_latency: Option<Duration>,
    /// The file system ran low on free space, so that the goal was lifted.
    pub urgent: bool,
    /// How far a trim is.
    pub looked: Looked,
}

/// How far a trim is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looked {
    /// Bytes of the file system that were looked at so far, those of an interrupted trim included.
    pub bytes: u64,
    /// Bytes that this run looked at.
    pub now_bytes: u64,
    /// Windows so far.
    pub windows: u64,
}

/// Why a name stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The system refused.
    System(Errno),
    /// It is `.` or `..`.
    SelfOrParent,
    /// It is the root directory.
    Root,
    /// It is on another device than its parent (`--preserve-root=all`).
    ParentsDevice,
    /// It is on another device than the argument (`--one-file-system`).
    OtherDevice,
    /// A reason in words.
    Words(String),
}

impl Problem {
    /// The message, worded as rm's.
    pub fn message(&self, path: &Path) -> String {
        let name = quoted(path);
        match self {
            Problem::System(errno) => {
                format!("cannot remove {name}: {}", words(&(*errno).into()))
            }
            Problem::SelfOrParent => {
                format!("refusing to remove '.' or '..' directory: skipping {name}")
            }
            Problem::Root => {
                let same = match path == Path::new("/") {
                    true => "",
                    false => " (same as '/')",
                };
                format!(
                    "it is dangerous to operate recursively on {name}{same}; use \
                     --no-preserve-root to override this failsafe"
                )
            }
            Problem::ParentsDevice => format!(
                "skipping {name}, since it's on a different device, and --preserve-root=all is in effect"
            ),
            Problem::OtherDevice => {
                format!("skipping {name}, since it's on a different device")
            }
            Problem::Words(why) => format!("cannot remove {name}: {why}"),
        }
    }
}

/// A question for the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// Whether to enter a directory.
    Descend,
    /// Whether to remove something, with its kind in words, e.g. `regular file`.
    Remove(&'static str),
    /// Whether to try to remove a directory that can't be looked into.
    Attempt,
}

/// Reports progress.
///
/// # Errors
/// [`ReclaimError::Interrupted`] if the listener ends the deletion.
pub(crate) fn report(listener: &mut Listener<'_>, progress: Progress) -> Result<()> {
    match listener(Event::Progress(progress)) {
        Reply::Yes | Reply::No => Ok(()),
        Reply::Stop => Err(ReclaimError::Interrupted),
    }
}

/// Notes sentences for the user.
pub(crate) fn note_all<T: Display>(
    listener: &mut Listener<'_>,
    sentences: impl IntoIterator<Item = T>,
) {
    for sentence in sentences {
        listener(Event::Note(&sentence));
    }
}

/// Reports progress at regular times, however long or short the caller's steps are.
#[derive(Debug, Default)]
pub(crate) struct Reporter {
    last: Option<Instant>,
}

impl Reporter {
    /// The time between two reports. It is half of what [`Event::Progress`] promises, because a step
    /// takes time as well.
    pub(crate) const EVERY: Duration = Duration::from_millis(50);

    /// Returns whether a report is due, and counts it as made.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.last.is_none_or(|last| last.elapsed() >= Self::EVERY);
        if due {
            self.last = Some(Instant::now());
        }
        due
    }

    /// Reports if it is time. The caller calls this before each step.
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`] if the listener ends the deletion.
    pub(crate) fn report(&mut self, listener: &mut Listener<'_>, progress: Progress) -> Result<()> {
        match self.is_due() {
            true => report(listener, progress),
            false => Ok(()),
        }
    }
}
