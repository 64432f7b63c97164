//! The block devices under a mount, from its own down to the leaves.
//!
//! The kernel counts discards at each device it passes them to. It does not count them at md, nor
//! at both a drive and its partition. So the tree must be known before counters mean anything. A
//! partition stands for its drive here: it has counters of its own, and the drive's limits and
//! model.

mod read;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use record::{DeviceInfo, DiscardSetting};

use crate::file_system::FileSystem;
use crate::warning::Warning;
use linux::SysRoot;
use linux::mounts::Mount;
use linux::sysroot::{devices_in, entries};

/// The source of a mount that holds a simulated drive's file (`trimbench lab`). A loop device over
/// that file is the drive, and nothing lies below.
const SIMULATED: &str = "trimbench-lab";

/// A device tree deeper than this counts as a loop of loops.
const MAX_LEVEL: u32 = 16;

/// The block devices under something, flattened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeviceTree {
    /// The devices, level 0 first, each once.
    pub devices: Vec<DeviceInfo>,
    /// Warnings about them.
    pub warnings: Vec<Warning>,
}

/// Why a device tree is unknown.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// Not the name of a block device of this machine.
    #[error("{0} is not a block device that /sys/class/block knows; is /sys mounted?")]
    Unknown(String),
}

impl DeviceTree {
    /// The devices that nothing is below: those whose counters tell what
    /// reached the hardware.
    pub fn leaves(&self) -> impl Iterator<Item = &DeviceInfo> {
        self.devices.iter().filter(|device| device.leaf)
    }

    /// Whether any leaf takes discards now (`discard_max_bytes` above 0).
    pub fn any_leaf_discards(&self) -> bool {
        self.leaves().any(|leaf| leaf.discard.max_bytes > 0)
    }

    /// Whether discards get through: every level above some leaf that takes
    /// them takes them too. dm-crypt without `allow_discards` is where they stop.
    pub fn discards_reach_a_leaf(&self) -> bool {
        let open = |device: &DeviceInfo| device.discard.max_bytes > 0;
        let by_name: HashMap<&str, &DeviceInfo> = self
            .devices
            .iter()
            .map(|device| (device.name.as_str(), device))
            .collect();
        let mut queue: Vec<&DeviceInfo> = self.devices.iter().filter(|d| d.level == 0).collect();
        let mut seen = HashSet::new();
        while let Some(device) = queue.pop() {
            if !open(device) || !seen.insert(device.name.as_str()) {
                continue;
            }
            if device.leaf {
                return true;
            }
            queue.extend(
                device
                    .below
                    .iter()
                    .filter_map(|name| by_name.get(name.as_str())),
            );
        }
        false
    }
}

/// The tree under a mount. Empty, with a warning, where no known block device is under it (tmpfs,
/// network, ZFS).
pub fn under_mount(sys: &SysRoot, mount: &Mount) -> DeviceTree {
    let mut walk = Walk::new(sys);
    let tops = walk.devices_of_mount(mount);
    walk.run(tops)
}

/// The tree under one block device, by its kernel name.
///
/// # Errors
/// [`DeviceError::Unknown`] when there is no such device.
pub fn under_device(sys: &SysRoot, name: &str) -> Result<DeviceTree, DeviceError> {
    if !sys.class(name).join("dev").exists() {
        return Err(DeviceError::Unknown(name.to_owned()));
    }
    Ok(Walk::new(sys).run(vec![name.to_owned()]))
}

/// Breadth first, so that each device is entered at its highest level.
struct Walk<'a> {
    sys: &'a SysRoot,
    warnings: Vec<Warning>,
}

impl<'a> Walk<'a> {
    fn new(sys: &'a SysRoot) -> Self {
        Walk {
            sys,
            warnings: Vec::new(),
        }
    }

    fn run(mut self, tops: Vec<String>) -> DeviceTree {
        let mut devices: Vec<DeviceInfo> = Vec::new();
        let mut seen: HashSet<String> = HashSet::new();
        let mut level = 0;
        let mut names = tops;
        while !names.is_empty() && level < MAX_LEVEL {
            let mut next = Vec::new();
            for name in names {
                if !seen.insert(name.clone()) {
                    continue;
                }
                let below = self.below(&name);
                next.extend(below.iter().cloned());
                devices.push(read::device(self.sys, &name, level, below));
            }
            names = next;
            level += 1;
        }
        DeviceTree {
            devices,
            warnings: self.warnings,
        }
    }

