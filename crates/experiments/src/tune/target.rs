//! The file system that is meant by a device, a mount point or a directory, and the
//! drives whose limits shape its discards.

use std::fs;
use std::path::{Path, PathBuf};

use linux::SysRoot;
use linux::limit;
use linux::mounts::{self, Mount};
use record::units::names;
use record::{DeviceInfo, DeviceKind, DiscardSetting};
use storage::{Description, FileSystem};

use crate::Error;
use crate::tune::candidates::Range;

/// Where the experiments take place.
#[derive(Debug, Clone)]
pub struct Target {
    /// A directory of the file system.
    pub directory: PathBuf,
    /// Its mount.
    pub mount: Mount,
    /// Kernel names of the drives whose `discard_max_bytes` counts.
    pub drives: Vec<String>,
    /// The present limit of each device, in bytes.
    pub limits_bytes: Vec<u64>,
    /// Those among them whose limit, once changed, comes back with the next start only.
    pub irreversible: Vec<String>,
    /// The limits that all of them take.
    pub range: Range,
    /// How it discards now.
    pub setting: DiscardSetting,
}

impl Target {
    /// Finds it.
    ///
    /// # Errors
    /// If there is none, or nothing can be tried on it. It may be mounted nowhere, or hold
    /// several file systems; it may be read-only or in memory. No device below may take
    /// discards, one may be multipath, or the mount point isn't UTF-8.
    pub fn find(path: &Path) -> Result<Target, Error> {
        let refuse = |why| Error::Usage(format!("{}: {why}", names::shown(path)));
        let sys = SysRoot::host();
        let metadata = fs::metadata(path).map_err(|e| {
            refuse(format!(
                "{e}; give a block device, a mount point or a directory"
            ))
        })?;
        let directory = if metadata.is_dir() {
            fs::canonicalize(path).map_err(|e| refuse(e.to_string()))?
        } else {
            let name = sys
                .device_at(path)
                .ok_or_else(|| refuse("neither a directory nor a block device".to_owned()))?;
            mounted_from(&sys, &name).map_err(refuse)?
        };
        let found = storage::describe(&directory).map_err(|e| refuse(e.to_string()))?;
        Target::of(&sys, directory, found).map_err(refuse)
    }

    fn of(sys: &SysRoot, directory: PathBuf, found: Description) -> Result<Target, String> {
        let Some(mount) = &found.mount else {
            return Err("no file system is mounted there".to_owned());
        };
        let drives = shaping(sys, mount, &found.devices)?;
        if let Some(why) = why_not(mount, &found) {
            return Err(why);
        }
        let limits = || drives.iter().map(|drive| &drive.discard);
        let mut target = Target {
            directory,
            mount: mount.clone(),
            drives: Vec::new(),
            limits_bytes: Vec::new(),
            irreversible: Vec::new(),
            range: Range {
                now_bytes: limits().map(|of| of.max_bytes).min().unwrap_or(0),
                hw_bytes: limits().map(|of| of.max_hw_bytes).min().unwrap_or(0),
                granularity_bytes: limits().map(|of| of.granularity_bytes).max().unwrap_or(0),
            },
            setting: found.target.discard,
        };
        for drive in &drives {
            let whole = limit::whole(sys, &drive.name)
                .ok_or_else(|| format!("{} has no queue whose limit could be set", drive.name))?;
            if target.drives.contains(&whole) {
                continue;
            }
            let discard = &drive.discard;
            if limit::back(discard.max_bytes, discard.granularity_bytes).is_none() {
                target.irreversible.push(whole.clone());
            }
            target.drives.push(whole);
            target.limits_bytes.push(discard.max_bytes);
        }
        Ok(target)
    }

    /// The drives whose limit isn't what it was, and comes back with the next start only, with
    /// their limits in bytes now. Looked up, for a run that was ended early may have changed none.
    pub fn left_changed(&self) -> Vec<(&str, u64)> {
        let all = self.drives.iter().zip(&self.limits_bytes);
        let lasting = all.filter(|(drive, _)| self.irreversible.contains(drive));
        lasting
            .filter_map(|(drive, before)| {
                let now = limit::bytes_of(&SysRoot::host(), drive)?;
                (now != *before).then_some((drive.as_str(), now))
            })
            .collect()
    }

