//! A set of block numbers for volumes with millions of free ranges.

use std::fmt;
use std::iter::FusedIterator;
use std::ops::Range;

use node::{Node, Uniform, child_bits};

mod batch;
mod bits;
mod chunk;
mod edges;
mod longest;
mod node;

/// log2 of a chunk's blocks.
const CHUNK_BITS: u32 = 14;
/// Blocks in a chunk: 64 MiB of 4 KiB blocks.
const CHUNK: u16 = 1 << CHUNK_BITS;

/// The effect of an operation.
#[derive(Debug, Clone, Copy)]
struct Change {
    /// Blocks that are new, or gone.
    blocks: u64,
    /// Runs that there are more now.
    runs: i16,
}

impl Change {
    const NONE: Change = Change { blocks: 0, runs: 0 };
}

/// A set of block numbers, held as ordered, disjoint ranges that don't touch.
///
/// It is [`Extents`](crate::extents::Extents) for a volume's free space: millions of ranges, short ones
/// mostly, that come and go at random. A tree of 64-ary nodes leads to chunks of 16,384 blocks. A
/// chunk with few runs keeps their edges, one with many a bit for each block. A part that is empty
/// or full takes two bits, whatever its size. So an operation touches a handful of cache lines, and
/// memory follows the number of ranges: 5 to 15 bytes for each in `make bench-extents`.
///
/// Numbers up to `u64::MAX - 1` can be held. A range whose end isn't above its start is empty, and
/// every operation takes it as such.
///
/// ```
/// use ssd::extents::BlockSet;
///
/// let mut free = BlockSet::from(0..1 << 32);
/// free.remove(100..200);
/// assert_eq!(free.coalesce(150..300), 150..1 << 32);
/// assert_eq!(free.pop_first(), Some(0..100));
/// assert_eq!(free.longest(), Some(150..1 << 32));
/// ```
#[derive(Clone)]
pub struct BlockSet {
    root: Box<Node>,
    height: u32,
    covered: u64,
    len: usize,
}

impl BlockSet {
    /// The empty set.
    pub fn new() -> BlockSet {
        BlockSet {
            root: Node::empty(),
            height: 0,
            covered: 0,
            len: 0,
        }
    }

    /// Adds a range and merges it with what it touches; returns how many blocks are new.
    pub fn insert(&mut self, range: Range<u64>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        self.raise(range.end - 1);
        if inside_a_chunk(&range) {
            let change = self.change::<true>(range);
            self.len = self.len.wrapping_add_signed(change.runs.into());
            self.covered += change.blocks;
            return change.blocks;
        }
        self.len -= self.within(widened(&range)).count();
        self.len += 1;
        let blocks = self.root.change::<true>(self.height, range).blocks;
        self.covered += blocks;
        blocks
    }

    /// Takes a range out, splitting what reaches over its edges; returns how many blocks were
    /// there.
    pub fn remove(&mut self, range: Range<u64>) -> u64 {
        let range = range.start..range.end.min(self.end());
        if range.is_empty() {
            return 0;
        }
        if inside_a_chunk(&range) {
            let change = self.change::<false>(range);
            self.len = self.len.wrapping_add_signed(change.runs.into());
            self.covered -= change.blocks;
            return change.blocks;
        }
        let before = self.within(widened(&range)).count();
        let blocks = self.root.change::<false>(self.height, range.clone()).blocks;
        let after = self.within(widened(&range)).count();
        self.len = self.len + after - before;
        self.covered -= blocks;
        blocks
    }

    /// Sets or clears a range that lies inside a chunk and reaches neither of its ends.
    fn change<const SET: bool>(&mut self, range: Range<u64>) -> Change {
        match self.root.change_stored::<SET>(self.height, &range) {
            Some((change, Uniform(false))) => change,
            Some((change, Uniform(true))) => {
                self.root.change::<SET>(self.height, range);
                change
            }
            None => self.root.change::<SET>(self.height, range),
        }
    }

