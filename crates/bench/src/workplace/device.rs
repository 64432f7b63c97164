//! A raw device: the foreground's region first, then the one to discard.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linux::files::Caching;
use load::DeletionSpec;
use load::deleter::{self, Files};
use storage::raw::RawDevice;

use super::ToFill;
use crate::error::BenchError;
use crate::plan::{Deletion, Plan};

/// Regions are cut at multiples of this, so that every block size and discard
/// granularity in use fits.
const ALIGNMENT: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Device {
    path: PathBuf,
    file: Arc<File>,
    /// Keeps everybody else off the device.
    _claim: RawDevice,
    discard_from: u64,
}

impl Device {
    pub(super) fn claim(plan: &Plan, path: &Path, force: bool) -> Result<Device, BenchError> {
        let claim = RawDevice::claim(path, force)?;
        let file = Arc::new(claim.open(Caching::Direct)?);
        let foreground = if plan.needs_file() {
            plan.file.size_bytes
        } else {
            0
        };
        Ok(Device {
            path: path.to_path_buf(),
            file,
            _claim: claim,
            discard_from: foreground.next_multiple_of(ALIGNMENT),
        })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    pub(super) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Both regions at once: they touch.
    pub(super) fn to_fill(&self, plan: &Plan) -> Option<ToFill> {
        let discarded = plan.deletion.as_ref().map_or(0, |d| d.size_bytes);
        let len = self.discard_from + discarded;
        (len > 0).then_some(ToFill {
            item: None,
            len,
            extent_bytes: None,
        })
    }

    pub(super) fn deletion(&self, deletion: &Deletion) -> DeletionSpec {
        DeletionSpec {
            method: deletion.method.clone(),
            files: Files {
                device: Some(deleter::Device {
                    file: Arc::clone(&self.file),
                    path: self.path.clone(),
                    start: self.discard_from,
                }),
                size_bytes: deletion.size_bytes,
                ..Files::default()
            },
        }
    }
}
