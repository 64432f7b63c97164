//! `metadata`: what a mail server, a build or a package manager does with small files.
//!
//! Files are created, renamed, looked at and unlinked in turn, each call one operation. A thousand
//! of them are alive at any time, so that the directory keeps its size. They are empty: unlinking
//! them frees no blocks, and sends no discards. Nothing is synced, so a call waits only where the
//! file system makes it wait, such as for a full journal. As fast as it can it would fill the
//! journal all the time and be a load of its own on the drive.

use std::io;
use std::sync::atomic::AtomicBool;

use rustix::io::Errno;

use super::folder::Folder;
use super::{Kind, Prepared, Stopwatch, Task, TaskSpec};
use record::LoopKind;

/// Create, rename, stat, unlink.
pub(super) static METADATA: Kind = Kind {
    name: "metadata",
    about: "creates, renames, stats and unlinks small files in turn, each call an operation",
    series: &["metadata"],
    default_block_bytes: 0,
    default_size_bytes: 0,
    default_arrival: LoopKind::evenly(1000.0),
    start: Metadata::start,
};

/// Files of a lane that stay alive; one more is there for a moment.
const ALIVE: u32 = 1000;

struct Metadata {
    folder: Folder,
    lane: u32,
    step: Step,
    /// The file that is being made: a number up to `ALIVE`, again and again.
    number: u32,
}

/// The next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Makes a file, under a name for the time being.
    Create,
    /// Gives it its name.
    Rename,
    /// Looks at the oldest.
    Stat,
    /// Removes the oldest.
    Unlink,
}

impl Metadata {
    fn start(spec: &TaskSpec, lane: u32, _seed: u64, _stop: &AtomicBool) -> Prepared {
        let task = Metadata {
            folder: Folder::open(&spec.dir)?,
            lane,
            step: Step::Create,
            number: ALIVE,
        };
        for number in 0..ALIVE {
            let name = task.name(number);
            let made = task.folder.create(&name);
            made.map_err(|error| task.folder.failed(&name, "create it", error))?;
        }
        let synced = task.folder.fsync();
        synced.map_err(|error| task.folder.failed("", "sync the directory", error))?;
        Ok(Box::new(task))
    }

    fn name(&self, number: u32) -> String {
        format!("entry-{}-{number}", self.lane)
    }

    fn new_name(&self) -> String {
        format!("entry-{}.new", self.lane)
    }

    /// The file made longest ago: the one that has the next number.
    fn oldest(&self) -> u32 {
        (self.number + 1) % (ALIVE + 1)
    }

    fn advance(&mut self) {
        self.step = match self.step {
            Step::Create => Step::Rename,
            Step::Rename => Step::Stat,
            Step::Stat => Step::Unlink,
            Step::Unlink => {
                self.number = self.oldest();
                Step::Create
            }
        };
    }
}

impl Task for Metadata {
    fn operate(&mut self, watch: &mut Stopwatch<'_>) -> io::Result<()> {
        let folder = &self.folder;
        let done = match self.step {
            Step::Create => {
                let name = self.new_name();
                watch.time(0, || folder.create(&name).map(drop))
            }
            Step::Rename => {
                let (from, to) = (self.new_name(), self.name(self.number));
                watch.time(0, || folder.rename(&from, &to))
            }
            Step::Stat => {
                let name = self.name(self.oldest());
                watch.time(0, || folder.stat(&name))
            }
            Step::Unlink => {
                let name = self.name(self.oldest());
                watch.time(0, || folder.unlink(&name))
            }
        };
        // What failed is tried again, but not for ever what somebody else has
        // done already, such as an unlink that was done and then failed.
        if done.as_ref().map_or_else(is_out_of_step, |()| true) {
            self.advance();
        }
        done
    }
}

fn is_out_of_step(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOENT | Errno::EXIST))
}
