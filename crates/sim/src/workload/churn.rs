//! Small files that come and go.

use std::time::Duration;

use ssd::{Rng, Time};

use super::{Step, Workload, prepared};
use crate::setup::Setup;
use crate::volume::{BLOCK, FileId, NoSpace, Volume};

/// Files replaced between two syncs.
const BATCH: u32 = 64;

/// A random file is removed, and one of another size written; after some a sync and a pause.
#[derive(Debug)]
pub(super) struct Churn {
    files: u64,
    mean: u64,
    pause: Duration,
    live: Vec<FileId>,
    batch: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Delete,
    Create,
    Sync,
    Sleep,
}

impl Churn {
    pub(super) fn new(setup: &Setup) -> Churn {
        let files = setup.files.max(1);
        Churn {
            files,
            mean: (setup.size / files).max(BLOCK),
            pause: setup.pause,
            live: Vec::new(),
            batch: 0,
            state: State::Delete,
        }
    }

    /// Half to one and a half times the mean, in whole blocks.
    fn size(&self, rng: &mut Rng) -> u64 {
        let blocks = self.mean / BLOCK;
        (blocks / 2 + rng.below(blocks + 1)).max(1) * BLOCK
    }
}

impl Workload for Churn {
    fn prepare(&mut self, volume: &mut Volume, rng: &mut Rng) -> Result<(), NoSpace> {
        for _ in 0..self.files {
            let size = self.size(rng);
            self.live.push(prepared(volume, size)?);
        }
        Ok(())
    }

    fn next(&mut self, _: Time, rng: &mut Rng) -> Step {
        match self.state {
            State::Delete => {
                self.state = State::Create;
                let at = rng.below(self.live.len() as u64) as usize;
                Step::Delete(vec![self.live.swap_remove(at)])
            }
            State::Create => {
                self.batch += 1;
                self.state = State::Delete;
                if self.batch >= BATCH {
                    self.batch = 0;
                    self.state = State::Sync;
                }
                Step::Create(self.size(rng))
            }
            State::Sync => {
                self.state = State::Sleep;
                Step::Sync
            }
            State::Sleep => {
                self.state = State::Delete;
                Step::Sleep(self.pause)
            }
        }
    }

    fn made(&mut self, file: FileId) {
        self.live.push(file);
    }
}
