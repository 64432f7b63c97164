//! Other trimbenches that work on the same drives now.

use linux::SysRoot;
use linux::mounts::{self, Mount};
use linux::owner::{self, Other};
use record::DeviceInfo;
use storage::devices::under_mount;

use crate::warning::Warning;

/// A warning for each other trimbench that works on one of these devices.
pub(crate) fn others(devices: &[DeviceInfo]) -> Vec<Warning> {
    let sys = SysRoot::host();
    let others = owner::others(&sys);
    if others.is_empty() {
        return Vec::new();
    }
    let mounts = mounts::list(&sys).unwrap_or_default();
    let leaves = |devices: &[DeviceInfo]| -> Vec<String> {
        let leaves = devices.iter().filter(|device| device.leaf);
        leaves.map(|leaf| leaf.statistics().to_owned()).collect()
    };
    let own = leaves(devices);
    let warning = |other: Other| {
        let is_its = |mount: &&Mount| mount.device == other.device;
        let theirs = leaves(&under_mount(&sys, mounts.iter().find(is_its)?).devices);
        let device = own.iter().find(|leaf| theirs.contains(leaf))?.clone();
        let Other { pid, path, .. } = other;
        Some(Warning::Beside { pid, path, device })
    };
    others.into_iter().filter_map(warning).collect()
}