    /// Whether the file system sends discards by itself now.
    pub fn is_online(&self) -> bool {
        self.setting == DiscardSetting::On
    }
}

/// The devices whose limits shape the discards; an error where nothing can be tried on them.
fn shaping<'d>(
    sys: &SysRoot,
    mount: &Mount,
    devices: &'d [DeviceInfo],
) -> Result<Vec<&'d DeviceInfo>, String> {
    let at = names::shown(&mount.mount_point);
    if mount.read_only() {
        return Err(format!(
            "{at} is mounted read-only; remount it read-write to try anything there"
        ));
    }
    // It is a word of the commands that the runs call, which are text, in their records too.
    if mount.mount_point.to_str().is_none() {
        return Err(format!(
            "the name of the mount point {at} isn't UTF-8; mount the file system elsewhere to try \
             anything there"
        ));
    }
    if devices.is_empty() {
        return Err(format!(
            "no block device is known below {at} ({}), so there is nothing to tune",
            mount.fs
        ));
    }
    let mut passed = passed(devices);
    if let Some(device) = passed.iter().find(|d| is_multipath(sys, &d.name)) {
        return Err(format!(
            "{} is a multipath device, so nothing can be tried there: it hands discards on whole, \
             and a path whose limit is smaller fails instead of taking them in pieces",
            device.name
        ));
    }
    passed.retain(|device| is_last(device));
    let Some(drive) = passed.iter().find(|drive| drive.discard.max_bytes == 0) else {
        return Ok(passed);
    };
    let (name, limits) = (&drive.name, &drive.discard);
    Err(match limits.max_hw_bytes {
        0 => format!("{name} takes no discards, so there is nothing to tune"),
        most => format!(
            "discards of {name} are switched off (discard_max_bytes is 0); switch them on first: \
             echo {} > /sys/block/{}/queue/discard_max_bytes",
            limit::most(most, limits.granularity_bytes),
            limit::whole(sys, name).unwrap_or_else(|| name.clone())
        ),
    })
}

/// Why nothing can be tried on a file system as it is mounted; `None` if something can.
fn why_not(mount: &Mount, found: &Description) -> Option<String> {
    let (fs, at) = (FileSystem::mounted(mount), names::shown(&mount.mount_point));
    match found.target.discard {
        DiscardSetting::Unsupported => {
            let why = found.warnings.first().map(ToString::to_string);
            Some(why.unwrap_or_else(|| "no discards get through there".to_owned()))
        }
        DiscardSetting::Unknown => Some(format!(
            "whether {} sends discards is unknown from its options",
            mount.fs
        )),
        DiscardSetting::Async if fs == FileSystem::Btrfs => Some(
            "btrfs sends discards two minutes late and paces them itself (discard=async; see \
             iops_limit and kbps_limit in /sys/fs/btrfs/UUID/discard); to try it without that, \
             remount it with discard=sync"
                .to_owned(),
        ),
        DiscardSetting::Async => Some(format!(
            "{} sends its discards when it is idle, so short runs don't see them",
            mount.fs
        )),
        DiscardSetting::Off if fs == FileSystem::Btrfs => Some(format!(
            "btrfs without discard would be switched on with discard=async, whose discards come \
             two minutes late, so there would be nothing to compare with: mount {at} with \
             discard=sync to try anything there"
        )),
        DiscardSetting::Off if !fs.remount_switches_discard() => Some(format!(
            "XFS takes discard only when it is mounted, and all is compared with that: mount {at} \
             with discard to try anything there"
        )),
        DiscardSetting::On | DiscardSetting::Off => None,
    }
}

/// Whether discards are followed no further: to the leaves, but to a loop device rather
/// than to what holds its file, which is everybody's.
fn is_last(device: &DeviceInfo) -> bool {
    device.leaf || device.kind == DeviceKind::Loop
}

