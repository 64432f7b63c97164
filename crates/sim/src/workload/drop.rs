//! Something large is removed once, or discarded by `mkfs`.

use ssd::Rng;

use super::{Step, Workload, WorkloadKind, laid_out, prepared};
use crate::setup::Setup;
use crate::volume::{FileId, NoSpace, Volume};

/// `mkfs` asks the kernel to discard so much at once (e2fsprogs).
const MKFS_STEP: u64 = 2 << 30;

#[derive(Debug, Default)]
pub(super) struct Drop {
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
