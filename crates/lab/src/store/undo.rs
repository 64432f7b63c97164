//! A volatile write cache: the blocks that a power cut takes back.
//!
//! It keeps the earlier contents of each block that was written since the last flush. A flush makes
//! durable all that was written before it *began*, once it is *done*. So a block can have several
//! earlier contents. Each belongs to an epoch, the time between the beginnings of two flushes, in
//! which it was overwritten.

use std::collections::BTreeMap;
use std::ops::Range;

/// The unit in which contents are kept.
pub(super) const BLOCK: u64 = 4096;

/// The most blocks that the cache holds, 256 MiB. A drive writes out more by itself, in an order of
/// its own. They don't count among the store's data.
const MOST: usize = 65_536;

#[derive(Debug, Default)]
pub(super) struct Undo {
    epoch: u64,
    /// Flushes with a number up to this began before a power cut.
    void: u64,
    /// How many contents there are.
    kept: usize,
    /// By the block's first byte: what it held before, oldest first.
    earlier: BTreeMap<u64, Vec<Content>>,
}

#[derive(Debug)]
struct Content {
    /// In which it was overwritten.
    epoch: u64,
    data: Box<[u8]>,
}

impl Undo {
    /// Blocks that a write touches and whose content has to be kept first.
    pub(super) fn wanted(&self, range: &Range<u64>) -> Vec<u64> {
        let first = range.start - range.start % BLOCK;
        (first..range.end)
            .step_by(BLOCK as usize)
            .filter(|block| {
                let last = self.earlier.get(block).and_then(|all| all.last());
                last.is_none_or(|content| content.epoch != self.epoch)
            })
            .collect()
    }

    /// Keeps the earlier contents of a block. Where there is no room, other blocks are from now on
    /// written out for good.
    pub(super) fn keep(&mut self, block: u64, data: &[u8]) {
        while self.kept >= MOST
            && let Some((_, out)) = self.earlier.pop_first()
        {
            self.kept -= out.len();
        }
        self.kept += 1;
        let all = self.earlier.entry(block).or_default();
        all.push(Content {
            epoch: self.epoch,
            data: data.into(),
        });
    }

    /// A flush began; its number is for [`Undo::flushed`].
    pub(super) fn begin_flush(&mut self) -> u64 {
        self.epoch += 1;
        self.epoch
    }

    /// Ends a flush: the contents that were overwritten before it began can't come back. Returns
    /// `false` if the power was cut meanwhile, so that the flush covers nothing.
    pub(super) fn flushed(&mut self, flush: u64) -> bool {
        if flush <= self.void {
            return false;
        }
        self.kept = 0;
        self.earlier.retain(|_, all| {
            all.retain(|content| content.epoch >= flush);
            self.kept += all.len();
            !all.is_empty()
        });
        true
    }

    /// A range was discarded, which is durable at once.
    pub(super) fn forget(&mut self, range: &Range<u64>) {
        let first = range.start.next_multiple_of(BLOCK);
        let whole = range.end - range.end % BLOCK;
        if first < whole {
            let gone: Vec<u64> = self.earlier.range(first..whole).map(|(b, _)| *b).collect();
            for block in gone {
                let contents = self.earlier.remove(&block);
                self.kept -= contents.map_or(0, |all| all.len());
            }
        }
    }

    /// The power is cut: every block with what it holds afterwards.
    pub(super) fn cut(&mut self) -> impl Iterator<Item = (u64, Box<[u8]>)> + use<> {
        self.void = self.epoch;
        self.kept = 0;
        let earlier = std::mem::take(&mut self.earlier);
        let oldest = |(block, all): (u64, Vec<Content>)| {
            let first = all.into_iter().next()?;
            Some((block, first.data))
        };
        earlier.into_iter().filter_map(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(undo: &mut Undo, drive: &mut [u8; 2], block: usize, value: u8) {
        let at = block as u64 * BLOCK;
        for wanted in undo.wanted(&(at..at + 512)) {
            undo.keep(wanted, &[drive[block]]);
        }
        drive[block] = value;
    }

    fn after_cut(undo: &mut Undo, mut drive: [u8; 2]) -> [u8; 2] {
        for (block, data) in undo.cut() {
            drive[(block / BLOCK) as usize] = data[0];
        }
        drive
    }

    #[test]
    fn only_what_a_flush_covered_stays() {
        let (mut undo, mut drive) = (Undo::default(), [0, 0]);
        write(&mut undo, &mut drive, 0, 1);
        write(&mut undo, &mut drive, 0, 2);
        let flush = undo.begin_flush();
        write(&mut undo, &mut drive, 0, 3);
        write(&mut undo, &mut drive, 1, 4);
        assert!(undo.flushed(flush));
        assert_eq!(undo.kept, 2);
        assert_eq!(after_cut(&mut undo, drive), [2, 0]);
    }

    #[test]
    fn a_flush_that_is_not_done_covers_nothing() {
        let (mut undo, mut drive) = (Undo::default(), [0, 0]);
        write(&mut undo, &mut drive, 0, 1);
        let flush = undo.begin_flush();
        write(&mut undo, &mut drive, 0, 2);
        assert_eq!(after_cut(&mut undo, drive), [0, 0]);
        assert!(!undo.flushed(flush), "what it was to cover is gone");
        let flush = undo.begin_flush();
        assert!(undo.flushed(flush));
    }

    #[test]
    fn a_discard_is_not_taken_back() {
        let (mut undo, mut drive) = (Undo::default(), [7, 7]);
        write(&mut undo, &mut drive, 0, 1);
        write(&mut undo, &mut drive, 1, 1);
        undo.forget(&(0..BLOCK + 512));
        drive[0] = 0;
        assert_eq!(after_cut(&mut undo, drive), [0, 7]);
    }

    #[test]
    fn a_cache_is_only_so_large() {
        let mut undo = Undo::default();
        for block in 0..MOST as u64 + 100 {
            undo.keep(block * BLOCK, &[0]);
        }
        let lost: Vec<u64> = undo.cut().map(|(block, _)| block).collect();
        assert_eq!((lost.len(), undo.kept), (MOST, 0));
        assert!(lost.contains(&((MOST as u64 + 99) * BLOCK)), "the newest");
    }
}
