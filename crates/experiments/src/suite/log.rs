//! The log of a suite: JSON Lines, one for each finished step.
//!
//! The first line is the [`Head`]. A suite that is started again with the same plan on the same
//! drive goes on after the last whole turn of a cell. The steps of a
//! turn that was cut off stay in the file; their repetition comes later, and counts.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use record::Origin;
use record::units::names;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::suite::cell::Cell;
pub use crate::suite::drive::{Drive, Member};
use crate::suite::measure::RunFigures;
use crate::suite::plan::Plan;
use crate::suite::step::Step;

/// The schema of a log.
pub const SCHEMA: &str = "trimbench.suite-log/1";

/// The machine, the drive and the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// [`SCHEMA`].
    pub schema: String,
    /// trimbench's version.
    pub version: String,
    /// Whose it is; unknown in older logs.
    #[serde(default)]
    pub origin: Origin,
    /// The drive.
    pub drive: Drive,
    /// The plan.
    pub plan: Plan,
}

/// The figures of a step that succeeded.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// From its beginning to its end, in seconds.
    pub seconds: f64,
    /// A removal: the first sync after it, in seconds.
    pub first_sync_s: Option<f64>,
    /// A removal: the second sync, right after the first, in seconds.
    pub second_sync_s: Option<f64>,
    /// A removal or a trim: from its beginning to the last discard that came of it, in seconds.
    pub freed_s: Option<f64>,
    /// Discards that the device completed.
    pub discards: u64,
    /// Bytes of them.
    pub discard_bytes: u64,
    /// A run: what became of the readers.
    pub run: Option<Box<RunFigures>>,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Well.
    Done(Figures),
    /// Not; the text says why.
    Failed(String),
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "line")]
pub enum Line {
    /// The first one.
    Head(Box<Head>),
    /// A finished step.
    Step {
        /// The cell's name.
        cell: String,
        /// The round, from 1.
        round: u32,
        /// The step.
        step: Step,
        /// How it ended.
        outcome: Outcome,
    },
    /// A line of an earlier version, which counts for nothing.
    #[serde(other)]
    Other,
}

/// A log that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Log {
    /// The machine, the drive and the plan.
    pub head: Head,
    /// The last outcome of each step of a turn.
    pub outcomes: BTreeMap<(String, u32, Step), Outcome>,
}

impl Log {
    /// Reads a log. A last line that was cut off is left out.
    ///
    /// # Errors
    /// When it can't be read, or isn't one.
    pub fn read(path: &Path) -> Result<Log, Error> {
        let refused = |why: String| Error::Usage(format!("{}: {why}", names::shown(path)));
        let unread = |error| format!("can't be read: {error}; give the file of a suite's --output");
        let text = std::fs::read_to_string(path).map_err(|error| refused(unread(error)))?;
        Log::parse(&text).map_err(refused)
    }

    /// Parses the text of a log.
    ///
    /// # Errors
    /// The number of a wrong line, and why it is wrong.
    pub fn parse(text: &str) -> Result<Log, String> {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = whole.lines().enumerate();
        if let Some(why) = record::form::refusal(text.as_bytes(), SCHEMA) {
            return Err(why);
        }
        let parse = |(i, line): (usize, &str)| {
            serde_json::from_str::<Line>(line)
                .map_err(|error| format!("line {} is not one of a suite's log: {error}", i + 1))
        };
        let first = lines.next().ok_or("holds no log of `trimbench suite`")?;
        let Line::Head(head) = parse(first)? else {
            return Err("its first line is no head of a suite's log".to_owned());
        };
        if head.schema != SCHEMA {
            return Err(format!("its schema is {}, not {SCHEMA}", head.schema));
        }
        let mut outcomes = BTreeMap::new();
        for line in lines {
            if let Line::Step {
                cell,
                round,
                step,
                outcome,
            } = parse(line)?
            {
                outcomes.insert((cell, round, step), outcome);
            }
        }
        let head = *head;
        Ok(Log { head, outcomes })
    }

    /// Whether all steps of a turn ended, well or not.
    pub fn has(&self, round: u32, cell: &Cell) -> bool {
        let ended = |step| self.outcomes.contains_key(&(cell.to_string(), round, step));
        self.head.plan.steps_of(cell).into_iter().all(ended)
    }

    /// The turns that are still to come.
    pub fn left(&self) -> Vec<(u32, Cell)> {
        let mut turns = self.head.plan.turns();
        turns.retain(|(round, cell)| !self.has(*round, cell));
        turns
    }
}

/// A log that is being written.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
}

