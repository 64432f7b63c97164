//! A volume with files: which of its bytes are in use, and which may be allocated.

use std::ops::Range;

use ssd::extents::Extents;

mod allocator;

pub use allocator::AllocatorKind;
use allocator::Layout;

/// The unit of everything here, in bytes.
pub(crate) const BLOCK: u64 = 4096;

/// A range in pieces of so many bytes.
pub(crate) fn pieces(range: &Range<u64>, piece: u64) -> impl Iterator<Item = Range<u64>> {
    let end = range.end;
    let starts = range.clone().step_by(piece as usize);
    starts.map(move |start| start..end.min(start.saturating_add(piece)))
}

/// A file's number.
pub(crate) type FileId = usize;

/// Why an allocation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoSpace {
    /// Enough is free, but discards must complete first.
    Held,
    /// The volume is full.
    Full,
}

/// Files, and the free space between them. Ranges are in bytes, whole blocks.
#[derive(Debug)]
pub(crate) struct Volume {
    layout: Layout,
    /// Blocks that may be allocated.
    free: Extents,
    /// Blocks that files use.
    live: Extents,
    files: Vec<Vec<Range<u64>>>,
    /// Numbers of removed files, to be used again.
    removed: Vec<FileId>,
    blocks: u64,
}

impl Volume {
    pub(crate) fn new(kind: AllocatorKind, bytes: u64) -> Volume {
        let blocks = bytes / BLOCK;
        let layout = Layout::new(kind, blocks);
        let mut free = Extents::from(0..blocks);
        for range in layout.metadata() {
            free.remove(range);
        }
        Volume {
            layout,
            free,
            live: Extents::new(),
            files: Vec::new(),
            removed: Vec::new(),
            blocks,
        }
    }

    /// A new file without data.
    pub(crate) fn create(&mut self) -> FileId {
        if let Some(file) = self.removed.pop() {
            return file;
        }
        self.files.push(Vec::new());
        self.files.len() - 1
    }

    /// Gives a file more space; returns the new ranges, in order.
    ///
    /// # Errors
    /// If there isn't enough. Then nothing has changed.
    pub(crate) fn grow(&mut self, file: FileId, bytes: u64) -> Result<Vec<Range<u64>>, NoSpace> {
        let wanted = bytes.div_ceil(BLOCK);
        if wanted > self.free.covered() {
            let usable = self.free.covered() + self.held() / BLOCK;
            return Err(match wanted > usable {
                true => NoSpace::Full,
                false => NoSpace::Held,
            });
        }
        let mut taken: Vec<Range<u64>> = Vec::new();
        let mut left = wanted;
        while left > 0 {
            let Some(range) = self.layout.next(&mut self.free, file, left) else {
                break;
            };
            left -= range.end - range.start;
            self.live.insert(range.clone());
            match taken.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => taken.push(range),
            }
        }
        let ranges: Vec<Range<u64>> = taken.iter().map(in_bytes).collect();
        self.files[file].extend(ranges.iter().cloned());
        Ok(ranges)
    }

    /// Puts a file at given places, as if it had been written long ago. Parts that are in use are
    /// left out.
    pub(crate) fn place(&mut self, ranges: &[Range<u64>]) -> FileId {
        let file = self.create();
        for range in ranges {
            let blocks = in_blocks(range);
            let parts: Vec<_> = self.free.within(blocks).collect();
            for part in parts {
                self.free.remove(part.clone());
                self.live.insert(part.clone());
                self.files[file].push(in_bytes(&part));
            }
        }
        file
    }

    /// Removes a file. Its space is no longer in use, and may not be allocated before
    /// [`Volume::release`]. Returns its ranges in the order in which they are freed: by address, of
    /// FFS by their place in the file.
    pub(crate) fn remove(&mut self, file: FileId) -> Vec<Range<u64>> {
        let mut ranges = std::mem::take(&mut self.files[file]);
        self.removed.push(file);
        if !self.layout.frees_in_file_order() {
            ranges.sort_unstable_by_key(|range| range.start);
        }
        let mut merged: Vec<Range<u64>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            self.live.remove(in_blocks(&range));
            match merged.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => merged.push(range),
            }
        }
        merged
    }

    /// The space of a range may be allocated.
    pub(crate) fn release(&mut self, range: &Range<u64>) {
        let whole = self.free.coalesce(in_blocks(range));
        self.layout.freed(&whole);
    }

    /// A range is being discarded: it may not be allocated until it is released. Returns how
    /// many bytes of it could be until now; `None` if a file uses some.
    pub(crate) fn hold(&mut self, range: &Range<u64>) -> Option<u64> {
        let blocks = in_blocks(range);
        let held = self.free.remove(blocks.clone()) * BLOCK;
        self.live.within(blocks).next().is_none().then_some(held)
    }

    /// The parts of a range that may be allocated.
    pub(crate) fn free_within(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let parts = self.free.within(in_blocks(range));
        parts.map(|part| in_bytes(&part)).collect()
    }

    /// Where a file's data lies.
    pub(crate) fn file(&self, file: FileId) -> &[Range<u64>] {
        &self.files[file]
    }

    /// The ranges that files use, in order.
    pub(crate) fn live_ranges(&self) -> impl Iterator<Item = Range<u64>> {
        self.live.iter().map(|range| in_bytes(&range))
    }

    /// Bytes that files use.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live.covered() * BLOCK
    }

    /// Bytes that may be allocated.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.free.covered() * BLOCK
    }

    /// Bytes that no file uses and that may not be allocated yet.
    pub(crate) fn held(&self) -> u64 {
        let taken = self.layout.metadata_blocks() + self.live.covered() + self.free.covered();
        (self.blocks - taken.min(self.blocks)) * BLOCK
    }

    /// The size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.blocks * BLOCK
    }
}

