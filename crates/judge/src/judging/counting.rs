//! Selects the discards that count: one rule for the judge, and for a run that waits for them.

use std::ops::Range;

use super::stats::total;
use record::{DeviceColumns, DeviceInfo, DeviceKind, DiscardSetting, Head, RunRecord};

/// An event that freed less space than this freed nothing, in bytes: logs, journals and metadata of
/// others make as much of a difference.
pub const LEAST_FREED: u64 = 1 << 20;

/// Discards below this share of their reference are next to nothing. The reference of a deletion's
/// discards is what it freed. That of the leaves' is what a level above them saw.
pub const MEANINGFUL: f64 = 0.01;

/// An interval discards significantly from this share of all bytes discarded:
/// a journal's own commits discard 4 KiB every few seconds.
pub const SIGNIFICANT: f64 = 0.001;

/// In a run with many short intervals none has that much: then this share of a typical one's bytes.
const SIGNIFICANT_OF_TYPICAL: f64 = 0.1;

/// The debt counts as paid when at most this share of what was freed is
/// undiscarded: alignment and granularity leave some.
pub const UNPAID: f64 = 0.01;

/// The devices whose discards count.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Their indices into the head's devices. Of several with the same statistics the first.
    pub devices: Vec<usize>,
    /// Whether they are not the leaves, but devices above them.
    pub upper: bool,
    /// Whether it is unknown how often they see a byte that was freed once.
    pub unknown_copies: bool,
    /// How often each of them sees a byte that was freed once.
    copies: Vec<f64>,
}

impl Counted {
    fn of(devices: &[DeviceInfo], wanted: impl Fn(&DeviceInfo) -> bool, upper: bool) -> Counted {
        let mut indices: Vec<usize> = Vec::new();
        for (i, device) in devices.iter().enumerate().filter(|(_, d)| wanted(d)) {
            let read = &device.counting.statistics_of;
            let same =
                |&one: &usize| read.is_some() && devices[one].counting.statistics_of == *read;
            if !indices.iter().any(same) {
                indices.push(i);
            }
        }
        let copies = indices.iter().map(|&i| devices[i].counting.copies.max(1.0));
        Counted {
            copies: copies.collect(),
            unknown_copies: indices.iter().any(|&i| devices[i].counting.unknown_copies),
            devices: indices,
            upper,
        }
    }

    /// Returns a figure of all of them together, scaled so that a freed byte is a discarded byte:
    /// mirrors discard each. `of` returns the figure of one device.
    pub fn sum(&self, of: impl Fn(usize) -> u64) -> f64 {
        let both = self.devices.iter().zip(&self.copies);
        both.fold(0.0, |sum, (&i, copies)| sum + of(i) as f64 / copies)
    }

    /// The same of each interval in `range`, rounded so that the sum over all stays right: of a
    /// discard whose copies end in two intervals, one gets it.
    pub fn sums(&self, range: Range<usize>, of: impl Fn(usize, usize) -> u64) -> Vec<u64> {
        let (mut exact, mut counted) = (0.0, 0_u64);
        let sum_of = |i| self.sum(|device| of(device, i));
        let next = |i| {
            exact += sum_of(i);
            let sum = (exact + ROUNDING).round() as u64;
            let now = sum.saturating_sub(counted);
            counted = counted.max(sum);
            now
        };
        range.map(next).collect()
    }
}

/// Names of the leaves whose counters are off, where so nobody knows what was discarded: no
/// level above them counts either. Empty where it is known.
pub fn blind(devices: &[DeviceInfo]) -> Vec<&str> {
    let mut off: Vec<&str> = Vec::new();
    for leaf in devices.iter().filter(|d| d.leaf && d.counting.off) {
        if !off.contains(&leaf.statistics()) {
            off.push(leaf.statistics());
        }
    }
    let counts = |top: &DeviceInfo| {
        let kind = matches!(top.kind, DeviceKind::Loop | DeviceKind::Dm);
        kind && !top.leaf && !top.counting.off
    };
    let mut tops = devices.iter().filter(|device| device.level == 0);
    match tops.all(counts) {
        true => Vec::new(),
        false => off,
    }
}

