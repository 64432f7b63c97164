//! Walking over the ranges of a set: all of them, those within a range, and
//! the gaps between them.

use std::collections::btree_map;
use std::iter::FusedIterator;
use std::ops::Range;

use crate::extents::Extents;

/// The ranges of a set in order; see [`Extents::iter`].
#[derive(Debug, Clone)]
pub struct Iter<'a>(btree_map::Iter<'a, u64, u64>);

impl<'a> Iter<'a> {
    pub(crate) fn new(set: &'a Extents) -> Iter<'a> {
        Iter(set.ends.iter())
    }
}

impl Iterator for Iter<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        self.0.next().map(|(&s, &e)| s..e)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Range<u64>> {
        self.0.next_back().map(|(&s, &e)| s..e)
    }
}

impl ExactSizeIterator for Iter<'_> {}
impl FusedIterator for Iter<'_> {}

/// The parts of a range that are in a set; see [`Extents::within`].
#[derive(Debug, Clone)]
pub struct Within<'a> {
    held: btree_map::Range<'a, u64, u64>,
    window: Range<u64>,
}

impl<'a> Within<'a> {
    pub(crate) fn new(set: &'a Extents, window: Range<u64>) -> Within<'a> {
        if window.is_empty() {
            return Within {
                held: set.ends.range(0..0),
                window: 0..0,
            };
        }
        // The range that reaches into the window from the left, if there is one.
        let first = set
            .at_or_before(window.start)
            .filter(|r| r.end > window.start)
            .map_or(window.start, |r| r.start);
        Within {
            held: set.ends.range(first..window.end),
            window,
        }
    }
}

impl Iterator for Within<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        let (&s, &e) = self.held.next()?;
        Some(s.max(self.window.start)..e.min(self.window.end))
    }
}

impl FusedIterator for Within<'_> {}

/// The parts of a range that are not in a set; see [`Extents::gaps`].
#[derive(Debug, Clone)]
pub struct Gaps<'a> {
    held: Within<'a>,
    /// The part that is still to be visited.
    rest: Range<u64>,
}

impl<'a> Gaps<'a> {
    pub(crate) fn new(set: &'a Extents, window: Range<u64>) -> Gaps<'a> {
        Gaps {
            held: set.within(window.clone()),
            rest: window,
        }
    }
}

impl Iterator for Gaps<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        while !self.rest.is_empty() {
            let from = self.rest.start;
            let Some(held) = self.held.next() else {
                self.rest.start = self.rest.end;
                return Some(from..self.rest.end);
            };
            self.rest.start = held.end;
            if from < held.start {
                return Some(from..held.start);
            }
        }
        None
    }
}

impl FusedIterator for Gaps<'_> {}
