//! How much the devices of a tree have discarded while a deletion goes on.
//!
//! Bytes count at the leaves. Where those see next to nothing of what a device
//! above them sees (a loop device over a file system that doesn't discard),
//! they count at the deepest level that does, as the judge counts them.

use timeline::record::{DeviceInfo, DeviceInterval};

/// Leaves that see less than this share of what a level above sees don't count.
const NEXT_TO_NOTHING: f64 = 0.01;

/// Discarded bytes since the deletion began, by device.
#[derive(Debug, Clone)]
pub(crate) struct Discarded {
    devices: Vec<Device>,
    counted: u64,
}

#[derive(Debug, Clone)]
struct Device {
    leaf: bool,
    level: u32,
    bytes: u64,
}

impl Discarded {
    pub(crate) fn of(devices: &[DeviceInfo]) -> Self {
        let devices = devices.iter().map(|device| Device {
            leaf: device.leaf,
            level: device.level,
            bytes: 0,
        });
        Discarded {
            devices: devices.collect(),
            counted: 0,
        }
    }

    /// Adds an interval; returns the bytes that it adds to those that count.
    pub(crate) fn add(&mut self, interval: &[DeviceInterval]) -> u64 {
        for (device, row) in self.devices.iter_mut().zip(interval) {
            device.bytes += row.discard_bytes;
        }
        let before = self.counted;
        self.counted = self.counted.max(self.total());
        self.counted - before
    }

    /// All bytes that count.
    pub(crate) fn bytes(&self) -> u64 {
        self.counted
    }

    fn total(&self) -> u64 {
        let sum = |of: &dyn Fn(&Device) -> bool| -> u64 {
            let these = self.devices.iter().filter(|device| of(device));
            these.map(|device| device.bytes).sum()
        };
        let leaves = sum(&|device| device.leaf);
        let upper = self.devices.iter().filter(|device| !device.leaf);
        let mut levels: Vec<u32> = upper.map(|device| device.level).collect();
        levels.sort_unstable();
        let seen: Vec<u64> = levels
            .iter()
            .map(|&level| sum(&|device| !device.leaf && device.level == level))
            .collect();
        let most = seen.iter().copied().max().unwrap_or(0);
        let matters = |bytes: u64| bytes > 0 && bytes as f64 >= NEXT_TO_NOTHING * most as f64;
        if matters(leaves) {
            return leaves;
        }
        let deepest = seen.into_iter().rev().find(|&bytes| matters(bytes));
        deepest.unwrap_or(leaves)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use timeline::record::{DeviceKind, DiscardLimits};

    fn device(name: &str, level: u32, leaf: bool) -> DeviceInfo {
        DeviceInfo {
            name: name.into(),
            kind: DeviceKind::Loop,
            level,
            below: Vec::new(),
            leaf,
            model: None,
            size_bytes: 0,
            rotational: None,
            scheduler: None,
            discard: DiscardLimits::default(),
        }
    }

    fn discards(bytes: &[u64]) -> Vec<DeviceInterval> {
        let row = |&discard_bytes| DeviceInterval {
            discard_bytes,
            ..DeviceInterval::default()
        };
        bytes.iter().map(row).collect()
    }

    #[test]
    fn members_of_a_raid_add_up() {
        let tree = [
            device("md0", 0, false),
            device("a", 1, true),
            device("b", 1, true),
        ];
        let mut discarded = Discarded::of(&tree);
        assert_eq!(discarded.add(&discards(&[0, 10, 20])), 30);
        assert_eq!(discarded.add(&discards(&[0, 5, 0])), 5);
        assert_eq!(discarded.bytes(), 35);
    }

    #[test]
    fn a_leaf_that_discards_later_than_the_loop_device_above_counts_alone() {
        let tree = [device("loop0", 0, false), device("sda", 1, true)];
        let mut discarded = Discarded::of(&tree);
        discarded.add(&discards(&[1000, 1000]));
        discarded.add(&discards(&[1000, 0]));
        assert_eq!(discarded.bytes(), 1000);
        discarded.add(&discards(&[0, 1000]));
        assert_eq!(discarded.bytes(), 2000);
    }

    #[test]
    fn where_the_leaf_sees_nothing_the_loop_device_counts() {
        let tree = [device("loop0", 0, false), device("sda", 1, true)];
        let mut discarded = Discarded::of(&tree);
        assert_eq!(discarded.add(&discards(&[1000, 0])), 1000);
        assert_eq!(discarded.add(&discards(&[1000, 8])), 1000);
    }
}
