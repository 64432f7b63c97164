//! Decides where a file is cut: pure.
//!
//! A file is cut from its tail, by its allocated parts: a hole costs nothing and belongs to the
//! piece before it. A cut falls on an extent's boundary wherever one fits, because a cut extent
//! costs one discard more.

use linux::files::FileExtent;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn extent(start: u64, length: u64) -> FileExtent {
        FileExtent {
            start,
            length,
            physical: start + (1 << 40),
            shared: false,
            on_disk: true,
            inline: false,
            unwritten: false,
        }
    }

    const PLAIN: Cutting = Cutting {
        block: 4096,
        skips_unwritten: false,
        group: 0,
        indivisible: 0,
        rest: 0.0,
    };

    fn tail(extents: &[FileExtent], cutting: &Cutting) -> Tail {
        let mut tail = Tail::default();
        tail.prepend(extents, 0, cutting);
        tail
    }

    #[test]
    fn whole_extents_where_they_fit_and_parts_where_not() {
        let mut tail = tail(&[extent(0, 10 * MIB), extent(100 * MIB, 3 * MIB)], &PLAIN);
        // 4 MiB would reach into the next extent: it stops at the boundary, and
        // the hole between costs nothing.
        assert_eq!(tail.take(2 * MIB, false, &PLAIN), None);
        let first = tail.take(4 * MIB, true, &PLAIN).unwrap();
        assert_eq!(
            (first.length, first.frees, first.cuts),
            (100 * MIB, 3 * MIB, false)
        );
        let second = tail.take(4 * MIB, true, &PLAIN).unwrap();
        assert_eq!(
            (second.length, second.frees, second.cuts),
            (6 * MIB, 4 * MIB, true)
        );
        let third = tail.take(u64::MAX, true, &PLAIN).unwrap();
        assert_eq!((third.length, third.frees), (0, 6 * MIB));
        assert_eq!(tail.take(MIB, true, &PLAIN), None);
    }

    #[test]
    fn a_short_rest_goes_along() {
        let cutting = Cutting {
            rest: 0.125,
            ..PLAIN
        };
        let mut tail = tail(&[extent(0, 20 * MIB)], &cutting);
        let first = tail.take(9 * MIB, true, &cutting).unwrap();
        assert_eq!((first.length, first.cuts), (11 * MIB, true));
        let second = tail.take(10 * MIB, true, &cutting).unwrap();
        assert_eq!((second.length, second.frees), (0, 11 * MIB));
    }

    #[test]
    fn groups_are_the_file_systems_own() {
        let cutting = Cutting {
            group: 128 * MIB,
            ..PLAIN
        };
        let mut odd = extent(0, 200 * MIB);
        odd.physical = 100 * MIB;
        let mut tail = tail(&[odd], &cutting);
        // Physical 100..300 MiB: boundaries at 128 and 256, file offsets 28 and 156.
        let lengths: Vec<u64> = std::iter::from_fn(|| tail.take(128 * MIB, true, &cutting))
            .map(|piece| piece.length / MIB)
            .collect();
        assert_eq!(lengths, [156, 28, 0]);
    }

    #[test]
    fn two_short_parts_are_two_discards() {
        let extents = [
            extent(0, 128 * MIB),
            extent(200 * MIB, 8 * MIB),
            extent(300 * MIB, 120 * MIB),
            extent(500 * MIB, 128 * MIB),
        ];
        let cut = |cutting: &Cutting| -> Vec<u64> {
            let mut tail = tail(&extents, cutting);
            std::iter::from_fn(|| tail.take(128 * MIB, true, cutting))
                .map(|piece| piece.frees / MIB)
                .collect()
        };
        assert_eq!(cut(&PLAIN), [128, 120, 8, 128]);
        let btrfs = Cutting {
            indivisible: 128 * MIB,
            ..PLAIN
        };
        assert_eq!(cut(&btrfs), [128, 128, 128]);
    }

    #[test]
    fn what_cant_be_divided_is_taken_if_more_of_it_fits_than_not() {
        let btrfs = Cutting {
            indivisible: 128 * MIB,
            ..PLAIN
        };
        let extents = [0, 1, 2, 3].map(|i| extent(i * 200 * MIB, 128 * MIB));
        let freed = |most: u64| {
            let mut tail = tail(&extents, &btrfs);
            tail.take(most * MIB, true, &btrfs).unwrap().frees / MIB
        };
        assert_eq!([180, 200, 256, 321].map(freed), [128, 256, 256, 384]);
    }

    #[test]
    fn what_cant_be_divided_goes_whole() {
        let cutting = Cutting {
            indivisible: 128 * MIB,
            ..PLAIN
        };
        let mut tail = tail(&[extent(MIB, 200 * MIB)], &cutting);
        let first = tail.take(MIB, true, &cutting).unwrap();
        assert_eq!((first.length, first.frees), (129 * MIB, 72 * MIB));
        let second = tail.take(500 * MIB, true, &cutting).unwrap();
        assert_eq!((second.length, second.frees), (MIB, 128 * MIB));
    }

    #[test]
    fn shared_extents_are_exempt() {
        let mut shared = extent(4 * MIB, 40 * MIB);
        shared.shared = true;
        let mut tail = tail(&[extent(0, 4 * MIB), shared], &PLAIN);
        let piece = tail.take(MIB, true, &PLAIN).unwrap();
        assert_eq!((piece.frees, piece.exempt), (41 * MIB, 40 * MIB));
        assert_eq!(piece.length, 3 * MIB);
    }

    #[test]
    fn what_was_never_written_is_exempt_where_no_discard_comes_for_it() {
        for skips_unwritten in [false, true] {
            let cutting = Cutting {
                skips_unwritten,
                ..PLAIN
            };
            let mut reserved = extent(4 * MIB, 40 * MIB);
            reserved.unwritten = true;
            let mut tail = tail(&[extent(0, 4 * MIB), reserved], &cutting);
            let piece = tail.take(64 * MIB, true, &cutting).unwrap();
            let exempt = if skips_unwritten { 40 * MIB } else { 0 };
            assert_eq!((piece.frees, piece.exempt), (44 * MIB, exempt));
        }
    }

    proptest! {
        #[test]
        fn everything_is_freed_once_and_never_too_much(
            lengths in prop::collection::vec((0..50u64, 1..400u64, any::<bool>()), 0..30),
            asks in prop::collection::vec(1..3000u64, 1..20),
            group in prop_oneof![Just(0u64), Just(64u64)],
            indivisible in prop_oneof![Just(0u64), Just(96u64)],
            floor in 0..3000u64,
            rest in 0.0..0.5f64,
        ) {
            let cutting = Cutting {
                block: 4096,
                skips_unwritten: false,
                group: group * 4096,
                indivisible: if group > 0 { 0 } else { indivisible * 4096 },
                rest,
            };
            let mut at = 0;
            let mut extents = Vec::new();
            for (hole, length, shared) in lengths {
                at += hole * 4096;
                extents.push(FileExtent { shared, ..extent(at, length * 4096) });
                at += length * 4096;
            }
            let total: u64 = extents.iter().map(|e| e.length).sum();
            let shared: u64 = extents.iter().filter(|e| e.shared).map(|e| e.length).sum();
            let mut tail = Tail::default();
            // In two steps, as windows of FIEMAP come.
            let floor = floor * 4096;
            tail.prepend(&extents, floor, &cutting);
            tail.prepend(&extents, 0, &cutting);
            prop_assert_eq!(tail.bytes(), total);
            let mut end = u64::MAX;
            let (mut freed, mut exempt) = (0, 0);
            let mut asks = asks.iter().cycle();
            while let Some(piece) = tail.take(asks.next().unwrap() * 2048, true, &cutting) {
                prop_assert!(piece.length < end && piece.length % 4096 == 0);
                prop_assert!(piece.weight >= piece.frees - piece.exempt);
                end = piece.length;
                freed += piece.frees;
                exempt += piece.exempt;
            }
            prop_assert_eq!((freed, exempt), (total, shared));
        }
    }
}
