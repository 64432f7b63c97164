//! How much there is to free on each file system.

use std::collections::HashMap;
use std::os::fd::{AsRawFd, BorrowedFd};

use linux::mounts::{DeviceNumber, Mount};
use rustix::fs::Stat;

use super::arguments::{allocated, share};
use crate::reclaimer::Amount;

/// The longest discard that any file system sends for one file's part.
const UNIT: u64 = 128 << 20;

/// Bytes to be freed, by file system.
#[derive(Debug, Default)]
pub(super) struct Amounts {
    systems: Systems,
    all: HashMap<u64, Amount>,
    /// The largest of the files, by file system.
    largest: HashMap<u64, u64>,
}

impl Amounts {
    /// Adds a file on the file system of an open directory, whose device this is.
    pub(super) fn add(&mut self, on: BorrowedFd<'_>, device: u64, file: &Stat) {
        let system = self.systems.find(on, device);
        let largest = self.largest.entry(system).or_default();
        *largest = allocated(file).max(*largest);
        let bytes = share(file);
        let amount = self.all.entry(system).or_default();
        amount.bytes = amount.bytes.saturating_add(bytes);
        amount.extents = amount.extents.saturating_add(bytes.div_ceil(UNIT));
    }

    /// Returns the amount to be freed on the file system of `device`.
    pub(super) fn of(&self, device: u64) -> Amount {
        let system = self.systems.known(device);
        self.all.get(&system).copied().unwrap_or_default()
    }

    /// Returns whether one file may hold `bytes` on the file system of `device`: also where none
    /// was surveyed.
    pub(super) fn may_hold(&self, device: u64, bytes: u64) -> bool {
        let largest = self.largest.get(&self.systems.known(device));
        largest.is_none_or(|&largest| largest >= bytes)
    }

    /// Returns whether a surveyed file on the file system of `device` holds `bytes`.
    pub(super) fn holds(&self, device: u64, bytes: u64) -> bool {
        let largest = self.largest.get(&self.systems.known(device));
        largest.is_some_and(|&largest| largest >= bytes)
    }

    /// Returns the amount of each file system.
    pub(super) fn each(&self) -> impl Iterator<Item = &Amount> {
        self.all.values()
    }

    /// Which devices are one file system.
    pub(super) fn systems(&mut self) -> &mut Systems {
        &mut self.systems
    }
}

/// The devices, by `stat`'s numbers, that are one file system. The subvolumes of a btrfs have a
/// number each, and share drives and discards.
#[derive(Debug, Default)]
pub(super) struct Systems {
    /// The first number that was met of the same file system.
    first: HashMap<u64, u64>,
    /// By what the list of mounts calls all of them.
    mounted: HashMap<DeviceNumber, u64>,
}

impl Systems {
    /// Returns the number that stands for the file system of an open directory.
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

    /// Returns the number for a device that was met before.
    pub(super) fn known(&self, device: u64) -> u64 {
        self.first.get(&device).copied().unwrap_or(device)
    }
}

fn is_on(directory: BorrowedFd<'_>, device: u64) -> bool {
    rustix::fs::fstat(directory).is_ok_and(|stat| stat.st_dev == device)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_large_file_with_two_names_is_as_large_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let (file, on) = (place.path().join("file"), std::fs::File::open(place.path()));
        std::fs::write(&file, [0; 100]).unwrap();
        let mut stat = rustix::fs::stat(&file).unwrap();
        let (on, device) = (on.unwrap(), stat.st_dev);
        let mut amounts = Amounts::default();
        assert!(amounts.may_hold(device, 1), "nobody has looked yet");
        stat.st_blocks = 100;
        amounts.add(on.as_fd(), device, &stat);
        assert!(!amounts.may_hold(device, 1 << 20));
        (stat.st_blocks, stat.st_nlink) = (3000, 2);
        amounts.add(on.as_fd(), device, &stat);
        assert!(amounts.may_hold(device, 1 << 20));
        assert_eq!(amounts.of(device).bytes, (100 + 1500) * 512);
    }
}
