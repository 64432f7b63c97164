//! A chunk's blocks, in the smallest form that fits.

use std::ops::Range;

use super::batch::union;
use super::bits::Bits;
use super::edges::{Edges, NoRoom};
use super::{CHUNK, Change};

/// The blocks of a chunk that is neither empty nor full.
///
/// Memory that isn't in the processor's cache costs more than all else here, so small forms are
/// fast forms. There are only four, because the processor guesses which one comes next. A form
/// grows when it has no room left, and shrinks when half of the next smaller one's room would do. Bits take as much memory as the edges of 512 runs, but a change reads only a word of them.
#[derive(Debug, Clone)]
pub(super) enum Chunk {
    /// Three runs, without a box.
    E6(Edges<6>),
    E32(Box<Edges<32>>),
    E128(Box<Edges<128>>),
    Bits(Box<Bits>),
}

/// Evaluates the same expression for whichever form it is: the edges', or the bits'.
macro_rules! each {
    ($chunk:expr, $edges:ident => $of_edges:expr, $bits:ident => $of_bits:expr) => {
        match $chunk {
            Chunk::E6($edges) => $of_edges,
            Chunk::E32($edges) => $of_edges,
            Chunk::E128($edges) => $of_edges,
            Chunk::Bits($bits) => $of_bits,
        }
    };
    ($chunk:expr, $form:ident => $of_form:expr) => {
        each!($chunk, $form => $of_form, $form => $of_form)
    };
}

impl Chunk {
    /// No block.
    pub(super) const EMPTY: Chunk = Chunk::E6(Edges::EMPTY);

    /// One run, not the whole chunk.
    pub(super) fn of(run: Range<u16>) -> Chunk {
        Chunk::E6([run].into_iter().collect())
    }

    /// All but one run, not the whole chunk.
    pub(super) fn without(run: Range<u16>) -> Chunk {
        let sides = [0..run.start, run.end..CHUNK];
        Chunk::E6(sides.into_iter().filter(|side| !side.is_empty()).collect())
    }

    /// Sets or clears the blocks of a range.
    pub(super) fn change<const SET: bool>(&mut self, range: Range<u16>) -> Change {
        loop {
            match self.try_change::<SET>(range.clone()) {
                Ok(change) => return change,
                Err(NoRoom) => self.grow(),
            }
        }
    }

    /// The same, unless its form has no room for the edges.
    #[inline]
    pub(super) fn try_change<const SET: bool>(
        &mut self,
        range: Range<u16>,
    ) -> Result<Change, NoRoom> {
        let change =
            each!(self, edges => edges.change::<SET>(range)?, bits => bits.change::<SET>(range));
        if change.runs < 0 {
            self.shrink();
        }
        Ok(change)
    }

    /// Sets the blocks of some runs, which are in order.
    pub(super) fn merge(&mut self, runs: &[Range<u16>]) -> Change {
        let (before, covered) = (self.runs(), self.covered());
        let runs = runs.iter().cloned();
        *self = Chunk::of_all(&each!(self, form => union(form.iter(), runs)));
        Change {
            blocks: self.covered() - covered,
            runs: self.runs() as i16 - before as i16,
        }
    }

    /// Runs in order, in the smallest form that they fit into.
    fn of_all(runs: &[Range<u16>]) -> Chunk {
        let each = runs.iter().cloned();
        match runs.len() {
            0..=3 => Chunk::E6(each.collect()),
            4..=16 => Chunk::E32(Box::new(each.collect())),
            17..=64 => Chunk::E128(Box::new(each.collect())),
            _ => Chunk::Bits(each.collect()),
        }
    }

    /// Whether it is full (`SET`) or empty.
    pub(super) fn is_uniform<const SET: bool>(&self) -> bool {
        if SET { self.is_full() } else { self.is_empty() }
    }

    pub(super) fn is_full(&self) -> bool {
        each!(self, form => form.is_full())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs() == 0
    }

    /// How many runs there are.
    pub(super) fn runs(&self) -> usize {
        each!(self, form => form.runs())
    }

    /// How many blocks it holds.
    pub(super) fn covered(&self) -> u64 {
        each!(self, form => form.covered()).into()
    }

    /// The first block at or after one that is in a run (`SET`) or in none.
    pub(super) fn next<const SET: bool>(&self, from: u16) -> Option<u16> {
        each!(self, form => form.next::<SET>(from)).filter(|&found| found < CHUNK)
    }

    /// The last block at or before one that is in a run (`SET`) or in none.
    pub(super) fn last<const SET: bool>(&self, from: u16) -> Option<u16> {
        each!(self, form => form.last::<SET>(from))
    }

    /// The longest run; of several the first.
    pub(super) fn longest(&self) -> Range<u16> {
        let longer = |a: Range<u16>, b: Range<u16>| if b.len() > a.len() { b } else { a };
        each!(self, form => form.iter().fold(0..0, longer))
    }

    #[cold]
    fn grow(&mut self) {
        *self = match self {
            Chunk::E6(edges) => Chunk::E32(Box::new(edges.iter().collect())),
            Chunk::E32(edges) => Chunk::E128(Box::new(edges.iter().collect())),
            Chunk::E128(edges) => Chunk::Bits(edges.iter().collect()),
            Chunk::Bits(_) => return,
        };
    }

    fn shrink(&mut self) {
        *self = match self {
            Chunk::E32(edges) if edges.runs() < 2 => Chunk::E6(edges.iter().collect()),
            Chunk::E128(edges) if edges.runs() < 8 => Chunk::E32(Box::new(edges.iter().collect())),
            Chunk::Bits(bits) if bits.runs() < 32 => Chunk::E128(Box::new(bits.iter().collect())),
            _ => return,
        };
    }
}
