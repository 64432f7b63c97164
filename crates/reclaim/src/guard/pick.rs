//! The windows of trims: pure.
//!
//! A window begins at the extent whose turn it is. It
//! extends over its neighbours as long as half of the free bytes in it are ripe, and half of the
//! extents, because each extent is a discard. So many small extents need one call, and not one
//! each. On ext4 a block group is trimmed whole if half of it is ripe: ext4 then remembers it as
//! trimmed.

use std::ops::Range;

use ssd::extents::Extents;
use storage::TrimReach;

/// Cuts lie at multiples of this.
const GRAIN: u64 = 64 << 10;

/// Where a file system may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cuts {
    /// Bytes of a group, across whose end no window goes, and where the first begins.
    pub(crate) group: u64,
    pub(crate) first: u64,
    /// Whether the kernel remembers a group that was trimmed whole.
    pub(crate) remembered: bool,
    /// How much of a free extent the kernel trims whose part a window holds.
    pub(crate) reach: TrimReach,
}

impl Cuts {
    /// The group around an address.
    fn around(self, address: u64) -> Range<u64> {
        let Some(within) = address.checked_sub(self.first) else {
            return 0..self.first;
        };
        let start = self.first + within / self.group * self.group;
        start..start.saturating_add(self.group)
    }

    /// The space that the kernel trims for a free range within `group`.
    fn reached(self, free: &Extents, range: Range<u64>, group: &Range<u64>) -> Range<u64> {
        let end = || match free.gaps(range.end..group.end).next() {
            Some(gap) => gap.start,
            None => group.end,
        };
        match self.reach {
            TrimReach::Part => range,
            TrimReach::End => range.start..end(),
            TrimReach::Whole => {
                let last = free.gaps(group.start..range.start).last();
                last.map_or(group.start, |gap| gap.end)..end()
            }
        }
    }
}

/// Returns the window that begins with a ripe extent and holds at most so many free bytes, but for
/// the least that can be cut.
pub(crate) fn window(
    free: &Extents,
    ripe: &Extents,
    first: Range<u64>,
    at_most: u64,
    cuts: Cuts,
) -> Range<u64> {
    let group = cuts.around(first.start);
    let goes_whole = cuts.remembered && !group.is_empty();
    if goes_whole && mostly_ripe(free, ripe, &group).is_some_and(|held| held <= at_most) {
        return group;
    }
    let start = first.start;
    let first = cuts.reached(free, start..first.end.min(group.end), &group);
    if first.end - first.start > at_most {
        if cuts.reach != TrimReach::Part {
            return first;
        }
        let cut = (start + at_most.max(GRAIN)) / GRAIN * GRAIN;
        let cut = if cut > start { cut } else { cut + GRAIN };
        return start..cut.min(first.end);
    }
    let mut window = first;
    for next in ripe.within(window.end..group.end) {
        let wider = window.start..cuts.reached(free, next, &group).end;
        if mostly_ripe(free, ripe, &wider).is_none_or(|held| held > at_most) {
            break;
        }
        window = wider;
    }
    window
}

/// The free bytes of a range, if half of them are ripe, and half of its extents.
fn mostly_ripe(free: &Extents, ripe: &Extents, range: &Range<u64>) -> Option<u64> {
    let (mut held, mut paid, mut extents, mut touched) = (0, 0, 0, 0);
    for extent in free.within(range.clone()) {
        held += extent.end - extent.start;
        extents += 1;
        let part = ripe.overlap(extent);
        paid += part;
        touched += u64::from(part > 0);
    }
    (paid * 2 >= held && touched * 2 >= extents).then_some(held)
}

#[cfg(test)]
mod tests {
    use pace::trims::{Debt, Moment, Pending};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn mib(range: Range<u64>) -> Range<u64> {
        range.start * MIB..range.end * MIB
    }

