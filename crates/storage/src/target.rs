//! The target of a deletion: the stack under a path, and whether deleting there sends discards.
//!
//! ```
//! let found = storage::describe(".")?;
//! for device in found.devices.iter().filter(|device| device.leaf) {
//!     println!("{}: {} bytes", device.name, device.size_bytes);
//! }
//! for note in &found.notes {
//!     println!("{note}");
//! }
//! # Ok::<(), storage::TargetError>(())
//! ```

use std::path::{Path, PathBuf};

use record::{DeviceInfo, DeviceKind, DiscardSetting, Target};
use units::names;

use crate::counter;
use crate::devices::{self, DeviceError, DeviceTree};
use crate::file_system::FileSystem;
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
    /// Sentences for the user: what is odd, and what follows from it.
    pub notes: Vec<String>,
    /// Sentences for the user about how the devices' discards are counted.
    pub counting_notes: Vec<String>,
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
    let mut notes = notes(&mount, upper.as_ref(), setting, &tree);
    notes.extend(tree.notes.iter().cloned());
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
        notes,
        counting_notes: Vec::new(),
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
    let mut notes = tree.notes.clone();
    if setting == DiscardSetting::Unsupported {
        notes.push(no_discards(&tree));
    }
    let mut found = Description {
        target: Target {
            path: path.to_string_lossy().into_owned(),
            discard: setting,
            size_bytes: own.map_or(0, |device| device.size_bytes),
            ..Target::default()
        },
        devices: tree.devices,
        mount: None,
        notes,
        counting_notes: Vec::new(),
    };
    counter::complete(sys, &mut found);
    Ok(found)
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

fn notes(
    mount: &Mount,
    upper: Option<&Mount>,
    setting: DiscardSetting,
    tree: &DeviceTree,
) -> Vec<String> {
    let mut notes = Vec::new();
    let at = names::shown(&mount.mount_point);
    if let Some(upper) = upper {
        notes.push(format!(
            "{at} is an overlay; what is written goes to {} ({} at {})",
            upper.source,
            upper.fs,
            names::shown(&upper.mount_point)
        ));
    }
    if mount.read_only() {
        notes.push(format!("{at} is mounted read-only"));
    }
    match setting {
        DiscardSetting::Off if tree.discards_reach_a_leaf() => notes.push(format!(
            "{at} is mounted without discard: deleting sends none, although the devices below take them"
        )),
        DiscardSetting::Off => notes.push(format!(
            "{at} is mounted without discard, and the devices below would not take any"
        )),
        DiscardSetting::Async if FileSystem::mounted(mount) == FileSystem::Btrfs => notes.push(format!(
            "{at} sends discards in the background (discard=async), by default 120 s after the deletion"
        )),
        DiscardSetting::Async => notes.push(format!(
            "{at} sends discards in the background, when it is idle"
        )),
        DiscardSetting::Unsupported if FileSystem::mounted(mount) == FileSystem::Memory => notes.push(format!(
            "{at} is {}: its files are in memory, and nothing below it takes discards",
            mount.fs
        )),
        DiscardSetting::Unsupported => notes.push(no_discards(tree)),
        DiscardSetting::Unknown => notes.push(format!(
            "whether {} at {at} sends discards can't be told from its options",
            mount.fs
        )),
        DiscardSetting::On => {}
    }
    notes
}

/// Where discards stop, in a sentence.
fn no_discards(tree: &DeviceTree) -> String {
    if !tree.any_leaf_discards() {
        let names: Vec<&str> = tree.leaves().map(|leaf| leaf.name.as_str()).collect();
        return format!(
            "no discards can be sent: {} takes none (discard_max_bytes is 0)",
            names.join(", ")
        );
    }
    let stop = tree
        .devices
        .iter()
        .find(|device| !device.leaf && device.discard.max_bytes == 0);
    match stop {
        Some(device) => format!(
            "discards stop at {} (discard_max_bytes is 0) although what is below takes them{}",
            device.name,
            remedy(device.kind)
        ),
        None => "no discards get through to the devices".to_owned(),
    }
}

fn remedy(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Dm => {
            "; dm-crypt needs the option allow_discards (crypttab: discard), dm-thin discard_passdown"
        }
        DeviceKind::Md => {
            "; RAID 4, 5 and 6 need the module parameter devices_handle_discard_safely of raid456"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests;
