//! The tree above the chunks: 64 children a node, and what each of them holds.

use std::ops::Range;

use super::chunk::Chunk;
use super::longest::Memory;
use super::{CHUNK, CHUNK_BITS, Change};

/// log2 of a node's children.
const WIDTH_BITS: u32 = 6;
/// A node's children: one for each bit of a mask.
pub(super) const WIDTH: u32 = 1 << WIDTH_BITS;

/// Blocks below a child of a node, as log2. The children of a node of height 0 are chunks.
pub(super) const fn child_bits(height: u32) -> u32 {
    CHUNK_BITS + height * WIDTH_BITS
}

/// A node of the tree. Its masks say what each child holds; only children that are neither empty
/// nor full are stored.
///
/// Addresses are relative to the node's first block. All methods take its height.
#[derive(Debug, Clone)]
pub(super) struct Node {
    /// Children that hold a block.
    some: u64,
    /// Children that hold all of their blocks; a part of `some`.
    full: u64,
    /// Children that changed since the longest range was last looked for.
    pub(super) changed: u64,
    /// The long ranges that there were then.
    pub(super) memory: Option<Box<Memory>>,
    children: [Child; WIDTH as usize],
}

/// The storage of a child.
#[derive(Debug, Clone)]
pub(super) enum Child {
    /// Nothing: it is empty or full.
    Uniform,
    Chunk(Chunk),
    Node(Box<Node>),
}

/// Whether a chunk holds all of its blocks or none.
pub(super) struct Uniform(pub(super) bool);

/// The blocks of a child.
pub(super) enum Holds<'a> {
    Nothing,
    All,
    Some(&'a Child),
}

impl Node {
    /// A node without a block.
    pub(super) fn empty() -> Box<Node> {
        Node::uniform(0)
    }

    /// A node with all of its blocks.
    fn full() -> Box<Node> {
        Node::uniform(u64::MAX)
    }

    fn uniform(mask: u64) -> Box<Node> {
        Box::new(Node {
            some: mask,
            full: mask,
            changed: u64::MAX,
            memory: None,
            children: [const { Child::Uniform }; WIDTH as usize],
        })
    }

    /// A node one higher whose first child is this one.
    pub(super) fn raised(self: Box<Node>) -> Box<Node> {
        let mut above = Node::empty();
        above.keep(0, Child::Node(self));
        above
    }

    pub(super) fn is_empty(&self) -> bool {
        self.some == 0
    }

    fn is_full(&self) -> bool {
        self.full == u64::MAX
    }

