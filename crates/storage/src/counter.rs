//! Whose statistics count a file system's discards, and how many copies of a byte they see.
//!
//! Every device of a tree gets a [`Counting`]. A discarded byte counts once for all devices of
//! its level: below a mirror of two each leaf sees it, so each leaf's bytes are divided by 2.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use linux::SysRoot;
use linux::limit::whole;
use linux::stats::DeviceStats;
use linux::sysroot::{entries, number};
use record::{Counting, DeviceInfo, DeviceKind, Target};

use crate::FileSystem;
use crate::devices::btrfs_uuid;
use crate::target::Description;
use crate::warning::Warning;

/// A device whose statistics count discards.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Its kernel name, as `/sys/class/block` has it.
    pub device: String,
    /// How many bytes devices of its level discard for each byte freed.
    pub copies: f64,
}

impl Source {
    /// A device that is no copy of another.
    pub fn single(device: impl Into<String>) -> Source {
        Source {
            device: device.into(),
            copies: 1.0,
        }
    }
}

/// Adds to each device of a description how its discards are counted.
pub(crate) fn complete(sys: &SysRoot, found: &mut Description) {
    let copies = copies(sys, found);
    for (device, copies) in found.devices.iter_mut().zip(copies) {
        device.counting = Counting {
            statistics_of: counting_drive(sys, &device.name),
            copies,
            off: !counts(sys, &device.name),
            no_sizes: false,
            unknown_copies: false,
        };
    }
    found.counting_warnings.extend(by_drive(&found.devices));
    found.counting_warnings.extend(uncounted(&found.devices));
    let kind = found.target.fs.as_deref();
    found.target.discards_at_most = kind.and_then(|kind| FileSystem::of(kind).discards_at_most());
}

/// The leaves' statistics, each once, with the copies that they see.
pub fn leaves(devices: &[DeviceInfo]) -> Vec<Source> {
    let mut sources: Vec<Source> = Vec::new();
    for leaf in devices.iter().filter(|device| device.leaf) {
        if sources.iter().all(|one| one.device != leaf.statistics()) {
            sources.push(Source {
                device: leaf.statistics().to_owned(),
                copies: leaf.counting.copies,
            });
        }
    }
    sources
}

/// How many bytes all leaves together discard for each byte freed, where it is spread over
/// them as they have room.
pub fn mean_copies(devices: &[DeviceInfo]) -> f64 {
    let (mut raw, mut usable) = (0.0, 0.0);
    for leaf in devices.iter().filter(|device| device.leaf) {
        let size = leaf.size_bytes.max(1) as f64;
        raw += size;
        usable += size / leaf.counting.copies;
    }
    if usable > 0.0 { raw / usable } else { 1.0 }
}

/// Whether a device keeps the counters that its `stat` shows (`queue/iostats`), or its paths do.
pub fn counts(sys: &SysRoot, device: &str) -> bool {
    if linux::stats::counts_at_paths(
        sys,
        &whole(sys, device).unwrap_or_else(|| device.to_owned()),
    ) {
        return true;
    }
    // A partition has its drive's queue.
    ["queue/iostats", "../queue/iostats"]
        .iter()
        .find_map(|file| sys.attribute(device, file))
        .is_none_or(|value| value != "0")
}

/// A warning for each drive whose counters are switched off.
pub fn uncounted(devices: &[DeviceInfo]) -> Vec<Warning> {
    let off = devices
        .iter()
        .filter(|device| device.leaf && device.counting.off);
    off.map(|device| Warning::CountersOff(device.name.clone()))
        .collect()
}

/// A warning where a drive's statistics count for its partition.
pub fn by_drive(devices: &[DeviceInfo]) -> Option<Warning> {
    let leaf = devices
        .iter()
        .find(|device| device.leaf && device.counting.statistics_of.is_some())?;
    Some(Warning::CountedByDrive {
        partition: leaf.name.clone(),
        drive: leaf.statistics().to_owned(),
    })
}