/// Whether a device is one of dm-multipath. It cuts its requests to its own limit, and the
/// kernel fails one that is larger than the path's (`blk_insert_cloned_request`, Linux
/// 6.12), whereupon multipath takes the path for broken.
fn is_multipath(sys: &SysRoot, name: &str) -> bool {
    let uuid = sys.path(format!("/sys/class/block/{name}/dm/uuid"));
    fs::read_to_string(uuid).is_ok_and(|uuid| uuid.starts_with("mpath-"))
}

/// The devices that discards pass on their way, with those whose limits shape them.
fn passed(devices: &[DeviceInfo]) -> Vec<&DeviceInfo> {
    let top = devices.iter().filter(|device| device.level == 0);
    let mut passed: Vec<&DeviceInfo> = top.collect();
    // Each device is listed once, so this ends.
    let mut seen = 0;
    while let Some(&device) = passed.get(seen) {
        seen += 1;
        if is_last(device) {
            continue;
        }
        for name in &device.below {
            let is_new = passed.iter().all(|known| known.name != *name);
            let below = devices.iter().find(|device| device.name == *name);
            passed.extend(below.filter(|_| is_new));
        }
    }
    passed
}

/// Where a device, or what is on it, is mounted.
fn mounted_from(sys: &SysRoot, name: &str) -> Result<PathBuf, String> {
    let all = mounts::list(sys).map_err(|e| e.to_string())?;
    // A partition's drive is meant as well.
    let named = |device: &DeviceInfo| {
        device.name == name || limit::whole(sys, &device.name).as_deref() == Some(name)
    };
    let on_it = |mount: &Mount, deepest: u32| {
        let below = storage::devices::under_mount(sys, mount).devices;
        let mut near = below.iter().filter(|device| device.level <= deepest);
        near.any(named)
    };
    let visible = |mount: &&Mount| Mount::of(&mount.mount_point).is_ok_and(|m| m.id == mount.id);
    let mut found: Vec<&Mount> = all
        .iter()
        .filter(|mount| on_it(mount, u32::MAX))
        .filter(visible)
        .collect();
    // What is mounted from the device itself, rather than from a file on it.
    if found.iter().any(|mount| on_it(mount, 0)) {
        found.retain(|mount| on_it(mount, 0));
    }
    // The root of a file system before its subdirectories mounted elsewhere.
    found.sort_by_key(|mount| (mount.read_only(), mount.root != Path::new("/")));
    let Some(first) = found.first() else {
        return Err(format!(
            "nothing is mounted from {name}; mount its file system first, for what is tried are \
             deletions on it"
        ));
    };
    let others: Vec<String> = found
        .iter()
        .filter(|mount| mount.device != first.device)
        .map(|mount| names::shown(&mount.mount_point))
        .collect();
    match others.is_empty() {
        true => Ok(first.mount_point.clone()),
        false => Err(format!(
            "several file systems are mounted from it; give the one to try on: {}, {}",
            names::shown(&first.mount_point),
            others.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(name: &str, kind: DeviceKind, level: u32, below: &[&str]) -> DeviceInfo {
        let mut device = DeviceInfo {
            kind,
            level,
            leaf: below.is_empty(),
            below: below.iter().map(|&below| below.into()).collect(),
            ..DeviceInfo::disk(name)
        };
        device.discard.max_bytes = 1;
        device
    }

    #[test]
    fn limits_are_the_leaves_but_for_a_loop_device() {
        let names = |devices: &[DeviceInfo]| -> Vec<String> {
            let shaping = passed(devices).into_iter().filter(|d| is_last(d));
            shaping.map(|d| d.name.clone()).collect()
        };
        let raid = [
            device("md0", DeviceKind::Md, 0, &["sda1", "sdb1"]),
            device("sda1", DeviceKind::Partition, 1, &[]),
            device("sdb1", DeviceKind::Partition, 1, &[]),
        ];
        assert_eq!(names(&raid), ["sda1", "sdb1"]);
        let file = [
            device("loop0", DeviceKind::Loop, 0, &["vda"]),
            device("vda", DeviceKind::Disk, 1, &[]),
        ];
        assert_eq!(names(&file), ["loop0"]);
    }

    #[test]
    fn paths_of_a_multipath_device_are_left_alone() {
        let root = std::env::temp_dir().join(format!("trimbench-target-{}", std::process::id()));
        let uuid = root.join("sys/class/block/dm-0/dm/uuid");
        fs::create_dir_all(uuid.parent().unwrap()).unwrap();
        let line = b"1 0 253:1 / /data rw - ext4 /dev/mapper/data rw,discard\n";
        let refused = |text: &str, top: DeviceKind| {
            fs::write(&uuid, text).unwrap();
            let found = Description {
                target: record::Target {
                    discard: DiscardSetting::On,
                    ..Default::default()
                },
                devices: vec![
                    device("top", top, 0, &["dm-0"]),
                    device("dm-0", DeviceKind::Dm, 1, &["sda", "sdb"]),
                    device("sda", DeviceKind::Disk, 2, &[]),
                    device("sdb", DeviceKind::Disk, 2, &[]),
                ],
                mount: Some(mounts::parse(line).remove(0)),
                warnings: Vec::new(),
                counting_warnings: Vec::new(),
            };
            Target::of(&SysRoot::at(&root), "/data".into(), found).unwrap_err()
        };
        let multipath = refused("mpath-3600a0b80000f1234\n", DeviceKind::Dm);
        assert!(
            multipath.contains("dm-0 is a multipath device"),
            "{multipath}"
        );
        // The others are only refused because this tree has no queues.
        let volume = refused("LVM-abc\n", DeviceKind::Dm);
        assert!(volume.contains("sda has no queue"), "{volume}");
        let file = refused("mpath-3600a0b80000f1234\n", DeviceKind::Loop);
        assert!(file.contains("top has no queue"), "{file}");
        fs::remove_dir_all(root).unwrap();
    }

    /// Why nothing is tried on a drive that is mounted so (a line of mountinfo).
    fn refused(line: &[u8], discard: DiscardSetting) -> String {
        let found = Description {
            target: record::Target {
                discard,
                ..Default::default()
            },
            devices: vec![device("sda", DeviceKind::Disk, 0, &[])],
            mount: Some(mounts::parse(line).remove(0)),
            warnings: Vec::new(),
            counting_warnings: Vec::new(),
        };
        let nowhere = SysRoot::at("/no/such/tree");
        Target::of(&nowhere, "/data".into(), found).unwrap_err()
    }

    #[test]
    fn each_file_system_has_its_own_reason() {
        let btrfs = b"1 0 0:30 / /data rw - btrfs /dev/sda rw\n";
        let off = refused(btrfs, DiscardSetting::Off);
        assert!(off.contains("would be switched on"), "{off}");
        assert!(off.contains("mount /data with discard=sync"), "{off}");
        let late = refused(btrfs, DiscardSetting::Async);
        assert!(late.contains("btrfs sends discards"), "{late}");
        let xfs = refused(
            b"1 0 8:1 / /data rw - xfs /dev/sda rw\n",
            DiscardSetting::Off,
        );
        assert!(xfs.contains("XFS takes discard only"), "{xfs}");
    }

    #[test]
    fn a_mount_point_that_is_no_text_is_refused() {
        let line = b"1 0 8:1 / /da\xffta rw - ext4 /dev/sda rw,discard\n";
        let refused = refused(line, DiscardSetting::On);
        assert!(refused.contains("isn't UTF-8"), "{refused}");
    }

    #[test]
    fn what_cannot_be_tuned_is_said() {
        let of = |path: &str| Target::find(Path::new(path)).unwrap_err().to_string();
        assert!(of("/no/such").contains("give a block device"));
        assert!(of("/dev/null").contains("neither a directory nor a block device"));
        assert!(of("/proc").contains("no block device is known"));
    }
}
