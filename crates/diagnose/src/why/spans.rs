//! Stretches of time in which a device had something in flight.

use serde::{Deserialize, Serialize};

/// Stretches of time, in seconds of one clock.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Spans {
    /// In order and disjoint after [`Spans::join`].
    all: Vec<(f64, f64)>,
}

impl Spans {
    /// Adds a stretch.
    pub fn add(&mut self, from_s: f64, to_s: f64) {
        if to_s > from_s {
            self.all.push((from_s, to_s));
        }
    }

    /// Puts them in order and joins those that overlap; after it they can be asked.
    pub fn join(&mut self) {
        self.all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut joined: Vec<(f64, f64)> = Vec::with_capacity(self.all.len());
        for &(from, to) in &self.all {
            match joined.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => joined.push((from, to)),
            }
        }
        self.all = joined;
    }

    /// How much of a stretch they cover, in seconds.
    pub fn covered(&self, from_s: f64, to_s: f64) -> f64 {
        let first = self.all.partition_point(|one| one.1 <= from_s);
        let rest = self.all[first..].iter();
        let parts = rest
            .take_while(|one| one.0 < to_s)
            .map(|one| one.1.min(to_s) - one.0.max(from_s));
        // An empty sum is -0.0.
        parts.sum::<f64>() + 0.0
    }

    /// Forgets what ended before a moment.
    pub fn forget_before(&mut self, from_s: f64) {
        self.all.retain(|one| one.1 >= from_s);
    }

    /// Each of them: its begin and its end.
    pub fn iter(&self) -> impl Iterator<Item = (f64, f64)> {
        self.all.iter().copied()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the parts within a stretch.
    pub fn within(&self, from_s: f64, to_s: f64) -> Spans {
        let mut cut = Spans::default();
        for one in &self.all {
            cut.add(one.0.max(from_s), one.1.min(to_s));
        }
        cut
    }

    /// Puts one stretch in the place of all those in each `grain_s` seconds, as long as they are
    /// together. So few are left, and how much they cover stays right to one grain.
    pub fn coarse(&self, grain_s: f64) -> Spans {
        let mut coarse = Spans::default();
        let Some((first, last)) = self.all.first().zip(self.all.last()) else {
            return coarse;
        };
        let (from, to) = ((first.0 / grain_s) as i64, (last.1 / grain_s) as i64);
        for grain in from..=to {
            let start = grain as f64 * grain_s;
            let covered = self.covered(start, start + grain_s);
            coarse.add(start, start + covered);
        }
        coarse.join();
        coarse
    }

    /// Their whole length, in seconds.
    pub fn length_s(&self) -> f64 {
        let all = self.all.iter().map(|one| one.1 - one.0);
        all.sum::<f64>() + 0.0
    }

    /// Their union with others.
    pub fn with(mut self, others: &Spans) -> Spans {
        self.all.extend(&others.all);
        self.join();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_takes_no_time_with_a_plus() {
        let none = Spans::default();
        assert!(none.covered(0.0, 1.0).is_sign_positive());
        assert!(none.length_s().is_sign_positive());
    }

    #[test]
    fn overlapping_stretches_count_once() {
        let mut spans = Spans::default();
        for (from, to) in [(5.0, 6.0), (1.0, 3.0), (2.0, 4.0), (7.0, 7.0)] {
            spans.add(from, to);
        }
        spans.join();
        assert_eq!(spans.length_s(), 4.0);
        assert_eq!(spans.covered(0.0, 10.0), 4.0);
        assert_eq!(spans.covered(2.5, 5.5), 2.0);
        assert_eq!(spans.covered(4.0, 5.0), 0.0);
    }

    proptest! {
        #[test]
        fn coarse_ones_are_as_long_and_few(
            all in proptest::collection::vec((0.0..10.0f64, 0.0..0.1f64), 0..200),
        ) {
            let mut spans = Spans::default();
            all.iter().for_each(|(from, length)| spans.add(*from, from + length));
            spans.join();
            let coarse = spans.coarse(0.5);
            prop_assert!((coarse.length_s() - spans.length_s()).abs() < 1e-6);
            prop_assert!(coarse.count() <= 22);
            let (one, other) = (coarse.covered(2.0, 7.0), spans.covered(2.0, 7.0));
            prop_assert!((one - other).abs() < 1e-6, "{one} {other}");
        }

        #[test]
        fn parts_add_up(
            all in proptest::collection::vec((0.0..10.0f64, 0.0..3.0f64), 0..20),
            cut in 0.0..10.0f64,
        ) {
            let mut spans = Spans::default();
            all.iter().for_each(|(from, length)| spans.add(*from, from + length));
            spans.join();
            let parts = spans.covered(0.0, cut) + spans.covered(cut, 20.0);
            prop_assert!((parts - spans.length_s()).abs() < 1e-9);
        }
    }
}
