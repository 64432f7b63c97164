//! The cost of a discard by its size, learned from acknowledged discards.
//!
//! S = a + b·L, so S grows with the size and S/L falls: the cost of one size bounds that of any
//! other. Two sizes are enough to separate a and b. In the long run all pieces are alike, and one
//! fit would forget all sizes but the last. So the figures of each size are kept beside each other.

use ssd::Card;

use crate::quantity::{Bytes, Line, Seconds, SecondsPerByte};

/// The resolution of the kernel's statistics.
const RESOLUTION: Seconds = Seconds(0.001);

/// How much a measured time may be off by chance.
const DOUBT: f64 = 0.10;

/// The most that a byte can add to a discard's time, whatever a small one takes: eight times what
/// it adds on the slowest array known.
const STEEPEST: SecondsPerByte = SecondsPerByte(2e-3 / (1 << 20) as f64);

/// The line through the sizes that were seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    pub(crate) line: Line,
    /// The least that the fixed cost can be but for chance: two standard errors below the line's.
    pub(crate) least_fixed: Seconds,
}

/// The cost of discards of about the same size.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    /// Their mean size.
    size: Bytes,
    /// Their mean time.
    time: Seconds,
    /// The same when all sizes were last adjusted to each other.
    agreed: Seconds,
    /// How many were seen.
    commands: f64,
}

impl Point {
    /// Returns the most that the mean may be.
    fn most(&self) -> Seconds {
        self.time * (1.0 + DOUBT / self.commands.max(1.0).sqrt())
            + RESOLUTION / self.commands.max(1.0)
    }
}

/// The costs of discards, by size.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cost {
    /// One for each power of 2, ordered by size.
    points: Vec<(u32, Point)>,
}

impl Cost {
    /// Returns the costs that a card gives.
    pub(crate) fn of(card: &Card, smallest: u64, whole: u64) -> Cost {
        let mut cost = Cost::default();
        if let Some(discard) = &card.figures().discard {
            for bytes in [smallest.max(1), whole.max(1)] {
                let time = Seconds::from(discard.service(bytes, 0, 1));
                cost.learn(4, bytes.saturating_mul(4), time * 4.0);
            }
        }
        cost
    }

    pub(crate) fn is_known(&self) -> bool {
        !self.points.is_empty()
    }

    /// Learns from `commands` discards of `bytes` in all that took `time` in all.
    pub(crate) fn learn(&mut self, commands: u64, bytes: u64, time: Seconds) {
        if commands == 0 || bytes == 0 {
            return;
        }
        let (count, size) = (commands as f64, Bytes::from(bytes) / commands as f64);
        let (class, took) = (size.0.log2().round().max(0.0) as u32, time / count);
        match self.points.binary_search_by_key(&class, |p| p.0) {
            Err(place) => {
                let point = Point {
                    size,
                    time: took,
                    agreed: took,
                    commands: count,
                };
                self.points.insert(place, (class, point));
            }
            Ok(place) => {
                let point = &mut self.points[place].1;
                // Short ones are known no finer than the statistics: more of them count. It is the
                // time that was expected that decides: else those that happen to be long would
                // count more than those that happen to be short.
                let fine = (point.time * count / (4.0 * RESOLUTION)).clamp(0.12, 1.0);
                let weight = (count / (point.commands + count)).max(0.25 * fine);
                point.size += weight * (size - point.size);
                point.time += weight * (took - point.time);
                point.commands += count;
                // What is known no better than the statistics agrees with anything.
                if point.commands * point.time < 20.0 * RESOLUTION {
                    point.agreed = point.time;
                }
                let changed = point.time / point.agreed;
                // A drive that has become slower is so for every size.
                if point.agreed > RESOLUTION / 2.0 && !(0.85..1.18).contains(&changed) {
                    point.agreed = point.time;
                    for (other, point) in &mut self.points {
                        if *other != class {
                            point.time *= changed;
                            point.agreed *= changed;
                        }
                    }
                }
            }
        }
    }

    /// Returns the mean time of one discard of this size. Above the sizes seen, it is the most that
    /// it may be; below them, that of the smallest seen. `None` if none was seen.
    pub(crate) fn predict(&self, size: Bytes) -> Option<Seconds> {
        let &(_, last) = self.points.last()?;
        let above = self.points.iter().position(|(_, p)| p.size >= size / 1.01);
        let Some(above) = above else {
            return Some(self.beyond(last, size));
        };
        let upper = self.points[above].1;
        // Below the smallest that was seen it costs as much as that at most.
        let Some(lower) = above.checked_sub(1).map(|i| self.points[i].1) else {
            return Some(upper.time);
        };
        let share = ((size - lower.size) / (upper.size - lower.size)).clamp(0.0, 1.0);
        Some(lower.time + share * (upper.time - lower.time))
    }

    /// Returns the time of a discard of this size as far as it is known; `None` if none was seen. Above
    /// the sizes seen it is that of the largest, until they tell what more bytes add.
    pub(crate) fn least(&self, size: Bytes) -> Option<Seconds> {
        let &(_, largest) = self.points.last()?;
        match self.fit() {
            Some(fit) => Some(fit.line.at(size)),
            None => self.predict(size.min(largest.size)),
        }
    }

    /// For a size beyond the largest seen: on the steepest line through what was
    /// seen, and never steeper than through nothing, nor than any drive.
    fn beyond(&self, last: Point, size: Bytes) -> Seconds {
        let beyond = size - last.size;
        let through_nothing = last.most() * size.0 / last.size.0.max(1.0);
        let through_nothing = through_nothing.min(last.most() + STEEPEST * beyond.max(Bytes::ZERO));
        let first = self.points[0].1;
        if last.size < first.size * 1.9 {
            return through_nothing;
        }
        let slope = (last.most() - first.time).max(Seconds::ZERO) / (last.size - first.size);
        through_nothing.min(last.most() + slope * beyond)
    }