/// Whether the sizes of this record's discards are unknown.
pub fn without_sizes(head: &Head) -> bool {
    head.devices.iter().any(|device| device.counting.no_sizes)
}

/// Whether nobody knows what was discarded. Below a file system in memory there is nothing that
/// could be.
pub fn nobody_counts(head: &Head) -> bool {
    let in_memory = head.target.discard == DiscardSetting::Unsupported;
    let unknown = head.devices.is_empty() && !in_memory;
    unknown || !blind(&head.devices).is_empty()
}

/// The target's own devices, where those whose discards count lie below them: nothing of the
/// file system gets there another way. `None` where they don't tell: md counts no discards,
/// counters can be off, and one that did nothing in `range` may count nothing.
pub fn upper(record: &RunRecord, counted: &Counted, range: Range<usize>) -> Option<Counted> {
    let (devices, columns) = (&record.head.devices, &record.intervals.devices);
    let tops = Counted::of(devices, |device| device.level == 0, true);
    let tells = |&i: &usize| {
        let counts = columns.get(i).is_some_and(|column| {
            let mut all = range.clone();
            all.any(|at| column.reads[at] > 0 || column.discards[at] > 0)
        });
        let kind = matches!(devices[i].kind, DeviceKind::Loop | DeviceKind::Dm);
        kind && counts && !devices[i].leaf && !devices[i].counting.off
    };
    let tell = !tops.devices.is_empty() && tops.devices.iter().all(tells);
    (tell && !counted.upper).then_some(tops)
}

/// The kernel counts whole milliseconds of waits, and leaves out the rest: in seconds.
pub const WHOLE_S: f64 = 1e-3;

/// A third three times is one.
const ROUNDING: f64 = 1e-6;

/// Returns the bytes that make an interval significant: 0.1 % of all, or a tenth of a typical
/// interval's, whichever is less. So discards that are spread evenly over hours all count, and a
/// journal's never do.
pub fn significant(bytes: &[u64]) -> u64 {
    let total: f64 = bytes.iter().map(|&n| n as f64).sum();
    // Half of all bytes were discarded in intervals with at least `typical` of them.
    let mut sorted: Vec<u64> = bytes.iter().copied().filter(|&b| b > 0).collect();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let mut sum = 0.0;
    let typical = sorted.iter().find(|&&bytes| {
        sum += bytes as f64;
        sum >= total / 2.0
    });
    let typical = typical.map_or(0.0, |&b| b as f64);
    let least = (SIGNIFICANT * total).min(SIGNIFICANT_OF_TYPICAL * typical);
    (least.ceil() as u64).max(1)
}

/// Returns the devices whose discards count in these intervals of a record.
pub fn counted_in(record: &RunRecord, range: Range<usize>) -> Counted {
    let sum = |columns: &DeviceColumns| total(columns.discard_bytes[range.clone()].iter().copied());
    let bytes: Vec<u64> = record.intervals.devices.iter().map(sum).collect();
    let known = record.head.devices.len().min(bytes.len());
    counted(&record.head.devices[..known], &bytes)
}

