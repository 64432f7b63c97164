//! Decides where a file is cut.
//!
//! A file is cut from its tail, by its allocated parts: a hole costs nothing and belongs to the
//! piece before it. A cut falls on an extent's boundary wherever one fits, because a cut extent
//! costs one discard more.

use std::fs::File;

use linux::files::{FileError, FileExtent, extents_within};
use storage::FileSystem;

/// By default a piece may exceed what is allowed by this share where that saves a cut.
const REST: f64 = 0.125;

/// How a file system wants its files cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cutting {
    /// Cuts are at multiples of this, the file system's block: above 0.
    pub(super) block: u64,
    /// The file system discards no range across multiples of this many bytes of its own (ext4's
    /// block groups). 0: there is no such limit.
    pub(super) group: u64,
    /// btrfs frees no part of an extent before all of it is free. Then this is the longest extent
    /// in bytes; preallocated ones are up to twice as long (`__btrfs_prealloc_file_range`). 0: any
    /// part of an extent is freed at once.
    pub(super) indivisible: u64,
    /// No discard comes for what was preallocated and never written to: XFS
    /// (`xfs_bmap_del_extent_real`, Linux 6.12).
    pub(super) skips_unwritten: bool,
    /// The largest rest of an extent, as a share of what is allowed, that is freed with the part
    /// before it. By itself it would cost a discard of its own.
    pub(super) rest: f64,
}

impl Cutting {
    /// Returns how a file system with blocks of so many bytes wants its files cut.
    pub(super) fn of(fs: FileSystem, block: u64) -> Cutting {
        Cutting {
            block,
            group: fs.bitmap_group_bytes(block).unwrap_or(0),
            indivisible: fs.indivisible_bytes(),
            skips_unwritten: fs.skips_unwritten(),
            rest: REST,
        }
    }
}

/// A part of a file that is freed at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    start: u64,
    length: u64,
    exempt: bool,
}

/// The allocated parts of a stretch of a file, taken from its end.
#[derive(Debug, Clone, Default)]
pub(super) struct Tail {
    parts: Vec<Part>,
    bytes: u64,
    /// The mean size of the parts that aren't exempt. It is kept, because there can be millions of
    /// parts, and each piece asks for it.
    usual: Option<u64>,
}

/// One truncation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// The file's length afterwards.
    pub(super) length: u64,
    /// Bytes that it frees.
    pub(super) frees: u64,
    /// Of these bytes, those for which no discard comes.
    pub(super) exempt: u64,
    /// The share of what is allowed that it uses, in bytes: those for which discards come. Where a
    /// discard is shorter than usual, it counts as a usual one.
    pub(super) weight: u64,
    /// Whether it cuts an extent.
    pub(super) cuts: bool,
}

impl Tail {
    /// Adds the extents of the stretch from `floor` to the first known part. The part of an extent
    /// before `floor` is left for a later call.
    pub(super) fn prepend(&mut self, extents: &[FileExtent], floor: u64, cutting: &Cutting) {
        let ceiling = self.parts.first().map_or(u64::MAX, |part| part.start);
        let mut before: Vec<Part> = Vec::with_capacity(extents.len());
        for extent in extents {
            let start = extent.start.max(floor);
            let end = extent.end().min(ceiling);
            if end <= start {
                continue;
            }
            let exempt =
                extent.shared || !extent.on_disk || (extent.unwritten && cutting.skips_unwritten);
            let unit = if exempt {
                0
            } else {
                let longer = 1 + u64::from(extent.unwritten);
                cutting.group.max(longer * cutting.indivisible)
            };
            // ext4's groups are counted from the file system's beginning, the
            // parts of btrfs from the extent's own.
            let origin = if cutting.group > 0 {
                extent.physical.wrapping_sub(extent.start) % unit.max(1)
            } else {
                unit.wrapping_sub(extent.start % unit.max(1))
            };
            let mut at = start;
            while at < end {
                let next = if unit == 0 {
                    end
                } else {
                    let into = at.wrapping_add(origin) % unit;
                    end.min(at.saturating_add(unit - into))
                };
                before.push(Part {
                    start: at,
                    length: next - at,
                    exempt,
                });
                at = next;
            }
        }
        self.bytes += before.iter().map(|part| part.length).sum::<u64>();
        before.append(&mut self.parts);
        self.parts = before;
        let costly = self.parts.iter().filter(|part| !part.exempt);
        let (count, bytes) = costly.fold((0, 0_u64), |(count, bytes), part| {
            (count + 1, bytes.saturating_add(part.length))
        });
        self.usual = bytes.checked_div(count);
    }

    /// Returns the mean size in bytes of the parts for which discards come, as of the last
    /// [`prepend`](Self::prepend). `None`: there were none.
    pub(super) fn usual_part(&self) -> Option<u64> {
        self.usual
    }

    /// Returns where the last part ends for which discards come; 0 without one.
    pub(super) fn end(&self) -> u64 {
        let last = self.parts.iter().rfind(|part| !part.exempt);
        last.map_or(0, |part| part.start + part.length)
    }

    /// Returns the allocated bytes that are known and not yet taken.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the next truncation: whole parts up to `most` bytes or, with `may_cut`, a part of
    /// one that is longer. Exempt parts cost nothing. `None` when nothing is left, or nothing that
    /// fits.
    pub(super) fn take(&mut self, most: u64, may_cut: bool, cutting: &Cutting) -> Option<Piece> {
        let piece = self.next(most, may_cut, cutting);
        self.bytes -= piece.map_or(0, |piece| piece.frees);
        piece
    }

