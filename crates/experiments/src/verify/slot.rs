//! A file, or a region of a device, with what it is expected to hold.

use std::collections::VecDeque;
use std::fs::File;
use std::ops::Range;

use crate::verify::block::{BLOCK, Identity};
use crate::verify::pattern::Expected;

/// So many writes of a slot are remembered with their time.
const REMEMBERED: usize = 1 << 16;

/// The content that a block ought to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// Zeros: a hole.
    Zeros,
    /// A write of this generation.
    Data(u32),
    /// Nothing is known, or it was discarded on a raw device.
    Unknown,
}

/// The highest generation: three bits of a cell are taken.
const HIGHEST: u32 = RIGHT - 1;
/// This bit of a cell means that the data were read rightly since they were written.
const RIGHT: u32 = 1 << 29;

/// A [`Content`] in four bytes: a test of a terabyte has a gigabyte of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell(u32);

impl From<Content> for Cell {
    fn from(content: Content) -> Cell {
        Cell(match content {
            Content::Zeros => 0,
            Content::Data(generation) => generation & HIGHEST | 1 << 30,
            Content::Unknown => 2 << 30,
        })
    }
}

impl From<Cell> for Content {
    fn from(cell: Cell) -> Content {
        let generation = cell.0 & HIGHEST;
        match cell.0 >> 30 {
            0 => Content::Zeros,
            1 => Content::Data(generation),
            _ => Content::Unknown,
        }
    }
}

/// A file or region.
#[derive(Debug)]
pub(crate) struct Slot {
    /// Its number, from 1.
    pub(crate) number: u32,
    /// Where it begins on the device; 0 for a file.
    pub(crate) base: u64,
    /// Open past the page cache where that is possible.
    pub(crate) file: File,
    /// Its length in blocks; of a region always that of the map.
    pub(crate) length: usize,
    pub(crate) map: Vec<Cell>,
    next: u32,
    /// When each of the latest generations was written.
    writes: VecDeque<f64>,
    /// The generation of the first of them.
    first: u32,
}

impl Slot {
    pub(crate) fn new(number: u32, base: u64, file: File, length: usize, map: Vec<Cell>) -> Slot {
        Slot {
            number,
            base,
            file,
            length,
            map,
            next: 1,
            writes: VecDeque::new(),
            first: 1,
        }
    }

    /// The generation for a write that begins now.
    pub(crate) fn begin_write(&mut self, at_s: f64) -> u32 {
        let generation = self.next;
        // A thousand writes a second reach it after six days.
        self.next = if generation >= HIGHEST {
            1
        } else {
            generation + 1
        };
        if self.writes.len() == REMEMBERED {
            self.writes.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        self.writes.push_back(at_s);
        generation
    }

    /// When a generation was written, in seconds since the test began.
    pub(crate) fn written_s(&self, generation: u32) -> Option<f64> {
        let index = generation.checked_sub(self.first)?;
        self.writes.get(index as usize).copied()
    }

    /// Whether a block was read rightly since it was written.
    pub(crate) fn was_right(&self, block: usize) -> bool {
        self.map[block].0 & RIGHT != 0
    }

    /// Notes that a block was read rightly.
    pub(crate) fn is_right(&mut self, block: usize) {
        self.map[block].0 |= RIGHT;
    }

    pub(crate) fn content(&self, block: usize) -> Content {
        self.map[block].into()
    }

    pub(crate) fn set(&mut self, blocks: Range<usize>, content: Content) {
        self.map[blocks].fill(content.into());
    }

    /// Bytes of the file or region at which a block begins.
    pub(crate) fn offset(block: usize) -> u64 {
        block as u64 * BLOCK as u64
    }

    /// The identity of a block's first sector.
    pub(crate) fn identity(&self, volume: u64, block: usize, generation: u32) -> Identity {
        Identity {
            volume,
            file: self.number,
            generation,
            offset: Slot::offset(block),
        }
    }

    /// The content that a block's first sector ought to have.
    pub(crate) fn expected(&self, volume: u64, block: usize) -> Expected {
        match self.content(block) {
            Content::Data(generation) => Expected::Data(self.identity(volume, block, generation)),
            Content::Zeros => Expected::Zeros(self.identity(volume, block, 0)),
            Content::Unknown => Expected::Anything(self.identity(volume, block, 0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn slot() -> Slot {
        let map = vec![Content::Unknown.into(); 16];
        Slot::new(1, 0, tempfile::tempfile().unwrap(), 16, map)
    }

    #[test]
    fn writes_are_remembered_and_the_oldest_forgotten() {
        let mut slot = slot();
        assert_eq!(slot.begin_write(1.0), 1);
        assert_eq!(slot.begin_write(2.0), 2);
        assert_eq!(slot.written_s(2), Some(2.0));
        for _ in 0..REMEMBERED {
            slot.begin_write(3.0);
        }
        assert_eq!(slot.written_s(2), None);
    }

    #[test]
    fn each_block_of_a_write_is_right_by_itself() {
        let mut slot = slot();
        slot.set(0..4, Content::Data(HIGHEST));
        slot.is_right(1);
        assert!(slot.was_right(1) && !slot.was_right(0) && !slot.was_right(2));
        assert_eq!(slot.content(1), Content::Data(HIGHEST));
        slot.set(0..4, Content::Data(3));
        assert!(!slot.was_right(1), "it was written anew");
    }

    proptest! {
        #[test]
        fn a_cell_holds_any_content(kind in 0..3, generation in 0..=HIGHEST) {
            let content = match kind {
                0 => Content::Zeros,
                1 => Content::Data(generation),
                    _ => Content::Unknown,
            };
            prop_assert_eq!(Content::from(Cell::from(content)), content);
        }
    }
}
