//! Which counter a latency belongs to: the layout of HdrHistogram, so that
//! counters here and histograms in a record mean the same values.
//!
//! Bounds 1 ns to 1 h, three significant digits: values below 2048 have a
//! counter each; above, every doubling has 1024 counters.

/// Longest latency that is distinguished, in nanoseconds: one hour. Longer ones count as this.
pub const MAX_NS: u64 = 3_600_000_000_000;

/// Significant decimal digits.
pub const DIGITS: u8 = 3;

/// Counters that a histogram of these bounds has.
pub const COUNTERS: usize = 33 * 1024;

/// Counters per block of [`super::Counters`].
pub const BLOCK: usize = 64;

/// Blocks of a histogram.
pub const BLOCKS: usize = COUNTERS / BLOCK;

/// The counter for a latency in nanoseconds.
#[inline]
pub fn index_of(ns: u64) -> usize {
    let ns = if ns < MAX_NS { ns } else { MAX_NS };
    // The doubling: 0 below 2048, then one for each further bit.
    let shift = 53 - (ns | 2047).leading_zeros();
    ((shift as usize) << 10) + (ns >> shift) as usize
}

/// The smallest latency of a counter, in nanoseconds.
pub fn lowest_of(index: usize) -> u64 {
    let shift = (index >> 10).saturating_sub(1);
    ((index - (shift << 10)) as u64) << shift
}

/// The largest latency of a counter, in nanoseconds.
pub fn highest_of(index: usize) -> u64 {
    lowest_of(index + 1) - 1
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;
    use proptest::prelude::*;

    use super::*;

    fn reference() -> Histogram<u64> {
        Histogram::new_with_bounds(1, MAX_NS, DIGITS).expect("bounds are valid")
    }

    #[test]
    fn has_as_many_counters_as_hdrhistogram() {
        assert_eq!(reference().distinct_values(), COUNTERS);
        assert_eq!(COUNTERS % BLOCK, 0);
        assert!(index_of(u64::MAX) < COUNTERS);
    }

    #[test]
    fn counters_follow_each_other_without_gap() {
        for index in 1..index_of(MAX_NS) {
            assert_eq!(
                lowest_of(index),
                highest_of(index - 1) + 1,
                "counter {index}"
            );
            assert_eq!(index_of(lowest_of(index)), index);
            assert_eq!(index_of(highest_of(index)), index);
        }
    }

    proptest! {
        #[test]
        fn bounds_are_hdrhistograms(ns in prop_oneof![0..10_000u64, 0..MAX_NS, 0..u64::MAX]) {
            let histogram = reference();
            let clamped = ns.min(MAX_NS);
            let index = index_of(ns);
            prop_assert_eq!(lowest_of(index), histogram.lowest_equivalent(clamped));
            prop_assert_eq!(highest_of(index), histogram.highest_equivalent(clamped));
        }
    }
}