    /// Returns the least weight of a part in bytes.
    ///
    /// Where each discard takes a fixed time, a short one keeps other I/O waiting as long as a long
    /// one, so it weighs as much as a usual one. A commit of btrfs also discards blocks of its
    /// trees, so there only bytes count.
    fn least_weight(&self, cutting: &Cutting) -> u64 {
        match cutting.indivisible {
            0 => self.usual.unwrap_or(0),
            _ => 0,
        }
    }

    fn next(&mut self, most: u64, may_cut: bool, cutting: &Cutting) -> Option<Piece> {
        let least = self.least_weight(cutting);
        let mut piece: Option<Piece> = None;
        while let Some(part) = self.parts.last_mut() {
            let so_far = piece.unwrap_or_default();
            let whole = Piece {
                length: part.start,
                frees: so_far.frees.saturating_add(part.length),
                ..so_far
            };
            if part.exempt {
                piece = Some(Piece {
                    exempt: so_far.exempt + part.length,
                    ..whole
                });
                self.parts.pop();
                continue;
            }
            let weight = part.length.max(least);
            let fits = match so_far.weight {
                0 => {
                    let rest = (most as f64 * cutting.rest) as u64;
                    part.length <= most.saturating_add(rest) || (may_cut && cutting.indivisible > 0)
                }
                // What can't be divided is taken where more of it fits than not.
                taken if cutting.indivisible > 0 => weight / 2 < most.saturating_sub(taken),
                taken => weight <= most.saturating_sub(taken),
            };
            // Part of an extent, up to a block's boundary; at least one block.
            let cut = (part.start + part.length).saturating_sub(most.max(1));
            let cut = cut - cut % cutting.block.max(1);
            if fits || (so_far.weight == 0 && may_cut && cut <= part.start) {
                piece = Some(Piece {
                    weight: so_far.weight.saturating_add(weight),
                    ..whole
                });
                self.parts.pop();
                continue;
            }
            if so_far.weight > 0 || !may_cut {
                break;
            }
            let frees = part.start + part.length - cut;
            part.length -= frees;
            return Some(Piece {
                length: cut,
                frees: so_far.frees + frees,
                weight: frees,
                cuts: true,
                ..so_far
            });
        }
        piece
    }
}

// The allocated parts are read from the file system as they are needed.

/// The bytes of the file that one look covers: a file in the smallest fragments has two million
/// extents in them.
const WINDOW: u64 = 8 << 30;

/// The longest look in bytes. A look that finds only a hole is followed by one twice as long.
const WIDEST: u64 = 1 << 40;

/// The parts of a file that are still to be freed, taken from its tail.
#[derive(Debug)]
pub(super) struct Remains {
    tail: Tail,
    /// All from this offset on is in `tail`.
    floor: u64,
    window: u64,
    cutting: Cutting,
}

impl Remains {
    /// Reads the tail of a file of `length` bytes, of which `allocated` are allocated. Parts
    /// allocated beyond the end come first.
    pub(super) fn of(
        file: &File,
        length: u64,
        allocated: u64,
        cutting: Cutting,
    ) -> Result<Remains, FileError> {
        let mut remains = Remains {
            tail: Tail::default(),
            floor: length.next_multiple_of(cutting.block),
            window: WINDOW,
            cutting,
        };
        // The kernel refuses offsets that no file can have.
        match extents_within(file, remains.floor, i64::MAX as u64) {
            Ok(beyond) => remains.tail.prepend(&beyond, remains.floor, &cutting),
            // Where extents can't be told (FAT), it is taken to be one.
            Err(FileError::Extents(_)) => {
                let one = FileExtent {
                    start: 0,
                    length: remains.floor.min(allocated),
                    physical: 0,
                    shared: false,
                    on_disk: true,
                    inline: false,
                    unwritten: false,
                };
                remains.tail.prepend(&[one], 0, &cutting);
                remains.floor = 0;
            }
            Err(error) => return Err(error),
        }
        Ok(remains)
    }

    /// Returns the next truncation, which costs at most `most` bytes. Without `may_cut` it frees
    /// whole extents only, and is `None` if the next extent is larger.
    pub(super) fn next(
        &mut self,
        file: &File,
        most: u64,
        may_cut: bool,
    ) -> Result<Option<Piece>, FileError> {
        self.look(file, most)?;
        Ok(self.tail.take(most, may_cut, &self.cutting))
    }

    /// Returns whether nothing is left.
    pub(super) fn is_empty(&mut self, file: &File) -> Result<bool, FileError> {
        self.look(file, 1)?;
        Ok(self.tail.bytes() == 0)
    }

    /// Returns where the last known part ends for which discards come; 0 without one.
    pub(super) fn end(&self) -> u64 {
        self.tail.end()
    }

    /// Returns the mean size in bytes of the known parts for which discards come: the usual size of
    /// a discard.
    pub(super) fn usual_extent(&self) -> Option<u64> {
        self.tail.usual_part()
    }

    fn look(&mut self, file: &File, want: u64) -> Result<(), FileError> {
        while self.floor > 0 && self.tail.bytes() < want {
            let mut floor = self.floor.saturating_sub(self.window);
            let extents = extents_within(file, floor, self.floor)?;
            match extents.first() {
                None => self.window = (self.window * 2).min(WIDEST),
                // Not through an extent, where the file system tells it whole.
                Some(first) => {
                    floor = floor.min(first.start);
                    self.window = WINDOW;
                }
            }
            self.tail.prepend(&extents, floor, &self.cutting);
            self.floor = floor;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
