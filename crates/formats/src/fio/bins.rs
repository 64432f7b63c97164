//! The buckets of fio's latency histograms.
//!
//! fio (`stat.h`, `plat_idx_to_val` in `stat.c`) keeps latencies in groups of
//! 64 buckets, each group twice as wide as the one before: exact below 128, and
//! to within 1/64 above. fio 3 has 29 groups of nanoseconds, fio 2 had 19 of
//! microseconds. `log_hist_coarseness=C` adds 2^C neighbours up in the log.

/// `FIO_IO_U_PLAT_BITS`.
const BITS: u32 = 6;
/// Buckets in a group.
const PER_GROUP: usize = 1 << BITS;
/// Buckets of fio 3, in nanoseconds.
const FIO_3: usize = 29 * PER_GROUP;
/// Buckets of fio 2, in microseconds.
const FIO_2: usize = 19 * PER_GROUP;
/// The largest `log_hist_coarseness`.
const COARSEST: u32 = 6;

/// How the columns of a histogram log are to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    coarseness: u32,
    buckets: usize,
    unit_ns: u64,
}

impl Layout {
    /// The layout with so many columns; `None` if fio has none.
    pub fn of_columns(columns: usize) -> Option<Layout> {
        let known = [(FIO_3, 1), (FIO_2, 1000)];
        known.into_iter().find_map(|(buckets, unit_ns)| {
            (0..=COARSEST).find_map(|coarseness| {
                (buckets >> coarseness == columns).then_some(Layout {
                    coarseness,
                    buckets,
                    unit_ns,
                })
            })
        })
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.buckets >> self.coarseness
    }

    /// The latency a column stands for, in nanoseconds: the middle of its range.
    pub fn middle_ns(&self, column: usize) -> u64 {
        let stride = 1 << self.coarseness;
        let first = column.min(self.columns() - 1) * stride;
        let last = first + stride - 1;
        let low = lowest(first);
        let high = lowest(last) + width(last);
        ((low + high) / 2).saturating_mul(self.unit_ns)
    }
}

/// Width of the group a bucket is in, as a power of two.
fn doublings(bucket: usize) -> u32 {
    ((bucket >> BITS) as u32).saturating_sub(1)
}

/// The smallest latency of a bucket.
fn lowest(bucket: usize) -> u64 {
    if bucket < 2 * PER_GROUP {
        return bucket as u64;
    }
    let doublings = doublings(bucket);
    (1 << (doublings + BITS)) + ((bucket % PER_GROUP) as u64) * (1 << doublings)
}

fn width(bucket: usize) -> u64 {
    1 << doublings(bucket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layouts_of_fio() {
        assert_eq!(Layout::of_columns(1856).unwrap().unit_ns, 1);
        assert_eq!(Layout::of_columns(1216).unwrap().unit_ns, 1000);
        assert_eq!(Layout::of_columns(116).unwrap().coarseness, 4);
        assert_eq!(Layout::of_columns(29).unwrap().coarseness, 6);
        assert_eq!(Layout::of_columns(117), None);
        assert_eq!(Layout::of_columns(0), None);
    }

    /// Pairs that fio 3.33 itself printed as bins of `--output-format=json+`.
    #[test]
    fn buckets_stand_for_what_fio_says() {
        let fine = Layout::of_columns(1856).unwrap();
        for (bucket, ns) in [
            (127, 127),
            (149, 171),
            (169, 211),
            (1152, 8_454_144),
            (1154, 8_716_288),
        ] {
            assert_eq!(fine.middle_ns(bucket), ns, "bucket {bucket}");
        }
        assert!(fine.middle_ns(1855) > 17_000_000_000, "longer than 17 s");
        assert_eq!(fine.middle_ns(9999), fine.middle_ns(1855), "no panic");
    }

    #[test]
    fn buckets_are_in_order_without_gaps() {
        for bucket in 1..FIO_3 {
            assert_eq!(lowest(bucket), lowest(bucket - 1) + width(bucket - 1));
        }
        for coarseness in 0..=COARSEST {
            let layout = Layout::of_columns(FIO_3 >> coarseness).unwrap();
            let all = (0..layout.columns()).map(|c| layout.middle_ns(c));
            assert!(all.is_sorted(), "coarseness {coarseness}");
        }
    }
}
