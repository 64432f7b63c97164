//! The target of a deletion: the stack under a path, and whether deleting there sends discards.
//!
//! ```
//! let found = storage::describe(".")?;
//! for device in found.devices.iter().filter(|device| device.leaf) {
//!     println!("{}: {} bytes", device.name, device.size_bytes);
//! }
//! for warning in &found.warnings {
//!     println!("{warning}");
//! }
//! # Ok::<(), storage::TargetError>(())
//! ```

use std::path::{Path, PathBuf};

use record::units::names;
use record::{DeviceInfo, DiscardSetting, Origin, Target};

use crate::counter;
use crate::devices::{self, DeviceError, DeviceTree};
use crate::faults;
use crate::file_system::FileSystem;
use crate::warning::Warning;
use linux::SysRoot;
use linux::mounts::{Mount, MountError};
use linux::space::{Space, SpaceError};

/// A target, with the devices under it and what deserves saying about them.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// For the record's head.
    pub target: Target,
    /// For the record's head: level 0 first, each device once.
    pub devices: Vec<DeviceInfo>,
    /// The mount that holds the path; `None` for a raw device.
    pub mount: Option<Mount>,
    /// Warnings about the target.
    pub warnings: Vec<Warning>,
    /// Warnings about how the devices' discards are counted.
    pub counting_warnings: Vec<Warning>,
}

impl Description {
    /// The warning that discards harm an md array here.
    pub fn fault(&self) -> Option<&Warning> {
        let is_fault = |one: &&Warning| matches!(one, Warning::Faulty { .. });
        self.warnings.iter().find(is_fault)
    }

    /// The warning that discards can crash this kernel. `place` is what was to be discarded, and
    /// `instead` advises what does it all the same.
    ///
    /// # Errors
    /// [`Harm`] where they destroy data.
    pub fn unless_harmful(
        &self,
        place: &str,
        instead: &'static str,
    ) -> Result<Option<Warning>, Harm> {
        match self.fault() {
            Some(Warning::Faulty {
                destroys_data: true,
                ..
            }) => Err(Harm {
                place: place.to_owned(),
                fault: self.fault().map(ToString::to_string).unwrap_or_default(),
                instead,
            }),
            fault => Ok(fault.cloned()),
        }
    }
}

/// Discards destroy data in a place.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{place}: {fault}. If this kernel's changelog names the fix, {instead}")]
pub struct Harm {
    place: String,
    fault: String,
    instead: &'static str,
}