    /// Returns the least that a discard of the largest size seen takes on average.
    pub(crate) fn least_of_largest(&self) -> Seconds {
        self.points.last().map_or(Seconds::ZERO, |(_, p)| {
            p.time - RESOLUTION / p.commands.max(1.0)
        })
    }

    /// Returns the same of the smallest size. `enough`: as many as that were seen; until then 0.
    pub(crate) fn least_of_smallest(&self, enough: f64) -> Seconds {
        self.points
            .first()
            .filter(|(_, p)| p.commands >= enough)
            .map_or(Seconds::ZERO, |(_, p)| p.time - RESOLUTION / p.commands)
    }

    /// Returns the largest size that was seen.
    pub(crate) fn largest(&self) -> Bytes {
        self.points.last().map_or(Bytes::ZERO, |(_, p)| p.size)
    }

    /// The line through all sizes, where two are at least four times apart: each weighs as
    /// much as it is sure. b is 0 where they tell no difference.
    pub(crate) fn fit(&self) -> Option<Fit> {
        let (first, last) = (self.points.first()?.1, self.points.last()?.1);
        if last.size < first.size * 4.0 {
            return None;
        }
        let weighed = || {
            self.points.iter().map(|(_, p)| {
                let doubt = (p.most() - p.time).0;
                (1.0 / (doubt * doubt).max(1e-18), p.size, p.time)
            })
        };
        let all: f64 = weighed().map(|(w, ..)| w).sum();
        let size = weighed().map(|(w, x, _)| w * x).sum::<Bytes>() / all;
        let time = weighed().map(|(w, _, y)| w * y).sum::<Seconds>() / all;
        let spread: f64 = weighed().map(|(w, x, _)| w * (x - size).0.powi(2)).sum();
        let b = weighed()
            .map(|(w, x, y)| w * (x - size).0 * (y - time).0)
            .sum::<f64>()
            / spread;
        // A difference that chance can make is none.
        if b < 2.0 / spread.sqrt() {
            return Some(Fit {
                line: Line {
                    fixed: time,
                    per_byte: SecondsPerByte::ZERO,
                },
                least_fixed: Seconds::ZERO,
            });
        }
        let per_byte = SecondsPerByte(b);
        let fixed = (time - per_byte * size).max(Seconds::ZERO);
        let error = Seconds((1.0 / all + size.0 * size.0 / spread).sqrt());
        Some(Fit {
            line: Line { fixed, per_byte },
            least_fixed: (fixed - 2.0 * error).max(Seconds::ZERO),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn one_size_bounds_the_others() {
        let mut cost = Cost::default();
        assert_eq!(cost.predict(Bytes(1.0)), None);
        cost.learn(4, 4 * MIB, Seconds(0.004));
        assert_eq!(cost.predict(Bytes(4096.0)), Some(Seconds(0.001)));
        let eight = cost.predict(Bytes::from(8 * MIB)).unwrap().0;
        assert!((0.008..0.012).contains(&eight), "{eight}");
    }

    #[test]
    fn two_sizes_tell_a_and_b() {
        let mut cost = Cost::default();
        let service = |mib: f64| 0.001 + 8e-6 * mib;
        for mib in [1_u64, 8, 64] {
            cost.learn(100, 100 * mib * MIB, Seconds(100.0 * service(mib as f64)));
        }
        let Fit { line, least_fixed } = cost.fit().unwrap();
        assert!(least_fixed < line.fixed && least_fixed > line.fixed * 0.5);
        assert!((line.fixed.0 - 0.001).abs() < 1e-9);
        assert!((line.per_byte.0 * MIB as f64 - 8e-6).abs() < 1e-12);
        let whole = cost.predict(Bytes::from(128 * MIB)).unwrap().0;
        assert!(
            (service(128.0)..service(128.0) * 1.4).contains(&whole),
            "{whole}"
        );
    }

    #[test]
    fn a_slower_drive_is_slower_for_every_size() {
        let mut cost = Cost::default();
        cost.learn(4, 4 * MIB, 4.0 * Seconds(0.005));
        cost.learn(4, 4 * 128 * MIB, 4.0 * Seconds(0.006));
        for _ in 0..60 {
            cost.learn(1, 128 * MIB, Seconds(0.012));
        }
        let small = cost.predict(Bytes::from(MIB)).unwrap().0;
        assert!((0.009..0.011).contains(&small), "{small}");
    }

    /// Beside a checkpoint one discard in twenty takes 32 times as long. The mean is charged, so it
    /// must be expected, of that size and of others.
    #[test]
    fn long_ones_by_chance_count_as_much_as_short_ones() {
        let mut cost = Cost::default();
        let (usual, rare) = (Seconds(0.0005), Seconds(0.016));
        for _ in 0..20 {
            cost.learn(1, MIB, usual);
            cost.learn(1, 4 * MIB, 4.0 * usual);
        }
        let mean = (19.0 * usual + rare) / 20.0;
        let (mut sum, mut most) = (Seconds::ZERO, Seconds::ZERO);
        for turn in 0..400 {
            let predicted = cost.predict(Bytes::from(MIB)).unwrap();
            (sum, most) = (sum + predicted, most.max(predicted));
            cost.learn(1, MIB, if turn % 20 == 19 { rare } else { usual });
            cost.learn(1, 4 * MIB, 4.0 * usual);
        }
        let predicted = sum / 400.0;
        assert!(predicted < 1.5 * mean, "{predicted:?} for {mean:?}");
        assert!(most < 4.0 * mean, "{most:?} for {mean:?}");
    }
}
