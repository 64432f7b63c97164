//! Which discards count: one rule for the judge, and for a run that waits for them.

use crate::record::DeviceInfo;

/// Discards below this share of what they are compared with are next to
/// nothing: those of a deletion beside what it freed, and those of the leaves
/// beside what a level above them saw.
pub const MEANINGFUL: f64 = 0.01;

/// An interval discards significantly from this share of all bytes discarded:
/// a journal's own commits discard 4 KiB every few seconds.
pub const SIGNIFICANT: f64 = 0.001;

/// The debt counts as paid when at most this share of what was freed is
/// undiscarded: alignment and granularity leave some.
pub const UNPAID: f64 = 0.01;

/// The devices whose discards count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counted {
    /// Their indices into the head's devices.
    pub devices: Vec<usize>,
    /// Whether they are not the leaves, but devices above them.
    pub upper: bool,
}

/// Which devices count, by what each has discarded, in bytes: the leaves; but
/// where those saw next to nothing of what some level above saw (a loop device
/// over a file system that doesn't discard), the deepest level that did.
pub fn counted(devices: &[DeviceInfo], discard_bytes: &[u64]) -> Counted {
    let those = |wanted: &dyn Fn(&DeviceInfo) -> bool| -> Vec<usize> {
        (0..devices.len())
            .filter(|&i| wanted(&devices[i]))
            .collect()
    };
    let sum = |indices: &[usize]| {
        let bytes = indices.iter().filter_map(|&i| discard_bytes.get(i));
        bytes.fold(0_u64, |sum, &b| sum.saturating_add(b))
    };
    let leaves = those(&|device| device.leaf);
    let mut levels: Vec<u32> = devices
        .iter()
        .filter(|d| !d.leaf)
        .map(|d| d.level)
        .collect();
    levels.sort_unstable();
    levels.dedup();
    let upper: Vec<Vec<usize>> = levels
        .iter()
        .map(|&level| those(&|device| !device.leaf && device.level == level))
        .collect();
    let most = upper.iter().map(|level| sum(level)).max().unwrap_or(0);
    let little = |bytes: u64| (bytes as f64) < MEANINGFUL * most as f64;
    let deepest = upper.into_iter().rev().find(|level| {
        let bytes = sum(level);
        bytes > 0 && !little(bytes)
    });
    match deepest {
        Some(devices) if little(sum(&leaves)) => Counted {
            devices,
            upper: true,
        },
        _ => Counted {
            devices: leaves,
            upper: false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{DeviceKind, DiscardLimits};

    fn device(level: u32, leaf: bool) -> DeviceInfo {
        DeviceInfo {
            name: format!("dev{level}"),
            kind: DeviceKind::Loop,
            level,
            below: vec![],
            leaf,
            model: None,
            firmware: None,
            size_bytes: 1 << 30,
            rotational: None,
            scheduler: None,
            discard: DiscardLimits::default(),
            slower: None,
        }
    }

    #[test]
    fn leaves_count_unless_they_saw_next_to_nothing() {
        let tree = [device(0, false), device(1, false), device(2, true)];
        let counted = |bytes: [u64; 3]| {
            let counted = counted(&tree, &bytes);
            (counted.devices, counted.upper)
        };
        assert_eq!(counted([0, 0, 0]), (vec![2], false));
        assert_eq!(counted([1000, 1000, 1000]), (vec![2], false));
        assert_eq!(counted([1000, 1000, 10]), (vec![2], false));
        assert_eq!(counted([1000, 1000, 9]), (vec![1], true));
        assert_eq!(counted([1000, 9, 0]), (vec![0], true));
    }

    #[test]
    fn all_devices_of_a_level_count() {
        let tree = [device(0, false), device(1, true), device(1, true)];
        assert_eq!(counted(&tree, &[10, 5, 5]).devices, [1, 2]);
    }
}
