//! Workloads, which write and delete: each a small chain of steps.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::ops::Range;
use std::time::Duration;

use ssd::Rng;

use crate::setup::Setup;
use crate::volume::{BLOCK, FileId, NoSpace, Volume};

/// A step of a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing for so long.
    Sleep(Duration),
    /// Make a file of so many bytes and write it; [`Workload::made`] tells which.
    Create(u64),
    /// Remove files.
    Delete(Vec<FileId>),
    /// Force a commit.
    Sync,
    /// Discard the whole volume, as `mkfs` does, so many bytes with each call.
    DiscardAll(u64),
    /// Wait until the policy has nothing to do any more.
    Drain,
    /// The end.
    Done,
}

/// A source of steps, one after the other.
pub(crate) trait Workload: Debug + Send {
    /// Lays out the files that there are before the run.
    ///
    /// # Errors
    /// If they don't fit.
    fn prepare(
        &mut self,
        _setup: &Setup,
        _volume: &mut Volume,
        _rng: &mut Rng,
    ) -> Result<(), NoSpace> {
        Ok(())
    }

    /// The next step, when the last one is done.
    fn next(&mut self, setup: &Setup, rng: &mut Rng) -> Step;

    /// The file that the last [`Step::Create`] made.
    fn made(&mut self, _file: FileId) {}
}

/// A new file of so many bytes, as if it had been written long ago.
fn prepared(volume: &mut Volume, bytes: u64) -> Result<FileId, NoSpace> {
    let file = volume.create();
    volume.grow(file, bytes)?;
    Ok(file)
}

/// A file whose extents have given lengths in bytes, with a block between two.
fn laid_out(volume: &mut Volume, lengths: &[u64]) -> Result<FileId, NoSpace> {
    let block = crate::volume::BLOCK;
    let mut start = block;
    let mut ranges: Vec<Range<u64>> = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let length = length.div_ceil(block).max(1) * block;
        ranges.push(start..start + length);
        start += length + block;
    }
    if start > volume.bytes() {
        return Err(NoSpace::Full);
    }
    Ok(volume.place(&ranges))
}

impl WorkloadKind {
    /// A workload of this kind.
    pub(crate) fn build(self) -> Box<dyn Workload> {
        match self {
            WorkloadKind::DropFile | WorkloadKind::DropMany | WorkloadKind::Mkfs => {
                Box::<Drop>::default()
            }
            WorkloadKind::Lsm => Box::<Lsm>::default(),
            WorkloadKind::LogPurge => Box::<LogPurge>::default(),
            WorkloadKind::Spill => Box::<Spill>::default(),
            WorkloadKind::Churn => Box::<Churn>::default(),
        }
    }
}

// The workloads by name.

record::kinds! {
    /// A kind of workload.
    pub enum WorkloadKind["workload"] {
        /// One file of `size` is removed.
        DropFile = "drop-file",
        /// `files` files, `size` in all, are removed.
        DropMany = "drop-many",
        /// The volume is discarded in steps of 2 GiB, as mkfs does.
        Mkfs = "mkfs",
        /// An LSM tree of `size`: 8 files of 64 MiB merged, again and again.
        Lsm = "lsm",
        /// Log files of 64 MiB; of `size`, the oldest half is removed.
        LogPurge = "log-purge",
        /// A temporary file of `size` is written and removed.
        Spill = "spill",
        /// `files` small files, `size` in all; one is replaced, again and again.
        Churn = "churn",
    }
}

impl WorkloadKind {
    /// Whether it writes and removes all the time, until `length` is over.
    pub fn is_continuous(self) -> bool {
        !matches!(
            self,
            WorkloadKind::DropFile | WorkloadKind::DropMany | WorkloadKind::Mkfs
        )
    }
}

// Something large is removed once, or discarded by `mkfs`.

/// `mkfs` asks the kernel to discard so much at once (e2fsprogs).
const MKFS_STEP: u64 = 2 << 30;

#[derive(Debug, Default)]
struct Drop {
    files: Vec<FileId>,
    step: usize,
}

impl Workload for Drop {
    fn prepare(&mut self, setup: &Setup, volume: &mut Volume, _: &mut Rng) -> Result<(), NoSpace> {
        let count = match setup.workload {
            WorkloadKind::Mkfs => 0,
            WorkloadKind::DropMany if setup.extents.is_empty() => setup.files,
            _ => 1,
        };
        let each = (setup.size / count.max(1)).max(1);
        for _ in 0..count {
            self.files.push(match setup.extents.is_empty() {
                true => prepared(volume, each)?,
                false => laid_out(volume, &setup.extents)?,
            });
        }
        Ok(())
    }

    fn next(&mut self, setup: &Setup, _: &mut Rng) -> Step {
        self.step += 1;
        match (self.step, setup.workload) {
            (1, _) => Step::Sleep(setup.baseline),
            (2, WorkloadKind::Mkfs) => Step::DiscardAll(MKFS_STEP),
            (2, _) => Step::Delete(std::mem::take(&mut self.files)),
            (3, _) => Step::Sync,
            (4, _) => Step::Drain,
            (5, _) => Step::Sleep(setup.recovery),
            _ => Step::Done,
        }
    }
}

// Temporary files of sorts and joins.

/// A file is written, not synced, and removed; then a pause.
#[derive(Debug, Default)]
struct Spill {
    file: Option<FileId>,
    /// Whether the pause is over.
    paused: bool,
}

