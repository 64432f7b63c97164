//! Ordered, disjoint ranges of a 64-bit address space.
//!
//! A drive's model has to know which bytes are mapped, a deleter which bytes
//! are freed and not yet discarded. Both are sets of ranges over
//! terabytes: too large for a bitmap, and always asked by range. [`Extents`] is
//! that set. It is pure: no system call, no clock, no unit of its own
//! (bytes, sectors or blocks, whatever the caller counts in).
//!
//! [`DiscardQueue`] puts a volume's freed blocks in order for its drive, and lets
//! an allocation cancel what waits.
//!
//! Ranges are half-open (`start..end`), so the last address that can be held is
//! `u64::MAX - 1`. A range whose end isn't above its start is empty, and every
//! operation takes it as such.
//!
//! ```
//! use ssd::extents::Extents;
//!
//! let mut mapped = Extents::from(0..100);
//! assert_eq!(mapped.remove(20..40), 20);
//! assert_eq!(mapped.overlap(10..50), 20);
//! assert_eq!(mapped.iter().collect::<Vec<_>>(), [0..20, 40..100]);
//! ```

mod queue;

use std::collections::{BTreeMap, btree_map};
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;

pub use queue::{Command, CommandLimits, DiscardQueue, InFlight, Order, Short};

/// A set of addresses, held as ordered, disjoint ranges that don't touch.
///
/// With `n` ranges held, a look-up takes O(log n). A change or a question about a range takes O(log
/// n) and a step for each held range it touches.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Extents {
    /// Start → end. Neighbours are merged: every end is below the next start.
    ends: BTreeMap<u64, u64>,
    /// The sum of all lengths, kept so that it costs nothing to ask.
    covered: u64,
}

impl Extents {
    /// The empty set.
    pub const fn new() -> Extents {
        Extents {
            ends: BTreeMap::new(),
            covered: 0,
        }
    }

    /// Adds a range and merges it with what it touches; returns how many
    /// addresses are new.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let before = self.covered;
        let (mut start, mut end) = (range.start, range.end);
        // From the right: every range that begins in or at the end of the new one.
        while let Some((&s, &e)) = self.ends.range(..=end).next_back() {
            if e < start {
                break;
            }
            self.ends.remove(&s);
            self.covered -= e - s;
            start = start.min(s);
            end = end.max(e);
        }
        self.ends.insert(start, end);
        self.covered += end - start;
        self.covered - before
    }

    /// Adds a range; returns the whole range of the set that it is now a part of. An empty range
    /// is returned as it is.
    pub fn coalesce(&mut self, range: Range<u64>) -> Range<u64> {
        self.insert(range.clone());
        let whole = self.around(range.start).filter(|_| !range.is_empty());
        whole.unwrap_or(range)
    }

    /// Takes a range out, splitting what reaches over its edges; returns how
    /// many addresses were there.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let before = self.covered;
        while let Some((&s, &e)) = self.ends.range(..range.end).next_back() {
            if e <= range.start {
                break;
            }
            self.ends.remove(&s);
            self.covered -= e - s;
            if e > range.end {
                self.put_back(range.end, e);
            }
            if s < range.start {
                self.put_back(s, range.start);
                break;
            }
        }
        before - self.covered
    }

    /// A piece of a range just taken out; it touches nothing.
    fn put_back(&mut self, start: u64, end: u64) {
        self.ends.insert(start, end);
        self.covered += end - start;
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        *self = Extents::new();
    }

    /// Whether an address is in the set.
    pub fn contains(&self, address: u64) -> bool {
        self.around(address).is_some()
    }

    /// The range that holds an address, if one does.
    pub fn around(&self, address: u64) -> Option<Range<u64>> {
        self.at_or_before(address).filter(|r| address < r.end)
    }

    /// Whether a whole range is in the set; an empty range always is.
    pub fn covers(&self, range: Range<u64>) -> bool {
        range.is_empty()
            || self
                .at_or_before(range.start)
                .is_some_and(|held| range.end <= held.end)
    }

    /// How many addresses of a range are in the set.
    pub fn overlap(&self, range: Range<u64>) -> u64 {
        self.within(range).map(|r| r.end - r.start).sum()
    }

    /// The parts of a range that are in the set, in order.
    pub fn within(&self, range: Range<u64>) -> Within<'_> {
        Within::new(self, range)
    }

    /// The parts of a range that are not in the set, in order.
    pub fn gaps(&self, range: Range<u64>) -> Gaps<'_> {
        Gaps::new(self, range)
    }

    /// How many addresses are in the set. Takes no time.
    pub const fn covered(&self) -> u64 {
        self.covered
    }

    /// How many ranges are held.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no address in the set.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The ranges in order. They don't touch each other.
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(self)
    }

    /// The first range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.ends.first_key_value().map(|(&s, &e)| s..e)
    }

    /// The last range.
    pub fn last(&self) -> Option<Range<u64>> {
        self.ends.last_key_value().map(|(&s, &e)| s..e)
    }

    /// The last range that begins at or before an address.
    fn at_or_before(&self, address: u64) -> Option<Range<u64>> {
        let (&s, &e) = self.ends.range(..=address).next_back()?;
        Some(s..e)
    }
}

impl From<Range<u64>> for Extents {
    fn from(range: Range<u64>) -> Extents {
        let mut set = Extents::new();
        set.insert(range);
        set
    }
}

impl Extend<Range<u64>> for Extents {
    fn extend<I: IntoIterator<Item = Range<u64>>>(&mut self, ranges: I) {
        for range in ranges {
            self.insert(range);
        }
    }
}

impl FromIterator<Range<u64>> for Extents {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> Extents {
        let mut set = Extents::new();
        set.extend(ranges);
        set
    }
}

impl<'a> IntoIterator for &'a Extents {
    type Item = Range<u64>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl fmt::Debug for Extents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

// Walking over the ranges of a set: all of them, those within a range, and
// the gaps between them.

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