/// Why a target can't be described.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TargetError {
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error(transparent)]
    Space(#[from] SpaceError),
    #[error(transparent)]
    Device(#[from] DeviceError),
    #[error("{} is not a block device", names::shown(_0))]
    NotADevice(PathBuf),
}

/// Describes the mounted file system that holds `path`, with how its devices count discards.
///
/// # Errors
/// When the path, its mount or its space can't be examined.
pub fn describe(path: impl AsRef<Path>) -> Result<Description, TargetError> {
    let path = path.as_ref();
    let sys = SysRoot::host();
    let mount = Mount::of_in(&sys, path)?;
    let space = Space::of(path)?;
    Ok(describe_mount(&sys, path, mount, space))
}

/// Describes the file system of a mount that was already looked up.
pub fn describe_mount(sys: &SysRoot, path: &Path, mount: Mount, space: Space) -> Description {
    let tree = devices::under_mount(sys, &mount);
    let upper = (FileSystem::mounted(&mount) == FileSystem::Overlay)
        .then(|| devices::upper_mount(sys, &mount))
        .flatten();
    // What is written to an overlay is freed on its upper file system.
    let setting = {
        let written = upper.as_ref().unwrap_or(&mount);
        FileSystem::mounted(written).discard_setting(written)
    };
    let setting = reaching(setting, &tree);
    let mut warnings = warnings(&mount, upper.as_ref(), setting, &tree);
    warnings.extend(tree.warnings);
    warnings.extend(faults::warning(sys, &tree.devices));
    let mut found = Description {
        target: Target {
            path: path.to_string_lossy().into_owned(),
            mount: Some(mount.mount_point.to_string_lossy().into_owned()),
            source: Some(mount.source.clone()),
            fs: Some(mount.fs.clone()),
            options: mount.options(),
            discard: setting,
            size_bytes: space.size_bytes,
            available_bytes: Some(space.available_bytes),
            discards_at_most: None,
        },
        devices: tree.devices,
        mount: Some(mount),
        warnings,
        counting_warnings: Vec::new(),
    };
    counter::complete(sys, &mut found);
    found
}

/// Describes a raw block device by its path, e.g. `/dev/sdb`, with how it and what is below it
/// count discards. Opens nothing.
///
/// # Errors
/// When the path is no block device.
pub fn describe_device(path: impl AsRef<Path>) -> Result<Description, TargetError> {
    describe_device_in(&SysRoot::host(), path.as_ref())
}

/// [`describe_device`] for a device of any tree.
///
/// # Errors
/// When the path is no block device.
pub fn describe_device_in(sys: &SysRoot, path: &Path) -> Result<Description, TargetError> {
    let name = sys
        .device_at(path)
        .ok_or_else(|| TargetError::NotADevice(path.to_path_buf()))?;
    let tree = devices::under_device(sys, &name)?;
    let own = tree.devices.first();
    let setting = reaching(DiscardSetting::On, &tree);
    let mut warnings = tree.warnings.clone();
    if setting == DiscardSetting::Unsupported {
        warnings.push(no_discards(&tree));
    }
    warnings.extend(faults::warning(sys, &tree.devices));
    let mut found = Description {
        target: Target {
            path: path.to_string_lossy().into_owned(),
            discard: setting,
            size_bytes: own.map_or(0, |device| device.size_bytes),
            ..Target::default()
        },
        devices: tree.devices,
        mount: None,
        warnings,
        counting_warnings: Vec::new(),
    };
    counter::complete(sys, &mut found);
    Ok(found)
}

/// Returns the origin of this run's results, with the stack and drives under each path or device. Paths
/// that can't be described are left out.
pub fn origin(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Origin {
    let mut origin = linux::host::origin(&SysRoot::host());
    for path in paths {
        let found = describe_device(&path).or_else(|_| describe(&path));
        if let Ok(found) = found {
            origin.add(&found.target, &found.devices);
        }
    }
    origin
}

/// A setting that counts on devices below, as far as those take discards.
fn reaching(setting: DiscardSetting, tree: &DeviceTree) -> DiscardSetting {
    match setting {
        DiscardSetting::On | DiscardSetting::Async
            if !tree.devices.is_empty() && !tree.discards_reach_a_leaf() =>
        {
            DiscardSetting::Unsupported
        }
        other => other,
    }
}

fn warnings(
    mount: &Mount,
    upper: Option<&Mount>,
    setting: DiscardSetting,
    tree: &DeviceTree,
) -> Vec<Warning> {
    let at = mount.mount_point.clone();
    let fs = mount.fs.clone();
    let rules = FileSystem::mounted(mount);
    let overlay = upper.map(|upper| Warning::Overlay {
        at: at.clone(),
        upper: upper.source.clone(),
        upper_fs: upper.fs.clone(),
        upper_at: upper.mount_point.clone(),
    });
    let read_only = mount.read_only().then(|| Warning::ReadOnly(at.clone()));
    let sent = match setting {
        DiscardSetting::On => None,
        DiscardSetting::Off => Some(Warning::WithoutDiscard {
            at,
            taken: tree.discards_reach_a_leaf(),
        }),
        DiscardSetting::Async if rules == FileSystem::Btrfs => {
            Some(Warning::Later { at, after_s: 120 })
        }
        DiscardSetting::Async => Some(Warning::WhenIdle(at)),
        DiscardSetting::Unsupported if rules == FileSystem::Memory => {
            Some(Warning::InMemory { at, fs })
        }
        DiscardSetting::Unsupported => Some(no_discards(tree)),
        DiscardSetting::Unknown => Some(Warning::UnknownSetting { at, fs }),
    };
    [overlay, read_only, sent].into_iter().flatten().collect()
}

/// Where discards stop.
fn no_discards(tree: &DeviceTree) -> Warning {
    if !tree.any_leaf_discards() {
        return Warning::NoneTaken(tree.leaves().map(|leaf| leaf.name.clone()).collect());
    }
    let mut devices = tree.devices.iter();
    let stop = devices.find(|device| !device.leaf && device.discard.max_bytes == 0);
    stop.map_or(Warning::NotThrough, |device| Warning::Stopped {
        device: device.name.clone(),
        kind: device.kind,
    })
}

#[cfg(test)]
mod tests;
