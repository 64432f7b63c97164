//! Reports a removal to the user, and asks the user's questions.

use std::ffi::CStr;
use std::fmt::Display;
use std::os::fd::BorrowedFd;
use std::path::Path;

use rustix::fs::{FileType, Stat};

use crate::event::{Event, Listener, Problem, Progress, Question, Reply, Reporter};
use crate::rm::Asking;
use crate::rm::survey::is_protected;
use crate::{ReclaimError, Result};

/// Counts and reports names, asks questions, and passes on the progress of all volumes.
pub(in crate::rm) struct Dialogue<'a> {
    listener: &'a mut Listener<'a>,
    pub(super) asking: Asking,
    /// Names removed.
    pub(super) names: u64,
    /// Names that stay although they should not.
    pub(super) failures: u64,
    /// It was reported that space runs low.
    urgent: bool,
    reporter: Reporter,
    /// The last progress of a volume.
    progress: Progress,
}

impl<'a> Dialogue<'a> {
    pub(super) fn new(listener: &'a mut Listener<'a>, asking: Asking) -> Dialogue<'a> {
        Dialogue {
            listener,
            asking,
            names: 0,
            failures: 0,
            urgent: false,
            reporter: Reporter::default(),
            progress: Progress::default(),
        }
    }

    fn so_far(&self) -> Progress {
        Progress {
            names: self.names,
            ..self.progress
        }
    }

    /// To be called before each name.
    ///
    /// # Errors
    /// If the user stops it.
    pub(super) fn step(&mut self) -> Result<()> {
        let progress = self.so_far();
        self.reporter.report(self.listener, progress)
    }

    /// Asks. The user may also stop it instead.
    pub(super) fn ask(&mut self, path: &Path, what: Question, protected: bool) -> Result<bool> {
        match (self.listener)(Event::Question {
            path,
            what,
            protected,
        }) {
            Reply::Stop => Err(ReclaimError::Interrupted),
            reply => Ok(reply == Reply::Yes),
        }
    }

    /// Returns whether a name may be removed, and asks if necessary.
    pub(super) fn may_remove(
        &mut self,
        at: BorrowedFd<'_>,
        name: &CStr,
        path: &Path,
        stat: &Stat,
    ) -> Result<bool> {
        let kind = FileType::from_raw_mode(stat.st_mode);
        let protected =
            self.asking != Asking::Never && kind != FileType::Symlink && is_protected(at, name);
        let what = match kind {
            FileType::RegularFile if stat.st_size == 0 => "regular empty file",
            FileType::RegularFile => "regular file",
            FileType::Directory => "directory",
            FileType::Symlink => "symbolic link",
            FileType::Fifo => "fifo",
            FileType::Socket => "socket",
            FileType::BlockDevice => "block special file",
            FileType::CharacterDevice => "character special file",
            _ => "weird file",
        };
        match self.asking {
            Asking::Never => Ok(true),
            Asking::Protected if !protected => Ok(true),
            _ => self.ask(path, Question::Remove(what), protected),
        }
    }

    pub(super) fn gone(&mut self, path: &Path, directory: bool) {
        self.names += 1;
        (self.listener)(Event::Removed { path, directory });
    }

    pub(super) fn stays(&mut self, path: &Path, problem: &Problem) {
        self.failures += 1;
        (self.listener)(Event::Failed(path, problem));
    }

    pub(in crate::rm) fn note(&mut self, sentence: &dyn Display) {
        (self.listener)(Event::Note(sentence));
    }

    /// Passes on an event of a throttle. The progress of one becomes that of the removal.
    pub(in crate::rm) fn hear(&mut self, event: Event<'_>) -> Reply {
        let Event::Progress(progress) = event else {
            return (self.listener)(event);
        };
        if progress.urgent && !std::mem::replace(&mut self.urgent, true) {
            self.note(
                &"little space is free: it goes faster now, whatever other I/O loses, until there is more",
            );
        }
        self.progress = progress;
        let progress = self.so_far();
        (self.listener)(Event::Progress(progress))
    }
}