/// The drive that counts for one of its partitions. For an NVMe drive with several paths,
/// Linux ≥ 6.3 counts everything at the drive (`nvme_mpath_start_request`, `disk->part0`).
/// The partition's own `stat` doesn't even show the reads of its mount.
fn counting_drive(sys: &SysRoot, device: &str) -> Option<String> {
    let stat = |name: &str| DeviceStats::open(sys, name).ok()?.read().ok();
    let drive = whole(sys, device).filter(|drive| drive != device)?;
    let own = stat(device)?;
    let counts_there = own.reads == 0 && own.writes == 0 && stat(&drive)?.reads > 0;
    counts_there.then_some(drive)
}

/// For each device: how many bytes devices of its level discard for each byte freed.
fn copies(sys: &SysRoot, found: &Description) -> Vec<f64> {
    let top = match found.devices.iter().find(|device| device.level == 0) {
        Some(top) if found.target.fs.as_deref() == Some("btrfs") => btrfs_copies(sys, &top.name),
        _ => 1.0,
    };
    let mut paths = Paths {
        sys,
        top,
        devices: &found.devices,
        known: HashMap::new(),
    };
    let devices = found.devices.iter();
    devices.map(|device| paths.copies_at(device)).collect()
}

/// The ways from the file system down to each device.
struct Paths<'a> {
    sys: &'a SysRoot,
    /// Copies that the file system itself keeps.
    top: f64,
    devices: &'a [DeviceInfo],
    /// The devices seen so far. A device counts as 1 meanwhile, so that a loop of devices ends.
    known: HashMap<&'a str, f64>,
}

impl<'a> Paths<'a> {
    /// Those of the device above, times what that makes of a byte. Of several devices above the
    /// mean, by their sizes: images of one volume that share a drive.
    fn copies_at(&mut self, device: &'a DeviceInfo) -> f64 {
        if let Some(&copies) = self.known.get(device.name.as_str()) {
            return copies;
        }
        self.known.insert(&device.name, 1.0);
        let devices = self.devices;
        let above = devices
            .iter()
            .filter(|one| one.below.contains(&device.name));
        let (mut bytes, mut sum) = (0.0, 0.0);
        if device.level == 0 {
            (bytes, sum) = (1.0, self.top);
        } else {
            for one in above {
                let size = one.size_bytes.max(1) as f64;
                bytes += size;
                sum += size * self.copies_at(one) * self.multiplies(one);
            }
        }
        let copies = if bytes > 0.0 {
            (sum / bytes).max(1.0)
        } else {
            1.0
        };
        self.known.insert(&device.name, copies);
        copies
    }

    /// How many bytes a device discards below for each byte that it is asked to discard.
    fn multiplies(&self, device: &DeviceInfo) -> f64 {
        match device.kind {
            DeviceKind::Md => md_copies(self.sys, device),
            DeviceKind::Dm => lvm_copies(self.sys, device, self.devices),
            _ => 1.0,
        }
    }
}

fn md_copies(sys: &SysRoot, device: &DeviceInfo) -> f64 {
    let directory = sys.class(&device.name).join("md");
    let number = |file: &str| number::<f64>(&directory.join(file));
    let disks = number("raid_disks")
        .unwrap_or(device.below.len() as f64)
        .max(1.0);
    let whole = match md_level(sys, &device.name).as_deref() {
        Some("raid1") => disks,
        Some("raid10") => {
            // Near and far copies: the low two bytes of the layout.
            let layout = number("layout").unwrap_or(258.0) as u64;
            ((layout & 0xff) * (layout >> 8 & 0xff)).max(1) as f64
        }
        Some("raid4" | "raid5") if disks > 1.0 => disks / (disks - 1.0),
        Some("raid6") if disks > 2.0 => disks / (disks - 2.0),
        _ => 1.0,
    };
    // A disk that is missing discards nothing; one that is being rebuilt does.
    let slots = entries(&directory);
    let there = slots.iter().filter(|slot| is_slot(slot));
    match there.count() as f64 {
        0.0 => whole,
        there => whole * (there / disks).min(1.0),
    }
}

