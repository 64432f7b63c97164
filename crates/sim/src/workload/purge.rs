//! A log whose oldest files are removed together.

use std::collections::VecDeque;
use std::time::Duration;

use ssd::{Rng, Time};

use super::{Step, Workload, prepared};
use crate::setup::Setup;
use crate::volume::{FileId, NoSpace, Volume};

/// Bytes in a log file.
const SEGMENT: u64 = 64 << 20;

#[derive(Debug)]
pub(super) struct LogPurge {
    size: u64,
    pause: Duration,
    segments: VecDeque<FileId>,
    /// Whether the last file written is durable, and whether the pause is over.
    synced: bool,
    rested: bool,
}

impl LogPurge {
    pub(super) fn new(setup: &Setup) -> LogPurge {
        LogPurge {
            size: setup.size,
            pause: setup.pause,
            segments: VecDeque::new(),
            synced: true,
            rested: false,
        }
    }

    fn most(&self) -> usize {
        (self.size / SEGMENT).max(2) as usize
    }
}

impl Workload for LogPurge {
    fn prepare(&mut self, volume: &mut Volume, _: &mut Rng) -> Result<(), NoSpace> {
        for _ in 0..self.most() / 2 {
            self.segments.push_back(prepared(volume, SEGMENT)?);
        }
        Ok(())
    }

    fn next(&mut self, _: Time, _: &mut Rng) -> Step {
        if !std::mem::replace(&mut self.synced, true) {
            return Step::Sync;
        }
        if self.segments.len() >= self.most() {
            let half = self.segments.len() / 2;
            return Step::Delete(self.segments.drain(..half).collect());
        }
        if !std::mem::replace(&mut self.rested, true) {
            return Step::Sleep(self.pause);
        }
        self.rested = false;
        Step::Create(SEGMENT)
    }

    fn made(&mut self, file: FileId) {
        self.segments.push_back(file);
        self.synced = false;
    }
}
