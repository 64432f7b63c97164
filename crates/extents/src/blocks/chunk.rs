//! A chunk's blocks, in the smallest form that fits.

use std::ops::Range;

use super::bits::Bits;
use super::edges::{Edges, NoRoom};
use super::{CHUNK, Change};

/// The blocks of a chunk that is neither empty nor full.
///
/// Memory that isn't in the processor's cache costs more than all else here, so small forms are
/// fast forms. A form grows twofold when it has no room left, and shrinks when it is less than a
/// quarter full. Bits take as much memory as the edges of 512 runs, but only a word of it is read.
#[derive(Debug, Clone)]
pub(super) enum Chunk {
    /// Three runs, without a box.
    E6(Edges<6>),
    E16(Box<Edges<16>>),
    E32(Box<Edges<32>>),
    E64(Box<Edges<64>>),
    E128(Box<Edges<128>>),
    E256(Box<Edges<256>>),
    Bits(Box<Bits>),
}

/// Evaluates the same expression for whichever form it is: the edges', or the bits'.
macro_rules! each {
    ($chunk:expr, $edges:ident => $of_edges:expr, $bits:ident => $of_bits:expr) => {
        match $chunk {
            Chunk::E6($edges) => $of_edges,
            Chunk::E16($edges) => $of_edges,
            Chunk::E32($edges) => $of_edges,
            Chunk::E64($edges) => $of_edges,
            Chunk::E128($edges) => $of_edges,
            Chunk::E256($edges) => $of_edges,
            Chunk::Bits($bits) => $of_bits,
        }
    };
    ($chunk:expr, $form:ident => $of_form:expr) => {
        each!($chunk, $form => $of_form, $form => $of_form)
    };
}

impl Chunk {
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
            Chunk::E6(_) => Chunk::E16(self.edges()),
            Chunk::E16(_) => Chunk::E32(self.edges()),
            Chunk::E32(_) => Chunk::E64(self.edges()),
            Chunk::E64(_) => Chunk::E128(self.edges()),
            Chunk::E128(_) => Chunk::E256(self.edges()),
            Chunk::E256(edges) => Chunk::Bits(edges.iter().collect()),
            Chunk::Bits(_) => return,
        };
    }

    fn shrink(&mut self) {
        let runs = self.runs();
        *self = match self {
            Chunk::E16(_) if runs < 2 => Chunk::E6(*self.edges()),
            Chunk::E32(_) if runs < 4 => Chunk::E16(self.edges()),
            Chunk::E64(_) if runs < 8 => Chunk::E32(self.edges()),
            Chunk::E128(_) if runs < 16 => Chunk::E64(self.edges()),
            Chunk::E256(_) if runs < 32 => Chunk::E128(self.edges()),
            Chunk::Bits(_) if runs < 64 => Chunk::E256(self.edges()),
            _ => return,
        };
    }

    fn edges<const N: usize>(&self) -> Box<Edges<N>> {
        Box::new(each!(self, form => form.iter().collect()))
    }
}
