//! Which values of `discard_max_bytes` are worth trying.

use linux::limit;

/// From one value to the next: a handful covers the sizes at which drives differ.
const STEP: u64 = 4;
/// Smaller discards cost each drive that was measured more than they spare
/// (a/b, where cost and size break even, is 57 MiB and above).
const LEAST: u64 = 1 << 20;

/// The limits of a device, all in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// `discard_max_bytes` now.
    pub now_bytes: u64,
    /// `discard_max_hw_bytes`.
    pub hw_bytes: u64,
    /// `discard_granularity`; 0 counts as 1.
    pub granularity_bytes: u64,
}

impl Range {
    /// The largest limit that can be set.
    pub fn most_bytes(&self) -> u64 {
        limit::most(self.hw_bytes, self.granularity_bytes)
    }
}

/// Returns at most `count` values, the largest first, the present one among them.
///
/// All but the present one are multiples of the granularity, and none exceeds the limits of
/// the hardware and the kernel. At most one is above `most_bytes`, because all above it do
/// the same. That is the lesser of the file system's unit and the size of the deletion.
pub(crate) fn limits(range: &Range, most_bytes: u64, count: usize) -> Vec<u64> {
    let granularity = range.granularity_bytes.max(1);
    let whole = |bytes: u64| bytes / granularity * granularity;
    let now = range.now_bytes;
    let mut all = vec![now];
    let settable = range.most_bytes();
    if !are_alike(settable, now, most_bytes) && settable > now {
        all.push(settable);
    }
    let mut next = whole(settable.min(most_bytes) / STEP);
    while all.len() < count && next >= LEAST.max(granularity) {
        // Too near to the present one, it would tell nothing new.
        if next > now.saturating_mul(2) || next < now / 2 {
            all.push(next);
        }
        next = whole(next / STEP);
    }
    all.sort_unstable_by(|a, b| b.cmp(a));
    all
}

/// Returns the present limit and those of `wanted` that act differently from it and from each
/// other, the largest first.
pub(crate) fn different(wanted: &[u64], now: u64, most_bytes: u64) -> Vec<u64> {
    let mut all = wanted.to_vec();
    all.retain(|&limit| !are_alike(limit, now, most_bytes));
    all.push(now);
    all.sort_unstable_by(|a, b| b.cmp(a));
    all.dedup_by(|b, a| are_alike(*a, *b, most_bytes));
    all
}

/// Whether two limits act alike where no discard is larger than `most_bytes`.
fn are_alike(a: u64, b: u64, most_bytes: u64) -> bool {
    a.min(most_bytes) == b.min(most_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;
    const GIB: u64 = 1 << 30;

    fn range(now_bytes: u64, hw_bytes: u64) -> Range {
        Range {
            now_bytes,
            hw_bytes,
            granularity_bytes: 4096,
        }
    }

    #[test]
    fn from_the_hardwares_limit_down() {
        let unit = 128 * MIB;
        let all = limits(&range(GIB, GIB), unit, 4);
        assert_eq!(all, [GIB, 32 * MIB, 8 * MIB, 2 * MIB]);
        // One that was made smaller before can be made larger again.
        let all = limits(&range(16 * MIB, 2 * GIB), unit, 4);
        assert_eq!(all, [2 * GIB, 16 * MIB, 2 * MIB]);
        assert_eq!(limits(&range(4096, 4096), unit, 4), [4096]);
        // Of an NVMe drive's 2 TiB the kernel takes less than 4 GiB.
        let all = limits(&range(GIB, 2048 * GIB), 8 * GIB, 2);
        assert_eq!(all, [4 * GIB - 4096, GIB]);
    }

    #[test]
    fn limits_that_act_alike_are_one() {
        let unit = 32 * MIB;
        let wanted = [64 * MIB, 32 * MIB, 16 * MIB, 16 * MIB];
        assert_eq!(different(&wanted, GIB, unit), [GIB, 16 * MIB]);
        // Without the present one among them the largest stands for all.
        let wanted = [64 * MIB, 32 * MIB];
        assert_eq!(different(&wanted, MIB, unit), [64 * MIB, MIB]);
        assert_eq!(different(&wanted, GIB, u64::MAX), [GIB, 64 * MIB, 32 * MIB]);
    }

    proptest! {
        #[test]
        fn all_can_be_set_and_differ(
            now in 1u64..1 << 20, hw in 1u64..1 << 20, most in 1u64..1 << 34,
            granules in 0u64..64, count in 1usize..6,
        ) {
            let granularity_bytes = granules * 512;
            let unit = granularity_bytes.max(1);
            let (now_bytes, hw_bytes) = (now.min(hw) * unit, hw * unit);
            let all = limits(&Range { now_bytes, hw_bytes, granularity_bytes }, most, count);
            prop_assert!(all.contains(&now_bytes) && all.len() <= count.max(2));
            prop_assert!(all.is_sorted_by(|a, b| a > b));
            for bytes in all {
                prop_assert!(bytes > 0 && bytes <= hw_bytes && bytes % unit == 0);
            }
        }
    }
}
