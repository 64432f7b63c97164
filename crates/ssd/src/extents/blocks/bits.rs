//! A chunk with many runs: a bit for each block.

use std::ops::Range;

use super::{CHUNK, Change};

/// Bits in a word.
const WORD: u16 = 64;
const WORDS: usize = CHUNK as usize / WORD as usize;

/// A bit for each block of a chunk: 2 KiB.
#[derive(Debug, Clone)]
pub(super) struct Bits {
    /// Bits that are set.
    set: u16,
    /// Runs of set bits.
    runs: u16,
    words: [u64; WORDS],
}

impl FromIterator<Range<u16>> for Box<Bits> {
    fn from_iter<I: IntoIterator<Item = Range<u16>>>(runs: I) -> Self {
        let mut bits = Box::new(Bits::EMPTY);
        for run in runs {
            bits.change::<true>(run);
        }
        bits
    }
}

impl Bits {
    /// No bit is set.
    pub(super) const EMPTY: Bits = Bits {
        set: 0,
        runs: 0,
        words: [0; WORDS],
    };

    /// How many runs there are.
    pub(super) fn runs(&self) -> usize {
        usize::from(self.runs)
    }

    /// Bits that are set.
    pub(super) fn covered(&self) -> u16 {
        self.set
    }

    pub(super) fn is_full(&self) -> bool {
        self.set == CHUNK
    }

    /// The runs in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u16>> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            let start = self.next::<true>(at)?;
            at = self.next::<false>(start).unwrap_or(CHUNK);
            Some(start..at)
        })
    }

    /// Sets or clears the blocks of a range.
    pub(super) fn change<const SET: bool>(&mut self, range: Range<u16>) -> Change {
        let starts = self.starts(range.start..range.end + 1);
        let mut blocks = 0;
        for (word, mask) in masks(range.clone()) {
            let word = &mut self.words[word];
            let changed = mask & if SET { !*word } else { *word };
            blocks += changed.count_ones() as i16;
            *word ^= changed;
        }
        // A run begins at the range's start if it is set, behind its end if it is cleared.
        let begins = match SET {
            true => range.start == 0 || !self.get(range.start - 1),
            false => range.end < CHUNK && self.get(range.end),
        };
        let runs = i16::from(begins) - starts;
        self.set = self
            .set
            .wrapping_add_signed(if SET { blocks } else { -blocks });
        self.runs = self.runs.wrapping_add_signed(runs);
        Change {
            blocks: blocks as u64,
            runs,
        }
    }

    /// The first block at or after one whose bit is set (`SET`) or clear.
    pub(super) fn next<const SET: bool>(&self, from: u16) -> Option<u16> {
        let mut mask = u64::MAX << (from % WORD);
        let first = usize::from(from / WORD);
        for (at, &word) in self.words.iter().enumerate().skip(first) {
            let found = mask & if SET { word } else { !word };
            if found != 0 {
                return Some(at as u16 * WORD + found.trailing_zeros() as u16);
            }
            mask = u64::MAX;
        }
        None
    }

    /// The last block at or before one whose bit is set (`SET`) or clear.
    pub(super) fn last<const SET: bool>(&self, from: u16) -> Option<u16> {
        let mut mask = u64::MAX >> (WORD - 1 - from % WORD);
        let last = usize::from(from / WORD);
        for (at, &word) in self.words[..=last].iter().enumerate().rev() {
            let found = mask & if SET { word } else { !word };
            if found != 0 {
                return Some(at as u16 * WORD + found.ilog2() as u16);
            }
            mask = u64::MAX;
        }
        None
    }

    fn get(&self, block: u16) -> bool {
        self.words[usize::from(block / WORD)] >> (block % WORD) & 1 == 1
    }

    /// How many runs begin within a range, which may reach one block beyond the chunk.
    fn starts(&self, range: Range<u16>) -> i16 {
        let mut count = 0;
        for (word, mask) in masks(range.start..range.end.min(CHUNK)) {
            let before = match word {
                0 => 0,
                _ => self.words[word - 1] >> 63,
            };
            let word = self.words[word];
            count += (word & !(word << 1 | before) & mask).count_ones();
        }
        count as i16
    }
}

/// The words that a range of blocks lies in, each with the range's bits.
fn masks(range: Range<u16>) -> impl Iterator<Item = (usize, u64)> {
    let (first, last) = (range.start / WORD, (range.end - 1) / WORD);
    let head = u64::MAX << (range.start % WORD);
    let tail = u64::MAX >> (WORD - 1 - (range.end - 1) % WORD);
    (first..=last).map(move |word| {
        let from = if word == first { head } else { u64::MAX };
        let to = if word == last { tail } else { u64::MAX };
        (usize::from(word), from & to)
    })
}
