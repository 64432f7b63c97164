//! The order of trims, and their windows: pure.
//!
//! The oldest debt comes first; of one age the longest extent. A window begins at it. It goes on
//! over its neighbours as long as half of the free bytes in it are pending. So many small extents
//! need one call, and not one each. On ext4 a block group goes whole if half of
//! its free bytes are pending: ext4 then remembers it as trimmed.

use std::cmp::Reverse;
use std::ops::Range;

use super::debt::{Debt, Moment, Owed, UNKNOWN};

/// Cuts lie at multiples of this.
const GRAIN: u64 = 64 << 10;

/// Where a file system may be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cuts {
    /// ext4: between extents, and a whole block group is remembered.
    Groups { group: u64, first: u64 },
    /// XFS: anywhere within allocation groups; between extents where the kernel trims each whole.
    Within { group: u64, whole: bool },
}

impl Cuts {
    /// The group around an address.
    fn around(self, address: u64) -> Range<u64> {
        let (group, first) = match self {
            Cuts::Groups { group, first } => (group, first),
            Cuts::Within { group, .. } => (group, 0),
        };
        let start = match address.checked_sub(first) {
            Some(within) => first + within / group * group,
            None => return 0..first,
        };
        start..start.saturating_add(group)
    }
}

/// Returns all debt since before a moment, in the order of its trims. A known age comes first.
pub(crate) fn in_order(debt: &Debt, before: Moment) -> Vec<Owed> {
    let ripe = |owed: &Owed| owed.since <= before;
    let mut all: Vec<Owed> = debt.iter().filter(ripe).collect();
    all.sort_by_key(|owed| {
        let unknown = owed.since == UNKNOWN;
        (unknown, owed.since, Reverse(owed.bytes()), owed.range.start)
    });
    all
}

/// Returns the window that begins with a pending extent and holds at most so many free bytes, but
/// for the least that can be cut.
pub(crate) fn window(debt: &Debt, first: &Owed, at_most: u64, cuts: Cuts) -> Range<u64> {
    let group = cuts.around(first.range.start);
    let free = |range: &Range<u64>| debt.free().overlap(range.clone());
    let owed = |range: &Range<u64>| debt.within(range.clone()).map(|o| o.bytes()).sum::<u64>();
    if matches!(cuts, Cuts::Groups { .. }) && !group.is_empty() {
        let held = free(&group);
        if held <= at_most && owed(&group) * 2 >= held {
            return group;
        }
    }
    let start = first.range.start;
    let end = first.range.end.min(group.end);
    let is_cut = matches!(cuts, Cuts::Within { whole: false, .. });
    if end - start > at_most && !is_cut {
        // What touches the window goes to its end.
        let extent = debt.free().within(group).find(|e| e.contains(&start));
        return extent.map_or(start..end, |extent| start..extent.end);
    }
    if end - start > at_most {
        let cut = (start + at_most.max(GRAIN)) / GRAIN * GRAIN;
        let cut = if cut > start { cut } else { cut + GRAIN };
        return start..cut.min(end);
    }
    let mut window = start..end;
    let mut sum = end - start;
    for next in debt.within(end..group.end) {
        let wider = start..next.range.end;
        sum += next.bytes();
        let held = free(&wider);
        if held > at_most || sum * 2 < held {
            break;
        }
        window = wider;
    }
    window
}

#[cfg(test)]
mod tests {
    use extents::Extents;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn mib(range: Range<u64>) -> Range<u64> {
        range.start * MIB..range.end * MIB
    }

    /// All of these is free; what isn't listed second was trimmed.
    fn debt(free: &[Range<u64>], owed: &[(Range<u64>, Moment)]) -> Debt {
        let mut set = Extents::new();
        free.iter().for_each(|range| {
            set.insert(mib(range.clone()));
        });
        let owed = owed.iter().map(|(range, since)| Owed {
            range: mib(range.clone()),
            since: *since,
        });
        Debt::noted(set, owed)
    }

    #[test]
    fn the_oldest_and_of_them_the_longest_is_first_and_unknown_age_last() {
        let debt = debt(
            std::slice::from_ref(&(0..100)),
            &[
                (0..1, 5),
                (2..4, 5),
                (6..7, 3),
                (8..9, UNKNOWN),
                (20..40, 9),
            ],
        );
        let order: Vec<u64> = in_order(&debt, 8)
            .iter()
            .map(|owed| owed.range.start / MIB)
            .collect();
        assert_eq!(order, [6, 2, 0, 8]);
    }

    #[test]
    fn a_long_extent_is_cut_and_small_neighbours_go_together() {
        let cuts = Cuts::Within {
            group: 64 * MIB,
            whole: false,
        };
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
        let first = |start: u64| debt.first_within(mib(start..100)).unwrap();
        assert_eq!(window(&debt, &first(0), 8 * MIB, cuts), mib(0..8));
        assert_eq!(window(&debt, &first(0), 21 * MIB, cuts), mib(0..22));
        // Up to 40 there would be 15 trimmed for 1 that is owed.
        assert_eq!(window(&debt, &first(21), 100 * MIB, cuts), mib(21..24));
        assert_eq!(window(&debt, &first(60), 100 * MIB, cuts), mib(60..64));
        assert_eq!(window(&debt, &first(60), 1, cuts).end, 60 * MIB + GRAIN);
    }

    #[test]
    fn where_the_kernel_trims_extents_whole_none_is_cut() {
        let debt = debt(&[0..20, 30..40], &[(2..8, 1)]);
        let first = debt.first_within(mib(0..100)).unwrap();
        let (group, whole) = (64 * MIB, true);
        let cuts = Cuts::Within { group, whole };
        assert_eq!(window(&debt, &first, MIB, cuts), mib(2..20));
        let cuts = Cuts::Groups { group, first: 0 };
        assert_eq!(window(&debt, &first, MIB, cuts), mib(2..20));
    }

    #[test]
    fn a_block_group_that_is_half_owed_goes_whole() {
        let cuts = Cuts::Groups {
            group: 32 * MIB,
            first: 0,
        };
        let debt = debt(&[0..20, 32..60], &[(4..16, 1), (40..41, 1)]);
        let first = |start: u64| debt.first_within(mib(start..100)).unwrap();
        assert_eq!(window(&debt, &first(0), 32 * MIB, cuts), mib(0..32));
        assert_eq!(window(&debt, &first(0), 16 * MIB, cuts), mib(4..16));
        assert_eq!(window(&debt, &first(40), 32 * MIB, cuts), mib(40..41));
    }

    #[test]
    fn what_lies_before_the_first_group_is_no_group() {
        let cuts = Cuts::Groups {
            group: 8 * MIB,
            first: 1024,
        };
        assert_eq!(cuts.around(0), 0..1024);
        assert_eq!(cuts.around(1024), 1024..8 * MIB + 1024);
    }
}
