//! Device numbers, as events and processes give them → the drives whose statistics count.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use linux::SysRoot;
use linux::mounts::{DeviceNumber, Mount};
use record::{DiscardSetting, Origin};
use serde::{Deserialize, Serialize};

use crate::deletions::Identity;
use crate::devices::{self, DeviceTree};
use crate::stack::Pending;
use crate::{Commit, FileSystem};

/// The block devices of a machine: each partition stands for its whole device, as in the events
/// of the block layer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disks {
    whole: HashMap<DeviceNumber, DeviceNumber>,
    names: HashMap<DeviceNumber, String>,
}

/// A mounted file system or a raw device, with the devices below.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Where it is mounted; the device of one that is used raw.
    pub at: String,
    /// The file system; `None` of a raw device.
    pub file_system: Option<FileSystem>,
    /// The whole devices on top: the discards there are those that the file system sends.
    pub tops: Vec<DeviceNumber>,
    /// All whole devices below it, the tops included.
    pub devices: Vec<DeviceNumber>,
    /// All devices below it, of which a partition is one of its own.
    #[serde(default)]
    pub exact: Vec<DeviceNumber>,
    /// The file system's identity; `None` of a raw device.
    #[serde(default)]
    pub identity: Option<Identity>,
    /// Whether it discards what is freed, and later than within the call that frees it.
    #[serde(default, alias = "discards")]
    pub discards_later: bool,
}

impl Disks {
    /// The devices that are there now.
    pub fn now(sys: &SysRoot) -> Disks {
        let mut disks = Disks::default();
        let number = |name: &str| DeviceNumber::parse(&sys.attribute(name, "dev")?);
        for name in sys.devices() {
            let Some(own) = number(&name) else { continue };
            let whole = linux::limit::whole(sys, &name);
            let whole = whole.as_deref().and_then(number).unwrap_or(own);
            disks.whole.insert(own, whole);
            disks.names.insert(own, name);
        }
        disks
    }

    /// Disks of a test: numbers of whole devices with their names.
    pub fn of(all: impl IntoIterator<Item = (DeviceNumber, &'static str)>) -> Disks {
        let mut disks = Disks::default();
        for (number, name) in all {
            disks.whole.insert(number, number);
            disks.names.insert(number, name.to_owned());
        }
        disks
    }

    /// All of them: each number with its whole device and its kernel name, in order.
    pub fn list(&self) -> Vec<(DeviceNumber, DeviceNumber, String)> {
        let all = self.names.iter();
        let all = all.map(|(number, name)| (*number, self.whole(*number), name.clone()));
        let mut all: Vec<_> = all.collect();
        all.sort();
        all
    }

    /// Those of a [list](Self::list).
    pub fn from_list(list: Vec<(DeviceNumber, DeviceNumber, String)>) -> Disks {
        let mut disks = Disks::default();
        for (number, whole, name) in list {
            disks.whole.insert(number, whole);
            disks.names.insert(number, name);
        }
        disks
    }

    /// Adds devices that were there earlier, where their numbers are free now.
    pub fn remember(&mut self, earlier: &Disks) {
        for (number, name) in &earlier.names {
            if !self.names.contains_key(number) {
                self.names.insert(*number, name.clone());
                self.whole.insert(*number, earlier.whole(*number));
            }
        }
    }

    /// The whole device of a number; itself of one that isn't known.
    pub fn whole(&self, number: DeviceNumber) -> DeviceNumber {
        self.whole.get(&number).copied().unwrap_or(number)
    }

    /// Its kernel name, or the number where there is no such device any more.
    pub fn name(&self, number: DeviceNumber) -> String {
        let name = self.names.get(&number).cloned();
        name.unwrap_or_else(|| number.to_string())
    }

    /// The whole devices that take discards now, with their names.
    pub fn with_discard(&self, sys: &SysRoot) -> Vec<(DeviceNumber, String)> {
        let mut found: Vec<(DeviceNumber, String)> = self
            .names
            .iter()
            .filter(|(number, _)| self.whole(**number) == **number)
            .filter(|(_, name)| takes_discards(sys, name))
            .map(|(number, name)| (*number, name.clone()))
            .collect();
        found.sort();
        found
    }

    /// The origin of results about all that take discards now.
    pub fn origin(&self, sys: &SysRoot) -> Origin {
        let mut origin = linux::host::origin(sys);
        for (_, name) in self.with_discard(sys) {
            if let Ok(tree) = devices::under_device(sys, &name) {
                origin.add_drives(&tree.devices);
            }
        }
        origin
    }

    /// The number of a whole device by its kernel name, or of the device that a partition is on.
    pub fn numbered(&self, name: &str) -> Option<DeviceNumber> {
        let mut names = self.names.iter();
        let found = names.find(|(_, one)| *one == name)?;
        Some(self.whole(*found.0))
    }

    /// The stack under a file, or under the block device that it is. `None` where no block device
    /// is known under it.
    pub fn place(&self, sys: &SysRoot, path: &Path, number: DeviceNumber) -> Option<Place> {
        // A block device as a file has the number of the file system on it.
        if self.names.contains_key(&number) && self.is_device(path) {
            let name = self.name(number);
            let tree = devices::under_device(sys, &name).ok()?;
            return self.of_tree(name, None, &tree, None);
        }
        self.under(sys, &Mount::of_in(sys, path).ok()?)
    }

    /// The stack under each mounted file system on block devices.
    pub fn mounted(&self, sys: &SysRoot) -> Vec<Place> {
        let mut found: Vec<Place> = Vec::new();
        let mut seen = Vec::new();
        for mount in linux::mounts::list(sys).unwrap_or_default() {
            if FileSystem::mounted(&mount).can_trim() && !seen.contains(&mount.device) {
                seen.push(mount.device);
                found.extend(self.under(sys, &mount));
            }
        }
        found
    }

    /// The mounted file systems that report discards which they have not sent yet, with the figure.
    pub fn pending(&self, sys: &SysRoot) -> Vec<(Place, Pending)> {
        let mut found: Vec<(Place, Pending)> = Vec::new();
        let mut seen = Vec::new();
        for mount in linux::mounts::list(sys).unwrap_or_default() {
            let rules = FileSystem::mounted(&mount);
            if !rules.queues_discards() || seen.contains(&mount.device) {
                continue;
            }
            seen.push(mount.device);
            let tree = devices::under_mount(sys, &mount);
            let first = tree.devices.first().map(|device| device.name.clone());
            let pending = first.and_then(|first| Pending::of(sys, rules, &first));
            let at = mount.mount_point.to_string_lossy().into_owned();
            let place = self.of_tree(at, Some(rules), &tree, identity(sys, &mount, &tree));
            found.extend(place.zip(pending));
        }
        found
    }

    /// The stack under a mount.
    fn under(&self, sys: &SysRoot, mount: &Mount) -> Option<Place> {
        let at = mount.mount_point.to_string_lossy().into_owned();
        let tree = devices::under_mount(sys, mount);
        let identity = identity(sys, mount, &tree);
        let rules = FileSystem::mounted(mount);
        let top = tree.devices.first();
        let journal = top.is_none_or(|top| FileSystem::has_journal(sys, &top.name));
        Some(Place {
            discards_later: match rules.discard_setting(mount) {
                DiscardSetting::On => rules.commit(journal) != Commit::Within,
                setting => setting == DiscardSetting::Async,
            },
            ..self.of_tree(at, Some(rules), &tree, identity)?
        })
    }

    fn of_tree(
        &self,
        at: String,
        fs: Option<FileSystem>,
        tree: &DeviceTree,
        identity: Option<Identity>,
    ) -> Option<Place> {
        let wholes = |level: Option<u32>| {
            let all = tree.devices.iter();
            let mut found: Vec<DeviceNumber> = all
                .filter(|device| level.is_none_or(|level| device.level == level))
                .filter_map(|device| self.numbered(&device.name))
                .collect();
            found.sort();
            found.dedup();
            found
        };
        let exact = |name: &str| self.names.iter().find(|one| one.1 == name);
        let devices = wholes(None);
        (!devices.is_empty()).then(|| Place {
            at,
            file_system: fs,
            tops: wholes(Some(0)),
            devices,
            exact: tree
                .devices
                .iter()
                .filter_map(|device| Some(*exact(&device.name)?.0))
                .collect(),
            identity,
            discards_later: false,
        })
    }

    fn is_device(&self, path: &Path) -> bool {
        use std::os::unix::fs::FileTypeExt;
        fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device())
    }
}

