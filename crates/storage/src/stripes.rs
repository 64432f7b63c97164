//! Whether data are spread evenly over several drives.

use linux::SysRoot;
use record::{DeviceInfo, DeviceKind, Target};

use crate::FileSystem;
use crate::counter::{btrfs_profiles, md_level};

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
