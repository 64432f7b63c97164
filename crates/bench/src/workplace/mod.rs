//! The files, or regions of a raw device, that a run works on.
//!
//! All of a run's files lie in one directory of its own, so that whatever
//! happens to the run they are recognised and removed.

use std::path::PathBuf;
use std::sync::Arc;

use load::{DeletionSpec, FillSpec};
use record::Part;

use crate::error::BenchError;
use crate::plan::{Place, Plan};
use crate::survey::Survey;

mod device;
mod directory;
mod item;
mod limits;
mod victims;

pub(crate) use limits::allow_open_files;

use device::Device;
use directory::Directory;
use item::Item;

/// Where a run works.
#[derive(Debug)]
pub(crate) enum Workplace {
    Directory(Directory),
    Device(Device),
}

/// Something to be written before the foreground can begin.
#[derive(Debug)]
pub(crate) struct ToFill {
    /// The file; `None` on a raw device.
    item: Option<Item>,
    /// Bytes of data.
    pub(crate) len: u64,
    /// Size of the extents that it is to have.
    pub(crate) extent_bytes: Option<u64>,
}

/// The file or the region that an actor works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkArea {
    /// The first bytes of a file or device.
    Bytes {
        /// The file or device.
        path: PathBuf,
        /// How many.
        len: u64,
    },
    /// A directory of its own.
    Folder(PathBuf),
    /// Nothing at all.
    Nothing,
}

impl Workplace {
    /// Makes the directory, or claims the device.
    pub(crate) fn claim(plan: &Plan, survey: &Survey) -> Result<Workplace, BenchError> {
        match &plan.place {
            Place::Directory(_) => Directory::make(plan, survey).map(Workplace::Directory),
            Place::Device { path, force } => {
                Device::claim(plan, path, *force).map(Workplace::Device)
            }
        }
    }

    /// The files that must be written before the foreground can begin.
    pub(crate) fn to_fill(&self, plan: &Plan) -> Vec<ToFill> {
        match self {
            Workplace::Directory(directory) => directory.to_fill(plan),
            Workplace::Device(device) => device.to_fill(plan).into_iter().collect(),
        }
    }

    /// Makes one of those, still empty, and says how to fill it.
    pub(crate) fn fill(&self, plan: &Plan, wanted: &ToFill) -> Result<FillSpec, BenchError> {
        let (file, path, direct) = match (self, wanted.item) {
            (Workplace::Directory(directory), Some(item)) => {
                let (file, path) = directory.create(item)?;
                (Arc::new(file), path, plan.file.direct)
            }
            (Workplace::Device(device), None) => (device.file(), device.path(), true),
            (Workplace::Directory(_), None) | (Workplace::Device(_), Some(_)) => {
                return Err(BenchError::Plan(
                    "a directory has files, and a raw device has none".to_owned(),
                ));
            }
        };
        Ok(FillSpec {
            file,
            path,
            len: wanted.len,
            direct,
            extent_bytes: wanted.extent_bytes,
            seed: fastrand::u64(..),
        })
    }

    /// Finishes the files once they are written.
    pub(crate) fn filled(&self) -> Result<(), BenchError> {
        match self {
            Workplace::Directory(directory) => directory.filled(),
            Workplace::Device(_) => Ok(()),
        }
    }

    /// The work area of an actor of the plan, by its place there.
    pub(crate) fn work_area(&self, plan: &Plan, actor: usize) -> WorkArea {
        match self {
            Workplace::Directory(directory) => directory.work_area(plan, actor),
            Workplace::Device(_) if plan.actors[actor].work.shares_file() => self.shared(plan),
            Workplace::Device(_) => WorkArea::Nothing,
        }
    }

    /// The work area of the canary: the foreground's file or region.
    pub(crate) fn shared(&self, plan: &Plan) -> WorkArea {
        let path = match self {
            Workplace::Directory(directory) => directory.foreground_path(),
            Workplace::Device(device) => device.path(),
        };
        WorkArea::Bytes {
            path,
            len: plan.file.size_bytes,
        }
    }

    /// The deletion of a part.
    pub(crate) fn deletion(&self, plan: &Plan, part: Part) -> Option<DeletionSpec> {
        let deletion = plan.deletion.as_ref()?;
        match self {
            Workplace::Directory(directory) => Some(directory.deletion(plan, deletion, part)),
            Workplace::Device(device) => Some(device.deletion(deletion)),
        }
    }

    /// The deletion while preparing, so that `fstrim` finds its space; `None` with any other
    /// method.
    pub(crate) fn unlinked_before(&self, plan: &Plan) -> Option<DeletionSpec> {
        match self {
            Workplace::Directory(directory) => directory.unlinked_before(plan),
            Workplace::Device(_) => None,
        }
    }

    /// Removes what a deletion that goes on left behind in a part, for the next part.
    pub(crate) fn clear_up(&self, plan: &Plan) -> Result<(), BenchError> {
        match self {
            Workplace::Directory(directory) => directory.clear_up(plan),
            Workplace::Device(_) => Ok(()),
        }
    }

    /// The directory that fio works in; there is one where the plan has a job for it.
    pub(crate) fn fio(&self) -> Option<PathBuf> {
        match self {
            Workplace::Directory(directory) => Some(directory.fio_path()),
            Workplace::Device(_) => None,
        }
    }

    /// A path on the file system by which it can commit; a raw device has none.
    pub(crate) fn on_file_system(&self) -> Option<PathBuf> {
        match self {
            Workplace::Directory(directory) => Some(directory.path()),
            Workplace::Device(_) => None,
        }
    }

    /// Removes what was made.
    pub(crate) fn leave(self) -> Result<(), BenchError> {
        match self {
            Workplace::Directory(directory) => directory.leave(),
            Workplace::Device(_) => Ok(()),
        }
    }
}
