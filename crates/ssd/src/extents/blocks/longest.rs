//! The longest range of a set, remembered below every node and looked for where something changed.

use std::ops::Range;

use super::CHUNK;
use super::chunk::Chunk;
use super::node::{Child, Holds, Node, WIDTH, bits_of, child_bits};

/// A node's memory of its children.
pub(super) type Memory = [Longest; WIDTH as usize];

/// The long ranges of a child, relative to its first block.
#[derive(Debug, Clone, Default)]
pub(super) struct Longest {
    /// The blocks from its first one on that it holds.
    head: u64,
    /// The blocks up to its last one that it holds.
    tail: u64,
    /// The longest range within it.
    range: Range<u64>,
}

impl Node {
    /// The longest range; of several the first.
    pub(super) fn longest(&mut self, height: u32) -> Range<u64> {
        let memory = self.memory.take();
        let mut memory =
            memory.unwrap_or_else(|| Box::new(std::array::from_fn(|_| Longest::default())));
        for child in bits_of(std::mem::take(&mut self.changed)) {
            let slot = &mut memory[child as usize];
            match self.stored(child) {
                Some(Child::Node(node)) => *slot = Longest::of_node(node, height - 1),
                Some(Child::Chunk(chunk)) => *slot = Longest::of_chunk(chunk),
                Some(Child::Uniform) | None => {}
            }
        }
        let longest = self.longest_of(&memory, 1 << child_bits(height));
        self.memory = Some(memory);
        longest
    }

    fn longest_of(&self, memory: &Memory, size: u64) -> Range<u64> {
        let mut longest = 0..0;
        let mut see = |range: Range<u64>| {
            if range.end - range.start > longest.end - longest.start {
                longest = range;
            }
        };
        // Where a range began that reaches the child.
        let mut open = None;
        for child in 0..WIDTH {
            let base = u64::from(child).saturating_mul(size);
            match self.holds(child) {
                Holds::All => _ = open.get_or_insert(base),
                Holds::Nothing => {
                    if let Some(start) = open.take() {
                        see(start..base);
                    }
                }
                Holds::Some(_) => {
                    let within = &memory[child as usize];
                    see(open.take().unwrap_or(base)..base + within.head);
                    see(base + within.range.start..base + within.range.end);
                    open = (within.tail > 0).then(|| base + (size - within.tail));
                }
            }
        }
        if let Some(start) = open {
            see(start..u64::from(WIDTH).saturating_mul(size));
        }
        longest
    }
}

impl Longest {
    fn of_node(node: &mut Node, height: u32) -> Longest {
        let last = (1 << child_bits(height + 1)) - 1;
        Longest {
            range: node.longest(height),
            head: node.next::<false>(height, 0).unwrap_or(0),
            tail: node.last::<false>(height, last).map_or(0, |gap| last - gap),
        }
    }

    fn of_chunk(chunk: &Chunk) -> Longest {
        let longest = chunk.longest();
        let last = CHUNK - 1;
        Longest {
            range: longest.start.into()..longest.end.into(),
            head: chunk.next::<false>(0).unwrap_or(0).into(),
            tail: chunk.last::<false>(last).map_or(0, |gap| last - gap).into(),
        }
    }
}
