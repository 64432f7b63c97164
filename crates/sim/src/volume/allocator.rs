//! Where four file systems put data.
//!
//! Each is the part of its file system's policy that decides how long extents become and whether
//! freed blocks are soon used again: these two decide what discards cost. It is no allocator in
//! full.

use std::ops::Range;

use ssd::extents::Extents;

use super::{BLOCK, FileId};

record::kinds! {
    /// A way of allocating, by the file system that has it.
    pub enum AllocatorKind["way of allocating"] {
        /// Cylinder groups of 64 MiB; a file leaves its group after 16 MiB (`maxbpg`), and takes
        /// the lowest free blocks, so that freed ones are soon used again.
        Ffs = "ffs",
        /// Block groups of 128 MiB with tables at their start. Data goes on behind the file's last
        /// block, else into the next group with a free range that is long enough.
        Ext4 = "ext4",
        /// Four allocation groups; each file begins in the next one and takes the longest free
        /// range there.
        Xfs = "xfs",
        /// Chunks of 1 GiB; everything is new, behind the last allocation, and goes round.
        Btrfs = "btrfs",
    }
}

impl AllocatorKind {
    /// Blocks in a group, of a volume with so many.
    fn group(self, blocks: u64) -> u64 {
        match self {
            AllocatorKind::Ffs => (64 << 20) / BLOCK,
            AllocatorKind::Ext4 => (128 << 20) / BLOCK,
            AllocatorKind::Xfs => blocks.div_ceil(4).max(1),
            AllocatorKind::Btrfs => (1 << 30) / BLOCK,
        }
    }

    /// Blocks of tables at the start of each group. ext4 with `flex_bg` puts the tables of 16
    /// groups together; the mean is the same.
    fn tables(self) -> u64 {
        match self {
            AllocatorKind::Ffs => 64,
            // Of 128 MiB 127.7 MiB hold data, by the log of 2024 (8,222 discards of 127.7 MiB).
            AllocatorKind::Ext4 => 77,
            AllocatorKind::Xfs => 16,
            AllocatorKind::Btrfs => 0,
        }
    }
}

/// The most that a file of FFS takes in one group before it goes on to another.
const MAX_BLOCKS_PER_GROUP: u64 = (16 << 20) / BLOCK;

/// The longest extents: of ext4 (15 bits of blocks), XFS (21 bits) and btrfs (128 MiB).
const LONGEST_EXT4: u64 = 1 << 15;
const LONGEST_XFS: u64 = 1 << 21;
const LONGEST_BTRFS: u64 = (128 << 20) / BLOCK;

/// Chooses places for data on one volume.
#[derive(Debug)]
pub(super) struct Layout {
    kind: AllocatorKind,
    blocks: u64,
    group: u64,
    /// Where each file goes on.
    cursors: Vec<Cursor>,
    /// btrfs: where everything goes on. XFS and FFS: the next file's group.
    next: u64,
    /// ext4: for each group, no free range of it is longer, in blocks.
    longest: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Cursor {
    at: u64,
    /// FFS: blocks taken in this group.
    in_group: u64,
}

impl Layout {
    /// The layout of an empty volume of so many blocks.
    pub(super) fn new(kind: AllocatorKind, blocks: u64) -> Layout {
        Layout {
            kind,
            blocks,
            group: kind.group(blocks),
            cursors: Vec::new(),
            next: 0,
            longest: match kind {
                AllocatorKind::Ext4 => vec![u64::MAX; blocks.div_ceil(kind.group(blocks)) as usize],
                _ => Vec::new(),
            },
        }
    }

    /// A range of the free blocks has come to be, or has grown.
    pub(super) fn freed(&mut self, whole: &Range<u64>) {
        let group = (whole.start / self.group) as usize;
        if let Some(longest) = self.longest.get_mut(group) {
            *longest = (*longest).max(whole.end - whole.start);
        }
    }

    /// Blocks that never hold data.
    pub(super) fn metadata(&self) -> impl Iterator<Item = Range<u64>> {
        let tables = self.kind.tables();
        let groups = self.blocks.div_ceil(self.group);
        (0..groups).map(move |group| {
            let start = group * self.group;
            start..(start + tables).min(self.blocks)
        })
    }

    /// Whether blocks are freed one after the other as they lie in the file.
    pub(super) fn frees_in_file_order(&self) -> bool {
        self.kind == AllocatorKind::Ffs
    }

    pub(super) fn metadata_blocks(&self) -> u64 {
        self.metadata().map(|range| range.end - range.start).sum()
    }

    /// Takes some blocks for a file out of the free ones: at most `wanted`, and at least one
    /// unless there is none.
    pub(super) fn next(
        &mut self,
        free: &mut Extents,
        file: FileId,
        wanted: u64,
    ) -> Option<Range<u64>> {
        let mut cursor = self.cursor(file);
        let range = match self.kind {
            AllocatorKind::Ffs => self.ffs(free, &mut cursor, wanted)?,
            AllocatorKind::Ext4 => self.ext4(free, &cursor, wanted)?,
            AllocatorKind::Xfs => self.xfs(free, &cursor, wanted)?,
            AllocatorKind::Btrfs => {
                let from = first_from(free, self.next, self.blocks)?;
                let chunk = (from.start / self.group + 1) * self.group;
                self.next = from.end.min(chunk);
                cut(from, wanted.min(LONGEST_BTRFS), chunk)
            }
        };
        free.remove(range.clone());
        if self.kind == AllocatorKind::Btrfs {
            self.next = range.end;
        }
        cursor.at = range.end;
        cursor.in_group += range.end - range.start;
        self.cursors[file] = cursor;
        Some(range)
    }

