//! Temporary files of sorts and joins.

use std::time::Duration;

use ssd::{Rng, Time};

use super::{Step, Workload};
use crate::setup::Setup;
use crate::volume::{FileId, NoSpace, Volume};

/// A file is written, not synced, and removed; then a pause.
#[derive(Debug)]
pub(super) struct Spill {
    size: u64,
    pause: Duration,
    file: Option<FileId>,
    rested: bool,
}

impl Spill {
    pub(super) fn new(setup: &Setup) -> Spill {
        Spill {
            size: setup.size,
            pause: setup.pause,
            file: None,
            rested: false,
        }
    }
}

impl Workload for Spill {
    fn prepare(&mut self, _: &mut Volume, _: &mut Rng) -> Result<(), NoSpace> {
        Ok(())
    }

    fn next(&mut self, _: Time, _: &mut Rng) -> Step {
        if let Some(file) = self.file.take() {
            return Step::Delete(vec![file]);
        }
        if !std::mem::replace(&mut self.rested, true) {
            return Step::Sleep(self.pause);
        }
        self.rested = false;
        Step::Create(self.size)
    }

    fn made(&mut self, file: FileId) {
        self.file = Some(file);
    }
}
