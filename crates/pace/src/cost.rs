//! What a discard of a size costs, learned from those that were paid.
//!
//! S = a + b·L, so S grows with the size and S/L falls: what one size costs
//! bounds what any other does. Two sizes tell a and b apart; in the long run all
//! pieces are alike, so each size's figures are kept beside each other instead of
//! one fit that would forget all but the last.

use ssd::Card;

/// The finest that the kernel's statistics tell, in seconds.
const RESOLUTION: f64 = 0.001;

/// How much a measured time may be off by chance.
const DOUBT: f64 = 0.10;

/// The most that a byte can add to a discard's time, in seconds, whatever a small
/// one takes: eight times what it adds on the slowest array known.
const STEEPEST: f64 = 2e-3 / (1 << 20) as f64;

/// What discards of about the same size cost.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Point {
    /// Their mean size in bytes.
    bytes: f64,
    /// Their mean time in seconds.
    seconds: f64,
    /// The same when all sizes were last adjusted to each other.
    agreed: f64,
    /// How many were seen.
    commands: f64,
}

impl Point {
    /// The most that the mean may be.
    fn most(&self) -> f64 {
        self.seconds * (1.0 + DOUBT / self.commands.max(1.0).sqrt())
            + RESOLUTION / self.commands.max(1.0)
    }
}

/// What discards cost.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cost {
    /// One for each power of 2, ordered by size.
    points: Vec<(u32, Point)>,
}

impl Cost {
    /// What a card says.
    pub(crate) fn of(card: &Card, smallest: u64, whole: u64) -> Cost {
        let mut cost = Cost::default();
        if let Some(discard) = &card.figures().discard {
            for bytes in [smallest.max(1), whole.max(1)] {
                let seconds = discard.service(bytes, 0, 1).as_secs_f64();
                cost.learn(4, bytes.saturating_mul(4), seconds * 4.0);
            }
        }
        cost
    }

    pub(crate) fn is_known(&self) -> bool {
        !self.points.is_empty()
    }

    /// So many commands with so many bytes in all took so many seconds.
    pub(crate) fn learn(&mut self, commands: u64, bytes: u64, seconds: f64) {
        if commands == 0 || bytes == 0 {
            return;
        }
        let (count, size) = (commands as f64, bytes as f64 / commands as f64);
        let (class, took) = (size.log2().round().max(0.0) as u32, seconds / count);
        match self.points.binary_search_by_key(&class, |p| p.0) {
            Err(place) => {
                let point = Point {
                    bytes: size,
                    seconds: took,
                    agreed: took,
                    commands: count,
                };
                self.points.insert(place, (class, point));
            }
            Ok(place) => {
                let point = &mut self.points[place].1;
                // Short ones are known no finer than the statistics: more of them count.
                let fine = (took * count / (4.0 * RESOLUTION)).clamp(0.12, 1.0);
                let weight = (count / (point.commands + count)).max(0.25 * fine);
                point.bytes += weight * (size - point.bytes);
                point.seconds += weight * (took - point.seconds);
                point.commands += count;
                // What is known no better than the statistics agrees with anything.
                if point.commands * point.seconds < 20.0 * RESOLUTION {
                    point.agreed = point.seconds;
                }
                let changed = point.seconds / point.agreed;
                // A drive that has become slower is so for every size.
                if point.agreed > RESOLUTION / 2.0 && !(0.85..1.18).contains(&changed) {
                    point.agreed = point.seconds;
                    for (other, point) in &mut self.points {
                        if *other != class {
                            point.seconds *= changed;
                            point.agreed *= changed;
                        }
                    }
                }
            }
        }
    }

    /// The mean time of one discard of this size, in seconds; beyond the sizes
    /// that were seen the most that it may be. `None` if none was seen.
    pub(crate) fn predict(&self, bytes: f64) -> Option<f64> {
        let &(_, last) = self.points.last()?;
        let above = self
            .points
            .iter()
            .position(|(_, p)| p.bytes >= bytes / 1.01);
        let Some(above) = above else {
            return Some(self.beyond(last, bytes));
        };
        let upper = self.points[above].1;
        // Below the smallest that was seen it costs as much as that at most.
        let Some(lower) = above.checked_sub(1).map(|i| self.points[i].1) else {
            return Some(upper.seconds);
        };
        let share = ((bytes - lower.bytes) / (upper.bytes - lower.bytes)).clamp(0.0, 1.0);
        Some(lower.seconds + share * (upper.seconds - lower.seconds))
    }

