//! Temporary files of sorts and joins.

use ssd::Rng;

use super::{Step, Workload};
use crate::setup::Setup;
use crate::volume::FileId;

/// A file is written, not synced, and removed; then a pause.
#[derive(Debug, Default)]
pub(super) struct Spill {
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