    pub(super) fn holds(&self, child: u32) -> Holds<'_> {
        let bit = 1 << child;
        if self.full & bit != 0 {
            Holds::All
        } else if self.some & bit == 0 {
            Holds::Nothing
        } else {
            Holds::Some(&self.children[child as usize])
        }
    }

    /// The storage of a child that is neither empty nor full.
    pub(super) fn stored(&mut self, child: u32) -> Option<&mut Child> {
        let stored = self.some & !self.full & (1 << child) != 0;
        stored.then_some(&mut self.children[child as usize])
    }

    /// Sets or clears the blocks of a range that isn't empty.
    ///
    /// The change in runs is right if the range lies inside a chunk and reaches neither of its
    /// ends.
    pub(super) fn change<const SET: bool>(&mut self, height: u32, range: Range<u64>) -> Change {
        let bits = child_bits(height);
        let (first, last) = (
            (range.start >> bits) as u32,
            ((range.end - 1) >> bits) as u32,
        );
        let size = 1 << bits;
        if first == last {
            let start = range.start % size;
            return self.child::<SET>(height, first, start..start + (range.end - range.start));
        }
        let mut blocks = 0;
        // The first and the last child may be covered in part.
        let head = range.start % size;
        let tail = (range.end - 1) % size + 1;
        blocks += self.child::<SET>(height, first, head..size).blocks;
        blocks += self.child::<SET>(height, last, 0..tail).blocks;
        let between = u64::MAX << first << 1 & !(u64::MAX << last);
        blocks += self.whole::<SET>(height, between);
        Change { blocks, runs: 0 }
    }

    /// Sets or clears a range that lies inside a chunk and reaches neither of its ends: the short
    /// way of nearly all changes. The chunk must be stored and have room.
    ///
    /// `None` says that nothing was done. If the chunk is empty or full now, the same change on the
    /// long way makes the tree say so.
    #[inline]
    pub(super) fn change_stored<const SET: bool>(
        &mut self,
        height: u32,
        range: &Range<u64>,
    ) -> Option<(Change, Uniform)> {
        let mut node = self;
        for height in (0..=height).rev() {
            let child = (range.start >> child_bits(height)) % u64::from(WIDTH);
            node.changed |= 1 << child;
            match &mut node.children[child as usize] {
                Child::Node(below) => node = below,
                Child::Chunk(chunk) => {
                    let size = u64::from(CHUNK);
                    let small = (range.start % size) as u16..(range.end % size) as u16;
                    let change = chunk.try_change::<SET>(small).ok()?;
                    // It reaches neither end, so the last block or gap goes with a run.
                    let is_uniform = change.runs < 0 && chunk.is_uniform::<SET>();
                    return Some((change, Uniform(is_uniform)));
                }
                Child::Uniform => return None,
            }
        }
        None
    }

    /// Sets the blocks of some runs of a chunk. They are in order, and inside the chunk: they reach
    /// neither of its ends.
    pub(super) fn merge(&mut self, height: u32, chunk: u64, runs: &[Range<u16>]) -> Change {
        let child = (chunk >> (height * WIDTH_BITS)) % u64::from(WIDTH);
        let bit = 1 << child;
        if self.full & bit != 0 {
            return Change::NONE;
        }
        self.some |= bit;
        self.changed |= bit;
        let slot = &mut self.children[child as usize];
        if let Child::Uniform = slot {
            *slot = match height {
                0 => Child::Chunk(Chunk::EMPTY),
                _ => Child::Node(Node::empty()),
            };
        }
        let (change, is_full) = match slot {
            Child::Node(node) => (node.merge(height - 1, chunk, runs), node.is_full()),
            Child::Chunk(chunk) => (chunk.merge(runs), chunk.is_full()),
            Child::Uniform => (Change::NONE, false),
        };
        if is_full {
            *slot = Child::Uniform;
            self.full |= bit;
        }
        change
    }

    /// Sets or clears a range of blocks of a child.
    fn child<const SET: bool>(&mut self, height: u32, child: u32, range: Range<u64>) -> Change {
        let (bit, size) = (1 << child, 1 << child_bits(height));
        if range.end - range.start == size {
            let blocks = self.whole::<SET>(height, bit);
            return Change { blocks, runs: 0 };
        }
        self.changed |= bit;
        let small = || range.start as u16..range.end as u16;
        let slot = &mut self.children[child as usize];
        let (change, uniform) = match slot {
            Child::Chunk(chunk) => {
                let change = chunk.change::<SET>(small());
                (
                    change,
                    if SET {
                        chunk.is_full()
                    } else {
                        chunk.is_empty()
                    },
                )
            }
            Child::Node(node) => {
                let change = node.change::<SET>(height - 1, range);
                (change, if SET { node.is_full() } else { node.is_empty() })
            }
            Child::Uniform => {
                // It already is what it shall become.
                if (self.full & bit != 0) == SET && (self.some & bit != 0) == SET {
                    return Change::NONE;
                }
                let blocks = range.end - range.start;
                *slot = match (height, SET) {
                    (0, true) => Child::Chunk(Chunk::of(small())),
                    (0, false) => Child::Chunk(Chunk::without(small())),
                    (_, true) => Child::Node(Node::empty()),
                    (_, false) => Child::Node(Node::full()),
                };
                if let Child::Node(node) = slot {
                    node.change::<SET>(height - 1, range);
                }
                self.some |= bit;
                self.full &= !bit;
                return Change { blocks, runs: 1 };
            }
        };
        if uniform {
            *slot = Child::Uniform;
            match SET {
                true => self.full |= bit,
                false => self.some &= !bit,
            }
        }
        change
    }

    /// Sets or clears all blocks of some children; returns how many changed.
    fn whole<const SET: bool>(&mut self, height: u32, children: u64) -> u64 {
        let all = self.full & children;
        let none = children & !self.some;
        let bits = child_bits(height);
        let mut blocks = u64::from(if SET { none } else { all }.count_ones()) << bits;
        for child in bits_of(children & self.some & !self.full) {
            let slot = &mut self.children[child as usize];
            let held = slot.covered(height);
            blocks += if SET { (1 << bits) - held } else { held };
            *slot = Child::Uniform;
        }
        match SET {
            true => (self.some, self.full) = (self.some | children, self.full | children),
            false => (self.some, self.full) = (self.some & !children, self.full & !children),
        }
        blocks
    }

    /// Puts a child in its place.
    fn keep(&mut self, child: u32, stored: Child) {
        let bit = 1 << child;
        let (some, full) = match &stored {
            Child::Node(node) => (!node.is_empty(), node.is_full()),
            Child::Chunk(chunk) => (!chunk.is_empty(), chunk.is_full()),
            Child::Uniform => (false, false),
        };
        self.some |= if some { bit } else { 0 };
        self.full |= if full { bit } else { 0 };
        if some && !full {
            self.children[child as usize] = stored;
        }
    }

    /// The blocks that it holds.
    fn covered(&self, height: u32) -> u64 {
        let full = u64::from(self.full.count_ones()) << child_bits(height);
        let stored = bits_of(self.some & !self.full);
        full + stored
            .map(|child| self.children[child as usize].covered(height))
            .sum::<u64>()
    }

    /// The first block at or after one that is in the set (`SET`) or isn't.
    pub(super) fn next<const SET: bool>(&self, height: u32, from: u64) -> Option<u64> {
        let bits = child_bits(height);
        let at = (from >> bits) as u32;
        let within = from & ((1 << bits) - 1);
        if let Some(found) = self.next_in::<SET>(height, at, within) {
            return Some(((at as u64) << bits) + found);
        }
        let later = self.candidates::<SET>() & (u64::MAX << at << 1);
        let child = bits_of(later).next()?;
        let found = self.next_in::<SET>(height, child, 0)?;
        Some((u64::from(child) << bits) + found)
    }

    fn next_in<const SET: bool>(&self, height: u32, child: u32, from: u64) -> Option<u64> {
        match self.holds(child) {
            Holds::Nothing => (!SET).then_some(from),
            Holds::All => SET.then_some(from),
            Holds::Some(Child::Node(node)) => node.next::<SET>(height - 1, from),
            Holds::Some(Child::Chunk(chunk)) => chunk.next::<SET>(from as u16).map(u64::from),
            Holds::Some(Child::Uniform) => None,
        }
    }

    /// The last block at or before one that is in the set (`SET`) or isn't.
    pub(super) fn last<const SET: bool>(&self, height: u32, from: u64) -> Option<u64> {
        let bits = child_bits(height);
        let at = (from >> bits) as u32;
        let within = from & ((1 << bits) - 1);
        if let Some(found) = self.last_in::<SET>(height, at, within) {
            return Some(((at as u64) << bits) + found);
        }
        let earlier = self.candidates::<SET>() & !(u64::MAX << at);
        let child = earlier.checked_ilog2()?;
        let found = self.last_in::<SET>(height, child, (1 << bits) - 1)?;
        Some((u64::from(child) << bits) + found)
    }

    fn last_in<const SET: bool>(&self, height: u32, child: u32, from: u64) -> Option<u64> {
        match self.holds(child) {
            Holds::Nothing => (!SET).then_some(from),
            Holds::All => SET.then_some(from),
            Holds::Some(Child::Node(node)) => node.last::<SET>(height - 1, from),
            Holds::Some(Child::Chunk(chunk)) => chunk.last::<SET>(from as u16).map(u64::from),
            Holds::Some(Child::Uniform) => None,
        }
    }

    /// Children with a block that is in the set, or isn't.
    fn candidates<const SET: bool>(&self) -> u64 {
        if SET { self.some } else { !self.full }
    }
}

impl Child {
    /// The blocks that a child of a node of a height holds.
    fn covered(&self, height: u32) -> u64 {
        match self {
            Child::Uniform => 0,
            Child::Chunk(chunk) => chunk.covered(),
            Child::Node(node) => node.covered(height - 1),
        }
    }
}

/// The numbers of the bits that are set, in order.
pub(super) fn bits_of(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < WIDTH).then_some(bit)
    })
}