    /// For a size beyond the largest seen: on the steepest line through what was
    /// seen, and never steeper than through nothing, nor than any drive.
    fn beyond(&self, last: Point, bytes: f64) -> f64 {
        let through_nothing = last.most() * bytes / last.bytes.max(1.0);
        let through_nothing =
            through_nothing.min(last.most() + STEEPEST * (bytes - last.bytes).max(0.0));
        let first = self.points[0].1;
        if last.bytes < first.bytes * 1.9 {
            return through_nothing;
        }
        let slope = (last.most() - first.seconds).max(0.0) / (last.bytes - first.bytes);
        through_nothing.min(last.most() + slope * (bytes - last.bytes))
    }

    /// The least that a discard of the largest size seen takes on average.
    pub(crate) fn least_of_largest(&self) -> f64 {
        self.points
            .last()
            .map_or(0.0, |(_, p)| p.seconds - RESOLUTION / p.commands.max(1.0))
    }

    /// The same of the smallest size, once enough were seen to be sure.
    pub(crate) fn least_of_smallest(&self) -> f64 {
        self.points
            .first()
            .filter(|(_, p)| p.commands >= 20.0)
            .map_or(0.0, |(_, p)| p.seconds - RESOLUTION / p.commands)
    }

    /// The largest size that was seen, in bytes.
    pub(crate) fn largest(&self) -> f64 {
        self.points.last().map_or(0.0, |(_, p)| p.bytes)
    }

    /// a (seconds) and b (seconds for each byte), where there are two sizes at
    /// least four times apart: the line through all, each weighing as much as it
    /// is sure. b is 0 where they tell no difference.
    pub(crate) fn line(&self) -> Option<(f64, f64)> {
        let (first, last) = (self.points.first()?.1, self.points.last()?.1);
        if last.bytes < first.bytes * 4.0 {
            return None;
        }
        let weighed = || {
            self.points.iter().map(|(_, p)| {
                let doubt = p.most() - p.seconds;
                (1.0 / (doubt * doubt).max(1e-18), p.bytes, p.seconds)
            })
        };
        let all: f64 = weighed().map(|(w, ..)| w).sum();
        let bytes = weighed().map(|(w, x, _)| w * x).sum::<f64>() / all;
        let seconds = weighed().map(|(w, _, y)| w * y).sum::<f64>() / all;
        let spread: f64 = weighed().map(|(w, x, _)| w * (x - bytes).powi(2)).sum();
        let b = weighed()
            .map(|(w, x, y)| w * (x - bytes) * (y - seconds))
            .sum::<f64>()
            / spread;
        // A difference that chance can make is none.
        if b < 2.0 / spread.sqrt() {
            return Some((seconds, 0.0));
        }
        Some(((seconds - b * bytes).max(0.0), b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn one_size_bounds_the_others() {
        let mut cost = Cost::default();
        assert_eq!(cost.predict(1.0), None);
        cost.learn(4, 4 * MIB, 0.004);
        assert_eq!(cost.predict(4096.0), Some(0.001));
        let eight = cost.predict(8.0 * MIB as f64).unwrap();
        assert!((0.008..0.012).contains(&eight), "{eight}");
    }

    #[test]
    fn two_sizes_tell_a_and_b() {
        let mut cost = Cost::default();
        let service = |mib: f64| 0.001 + 8e-6 * mib;
        for mib in [1_u64, 8, 64] {
            cost.learn(100, 100 * mib * MIB, 100.0 * service(mib as f64));
        }
        let (a, b) = cost.line().unwrap();
        assert!((a - 0.001).abs() < 1e-9 && (b * MIB as f64 - 8e-6).abs() < 1e-12);
        let whole = cost.predict(128.0 * MIB as f64).unwrap();
        assert!(
            (service(128.0)..service(128.0) * 1.4).contains(&whole),
            "{whole}"
        );
    }

    #[test]
    fn a_slower_drive_is_slower_for_every_size() {
        let mut cost = Cost::default();
        cost.learn(4, 4 * MIB, 4.0 * 0.005);
        cost.learn(4, 4 * 128 * MIB, 4.0 * 0.006);
        for _ in 0..60 {
            cost.learn(1, 128 * MIB, 0.012);
        }
        let small = cost.predict(MIB as f64).unwrap();
        assert!((0.009..0.011).contains(&small), "{small}");
    }
}
