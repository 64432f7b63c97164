//! Something large is removed once, or discarded by `mkfs`.

use std::time::Duration;

use ssd::{Rng, Time};

use super::{Step, Workload, WorkloadKind, laid_out, prepared};
use crate::setup::Setup;
use crate::volume::{FileId, NoSpace, Volume};

/// `mkfs` asks the kernel to discard so much at once (e2fsprogs).
const MKFS_STEP: u64 = 2 << 30;

#[derive(Debug)]
pub(super) struct Drop {
    kind: WorkloadKind,
    size: u64,
    files: u64,
    extents: Vec<u64>,
    baseline: Duration,
    recovery: Duration,
    victims: Vec<FileId>,
    step: usize,
}

impl Drop {
    pub(super) fn new(kind: WorkloadKind, setup: &Setup) -> Drop {
        Drop {
            kind,
            size: setup.size,
            files: match kind {
                WorkloadKind::DropMany => setup.files,
                _ => 1,
            },
            extents: setup.extents.clone(),
            baseline: setup.baseline,
            recovery: setup.recovery,
            victims: Vec::new(),
            step: 0,
        }
    }
}

impl Workload for Drop {
    fn prepare(&mut self, volume: &mut Volume, _: &mut Rng) -> Result<(), NoSpace> {
        if self.kind == WorkloadKind::Mkfs {
            return Ok(());
        }
        if !self.extents.is_empty() {
            self.victims.push(laid_out(volume, &self.extents)?);
            return Ok(());
        }
        let each = (self.size / self.files.max(1)).max(1);
        for _ in 0..self.files {
            self.victims.push(prepared(volume, each)?);
        }
        Ok(())
    }

    fn next(&mut self, _: Time, _: &mut Rng) -> Step {
        self.step += 1;
        match (self.step, self.kind) {
            (1, _) => Step::Sleep(self.baseline),
            (2, WorkloadKind::Mkfs) => Step::DiscardAll(MKFS_STEP),
            (2, _) => Step::Delete(std::mem::take(&mut self.victims)),
            (3, _) => Step::Sync,
            (4, _) => Step::Drain,
            (5, _) => Step::Sleep(self.recovery),
            _ => Step::Done,
        }
    }
}