    fn cursor(&mut self, file: FileId) -> Cursor {
        while self.cursors.len() <= file {
            let groups = self.blocks.div_ceil(self.group);
            let start = (self.next % groups) * self.group;
            // btrfs uses `next` for its own place.
            match self.kind {
                AllocatorKind::Btrfs => {}
                // A directory's files stay together: the same group until it is full.
                AllocatorKind::Ffs | AllocatorKind::Ext4 => {}
                AllocatorKind::Xfs => self.next += 1,
            }
            self.cursors.push(Cursor {
                at: if self.kind == AllocatorKind::Btrfs {
                    0
                } else {
                    start
                },
                in_group: 0,
            });
        }
        self.cursors[file]
    }

    /// The lowest free blocks of the file's group; after 16 MiB, or where there are none, of the
    /// next group with any.
    fn ffs(&self, free: &Extents, cursor: &mut Cursor, wanted: u64) -> Option<Range<u64>> {
        let groups = self.blocks.div_ceil(self.group);
        let mut group = (cursor.at.min(self.blocks - 1) / self.group) % groups;
        if cursor.in_group >= MAX_BLOCKS_PER_GROUP {
            group = (group + 1) % groups;
            cursor.in_group = 0;
        }
        for step in 0..groups {
            let at = (group + step) % groups;
            let start = at * self.group;
            let end = (start + self.group).min(self.blocks);
            if let Some(found) = free.within(start..end).next() {
                if step > 0 {
                    cursor.in_group = 0;
                }
                let most = MAX_BLOCKS_PER_GROUP - cursor.in_group;
                return Some(cut(found, wanted.min(most.max(1)), end));
            }
        }
        None
    }

    /// The place behind the file's last block; else the first range of the next group that is as
    /// long as what is wanted, or half of a group. Where no group has one, half of that length will
    /// do, and so on: mballoc's buddies and criteria in short.
    fn ext4(&mut self, free: &Extents, cursor: &Cursor, wanted: u64) -> Option<Range<u64>> {
        let wanted = wanted.min(LONGEST_EXT4);
        let end_of_group = |block: u64| (block / self.group + 1) * self.group;
        if let Some(on) = free.within(cursor.at..end_of_group(cursor.at)).next()
            && on.start == cursor.at
        {
            return Some(cut(on, wanted, u64::MAX));
        }
        let mut long_enough = wanted.min(self.group / 2);
        while long_enough > 0 {
            if let Some(range) = self.next_group(free, cursor.at / self.group, long_enough) {
                return Some(cut(range, wanted, u64::MAX));
            }
            long_enough /= 2;
        }
        None
    }

    /// The first free range that is long enough in the next group, from one on, that has one.
    fn next_group(&mut self, free: &Extents, from: u64, long_enough: u64) -> Option<Range<u64>> {
        let groups = self.longest.len();
        let from = from as usize % groups;
        for group in (from..groups).chain(0..from) {
            if self.longest[group] < long_enough {
                continue;
            }
            let start = group as u64 * self.group;
            let mut longest = 0;
            for range in free.within(start..start + self.group) {
                let length = range.end - range.start;
                if length >= long_enough {
                    return Some(range);
                }
                longest = longest.max(length);
            }
            self.longest[group] = longest;
        }
        None
    }

    /// Behind the file's last block, else the longest of the next ranges in its group, else any.
    fn xfs(&self, free: &Extents, cursor: &Cursor, wanted: u64) -> Option<Range<u64>> {
        let wanted = wanted.min(LONGEST_XFS);
        let at = cursor.at.min(self.blocks - 1);
        let group = at / self.group * self.group;
        let end = (group + self.group).min(self.blocks);
        if let Some(on) = free.within(at..end).next()
            && on.start == cursor.at
        {
            return Some(cut(on, wanted, end));
        }
        let ranges = free.within(group..end).take(256);
        let fits = ranges
            .filter(|range| range.end - range.start >= wanted)
            .min_by_key(|range| range.end - range.start);
        let found = fits.or_else(|| {
            let ranges = free.within(group..end).take(256);
            ranges.max_by_key(|range| range.end - range.start)
        });
        match found {
            Some(range) => Some(cut(range, wanted, end)),
            None => first_from(free, end % self.blocks, self.blocks)
                .map(|range| cut(range, wanted, u64::MAX)),
        }
    }
}

/// The first free range from a block on, else the first of all.
fn first_from(free: &Extents, from: u64, blocks: u64) -> Option<Range<u64>> {
    free.within(from..blocks).next().or_else(|| free.first())
}

fn cut(range: Range<u64>, wanted: u64, end: u64) -> Range<u64> {
    range.start
        ..range
            .end
            .min(range.start + wanted)
            .min(end.max(range.start + 1))
}
