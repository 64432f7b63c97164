//! A log whose oldest files are removed together.

use std::collections::VecDeque;

use ssd::Rng;

use super::{Step, Workload, prepared};
use crate::setup::Setup;
use crate::volume::{FileId, NoSpace, Volume};

/// Bytes in a log file.
const SEGMENT: u64 = 64 << 20;

#[derive(Debug, Default)]
pub(super) struct LogPurge {
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