/// The identity of a mounted file system above these devices.
fn identity(sys: &SysRoot, mount: &Mount, tree: &DeviceTree) -> Option<Identity> {
    if FileSystem::mounted(mount) == FileSystem::Btrfs {
        let first = tree.devices.first()?;
        return devices::btrfs_uuid(sys, &first.name).map(Identity::Uuid);
    }
    Some(Identity::Device(mount.device))
}

/// Whether its `discard_max_bytes` is above 0.
fn takes_discards(sys: &SysRoot, name: &str) -> bool {
    linux::limit::bytes_of(sys, name).is_some_and(|most| most > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use testkit::Machine;

    #[test]
    fn a_partition_stands_for_its_drive_and_a_mount_for_all_below() {
        let machine = Machine::new("1 0 259:3 / /data rw - ext4 /dev/nvme0n1p3 rw,discard\n");
        machine.device("pci/nvme/nvme0/nvme0n1", "259:0", Some(1 << 30));
        machine.device("pci/nvme/nvme0/nvme0n1/nvme0n1p3", "259:3", None);
        let sys = SysRoot::at(machine.root());
        let disks = Disks::now(&sys);
        let number = |text| DeviceNumber::parse(text).unwrap();
        assert_eq!(disks.whole(number("259:3")), number("259:0"));
        assert_eq!(disks.name(number("259:3")), "nvme0n1p3");
        assert_eq!(disks.name(number("8:0")), "8:0");
        assert_eq!(
            disks.with_discard(&sys),
            [(number("259:0"), "nvme0n1".to_owned())]
        );
        let place = disks
            .place(&sys, Path::new("/data/x"), number("259:3"))
            .unwrap();
        assert_eq!(place.at, "/data");
        assert_eq!(place.file_system, Some(FileSystem::Ext));
        assert_eq!(place.exact, [number("259:3")]);
        assert_eq!(place.identity, Some(Identity::Device(number("259:3"))));
        assert_eq!(
            (place.tops.as_slice(), place.devices.len()),
            (&[number("259:0")][..], 1)
        );
        // Without a journal it discards within the call.
        assert!(disks.mounted(&sys)[0].discards_later);
        let task = machine.root().join("sys/fs/ext4/nvme0n1p3/journal_task");
        fs::create_dir_all(task.parent().unwrap()).unwrap();
        fs::write(task, "<none>\n").unwrap();
        assert!(!disks.mounted(&sys)[0].discards_later);
    }
}
