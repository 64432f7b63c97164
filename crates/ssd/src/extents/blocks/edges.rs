//! A chunk with few runs: the sorted list of their edges.

use std::ops::Range;

use super::{CHUNK, Change};

/// The edges of up to `N / 2` runs of blocks: start, end, start, end and so on.
///
/// No run touches another, so the edges rise, and an odd number of them at or below a block says
/// that the block is in a run. Unused places hold [`u16::MAX`], which is above every edge. So a
/// search counts over the whole array, without a branch, in vector instructions.
#[derive(Debug, Clone)]
pub(super) struct Edges<const N: usize> {
    len: u16,
    all: [u16; N],
}

/// There is no place for another edge.
pub(super) struct NoRoom;

impl<const N: usize> Edges<N> {
    /// No run.
    pub(super) const EMPTY: Edges<N> = Edges {
        len: 0,
        all: [u16::MAX; N],
    };

    /// How many runs there are.
    pub(super) fn runs(&self) -> usize {
        self.used().len() / 2
    }

    fn used(&self) -> &[u16] {
        &self.all[..usize::from(self.len)]
    }

    /// The runs in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u16>> + '_ {
        self.used().chunks_exact(2).map(|run| run[0]..run[1])
    }

    /// How many blocks are in the runs.
    pub(super) fn covered(&self) -> u16 {
        self.iter().map(|run| run.end - run.start).sum()
    }

    pub(super) fn is_full(&self) -> bool {
        self.used() == [0, CHUNK]
    }

    /// Sets or clears the blocks of a range.
    pub(super) fn change<const SET: bool>(&mut self, range: Range<u16>) -> Result<Change, NoRoom> {
        let first = self.count(|edge| edge < range.start);
        // From here on the edges up to the range's end, few mostly; and what was in runs.
        let (mut behind, mut from, mut held) = (first, range.start, 0);
        let mut inside = first % 2 == 1;
        while let Some(&edge) = self.used().get(behind).filter(|&&edge| edge <= range.end) {
            held += if inside { edge - from } else { 0 };
            (inside, from, behind) = (!inside, edge, behind + 1);
        }
        held += if inside { range.end - from } else { 0 };
        // Those edges go. The range's own are edges only where the blocks beside it are different.
        let start = first.is_multiple_of(2) == SET;
        let end = behind.is_multiple_of(2) == SET;
        let gone = behind - first;
        let new = usize::from(start) + usize::from(end);
        let len = usize::from(self.len) - gone + new;
        if len > N {
            return Err(NoRoom);
        }
        if gone != new {
            let used = usize::from(self.len);
            self.all.copy_within(behind..used, first + new);
            self.all[len..]
                .iter_mut()
                .take(gone)
                .for_each(|edge| *edge = u16::MAX);
            self.len = len as u16;
        }
        if start {
            self.all[first] = range.start;
        }
        if end {
            self.all[first + new - 1] = range.end;
        }
        let blocks = if SET {
            range.end - range.start - held
        } else {
            held
        };
        Ok(Change {
            blocks: blocks.into(),
            runs: (new as i16 - gone as i16) / 2,
        })
    }

    /// The first block at or after one that is in a run (`SET`) or in none; the chunk's end where
    /// a run reaches it.
    pub(super) fn next<const SET: bool>(&self, from: u16) -> Option<u16> {
        let below = self.count(|edge| edge <= from);
        match (below % 2 == 1) == SET {
            true => Some(from),
            false => self.used().get(below).copied(),
        }
    }

    /// The last block at or before one that is in a run (`SET`) or in none.
    pub(super) fn last<const SET: bool>(&self, from: u16) -> Option<u16> {
        let below = self.count(|edge| edge <= from);
        match (below % 2 == 1) == SET {
            true => Some(from),
            false => self.used().get(below.checked_sub(1)?)?.checked_sub(1),
        }
    }

    /// How many edges are below a bound.
    fn count(&self, is_below: impl Fn(u16) -> bool) -> usize {
        let count: u16 = self.all.iter().map(|&edge| u16::from(is_below(edge))).sum();
        usize::from(count)
    }
}

impl<const N: usize> FromIterator<Range<u16>> for Edges<N> {
    /// Of runs in order.
    fn from_iter<I: IntoIterator<Item = Range<u16>>>(runs: I) -> Self {
        let mut edges = Edges::EMPTY;
        for run in runs {
            let at = usize::from(edges.len);
            edges.all[at..at + 2].copy_from_slice(&[run.start, run.end]);
            edges.len += 2;
        }
        edges
    }
}
