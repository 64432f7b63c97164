//! A set of intervals: ranges in order, without overlap.

use std::ops::Range;

use record::RunRecord;

/// Ranges of intervals, in order, none empty, none touching the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Spans(Vec<Range<usize>>);

impl Spans {
    /// The intervals of `range` for which `keep` holds.
    pub(super) fn filtered(range: Range<usize>, keep: impl Fn(usize) -> bool) -> Spans {
        let mut spans = Spans::default();
        range.filter(|&i| keep(i)).for_each(|i| spans.push(i));
        spans
    }

    /// Those of them for which `keep` holds.
    pub(super) fn retained(&self, keep: impl Fn(usize) -> bool) -> Spans {
        let mut spans = Spans::default();
        self.intervals()
            .filter(|&i| keep(i))
            .for_each(|i| spans.push(i));
        spans
    }

    fn push(&mut self, i: usize) {
        match self.0.last_mut() {
            Some(last) if last.end == i => last.end = i + 1,
            _ => self.0.push(i..i + 1),
        }
    }

    /// The ranges.
    pub(super) fn ranges(&self) -> &[Range<usize>] {
        &self.0
    }

    /// Every interval.
    pub(super) fn intervals(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.0.iter().cloned().flatten()
    }

    /// From the first interval to the last; `None` of none.
    pub(super) fn hull(&self) -> Option<Range<usize>> {
        Some(self.0.first()?.start..self.0.last()?.end)
    }

    /// How long they last, in seconds.
    pub(super) fn seconds(&self, record: &RunRecord) -> f64 {
        let seconds = |i: usize| f64::from(record.intervals.seconds[i]);
        self.intervals().fold(0.0, |sum, i| sum + seconds(i))
    }

    /// The mean of their indices; `None` of none.
    pub(super) fn centre(&self) -> Option<f64> {
        let (mut sum, mut count) = (0.0, 0.0);
        for range in &self.0 {
            let length = range.len() as f64;
            sum += length * (range.start as f64 + (length - 1.0) / 2.0);
            count += length;
        }
        (count > 0.0).then(|| sum / count)
    }
}

impl From<Range<usize>> for Spans {
    fn from(range: Range<usize>) -> Spans {
        Spans(if range.is_empty() {
            Vec::new()
        } else {
            vec![range]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_cut() {
        let odd_gap = Spans::filtered(0..10, |i| i != 3 && i < 8);
        assert_eq!(odd_gap.ranges(), [0..3, 4..8]);
        assert_eq!(
            odd_gap.retained(|i| i != 0 && i != 5).ranges(),
            [1..3, 4..5, 6..8]
        );
        assert_eq!(odd_gap.hull(), Some(0..8));
        assert_eq!(odd_gap.intervals().next_back(), Some(7));
        assert_eq!(Spans::from(4..4), Spans::default());
        assert_eq!(Spans::default().hull(), None);
    }

    #[test]
    fn the_centre_weighs_by_length() {
        assert_eq!(Spans::from(2..5).centre(), Some(3.0));
        // 0, 1, 2, and 9.
        let spans = Spans::filtered(0..10, |i| i < 3 || i == 9);
        assert_eq!(spans.centre(), Some(3.0));
        assert_eq!(Spans::default().centre(), None);
    }
}