    /// Adds a range; returns the whole range of the set that it is now a part of. An empty range
    /// is returned as it is.
    pub fn coalesce(&mut self, range: Range<u64>) -> Range<u64> {
        self.insert(range.clone());
        self.around(range.start)
            .filter(|_| !range.is_empty())
            .unwrap_or(range)
    }

    /// Adds many ranges, several times faster than one by one where there are tens of thousands.
    ///
    /// It sorts them first, so that it visits each part of the set once. The copy that it sorts
    /// takes 16 bytes for each of up to a million ranges at a time.
    pub fn insert_all(&mut self, ranges: &[Range<u64>]) {
        for group in ranges.chunks(batch::LARGEST) {
            let sorted = batch::sorted(group);
            let mut runs = Vec::new();
            for chunk in sorted.chunk_by(same_chunk) {
                self.insert_sorted(chunk, &mut runs);
            }
        }
    }

    /// Adds sorted ranges that don't overlap: one, or several inside one chunk.
    fn insert_sorted(&mut self, ranges: &[Range<u64>], runs: &mut Vec<Range<u16>>) {
        let [first, _, ..] = ranges else {
            return ranges
                .iter()
                .for_each(|range| _ = self.insert(range.clone()));
        };
        self.raise(first.end - 1);
        let small = |block: u64| (block % u64::from(CHUNK)) as u16;
        runs.clear();
        runs.extend(ranges.iter().map(|r| small(r.start)..small(r.end)));
        let change = self
            .root
            .merge(self.height, first.start >> CHUNK_BITS, runs);
        self.len = self.len.wrapping_add_signed(change.runs.into());
        self.covered += change.blocks;
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        *self = BlockSet::new();
    }

    /// Whether a block is in the set.
    pub fn contains(&self, block: u64) -> bool {
        self.next_held(block) == Some(block)
    }

    /// Whether a whole range is in the set; an empty range always is.
    pub fn covers(&self, range: Range<u64>) -> bool {
        range.is_empty() || self.contains(range.start) && self.next_gap(range.start) >= range.end
    }

    /// How many blocks of a range are in the set.
    pub fn overlap(&self, range: Range<u64>) -> u64 {
        self.within(range).map(|held| held.end - held.start).sum()
    }

    /// The parts of a range that are in the set, in order.
    pub fn within(&self, range: Range<u64>) -> BlocksWithin<'_> {
        BlocksWithin {
            set: self,
            rest: range,
        }
    }

    /// The ranges in order. They don't touch each other.
    pub fn iter(&self) -> BlocksWithin<'_> {
        self.within(0..u64::MAX)
    }

    /// How many blocks are in the set. Takes no time.
    pub const fn covered(&self) -> u64 {
        self.covered
    }

    /// How many ranges are held. Takes no time.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no block in the set.
    pub const fn is_empty(&self) -> bool {
        self.covered == 0
    }

    /// The range that holds a block, if one does.
    pub fn around(&self, block: u64) -> Option<Range<u64>> {
        if !self.contains(block) {
            return None;
        }
        let gap = self.root.last::<false>(self.height, block);
        Some(gap.map_or(0, |gap| gap + 1)..self.next_gap(block))
    }

    /// The first range.
    pub fn first(&self) -> Option<Range<u64>> {
        self.iter().next()
    }

    /// The last range.
    pub fn last(&self) -> Option<Range<u64>> {
        self.around(self.root.last::<true>(self.height, self.end() - 1)?)
    }

    /// Takes the first range out.
    pub fn pop_first(&mut self) -> Option<Range<u64>> {
        let range = self.first()?;
        self.remove(range.clone());
        Some(range)
    }

    /// The longest range; of several the first.
    ///
    /// The first call looks at the whole set, later ones only at what changed since.
    pub fn longest(&mut self) -> Option<Range<u64>> {
        let longest = self.root.longest(self.height);
        (!longest.is_empty()).then_some(longest)
    }

    /// The first block at or after one that is in the set.
    fn next_held(&self, from: u64) -> Option<u64> {
        match from < self.end() {
            true => self.root.next::<true>(self.height, from),
            false => None,
        }
    }

    /// The first block at or after one that isn't in the set.
    fn next_gap(&self, from: u64) -> u64 {
        let gap = self.root.next::<false>(self.height, from);
        gap.unwrap_or(self.end())
    }

    /// The end of what the tree can hold as high as it is.
    fn end(&self) -> u64 {
        1_u64
            .checked_shl(child_bits(self.height + 1))
            .unwrap_or(u64::MAX)
    }

    /// Makes the tree as high as it must be to hold a block.
    fn raise(&mut self, block: u64) {
        while block >= self.end() {
            let root = std::mem::replace(&mut self.root, Node::empty());
            self.root = root.raised();
            self.height += 1;
        }
    }
}

