//! How many files each level may hold, so that all of it fits a given space. Pure.

use std::ops::RangeInclusive;

/// RocksDB's default of `num_levels` is 7.
pub(super) const LEVELS: RangeInclusive<u32> = 2..=7;

/// Files of level 0 that begin a compaction: RocksDB's default of
/// `level0_file_num_compaction_trigger`.
const TRIGGER: u64 = 4;

/// How much larger a level is than the one above it: RocksDB's default of
/// `max_bytes_for_level_multiplier`. Smaller where the space is too small for it.
const FAN_OUT: f64 = 10.0;

/// The files that each level may hold before it is compacted.
///
/// The last level takes what the space allows and the others follow from it,
/// as with RocksDB's `level_compaction_dynamic_level_bytes`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shape {
    /// From level 0 to the last.
    shares: Vec<u64>,
}

impl Shape {
    /// The largest that never has more than so many files at once. `None` when
    /// not even the smallest fits.
    pub(super) fn of(levels: u32, files: u64) -> Option<Shape> {
        let fits = |last: u64| Shape::with_last(levels, last).most_files() <= files;
        let (mut fitting, mut beyond) = (1, files.max(1));
        if !fits(fitting) {
            return None;
        }
        while beyond - fitting > 1 {
            let middle = fitting + (beyond - fitting) / 2;
            if fits(middle) {
                fitting = middle;
            } else {
                beyond = middle;
            }
        }
        Some(Shape::with_last(levels, fitting))
    }

    fn with_last(levels: u32, last: u64) -> Shape {
        // From level 1 to the last there are so many steps.
        let steps = levels.saturating_sub(2);
        let fan_out = FAN_OUT.min((last as f64).powf(1.0 / f64::from(steps.max(1))));
        let share = |level: u32| {
            let below = (levels - 1 - level) as i32;
            ((last as f64 / fan_out.powi(below)).round() as u64).clamp(1, last)
        };
        let shares = std::iter::once(TRIGGER).chain((1..levels).map(share));
        Shape {
            shares: shares.collect(),
        }
    }

    pub(super) fn shares(&self) -> &[u64] {
        &self.shares
    }

    /// Files there can be at once, the outputs of a compaction included.
    ///
    /// Nothing is flushed while a level holds too much, and a compaction gives
    /// no more files than it takes. So beyond the shares there are at most the
    /// files of level 0, wherever they have come to, and the outputs.
    fn most_files(&self) -> u64 {
        let standing: u64 = self.shares.iter().sum();
        // All of level 0 and all of level 1.
        let first = self.shares[0] + self.shares[1];
        // One file and what it overlaps: of `m` files beside each other over
        // `k`, one overlaps at most `1 + (k - 1) / m` of them. `m` is more than
        // its share, and `k`, as the deepest comes first, no more than its own.
        let overlaps = |pair: &[u64]| 2 + pair[1] / (pair[0] + 1);
        let deeper = self.shares[1..].windows(2).map(overlaps).max();
        standing + first.max(deeper.unwrap_or(0))
    }
}

/// The fewest files that so many levels need.
pub(super) fn least_files(levels: u32) -> u64 {
    Shape::with_last(levels, 1).most_files()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_grow_tenfold_where_there_is_room() {
        let shape = Shape::of(4, 2000).expect("fits");
        let [trigger, one, two, three] = shape.shares() else {
            panic!("{shape:?}");
        };
        assert_eq!(*trigger, 4);
        for (small, large) in [(one, two), (two, three)] {
            let ratio = *large as f64 / *small as f64;
            assert!((9.0..11.0).contains(&ratio), "{shape:?}");
        }
        let all: u64 = shape.shares().iter().sum();
        assert!(all > 1900, "most of the space is used: {shape:?}");
    }

    #[test]
    fn with_little_room_they_grow_less() {
        assert_eq!(
            Shape::of(7, 15).expect("fits").shares(),
            [4, 1, 1, 1, 1, 1, 1]
        );
        let shape = Shape::of(5, 40).expect("fits");
        assert!(
            shape.shares().is_sorted_by(|a, b| a <= b || *a == 4),
            "{shape:?}"
        );
    }

    #[test]
    fn the_least_is_the_least() {
        for levels in LEVELS {
            assert_eq!(least_files(levels), 8 + u64::from(levels));
            assert!(Shape::of(levels, least_files(levels)).is_some());
            assert_eq!(Shape::of(levels, least_files(levels) - 1), None);
        }
    }

    #[test]
    fn no_number_of_files_is_too_large() {
        for levels in LEVELS {
            let shape = Shape::of(levels, 1 << 50).expect("fits");
            assert!(shape.most_files() <= 1 << 50);
        }
    }
}
