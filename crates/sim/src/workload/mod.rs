//! Workloads, which write and delete: each a small chain of steps.

use std::fmt::Debug;
use std::ops::Range;
use std::time::Duration;

use ssd::Rng;

use crate::setup::Setup;
use crate::volume::{FileId, NoSpace, Volume};

mod churn;
mod drop;
mod kind;
mod lsm;
mod purge;
mod spill;

pub use kind::WorkloadKind;

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
                Box::<drop::Drop>::default()
            }
            WorkloadKind::Lsm => Box::<lsm::Lsm>::default(),
            WorkloadKind::LogPurge => Box::<purge::LogPurge>::default(),
            WorkloadKind::Spill => Box::<spill::Spill>::default(),
            WorkloadKind::Churn => Box::<churn::Churn>::default(),
        }
    }
}
