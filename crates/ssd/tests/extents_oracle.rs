//! Every operation beside a bitmap that does the same the slow way.

use std::ops::Range;

use proptest::prelude::*;
use ssd::extents::Extents;

/// Small enough that ranges touch, overlap and split each other all the time.
const SPACE: usize = 96;

/// One flag for each address.
#[derive(Clone, PartialEq, Debug)]
struct Bitmap([bool; SPACE]);

impl Bitmap {
    fn set(&mut self, range: Range<u64>, to: bool) -> u64 {
        let mut changed = 0;
        for address in range {
            let bit = &mut self.0[address as usize];
            changed += u64::from(*bit != to);
            *bit = to;
        }
        changed
    }

    /// The maximal runs of set (or clear) flags within a range.
    fn runs(&self, range: Range<u64>, of: bool) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for address in range.filter(|&a| self.0[a as usize] == of) {
            match runs.last_mut() {
                Some(run) if run.end == address => run.end += 1,
                _ => runs.push(address..address + 1),
            }
        }
        runs
    }
}

fn total(runs: &[Range<u64>]) -> u64 {
    runs.iter().map(|r| r.end - r.start).sum()
}

#[derive(Debug, Clone)]
enum Change {
    Insert(Range<u64>),
    Remove(Range<u64>),
}

fn range() -> impl Strategy<Value = Range<u64>> {
    // One in nine is empty or the wrong way round, and must do nothing.
    (0..SPACE as u64, 0..SPACE as u64, 0..9).prop_map(|(a, b, kind)| match kind {
        0 => a.max(b)..a.min(b),
        1..=4 => a.min(b)..a.max(b),
        _ => a..(a + b % 9).min(SPACE as u64),
    })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        range().prop_map(Change::Insert),
        range().prop_map(Change::Remove)
    ]
}

fn built(changes: &[Change]) -> (Extents, Bitmap) {
    let (mut set, mut bitmap) = (Extents::new(), Bitmap([false; SPACE]));
    for change in changes {
        let (got, expected) = match change.clone() {
            Change::Insert(r) => (set.insert(r.clone()), bitmap.set(r, true)),
            Change::Remove(r) => (set.remove(r.clone()), bitmap.set(r, false)),
        };
        assert_eq!(got, expected, "addresses changed by {change:?}");
    }
    (set, bitmap)
}

proptest! {
    #[test]
    fn holds_what_a_bitmap_holds(changes in prop::collection::vec(change(), 0..60)) {
        let (set, bitmap) = built(&changes);
        let all = 0..SPACE as u64;
        let runs = bitmap.runs(all.clone(), true);
        prop_assert_eq!(set.iter().collect::<Vec<_>>(), runs.clone());
        prop_assert_eq!(set.iter().rev().collect::<Vec<_>>(), runs.iter().rev().cloned().collect::<Vec<_>>());
        prop_assert_eq!(set.len(), runs.len());
        prop_assert_eq!(set.is_empty(), runs.is_empty());
        prop_assert_eq!(set.covered(), total(&runs));
        prop_assert_eq!(set.first(), runs.first().cloned());
        prop_assert_eq!(set.last(), runs.last().cloned());
        for address in all {
            prop_assert_eq!(set.contains(address), bitmap.0[address as usize]);
            let around = runs.iter().find(|run| run.contains(&address)).cloned();
            prop_assert_eq!(set.around(address), around);
        }
    }

    #[test]
    fn answers_about_a_range_as_a_bitmap_does(
        changes in prop::collection::vec(change(), 0..60),
        asked in range(),
    ) {
        let (set, bitmap) = built(&changes);
        let (inside, outside) = (bitmap.runs(asked.clone(), true), bitmap.runs(asked.clone(), false));
        prop_assert_eq!(set.overlap(asked.clone()), total(&inside));
        prop_assert_eq!(set.covers(asked.clone()), outside.is_empty());
        prop_assert_eq!(set.within(asked.clone()).collect::<Vec<_>>(), inside);
        prop_assert_eq!(set.gaps(asked).collect::<Vec<_>>(), outside);
    }

    #[test]
    fn a_range_that_is_added_is_part_of_the_range_that_coalesce_returns(
        changes in prop::collection::vec(change(), 0..60),
        added in range(),
    ) {
        let (mut set, mut bitmap) = built(&changes);
        bitmap.set(added.clone(), true);
        let runs = bitmap.runs(0..SPACE as u64, true);
        let whole = runs.iter().find(|run| !added.is_empty() && run.contains(&added.start));
        prop_assert_eq!(set.coalesce(added.clone()), whole.cloned().unwrap_or(added));
        prop_assert_eq!(set.iter().collect::<Vec<_>>(), runs);
    }

    #[test]
    fn the_gaps_of_the_gaps_are_the_set(changes in prop::collection::vec(change(), 0..40)) {
        let (set, _) = built(&changes);
        let all = 0..SPACE as u64;
        let rest: Extents = set.gaps(all.clone()).collect();
        prop_assert_eq!(rest.gaps(all).collect::<Extents>(), set.clone());
        prop_assert_eq!(set.covered() + rest.covered(), SPACE as u64);
    }
}

#[test]
fn the_ends_of_the_address_space_work() {
    let mut set = Extents::from(0..u64::MAX);
    assert_eq!(set.covered(), u64::MAX);
    assert!(set.contains(u64::MAX - 1) && !set.contains(u64::MAX));
    assert_eq!(set.remove(1..u64::MAX - 1), u64::MAX - 2);
    assert_eq!(
        set.iter().collect::<Vec<_>>(),
        [0..1, u64::MAX - 1..u64::MAX]
    );
    let gaps: Extents = set.gaps(0..u64::MAX).collect();
    assert_eq!(gaps, Extents::from(1..u64::MAX - 1));
}

#[test]
fn neighbours_merge_and_strangers_do_not() {
    let mut set: Extents = [0..10, 20..30].into_iter().collect();
    assert_eq!(set.insert(10..19), 9);
    assert_eq!(set.iter().collect::<Vec<_>>(), [0..19, 20..30]);
    assert_eq!(set.insert(19..20), 1);
    assert_eq!(format!("{set:?}"), "{0..30}");
}