    /// All of these is free; what isn't listed second was trimmed.
    fn debt(free: &[Range<u64>], pending: &[(Range<u64>, Moment)]) -> Debt {
        let mut set = Extents::new();
        free.iter().for_each(|range| {
            set.insert(mib(range.clone()));
        });
        let pending = pending.iter().map(|(range, since)| Pending {
            range: mib(range.clone()),
            since: *since,
        });
        Debt::noted(set, pending)
    }

    fn ext4(group_mib: u64) -> Cuts {
        Cuts {
            group: group_mib * MIB,
            first: 0,
            remembered: true,
            reach: TrimReach::End,
        }
    }

    fn xfs(reach: TrimReach) -> Cuts {
        Cuts {
            remembered: false,
            reach,
            ..ext4(64)
        }
    }

    /// The window at the first debt from some MiB on, where all debt is ripe.
    fn at(debt: &Debt, from: u64, at_most: u64, cuts: Cuts) -> Range<u64> {
        let ripe: Extents = debt.iter().map(|pending| pending.range).collect();
        let first = debt.first_within(mib(from..100)).unwrap();
        window(debt.free(), &ripe, first.range, at_most, cuts)
    }

    #[test]
    fn a_long_extent_is_cut_and_small_neighbours_go_together() {
        let cuts = xfs(TrimReach::Part);
        let debt = debt(
            &[0..20, 21..22, 23..24, 25..40, 50..100],
            &[
                (0..20, 1),
                (21..22, 2),
                (23..24, 2),
                (39..40, 2),
                (60..80, 3),
            ],
        );
        assert_eq!(at(&debt, 0, 8 * MIB, cuts), mib(0..8));
        assert_eq!(at(&debt, 0, 21 * MIB, cuts), mib(0..22));
        // Up to 40 there would be 15 trimmed for 1 that is pending.
        assert_eq!(at(&debt, 21, 100 * MIB, cuts), mib(21..24));
        assert_eq!(at(&debt, 60, 100 * MIB, cuts), mib(60..64));
        assert_eq!(at(&debt, 60, 1, cuts).end, 60 * MIB + GRAIN);
    }

    #[test]
    fn a_window_holds_all_that_the_kernel_trims_for_it() {
        let debt = debt(
            &[0..20, 30..40, 41..50],
            &[(2..8, 1), (10..12, 5), (32..34, 1)],
        );
        let whole = xfs(TrimReach::Whole);
        assert_eq!(at(&debt, 0, MIB, whole), mib(0..20));
        assert_eq!(at(&debt, 30, 100 * MIB, whole), mib(30..40));
        for at_most in [MIB, 19 * MIB] {
            assert_eq!(at(&debt, 0, at_most, ext4(64)), mib(2..20), "{at_most}");
        }
        assert_eq!(at(&debt, 30, 19 * MIB, ext4(64)), mib(32..40));
        assert_eq!(
            at(&debt, 30, 19 * MIB, ext4(36)),
            mib(32..36),
            "the group's end"
        );
    }

    #[test]
    fn a_block_group_that_is_half_owed_goes_whole() {
        let cuts = ext4(32);
        let debt = debt(&[0..20, 32..60], &[(4..16, 1), (40..41, 1)]);
        assert_eq!(at(&debt, 0, 32 * MIB, cuts), mib(0..32));
        assert_eq!(at(&debt, 0, 16 * MIB, cuts), mib(4..20));
        assert_eq!(at(&debt, 40, 32 * MIB, cuts), mib(40..60));
    }

    #[test]
    fn a_group_of_many_other_extents_goes_in_parts() {
        let cuts = ext4(64);
        let debt = debt(&[0..20, 30..31, 32..33, 34..35], &[(0..20, 1)]);
        assert_eq!(at(&debt, 0, 64 * MIB, cuts), mib(0..20));
    }

    #[test]
    fn what_lies_before_the_first_group_is_no_group() {
        let cuts = Cuts {
            first: 1024,
            ..ext4(8)
        };
        assert_eq!(cuts.around(0), 0..1024);
        assert_eq!(cuts.around(1024), 1024..8 * MIB + 1024);
    }
}