fn in_blocks(range: &Range<u64>) -> Range<u64> {
    range.start / BLOCK..range.end / BLOCK
}

fn in_bytes(range: &Range<u64>) -> Range<u64> {
    range.start * BLOCK..range.end * BLOCK
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn space_that_is_held_fails_an_allocation_only_until_it_is_released() {
        for &kind in AllocatorKind::ALL {
            let mut volume = Volume::new(kind, 4 * GIB);
            let file = volume.create();
            let free = volume.free_bytes();
            volume.grow(file, free).unwrap();
            assert_eq!(volume.free_bytes(), 0, "{kind:?}");
            let ranges = volume.remove(file);
            assert_eq!(volume.held(), free, "{kind:?}");
            let other = volume.create();
            assert_eq!(volume.grow(other, GIB), Err(NoSpace::Held));
            assert_eq!(volume.grow(other, 8 * GIB), Err(NoSpace::Full));
            ranges.iter().for_each(|range| volume.release(range));
            assert_eq!(volume.held(), 0);
            volume.grow(other, GIB).unwrap();
            let range = volume.file(other)[0].clone();
            assert_eq!(volume.hold(&range), None);
        }
    }

    #[test]
    fn a_large_file_lies_as_its_file_system_puts_it() {
        let mut lengths = Vec::new();
        for &kind in AllocatorKind::ALL {
            let mut volume = Volume::new(kind, 64 * GIB);
            let file = volume.create();
            let ranges = volume.grow(file, 8 * GIB).unwrap();
            let bytes: u64 = ranges.iter().map(|r| r.end - r.start).sum();
            assert_eq!(bytes, 8 * GIB);
            lengths.push((kind, (bytes / ranges.len() as u64) >> 20));
        }
        // FFS leaves a group after 16 MiB; a group of ext4 has 128 MiB, less its tables; btrfs
        // ends an extent at 128 MiB, and lays the next one beside it.
        let near = |kind: AllocatorKind| lengths.iter().find(|l| l.0 == kind).unwrap().1;
        assert_eq!(near(AllocatorKind::Ffs), 16);
        assert!(
            (110..=128).contains(&near(AllocatorKind::Ext4)),
            "{lengths:?}"
        );
        assert!(near(AllocatorKind::Xfs) >= 4096, "{lengths:?}");
        assert!(near(AllocatorKind::Btrfs) >= 1024, "{lengths:?}");
    }
}
