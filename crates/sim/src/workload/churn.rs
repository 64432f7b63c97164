//! Small files that come and go.

use ssd::Rng;

use super::{Step, Workload, prepared};
use crate::setup::Setup;
use crate::volume::{BLOCK, FileId, NoSpace, Volume};

/// Files replaced between two syncs.
const BATCH: u32 = 64;

/// A random file is removed, and one of another size written; after some a sync and a pause.
#[derive(Debug, Default)]
pub(super) struct Churn {
    live: Vec<FileId>,
    batch: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
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
                Step::Create(size(setup, rng))
            }
            State::Sync => {
                self.state = State::Sleep;
                Step::Sync
            }
            State::Sleep => {
                self.state = State::Delete;
                Step::Sleep(setup.pause)
            }
        }
    }

    fn made(&mut self, file: FileId) {
        self.live.push(file);
    }
}
