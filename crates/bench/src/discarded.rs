//! How much the devices of a tree have discarded while a deletion goes on.
//!
//! Which of them count, the judge says: the same device's discards end a run
//! and are judged.

use judge::counting::counted;
use record::{DeviceInfo, DeviceInterval};

/// Discarded bytes since the deletion began, by device.
#[derive(Debug, Clone)]
pub(crate) struct Discarded {
    devices: Vec<DeviceInfo>,
    bytes: Vec<u64>,
    counted: u64,
}

impl Discarded {
    pub(crate) fn of(devices: &[DeviceInfo]) -> Self {
        Discarded {
            devices: devices.to_vec(),
            bytes: vec![0; devices.len()],
            counted: 0,
        }
    }

    /// Adds an interval; returns the bytes that it adds to those that count.
    pub(crate) fn add(&mut self, interval: &[DeviceInterval]) -> u64 {
        for (bytes, row) in self.bytes.iter_mut().zip(interval) {
            *bytes += row.discard_bytes;
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
        let counted = counted(&self.devices, &self.bytes);
        counted.sum(|i| self.bytes[i]) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::DeviceKind;

    fn device(name: &str, level: u32, leaf: bool) -> DeviceInfo {
        DeviceInfo {
            kind: DeviceKind::Loop,
            level,
            leaf,
            ..DeviceInfo::disk(name)
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