/// `rd0` and so on link to the disks that an array has (Documentation/admin-guide/md.rst).
fn is_slot(name: &str) -> bool {
    name.strip_prefix("rd")
        .is_some_and(|number| number.parse::<u32>().is_ok())
}

/// By how much larger the images of a mirror or RAID of LVM are than the whole.
fn lvm_copies(sys: &SysRoot, device: &DeviceInfo, all: &[DeviceInfo]) -> f64 {
    let is_image = |name: &str| {
        let name = sys.attribute(name, "dm/name").unwrap_or_default();
        name.contains("_rimage_") || name.contains("_mimage_")
    };
    let below = all.iter().filter(|one| device.below.contains(&one.name));
    let images = below.filter(|one| is_image(&one.name));
    let bytes: u64 = images.map(|one| one.size_bytes).sum();
    (bytes as f64 / device.size_bytes.max(1) as f64).max(1.0)
}

/// By the profile in which a btrfs keeps its data, or data and metadata together.
fn btrfs_copies(sys: &SysRoot, device: &str) -> f64 {
    let profiles = btrfs_profiles(sys, device);
    let has = |profile: &str| profiles.iter().any(|one| one == profile);
    match () {
        () if has("raid1c4") => 4.0,
        () if has("raid1c3") => 3.0,
        () if has("raid1") || has("raid10") || has("dup") => 2.0,
        () => 1.0,
    }
}

/// The profiles in which a btrfs keeps data, or data and metadata together: several while it
/// is converted.
pub(crate) fn btrfs_profiles(sys: &SysRoot, device: &str) -> Vec<String> {
    let Some(uuid) = btrfs_uuid(sys, device) else {
        return Vec::new();
    };
    // Each profile is a directory there; all else are files.
    let profiles = |kind: &str| {
        let directory = sys.path(format!("/sys/fs/btrfs/{uuid}/allocation/{kind}"));
        let mut names = entries(&directory);
        names.retain(|name| directory.join(name).is_dir());
        names
    };
    ["data", "mixed"].map(profiles).concat()
}

/// The level of an array of md.
pub(crate) fn md_level(sys: &SysRoot, device: &str) -> Option<String> {
    sys.attribute(device, "md/level")
}

// Whether data are spread evenly over several drives.

/// The drives that RAID 0 or RAID 10 spreads all data over in equal shares: of md, or of btrfs
/// itself. `None`: there is no such layer, another one is below it, or it is not known.
pub fn over(sys: &SysRoot, target: &Target, devices: &[DeviceInfo]) -> Option<u32> {
    let top: Vec<&DeviceInfo> = devices.iter().filter(|device| device.level == 0).collect();
    let members = match *top {
        [] => return None,
        [one] => members_of_md(sys, one, devices)?,
        [one, ..] if FileSystem::named(target) == FileSystem::Btrfs => {
            let profiles = btrfs_profiles(sys, &one.name);
            let even = profiles.iter().all(|profile| is_even(profile));
            (even && !profiles.is_empty()).then_some(top.len())?
        }
        _ => return None,
    };
    let leaves = devices.iter().filter(|device| device.leaf).count();
    (leaves == members && members > 1).then(|| u32::try_from(members).ok())?
}

fn is_even(level: &str) -> bool {
    matches!(level, "raid0" | "raid10")
}

/// The members of an array right below layers that have one device each.
fn members_of_md(sys: &SysRoot, top: &DeviceInfo, devices: &[DeviceInfo]) -> Option<usize> {
    let mut device = top;
    // No stack is deeper, unless its devices form a loop.
    for _ in 0..devices.len() {
        if device.kind == DeviceKind::Md {
            let level = md_level(sys, &device.name)?;
            return is_even(&level).then_some(device.below.len());
        }
        let [below] = device.below.as_slice() else {
            return None;
        };
        device = devices.iter().find(|one| one.name == *below)?;
    }
    None
}
