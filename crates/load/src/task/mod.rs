//! Tasks: operations that are a short chain of blocking system calls, such as
//! an editor's save. One thread carries out each chain in flight.
//!
//! They exist beside the engines because what people wait for is often no
//! single I/O: half of a stall shows only in an fsync. All of it goes through
//! the page cache, as it does in the programs that tasks stand for.
//!
//! A kind of task is one file here, one entry of [`KINDS`] and one test. Its files lie in one
//! directory and have names of lower-case letters, digits, `-` and `.`, so that a sweep recognises
//! and removes the files of a killed run.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use record::LoopKind;
use serde::{Serialize, Serializer};

use crate::error::LoadError;

mod append;
mod data;
mod durable;
mod folder;
mod metadata;
mod overwrite;
mod save;
mod sync;

pub(crate) use crate::actor::Stopwatch;
use crate::actor::check_block;
pub use overwrite::FSYNC as OVERWRITE_FSYNC;

/// The specification of a task's actor.
#[derive(Debug, Clone, Serialize)]
pub struct TaskSpec {
    /// The kind of task.
    #[serde(serialize_with = "name_of")]
    pub kind: &'static Kind,
    /// An existing, empty directory of its own, on the file system under test.
    #[serde(skip)]
    pub dir: PathBuf,
    /// Bytes written by each operation, 1 to 16 MiB; 0 for a kind whose default is 0.
    pub block_bytes: u32,
    /// Most bytes of each file, of which there is one for each operation in
    /// flight; at least a block. 0 for a kind whose default is 0.
    pub size_bytes: u64,
}

fn name_of<S: Serializer>(kind: &Kind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name)
}

impl PartialEq for Kind {
    fn eq(&self, other: &Kind) -> bool {
        self.name == other.name
    }
}

/// A kind of task.
#[derive(Debug)]
pub struct Kind {
    /// Its name, as users give it, e.g. `append-fsync`.
    pub name: &'static str,
    /// The task's work, in a sentence.
    pub about: &'static str,
    /// The parts that are timed and counted, each a series of the record: at least one.
    pub series: &'static [&'static str],
    /// Bytes written by each operation, unless set; 0: the kind takes no block size.
    pub default_block_bytes: u32,
    /// Most bytes of each file, unless set; 0: the kind takes no size.
    pub default_size_bytes: u64,
    /// When it is done, unless set.
    pub default_arrival: LoopKind,
    /// Prepares the task of one thread, `lane` from 0 on, and makes durable what it prepared; each
    /// lane has a seed of its own. Preparation that takes longer than a moment ends with
    /// [`LoadError::Stopped`] once `stop` is set.
    pub(crate) start: fn(&TaskSpec, lane: u32, seed: u64, stop: &AtomicBool) -> Prepared,
}

/// The task of one thread, ready for its first operation.
pub(crate) type Prepared = Result<Box<dyn Task>, LoadError>;

/// Every kind there is.
pub static KINDS: &[&Kind] = &[
    &append::FSYNC,
    &append::FDATASYNC,
    &overwrite::FSYNC,
    &overwrite::FDATASYNC,
    &save::SAVE,
    &sync::SYNCFS,
    &sync::SYNC,
    &metadata::METADATA,
];

/// The kind of that name.
pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().copied().find(|kind| kind.name == name)
}

/// The work of one thread, over and over.
pub(crate) trait Task: Send {
    /// One operation. Each part that is to be timed and counted goes through
    /// [`Stopwatch::time`]; what isn't should be short, for nobody sees it
    /// hang. After a failure it is called again.
    ///
    /// # Errors
    /// A failed part counts as a failure of its series (once), and so does,
    /// of the first series, any other error.
    fn operate(&mut self, watch: &mut Stopwatch<'_>) -> io::Result<()>;
}

impl Task for Box<dyn Task> {
    fn operate(&mut self, watch: &mut Stopwatch<'_>) -> io::Result<()> {
        (**self).operate(watch)
    }
}

/// A closed loop with one operation in flight: the usual arrival of a program that waits.
const ONE_AFTER_THE_OTHER: LoopKind = LoopKind::Closed { depth: 1 };

/// Most file systems' own block: what a file takes is a multiple of it.
const FILE_SYSTEM_BLOCK: u64 = 4096;

impl TaskSpec {
    /// A task with the defaults of its kind.
    pub fn of(kind: &'static Kind) -> TaskSpec {
        TaskSpec {
            kind,
            dir: PathBuf::new(),
            block_bytes: kind.default_block_bytes,
            size_bytes: kind.default_size_bytes,
        }
    }

    /// Bytes that its files take at most, with so many operations in flight.
    /// Empty files, of which `metadata` has a thousand for each, count as nothing.
    pub fn space_bytes(&self, depth: u32) -> u64 {
        let block = u64::from(self.block_bytes).next_multiple_of(FILE_SYSTEM_BLOCK);
        let each = match (self.bytes_per_op(), self.kind.default_size_bytes) {
            (0, _) => 0,
            // The file of before, and the one that replaces it.
            (_, 0) => 2 * block,
            _ => self.size_bytes,
        };
        each.saturating_mul(u64::from(depth))
    }

    /// Whether every field is in range; else what is wrong.
    pub(crate) fn check(&self, depth: u32) -> Result<(), String> {
        let (name, block) = (self.kind.name, self.block_bytes);
        if self.kind.default_block_bytes == 0 && block != 0 {
            return Err(format!("`{name}` takes no block size: leave it out"));
        }
        if self.kind.default_size_bytes == 0 && self.size_bytes != 0 {
            return Err(format!("`{name}` takes no size: leave it out"));
        }
        if self.kind.default_block_bytes == 0 {
            return Ok(());
        }
        check_block(block, depth)?;
        if self.kind.default_size_bytes != 0 && self.size_bytes < u64::from(block) {
            let size = self.size_bytes;
            return Err(format!(
                "{size} bytes of file hold no block of {block} bytes"
            ));
        }
        Ok(())
    }

    /// Bytes that each operation of a series moves.
    pub(crate) fn bytes_per_op(&self) -> u64 {
        match self.kind.default_block_bytes {
            0 => 0,
            _ => u64::from(self.block_bytes),
        }
    }
}

#[cfg(test)]
mod tests;
