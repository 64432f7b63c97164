//! How much there is to free on each file system.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, BorrowedFd};

use linux::mounts::{DeviceNumber, Mount};

use crate::free::Amount;

/// The longest discard that any file system sends for one file's part.
const UNIT: u64 = 128 << 20;

/// Bytes to be freed, by file system.
#[derive(Debug, Default)]
pub(super) struct Amounts {
    systems: Systems,
    all: HashMap<u64, Amount>,
}

impl Amounts {
    /// Adds what is freed on the file system of an open directory, whose device this is.
    pub(super) fn add(&mut self, on: BorrowedFd<'_>, device: u64, bytes: u64) {
        let amount = self.all.entry(self.systems.find(on, device)).or_default();
        amount.bytes = amount.bytes.saturating_add(bytes);
        amount.extents = amount.extents.saturating_add(bytes.div_ceil(UNIT));
    }

    /// What is to be freed where a device is.
    pub(super) fn of(&self, device: u64) -> Amount {
        let system = self.systems.known(device);
        self.all.get(&system).copied().unwrap_or_default()
    }

    /// For each file system.
    pub(super) fn each(&self) -> impl Iterator<Item = &Amount> {
        self.all.values()
    }

    /// Which devices are one file system.
    pub(super) fn systems(&mut self) -> &mut Systems {
        &mut self.systems
    }
}

/// Which devices, as `stat` tells them, are one file system: the subvolumes of a btrfs have
/// a number each, and share drives and discards.
#[derive(Debug, Default)]
pub(super) struct Systems {
    /// The first number that was met of the same file system.
    first: HashMap<u64, u64>,
    /// By what the list of mounts calls all of them.
    mounted: HashMap<DeviceNumber, u64>,
}

impl Systems {
    /// The number by which the file system of an open directory goes.
    pub(super) fn find(&mut self, on: BorrowedFd<'_>, device: u64) -> u64 {
        if let Some(&first) = self.first.get(&device) {
            return first;
        }
        if !is_on(on, device) {
            return device;
        }
        let mount = match DeviceNumber::from_raw(device).is_anonymous() {
            true => Mount::of(format!("/proc/self/fd/{}", on.as_raw_fd())).ok(),
            false => None,
        };
        let first = mount.map_or(device, |mount| {
            *self.mounted.entry(mount.device).or_insert(device)
        });
        self.first.insert(device, first);
        first
    }

    /// The same of a device that was met before.
    pub(super) fn known(&self, device: u64) -> u64 {
        self.first.get(&device).copied().unwrap_or(device)
    }
}

fn is_on(directory: BorrowedFd<'_>, device: u64) -> bool {
    rustix::fs::fstat(directory).is_ok_and(|stat| stat.st_dev == device)
}