    /// Kernel names of the devices right below.
    fn below(&mut self, name: &str) -> Vec<String> {
        let directory = self.whole(name);
        let backing = directory.join("loop/backing_file");
        if let Ok(file) = linux::sysroot::text(&backing) {
            return self.below_file(name, file.trim_end_matches('\n'));
        }
        // Partitions of md, dm and the like: their whole device has the slaves.
        devices_in(&directory.join("slaves"))
    }

    /// The directory of the whole device: the parent's for a partition.
    fn whole(&self, name: &str) -> PathBuf {
        let directory = self.sys.class(name);
        let directory = fs::canonicalize(&directory).unwrap_or(directory);
        if directory.join("partition").exists() {
            directory
                .parent()
                .map(Path::to_path_buf)
                .unwrap_or(directory)
        } else {
            directory
        }
    }

    /// The devices that hold a loop device's file.
    fn below_file(&mut self, name: &str, file: &str) -> Vec<String> {
        if let Some(device) = self.sys.device_at(file) {
            return vec![device];
        }
        if let Some(deleted) = file.strip_suffix(" (deleted)") {
            self.warnings.push(Warning::FileDeleted {
                device: name.to_owned(),
                file: deleted.to_owned(),
            });
            return Vec::new();
        }
        match Mount::of_in(self.sys, file) {
            Ok(mount) => {
                let below = self.devices_of_mount(&mount);
                if !below.is_empty()
                    && FileSystem::mounted(&mount).discard_setting(&mount) == DiscardSetting::Off
                {
                    self.warnings.push(Warning::OnlyHoles {
                        device: name.to_owned(),
                        file: file.to_owned(),
                        at: mount.mount_point.clone(),
                    });
                }
                below
            }
            Err(error) => {
                self.warnings.push(Warning::UnknownBelow {
                    device: name.to_owned(),
                    why: error.to_string(),
                });
                Vec::new()
            }
        }
    }

    /// The devices that a mount's file system is on.
    fn devices_of_mount(&mut self, mount: &Mount) -> Vec<String> {
        if !mount.device.is_anonymous()
            && let Some(name) = self.sys.device_name(mount.device)
        {
            return vec![name];
        }
        let sources: Vec<String> = mount
            .source
            .split(':') // bcachefs names all its devices
            .filter_map(|source| self.sys.device_at(source))
            .collect();
        let fs = FileSystem::mounted(mount);
        if fs == FileSystem::Btrfs {
            return btrfs_devices(self.sys, &sources).unwrap_or(sources);
        }
        if fs == FileSystem::Overlay {
            return self.under_overlay(mount);
        }
        if sources.is_empty() && fs != FileSystem::Memory && !is_simulated(mount) {
            self.warnings.push(Warning::NoDevice {
                at: mount.mount_point.clone(),
                mounted: mount.source.clone(),
                fs: mount.fs.clone(),
            });
        }
        sources
    }

    /// Writes to an overlay go to its upper directory.
    fn under_overlay(&mut self, mount: &Mount) -> Vec<String> {
        match upper_mount(self.sys, mount) {
            Some(upper) => self.devices_of_mount(&upper),
            None => {
                let at = mount.mount_point.clone();
                self.warnings.push(Warning::HiddenUpper(at));
                Vec::new()
            }
        }
    }
}

/// Whether a mount holds the file of a simulated drive.
fn is_simulated(mount: &Mount) -> bool {
    mount.source == SIMULATED && mount.fs.starts_with("fuse")
}

/// The mount that holds an overlay's upper directory, if it can be seen.
pub(crate) fn upper_mount(sys: &SysRoot, overlay: &Mount) -> Option<Mount> {
    let upper = overlay.super_option("upperdir")?;
    let mount = Mount::of_in(sys, upper).ok()?;
    // The path may mean something else in this mount namespace.
    (mount.id != overlay.id && FileSystem::mounted(&mount) != FileSystem::Overlay).then_some(mount)
}

/// All devices of the btrfs that one of `known` belongs to.
fn btrfs_devices(sys: &SysRoot, known: &[String]) -> Option<Vec<String>> {
    let all = sys.path("/sys/fs/btrfs");
    entries(&all)
        .iter()
        .map(|uuid| devices_in(&all.join(uuid).join("devices")))
        .find(|names| names.iter().any(|name| known.contains(name)))
}

/// The UUID of the mounted btrfs that a device belongs to.
pub(crate) fn btrfs_uuid(sys: &SysRoot, device: &str) -> Option<String> {
    let all = sys.path("/sys/fs/btrfs");
    let device = linux::sysroot::directory_name(device);
    let has = |uuid: &String| all.join(uuid).join("devices").join(&device).exists();
    entries(&all).into_iter().find(has)
}

#[cfg(test)]
mod tests;
