//! The files, or regions of a raw device, that a run works on.
//!
//! All of a run's files lie in one directory of its own, so that whatever
//! happens to the run they are recognised and removed.

use std::fs::File;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::sync::Arc;

use linux::files::Caching;
use linux::owner::{Name, WorkDir};
use linux::raw::RawDevice;
use load::{DeletionSpec, FillSpec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use timeline::record::Part;

use crate::error::BenchError;
use crate::kept;
use crate::plan::{Control, Deletion, Method, Place, Plan};
use crate::survey::Survey;

/// Files begin and regions are cut at multiples of this, so that every block
/// size and discard granularity in use fits.
const ALIGNMENT: u64 = 1 << 20;

/// Where a run works.
#[derive(Debug)]
pub(crate) enum Workplace {
    Directory(Directory),
    Device(Device),
}

/// A directory of the run's own on a mounted file system.
#[derive(Debug)]
pub(crate) struct Directory {
    parent: PathBuf,
    work: WorkDir,
    foreground: Foreground,
    /// Deleted in the main part.
    main: Vec<Name>,
    /// Deleted in the control.
    control: Vec<Name>,
}

/// The foreground's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foreground {
    /// Made by this run, and left behind if it is to be kept.
    Made,
    /// Left behind by an earlier one.
    Reused,
}

/// A raw device: the foreground's region first, then the one to discard.
#[derive(Debug)]
pub(crate) struct Device {
    path: PathBuf,
    file: Arc<File>,
    /// Keeps everybody else off the device.
    _claim: RawDevice,
    discard_from: u64,
}

/// Something to be written before the foreground can begin.
#[derive(Debug)]
pub(crate) struct ToFill {
    /// The file; `None` on a raw device.
    name: Option<Name>,
    /// Bytes of data.
    pub(crate) len: u64,
    /// Size of the extents that it is to have.
    pub(crate) extent_bytes: Option<u64>,
}

impl Workplace {
    /// Makes the directory, or claims the device.
    pub(crate) fn claim(plan: &Plan, survey: &Survey) -> Result<Workplace, BenchError> {
        match &plan.place {
            Place::Directory(_) => Directory::make(plan, survey).map(Workplace::Directory),
            Place::Device { path, overwrite } => {
                let device = RawDevice::claim(path, overwrite)?;
                let file = Arc::new(device.open(Caching::Direct)?);
                Ok(Workplace::Device(Device {
                    path: path.clone(),
                    file,
                    _claim: device,
                    discard_from: plan.foreground.size_bytes.next_multiple_of(ALIGNMENT),
                }))
            }
        }
    }

    /// What has to be written before the foreground can begin.
    pub(crate) fn to_fill(&self, plan: &Plan) -> Vec<ToFill> {
        match self {
            Workplace::Directory(directory) => directory.to_fill(plan),
            Workplace::Device(device) => vec![device.to_fill(plan)],
        }
    }

