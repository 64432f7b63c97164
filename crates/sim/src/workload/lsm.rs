//! The compaction of an LSM tree.

use ssd::Rng;

use super::{Step, Workload, prepared};
use crate::setup::Setup;
use crate::volume::{FileId, NoSpace, Volume};

/// Bytes in a table, and tables in a compaction: RocksDB's defaults, near enough.
const TABLE: u64 = 64 << 20;
const MERGED: usize = 8;

/// Eight tables at a random place are merged into eight new ones; when these are durable, the old
/// ones are removed.
#[derive(Debug, Default)]
pub(super) struct Lsm {
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