impl Workload for Spill {
    fn next(&mut self, setup: &Setup, _: &mut Rng) -> Step {
        if let Some(file) = self.file.take() {
            return Step::Delete(vec![file]);
        }
        if !std::mem::replace(&mut self.paused, true) {
            return Step::Sleep(setup.pause);
        }
        self.paused = false;
        Step::Create(setup.size)
    }

    fn made(&mut self, file: FileId) {
        self.file = Some(file);
    }
}

// A log whose oldest files are removed together.

/// Bytes in a log file.
const SEGMENT: u64 = 64 << 20;

#[derive(Debug, Default)]
struct LogPurge {
    segments: VecDeque<FileId>,
    /// Whether the last file written isn't durable yet, and whether the pause is over.
    is_dirty: bool,
    paused: bool,
}

fn most(setup: &Setup) -> usize {
    (setup.size / SEGMENT).max(2) as usize
}

impl Workload for LogPurge {
    fn prepare(&mut self, setup: &Setup, volume: &mut Volume, _: &mut Rng) -> Result<(), NoSpace> {
        for _ in 0..most(setup) / 2 {
            self.segments.push_back(prepared(volume, SEGMENT)?);
        }
        Ok(())
    }

    fn next(&mut self, setup: &Setup, _: &mut Rng) -> Step {
        if std::mem::take(&mut self.is_dirty) {
            return Step::Sync;
        }
        if self.segments.len() >= most(setup) {
            let half = self.segments.len() / 2;
            return Step::Delete(self.segments.drain(..half).collect());
        }
        if !std::mem::replace(&mut self.paused, true) {
            return Step::Sleep(setup.pause);
        }
        self.paused = false;
        Step::Create(SEGMENT)
    }

    fn made(&mut self, file: FileId) {
        self.segments.push_back(file);
        self.is_dirty = true;
    }
}

// The compaction of an LSM tree.

/// Bytes in a table, and tables in a compaction: RocksDB's defaults, near enough.
const TABLE: u64 = 64 << 20;

const MERGED: usize = 8;

/// Eight tables at a random place are merged into eight new ones; when these are durable, the old
/// ones are removed.
#[derive(Debug, Default)]
struct Lsm {
    tables: Vec<FileId>,
    new: Vec<FileId>,
    state: State,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    Writing,
    Synced,
}

impl Workload for Lsm {
    fn prepare(&mut self, setup: &Setup, volume: &mut Volume, _: &mut Rng) -> Result<(), NoSpace> {
        for _ in 0..(setup.size / TABLE).max(MERGED as u64) {
            self.tables.push(prepared(volume, TABLE)?);
        }
        Ok(())
    }

    fn next(&mut self, setup: &Setup, rng: &mut Rng) -> Step {
        match self.state {
            State::Idle => {
                self.state = State::Writing;
                Step::Sleep(setup.pause)
            }
            State::Writing if self.new.len() < MERGED => Step::Create(TABLE),
            State::Writing => {
                self.state = State::Synced;
                Step::Sync
            }
            State::Synced => {
                self.state = State::Idle;
                let last = self.tables.len() - MERGED;
                let at = rng.below(last as u64 + 1) as usize;
                let new = std::mem::take(&mut self.new);
                Step::Delete(self.tables.splice(at..at + MERGED, new).collect())
            }
        }
    }

    fn made(&mut self, file: FileId) {
        self.new.push(file);
    }
}

// Small files that come and go.

/// Files replaced between two syncs.
const BATCH: u32 = 64;

/// A random file is removed, and one of another size written; after some a sync and a pause.
#[derive(Debug, Default)]
struct Churn {
    live: Vec<FileId>,
    batch: u32,
    state: ChurnState,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum ChurnState {
    #[default]
    Delete,
    Create,
    Sync,
    Sleep,
}

/// Half to one and a half times the mean, in whole blocks.
fn size(setup: &Setup, rng: &mut Rng) -> u64 {
    let blocks = (setup.size / setup.files.max(1)).max(BLOCK) / BLOCK;
    (blocks / 2 + rng.below(blocks + 1)).max(1) * BLOCK
}

impl Workload for Churn {
    fn prepare(
        &mut self,
        setup: &Setup,
        volume: &mut Volume,
        rng: &mut Rng,
    ) -> Result<(), NoSpace> {
        for _ in 0..setup.files.max(1) {
            let size = size(setup, rng);
            self.live.push(prepared(volume, size)?);
        }
        Ok(())
    }

    fn next(&mut self, setup: &Setup, rng: &mut Rng) -> Step {
        match self.state {
            ChurnState::Delete => {
                self.state = ChurnState::Create;
                let at = rng.below(self.live.len() as u64) as usize;
                Step::Delete(vec![self.live.swap_remove(at)])
            }
            ChurnState::Create => {
                self.batch += 1;
                self.state = ChurnState::Delete;
                if self.batch >= BATCH {
                    self.batch = 0;
                    self.state = ChurnState::Sync;
                }
                Step::Create(size(setup, rng))
            }
            ChurnState::Sync => {
                self.state = ChurnState::Sleep;
                Step::Sync
            }
            ChurnState::Sleep => {
                self.state = ChurnState::Delete;
                Step::Sleep(setup.pause)
            }
        }
    }

    fn made(&mut self, file: FileId) {
        self.live.push(file);
    }
}
