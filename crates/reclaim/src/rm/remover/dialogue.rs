//! Reports a removal to the user, asks the user's questions, and counts the files that weren't
//! emptied in pieces.

use std::collections::HashMap;
use std::ffi::CStr;
use std::fmt::{self, Display};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use linux::holders::Unknown;
use record::units;
use record::units::names::quoted;
use rustix::fs::{FileType, Stat};

use crate::event::{Event, Listener, Problem, Progress, Question, Reply, Reporter};
use crate::rm::Asking;
use crate::rm::places::allocated;
use crate::rm::survey::is_protected;
use crate::volume::LARGE;
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

// The files that weren't emptied in pieces, by reason.

/// Files of which `rm` removed the names and touched no content, for one reason. It displays as a
/// sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spared {
    /// The reason.
    pub why: Why,
    /// The number of files.
    pub files: u64,
    /// The bytes that they hold.
    pub bytes: u64,
}

/// Why a file wasn't emptied in pieces.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Why {
    /// It has another name, so its space stays.
    Named,
    /// It is open, mapped or executed, so its space stays until that ends. In words, by which
    /// process, if that is known.
    Open(Option<String>),
    /// It is mounted by itself at this path, so its space stays until it is unmounted.
    Mounted(PathBuf),
    /// Its space came free at once with its name. In words, why.
    AtOnce(String),
}

impl Why {
    /// Whether the space of the file stays in use.
    pub fn stays(&self) -> bool {
        !matches!(self, Why::AtOnce(_))
    }
}

impl fmt::Display for Spared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, bytes) = (units::counted(self.files, "file"), units::bytes(self.bytes));
        let one = self.files == 1;
        let (is, has, its, it) = match one {
            true => ("is", "has another name", "its", "it"),
            false => ("are", "have other names", "their", "them"),
        };
        match &self.why {
            Why::Named => write!(f, "{files} {has}: {its} {bytes} stay"),
            Why::Open(Some(process)) => write!(
                f,
                "{files} {is} open in {process}: {its} {bytes} stay until it closes {it}"
            ),
            Why::Open(None) => write!(
                f,
                "{files} {is} open, mapped or executed: {its} {bytes} stay until that ends"
            ),
            Why::Mounted(point) => write!(
                f,
                "{files} {is} mounted at {}: {its} {bytes} stay until that is unmounted",
                quoted(point)
            ),
            Why::AtOnce(why) => {
                let were = if one { "was" } else { "were each" };
                write!(
                    f,
                    "{files} of {bytes} {were} freed at once, not in pieces: {why}"
                )
            }
        }
    }
}

/// Adds up the files that aren't emptied in pieces.
#[derive(Debug, Default)]
pub(super) struct AllSpared {
    /// Files and bytes, by reason.
    by_reason: HashMap<Why, (u64, u64)>,
    /// The bytes of large files that had another name when one was removed, by device and inode.
    named: HashMap<(u64, u64), u64>,
}

impl AllSpared {
    pub(super) fn add(&mut self, why: Why, bytes: u64) {
        let (files, all) = self.by_reason.entry(why).or_default();
        *files += 1;
        *all += bytes;
    }

    /// Notes that one of the names of a file was removed, whose status was this before. A file
    /// counts as one with another name unless its last name follows.
    pub(super) fn name_removed(&mut self, stat: &Stat) {
        let file = (stat.st_dev, stat.st_ino);
        if stat.st_nlink <= 1 {
            self.named.remove(&file);
        } else if allocated(stat) >= LARGE {
            self.named.insert(file, allocated(stat));
        }
    }

    /// Returns all, those that hold the most first.
    pub(super) fn all(&self) -> Vec<Spared> {
        let named = (self.named.len() as u64, self.named.values().sum());
        let counted = self
            .by_reason
            .iter()
            .map(|(why, &counts)| (why.clone(), counts));
        let mut all: Vec<Spared> = counted
            .chain((named.0 > 0).then_some((Why::Named, named)))
            .map(|(why, (files, bytes))| Spared { why, files, bytes })
            .collect();
        all.sort_by_key(|spared| std::cmp::Reverse((spared.bytes, spared.files)));
        all
    }
}

/// Says that holders aren't known, and why.
pub(in crate::rm) fn unknown(why: &Unknown) -> String {
    format!("who else has them is unknown, because {why}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_one_sentence() {
        let mut all = AllSpared::default();
        let process = || Why::Open(Some("postgres (pid 812)".to_owned()));
        all.add(process(), 1 << 30);
        all.add(process(), 2 << 30);
        all.add(Why::Open(None), 1 << 20);
        all.add(Why::Mounted("/x".into()), 2 << 20);
        for _ in 0..2 {
            all.add(
                Why::AtOnce("there are too many mounts".to_owned()),
                10 << 20,
            );
        }
        let text: Vec<String> = all.all().iter().map(Spared::to_string).collect();
        assert_eq!(
            text,
            [
                "2 files are open in postgres (pid 812): their 3.0 GiB stay until it closes them",
                "2 files of 20.0 MiB were each freed at once, not in pieces: there are too many mounts",
                "1 file is mounted at '/x': its 2.0 MiB stay until that is unmounted",
                "1 file is open, mapped or executed: its 1.0 MiB stay until that ends",
            ]
        );
    }

    #[test]
    fn a_file_whose_last_name_follows_has_no_other_name() {
        let mut stat = rustix::fs::fstat(tempfile::tempfile().unwrap()).unwrap();
        let mut all = AllSpared::default();
        (stat.st_blocks, stat.st_nlink) = (20 << 20, 3);
        all.name_removed(&stat);
        stat.st_nlink = 2;
        all.name_removed(&stat);
        let said = |all: &AllSpared| all.all().iter().map(Spared::to_string).collect::<Vec<_>>();
        assert_eq!(said(&all), ["1 file has another name: its 10.0 GiB stay"]);
        stat.st_nlink = 1;
        all.name_removed(&stat);
        assert_eq!(said(&all), [""; 0]);
    }
}