impl Drop for Writer {
    fn drop(&mut self) {
        // A child of this process may have a copy of the file still.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl Writer {
    /// Opens a log for a suite, and returns what it holds of that suite already. A new file gets
    /// the head. Nobody else can write it as long as this lives.
    ///
    /// # Errors
    /// When it holds something else: another plan, another drive, no log at all. When another
    /// process writes it.
    pub fn open(path: &Path, head: &Head) -> Result<(Writer, Log), Error> {
        let failed = not_written(path);
        let refused = |why: &str| Error::Usage(format!("{}: {why}", names::shown(path)));
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .map_err(&failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| refused("another suite writes it; give another file with --output"))?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(&failed)?;
        let mut writer = Writer {
            path: path.to_path_buf(),
            file,
        };
        if text.is_empty() {
            writer.write(&Line::Head(Box::new(head.clone())))?;
            let (head, outcomes) = (head.clone(), BTreeMap::new());
            return Ok((writer, Log { head, outcomes }));
        }
        let log = Log::parse(&text).map_err(|why| refused(&why))?;
        if log.head.plan != head.plan || log.head.drive != head.drive {
            return Err(refused(&format!(
                "holds another suite ({}); give the options of that one to go on, or another file \
                 with --output",
                log.head.drive.words()
            )));
        }
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        writer.file.set_len(whole as u64).map_err(&failed)?;
        Ok((writer, log))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// When it can't be written.
    pub fn write(&mut self, line: &Line) -> Result<(), Error> {
        let text = serde_json::to_string(line).map_err(io::Error::from);
        text.and_then(|text| self.file.write_all(format!("{text}\n").as_bytes()))
            .map_err(not_written(&self.path))
    }
}

/// The error of a log that can't be read or written.
fn not_written(path: &Path) -> impl Fn(io::Error) -> Error {
    move |error| {
        Error::Failed(format!(
            "{}: {error}; {} with --output",
            names::shown(path),
            linux::files::after_failed_write(&error)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::tests as made;

    #[test]
    fn a_killed_suite_goes_on_with_the_turn_that_it_was_in() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("suite.jsonl");
        let head = made::head(&["ext4/discard/discard", "xfs/nodiscard/nodiscard"], 2);
        let (mut writer, log) = Writer::open(&path, &head).unwrap();
        assert_eq!(log.left().len(), 4);
        let (round, first) = log.left()[0];
        for step in Step::of(&first) {
            writer.write(&made::step(&first, round, step, 1.0)).unwrap();
        }
        let second = log.left()[1].1;
        writer
            .write(&made::step(&second, round, Step::Mkfs, 7.0))
            .unwrap();
        // Killed while it wrote.
        writer.file.write_all(b"{\"line\":\"step\",\"ce").unwrap();
        drop(writer);
        let (mut writer, log) = Writer::open(&path, &head).unwrap();
        assert_eq!(log.left().len(), 3);
        assert_eq!(log.left()[0].1, second);
        for (round, cell) in log.left() {
            for step in Step::of(&cell) {
                writer.write(&made::step(&cell, round, step, 2.0)).unwrap();
            }
        }
        drop(writer);
        let log = Log::read(&path).unwrap();
        assert!(log.left().is_empty());
        // The repetition counts.
        let Outcome::Done(figures) = &log.outcomes[&(second.to_string(), 1, Step::Mkfs)] else {
            panic!("it failed");
        };
        assert_eq!(figures.seconds, 2.0);
    }

    #[test]
    fn only_a_full_disk_is_answered_with_free_space() {
        let place = tempfile::tempdir().unwrap();
        let missing = place.path().join("none/suite.jsonl");
        let head = made::head(&["xfs/discard/discard"], 1);
        let refused = Writer::open(&missing, &head).unwrap_err().to_string();
        assert!(refused.contains("make its directory"), "{refused}");
        let full = not_written(&missing)(io::ErrorKind::StorageFull.into());
        assert!(full.to_string().contains("free space there"), "{full}");
    }

    #[test]
    fn a_log_of_something_else_is_refused_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("suite.jsonl");
        let head = made::head(&["ext4/discard/discard"], 2);
        let (writer, _) = Writer::open(&path, &head).unwrap();
        let busy = Writer::open(&path, &head).unwrap_err();
        assert!(
            busy.to_string().contains("another suite writes it"),
            "{busy}"
        );
        drop(writer);
        let other = made::head(&["ext4/discard/discard"], 3);
        let refused = Writer::open(&path, &other).unwrap_err();
        assert!(
            refused.is_usage() && refused.to_string().contains("--output"),
            "{refused}"
        );
        for text in ["hello\n", "{}\n", "no line end"] {
            std::fs::write(&path, text).unwrap();
            assert!(Writer::open(&path, &head).unwrap_err().is_usage(), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn changed_logs_never_panic() {
        let head = made::head(&["ext4/discard/discard"], 1);
        let cell = Cell::named("ext4/discard/discard").unwrap();
        let text: String = [
            Line::Head(Box::new(head)),
            made::step(&cell, 1, Step::Mkfs, 1.0),
            made::step(&cell, 1, Step::Run, 1.0),
        ]
        .iter()
        .map(|line| serde_json::to_string(line).unwrap() + "\n")
        .collect();
        Log::parse(&text).unwrap();
        for at in 0..text.len() {
            let _ = Log::parse(&text[..at]);
            let changed = format!("{}x{}", &text[..at], &text[at + 1..]);
            let _ = Log::parse(&changed);
        }
    }
}