/// Whether two ranges lie inside the same chunk, and reach none of its ends.
fn same_chunk(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start >> CHUNK_BITS == b.start >> CHUNK_BITS && inside_a_chunk(a) && inside_a_chunk(b)
}

/// Whether a range lies in one chunk and reaches neither of its ends, as nearly all do. Then it
/// touches nothing in other chunks.
fn inside_a_chunk(range: &Range<u64>) -> bool {
    let inside = |block: u64| !block.is_multiple_of(CHUNK.into());
    range.start >> CHUNK_BITS == range.end >> CHUNK_BITS && inside(range.start) && inside(range.end)
}

/// A range and the blocks beside it.
fn widened(range: &Range<u64>) -> Range<u64> {
    range.start.saturating_sub(1)..range.end.saturating_add(1)
}

impl Default for BlockSet {
    fn default() -> BlockSet {
        BlockSet::new()
    }
}

impl PartialEq for BlockSet {
    fn eq(&self, other: &BlockSet) -> bool {
        self.covered == other.covered && self.len == other.len && self.iter().eq(other.iter())
    }
}

impl Eq for BlockSet {}

impl From<Range<u64>> for BlockSet {
    fn from(range: Range<u64>) -> BlockSet {
        let mut set = BlockSet::new();
        set.insert(range);
        set
    }
}

impl Extend<Range<u64>> for BlockSet {
    fn extend<I: IntoIterator<Item = Range<u64>>>(&mut self, ranges: I) {
        for range in ranges {
            self.insert(range);
        }
    }
}

impl FromIterator<Range<u64>> for BlockSet {
    fn from_iter<I: IntoIterator<Item = Range<u64>>>(ranges: I) -> BlockSet {
        let mut set = BlockSet::new();
        set.extend(ranges);
        set
    }
}

impl<'a> IntoIterator for &'a BlockSet {
    type Item = Range<u64>;
    type IntoIter = BlocksWithin<'a>;

    fn into_iter(self) -> BlocksWithin<'a> {
        self.iter()
    }
}

impl fmt::Debug for BlockSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The parts of a range that are in a set; see [`BlockSet::within`].
#[derive(Debug, Clone)]
pub struct BlocksWithin<'a> {
    set: &'a BlockSet,
    /// The part that is still to be visited.
    rest: Range<u64>,
}

impl Iterator for BlocksWithin<'_> {
    type Item = Range<u64>;

    fn next(&mut self) -> Option<Range<u64>> {
        if self.rest.is_empty() {
            return None;
        }
        let start = self.set.next_held(self.rest.start);
        let Some(start) = start.filter(|&start| start < self.rest.end) else {
            self.rest.start = self.rest.end;
            return None;
        };
        let end = self.set.next_gap(start).min(self.rest.end);
        self.rest.start = end;
        Some(start..end)
    }
}

impl FusedIterator for BlocksWithin<'_> {}
