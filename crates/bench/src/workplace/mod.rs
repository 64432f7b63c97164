//! The files, or regions of a raw device, that a run works on.
//!
//! All of a run's files lie in one directory of its own, so that whatever
//! happens to the run they are recognised and removed.

use std::path::PathBuf;
use std::sync::Arc;

use device::Device;
use directory::Directory;
use linux::files::allow_most_open;
use load::{DeletionSpec, FillSpec};
use record::Part;
use victims::Item;

use crate::error::BenchError;
use crate::plan::{Method, Place, Plan, Work};
use crate::survey::Survey;

mod device;
mod directory;
mod victims;

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

/// Files that a run has open in any case, and some to spare.
const OTHER_FILES: u64 = 256;
/// Files that each thread of a task may have open: the one it writes, its
/// directory, and what it has just replaced.
const OF_A_TASK: u64 = 4;

/// Allows as many open files as the plan needs.
///
/// # Errors
/// When the system doesn't.
pub(crate) fn allow_open_files(plan: &Plan) -> Result<(), BenchError> {
    let needed = needed(plan);
    let limit = match allow_most_open() {
        Some(limit) if limit < needed => limit,
        _ => return Ok(()),
    };
    Err(BenchError::Plan(if spacers(plan) > 0 {
        format!(
            "deletion.extent-size needs {needed} open files for that many --files, and the limit is \
             {limit}: lower --files or raise the limit (ulimit -n)"
        )
    } else {
        format!(
            "the run needs {needed} open files, and the limit is {limit}: raise the limit \
             (ulimit -n), or lower the depth of tasks that have files of their own"
        )
    }))
}

fn needed(plan: &Plan) -> u64 {
    let of_actors = plan.actors.iter().map(|actor| match actor.work {
        Work::Task(_) => u64::from(actor.arrival.depth()) * OF_A_TASK,
        Work::Blocks(_) => 1,
    });
    let of_deletion = match plan.deletion.as_ref().map(|d| &d.method) {
        Some(Method::Spill(spill)) => u64::from(spill.parallel),
        _ => 0,
    };
    OTHER_FILES + spacers(plan) + of_actors.sum::<u64>() + of_deletion
}

/// Each fragmented file has another beside it open until the end.
fn spacers(plan: &Plan) -> u64 {
    let Some(deletion) = plan.deletion.as_ref().filter(|d| d.extent_bytes.is_some()) else {
        return 0;
    };
    u64::from(deletion.files * plan.control.deletions())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Control, LoopKind, TaskSpec, Unlink, example, example_deletion};

    #[test]
    fn what_keeps_files_open_counts() {
        let mut plan = example();
        let few = needed(&plan);
        let deletion = example_deletion(Unlink { parallel: 1 });
        plan.deletion = Some(deletion.clone());
        assert_eq!(needed(&plan), few, "unlinking opens nothing");
        plan.deletion.as_mut().unwrap().extent_bytes = Some(4096);
        assert_eq!(needed(&plan), few + 4);
        plan.control = Control::Nodiscard;
        assert_eq!(needed(&plan), few + 8);
        plan.actors[0].work = Work::Task(TaskSpec::of(load::task::KINDS[0]));
        plan.actors[0].arrival = LoopKind::Closed { depth: 100 };
        assert!(needed(&plan) >= few + 8 + 100);
    }
}