/// Returns the devices that count, by the bytes that each has discarded: the leaves, as a rule. The
/// leaves may have seen next to nothing of what a level above saw. A loop device over a file system
/// that doesn't discard is an example. Then the deepest level that did see it counts.
pub fn counted(devices: &[DeviceInfo], discard_bytes: &[u64]) -> Counted {
    let sum = |counted: &Counted| counted.sum(|i| discard_bytes.get(i).copied().unwrap_or(0));
    let leaves = Counted::of(devices, |device| device.leaf, false);
    let mut levels: Vec<u32> = devices
        .iter()
        .filter(|d| !d.leaf)
        .map(|d| d.level)
        .collect();
    levels.sort_unstable();
    levels.dedup();
    let upper: Vec<Counted> = levels
        .iter()
        .map(|&level| Counted::of(devices, |d| !d.leaf && d.level == level, true))
        .collect();
    let most = upper.iter().map(sum).fold(0.0, f64::max);
    let little = |bytes: f64| bytes < MEANINGFUL * most;
    let deepest = upper.into_iter().rev().find(|level| {
        let bytes = sum(level);
        bytes > 0.0 && !little(bytes)
    });
    match deepest {
        Some(upper) if little(sum(&leaves)) => upper,
        _ => leaves,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Counting;

    fn device(level: u32, leaf: bool) -> DeviceInfo {
        DeviceInfo {
            kind: DeviceKind::Loop,
            level,
            leaf,
            size_bytes: 1 << 30,
            ..DeviceInfo::disk(format!("dev{level}"))
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

    /// `statistics_of` and `copies` of each leaf below one device.
    fn below(leaves: &[(Option<&str>, f64)]) -> Vec<DeviceInfo> {
        let leaf = |(i, &(statistics_of, copies)): (usize, &(Option<&str>, f64))| DeviceInfo {
            name: format!("leaf{i}"),
            counting: Counting {
                statistics_of: statistics_of.map(str::to_owned),
                copies,
                ..Counting::default()
            },
            ..device(1, true)
        };
        let all = leaves.iter().enumerate().map(leaf);
        std::iter::once(device(0, false)).chain(all).collect()
    }

    #[test]
    fn a_byte_that_mirrors_discard_each_counts_once() {
        let mirror = below(&[(None, 2.0), (None, 2.0)]);
        let both = counted(&mirror, &[0, 1000, 1000]);
        assert_eq!(both.sum(|_| 1000), 1000.0);
        // One leg is done before the other.
        let (first, second) = ([3, 0, 2], [0, 3, 2]);
        let of = |device, i: usize| if device == 1 { first[i] } else { second[i] };
        assert_eq!(both.sums(0..3, of), [2, 1, 2]);
        // A mirror beside a single drive.
        let mixed = below(&[(None, 2.0), (None, 2.0), (None, 1.0)]);
        assert_eq!(counted(&mixed, &[0, 10, 10, 5]).sum(|_| 10), 20.0);
    }

    #[test]
    fn thirds_add_up_to_a_whole() {
        let thrice = below(&[(None, 3.0), (None, 3.0), (None, 3.0)]);
        let sums = counted(&thrice, &[]).sums(0..5, |_, i| u64::from(i < 4));
        assert_eq!(sums, [1, 1, 1, 1, 0]);
    }

    #[test]
    fn counters_that_are_off_leave_nobody_who_knows() {
        let off = |level, leaf, off| {
            let mut device = device(level, leaf);
            device.counting.off = off;
            device
        };
        // A loop device over a drive: one of them is enough.
        let pair = |upper, lower| [off(0, false, upper), off(1, true, lower)];
        assert_eq!(blind(&pair(true, false)), [""; 0]);
        assert_eq!(blind(&pair(false, true)), [""; 0]);
        assert_eq!(blind(&pair(true, true)), ["dev1"]);
        assert_eq!(blind(&[off(0, true, true)]), ["dev0"]);
        // md counts no discards.
        let mut raid = pair(false, true);
        raid[0].kind = DeviceKind::Md;
        assert_eq!(blind(&raid), ["dev1"]);
    }

    /// Two partitions of an NVMe drive with several paths have the drive's statistics.
    #[test]
    fn the_same_statistics_count_once() {
        let parts = below(&[(Some("nvme0n1"), 1.0), (Some("nvme0n1"), 1.0)]);
        assert_eq!(counted(&parts, &[0, 7, 7]).devices, [1]);
    }
}