    /// Makes one of those, still empty, and says how to fill it.
    pub(crate) fn fill(&self, plan: &Plan, wanted: &ToFill) -> Result<FillSpec, BenchError> {
        let (file, path, direct) = match (self, wanted.name) {
            (Workplace::Directory(directory), Some(name)) => (
                Arc::new(directory.work.create_file(name, Caching::Buffered)?),
                directory.work.path_of(name),
                plan.foreground.direct,
            ),
            (Workplace::Device(device), None) => {
                (Arc::clone(&device.file), device.path.clone(), true)
            }
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
    pub(crate) fn filled(&self, plan: &Plan) -> Result<(), BenchError> {
        match self {
            Workplace::Directory(directory) => directory.filled(plan),
            Workplace::Device(_) => Ok(()),
        }
    }

    /// The file, or device, that the foreground works on.
    pub(crate) fn foreground(&self) -> PathBuf {
        match self {
            Workplace::Directory(directory) => directory.foreground_path(),
            Workplace::Device(device) => device.path.clone(),
        }
    }

    /// What is deleted in a part.
    pub(crate) fn deletion(&self, plan: &Plan, part: Part) -> Option<DeletionSpec> {
        let deletion = plan.deletion.as_ref()?;
        Some(match self {
            Workplace::Directory(directory) => {
                let names = match part {
                    Part::Main => &directory.main,
                    Part::Control => &directory.control,
                };
                let paths = names.iter().map(|&name| directory.work.path_of(name));
                directory_deletion(&deletion.method, paths.collect())?
            }
            Workplace::Device(device) => device.deletion(deletion)?,
        })
    }

    /// A path on the file system that can be told to commit; a raw device has none.
    pub(crate) fn on_file_system(&self) -> Option<PathBuf> {
        match self {
            Workplace::Directory(directory) => Some(directory.work.path().to_path_buf()),
            Workplace::Device(_) => None,
        }
    }

    /// Removes what was made; a completed run may leave the foreground's file where it was asked to.
    pub(crate) fn leave(self, plan: &Plan, completed: bool) -> Result<(), BenchError> {
        match self {
            Workplace::Directory(directory) => directory.leave(plan.foreground.keep && completed),
            Workplace::Device(_) => Ok(()),
        }
    }
}

impl Directory {
    fn make(plan: &Plan, survey: &Survey) -> Result<Directory, BenchError> {
        let parent = survey.place.path().to_path_buf();
        allow_open_files(plan)?;
        let work = WorkDir::create(&parent)?;
        let files = plan.deletion.as_ref().map_or(0, |deletion| deletion.files);
        let control = match plan.control {
            None => Vec::new(),
            Some(Control::SecondName) => (1..=files).map(Name::Second).collect(),
            Some(Control::Nodiscard) => (files + 1..=2 * files).map(Name::Victim).collect(),
        };
        let reused = survey.reuses(plan);
        Ok(Directory {
            parent,
            work,
            foreground: if reused {
                Foreground::Reused
            } else {
                Foreground::Made
            },
            main: (1..=files).map(Name::Victim).collect(),
            control,
        })
    }

    fn foreground_path(&self) -> PathBuf {
        match self.foreground {
            Foreground::Made => self.work.path_of(Name::Foreground),
            Foreground::Reused => kept::path(&self.parent),
        }
    }

    fn to_fill(&self, plan: &Plan) -> Vec<ToFill> {
        let mut wanted = Vec::new();
        if self.foreground == Foreground::Made {
            wanted.push(ToFill {
                name: Some(Name::Foreground),
                len: plan.foreground.size_bytes,
                extent_bytes: None,
            });
        }
        let Some(deletion) = &plan.deletion else {
            return wanted;
        };
        let made_for_control = match plan.control {
            Some(Control::Nodiscard) => &self.control[..],
            Some(Control::SecondName) | None => &[],
        };
        let victims = made_for_control.iter().chain(&self.main);
        wanted.extend(victims.map(|&name| ToFill {
            name: Some(name),
            len: deletion.file_bytes(),
            extent_bytes: deletion.extent_bytes,
        }));
        wanted
    }

    fn filled(&self, plan: &Plan) -> Result<(), BenchError> {
        if plan.control == Some(Control::SecondName) {
            for (&first, &second) in self.main.iter().zip(&self.control) {
                self.work.link(first, second)?;
            }
        }
        if plan.foreground.keep && self.foreground == Foreground::Made {
            let path = self.foreground_path();
            linux::files::open_write(&path, Caching::Buffered)
                .map_err(BenchError::from)
                .and_then(|file| {
                    kept::mark(&file, plan.foreground.size_bytes).map_err(|source| {
                        BenchError::File {
                            path,
                            what: "mark it for a later run",
                            source,
                        }
                    })
                })?;
        }
        Ok(())
    }

    fn leave(self, keep: bool) -> Result<(), BenchError> {
        if keep && self.foreground == Foreground::Made {
            let path = kept::path(&self.parent);
            // One of ours that was too small, or not wanted; anybody else's stays.
            if kept::size(&self.parent).is_some() {
                std::fs::remove_file(&path).map_err(|source| BenchError::File {
                    path: path.clone(),
                    what: "replace it",
                    source,
                })?;
            }
            self.work.keep(Name::Foreground, &path)?;
        }
        Ok(self.work.remove()?)
    }
}

impl Device {
    /// Both regions at once: they touch.
    fn to_fill(&self, plan: &Plan) -> ToFill {
        let discarded = plan.deletion.as_ref().map_or(0, |d| d.size_bytes);
        ToFill {
            name: None,
            len: self.discard_from + discarded,
            extent_bytes: None,
        }
    }

    fn deletion(&self, deletion: &Deletion) -> Option<DeletionSpec> {
        let Method::Discard { step_bytes } = deletion.method else {
            return None;
        };
        Some(DeletionSpec::Discard {
            device: Arc::clone(&self.file),
            path: self.path.clone(),
            start: self.discard_from,
            len: deletion.size_bytes,
            step_bytes: NonZeroU64::new(step_bytes)?,
        })
    }
}

/// Files that a run has open beside those that keep extents apart, and some to spare.
const OTHER_FILES: u64 = 256;

/// Each fragmented file has another beside it open until the end: allows that many.
pub(crate) fn allow_open_files(plan: &Plan) -> Result<(), BenchError> {
    let Some(deletion) = plan.deletion.as_ref().filter(|d| d.extent_bytes.is_some()) else {
        return Ok(());
    };
    let copies = if plan.control == Some(Control::Nodiscard) {
        2
    } else {
        1
    };
    let needed = u64::from(deletion.files) * copies + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let enough = limit.maximum.is_none_or(|most| most >= needed);
    if enough && setrlimit(Resource::Nofile, raised).is_ok() {
        return Ok(());
    }
    Err(BenchError::Plan(format!(
        "--extent-size needs {needed} open files for that many --files, and the limit is {}: \
         lower --files or raise the limit (ulimit -n)",
        limit.maximum.unwrap_or(needed),
    )))
}

fn directory_deletion(method: &Method, paths: Vec<PathBuf>) -> Option<DeletionSpec> {
    Some(match method {
        Method::Unlink { parallel } => DeletionSpec::Unlink {
            paths,
            parallel: NonZeroU32::new(*parallel)?,
        },
        Method::Truncate {
            chunk_bytes,
            sleep,
            fsync,
        } => DeletionSpec::Truncate {
            paths,
            chunk_bytes: NonZeroU64::new(*chunk_bytes)?,
            sleep: *sleep,
            fsync: *fsync,
        },
        Method::Command { argv } => DeletionSpec::Command {
            argv: argv.iter().map(Into::into).collect(),
            paths,
        },
        Method::Discard { .. } => return None,
    })
}
