//! Every operation of a set of blocks beside the set of ranges, which has a bitmap beside it.

use std::ops::Range;

use proptest::prelude::*;
use ssd::extents::{BlockSet, Extents};

/// Where chunks, nodes and nodes of nodes end, and what lies far out.
const CORNERS: [u64; 8] = [
    0,
    1 << 14,
    5 << 14,
    1 << 20,
    3 << 20,
    1 << 26,
    1 << 40,
    u64::MAX - 300,
];

#[derive(Debug, Clone)]
enum Step {
    Insert(Range<u64>),
    InsertAll(Vec<Range<u64>>),
    Coalesce(Range<u64>),
    Remove(Range<u64>),
    PopFirst,
    PopLongest,
}

fn block() -> impl Strategy<Value = u64> {
    (0..CORNERS.len(), 0..150_u64, any::<bool>()).prop_map(|(corner, distance, left)| {
        let corner = CORNERS[corner];
        match left {
            true => corner.saturating_sub(distance),
            false => corner.saturating_add(distance),
        }
    })
}

fn range() -> impl Strategy<Value = Range<u64>> {
    let length = prop_oneof![
        6 => 0..40_u64,
        1 => Just(1 << 14),
        1 => Just(1 << 20),
        1 => Just(1 << 26),
        1 => 0..1_u64 << 27,
    ];
    prop_oneof![
        8 => (block(), length).prop_map(|(start, length)| start..start.saturating_add(length)),
        1 => (block(), block()).prop_map(|(start, end)| start..end),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => range().prop_map(Step::Insert),
        1 => prop::collection::vec(range(), 0..40).prop_map(Step::InsertAll),
        1 => range().prop_map(Step::Coalesce),
        4 => range().prop_map(Step::Remove),
        1 => Just(Step::PopFirst),
        2 => Just(Step::PopLongest),
    ]
}

/// A short range among blocks at a chunk's end, so many that edges become bits; or a long one that
/// fills or empties them.
fn crowded() -> impl Strategy<Value = Step> {
    let end = 1 << 14;
    let range = move |most: u64| {
        (0..1200_u64, 1..most)
            .prop_map(move |(at, length)| end - 1100 + at..end - 1100 + at + length)
    };
    prop_oneof![
        30 => range(2).prop_map(Step::Insert),
        10 => range(3).prop_map(Step::Remove),
        1 => range(400).prop_map(Step::Insert),
        1 => range(600).prop_map(Step::Remove),
        1 => prop::collection::vec(range(3), 0..200).prop_map(Step::InsertAll),
        1 => Just(Step::PopLongest),
    ]
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// Carries a step out on both, which must answer alike.
fn take(step: Step, set: &mut BlockSet, model: &mut Extents) {
    let popped = |model: &mut Extents, range: Option<Range<u64>>| {
        if let Some(range) = range.clone() {
            model.remove(range);
        }
        range
    };
    match step {
        Step::Insert(range) => assert_eq!(set.insert(range.clone()), model.insert(range)),
        Step::InsertAll(ranges) => {
            set.insert_all(&ranges);
            model.extend(ranges);
        }
        Step::Coalesce(range) => {
            model.insert(range.clone());
            let whole = model.iter().find(|held| held.contains(&range.start));
            let expected = whole.filter(|_| !range.is_empty()).unwrap_or(range.clone());
            assert_eq!(set.coalesce(range), expected);
        }
        Step::Remove(range) => assert_eq!(set.remove(range.clone()), model.remove(range)),
        Step::PopFirst => {
            let first = model.first();
            assert_eq!(set.pop_first(), popped(model, first));
        }
        Step::PopLongest => {
            // Of several the first.
            let longest = model.iter().rev().max_by_key(length);
            assert_eq!(set.longest(), longest);
            set.remove(popped(model, longest).unwrap_or_default());
        }
    }
    assert_eq!(set.covered(), model.covered());
    assert_eq!(set.len(), model.len());
    assert_eq!(set.is_empty(), model.is_empty());
}

fn same(set: &BlockSet, model: &Extents) {
    assert_eq!(
        set.iter().collect::<Vec<_>>(),
        model.iter().collect::<Vec<_>>()
    );
    assert_eq!(set.first(), model.first());
    assert_eq!(set.last(), model.last());
}

proptest! {
    #[test]
    fn does_what_a_set_of_ranges_does(
        steps in prop::collection::vec(step(), 0..60),
        asked in prop::collection::vec(range(), 20),
    ) {
        let (mut set, mut model) = (BlockSet::new(), Extents::new());
        for step in steps {
            take(step, &mut set, &mut model);
        }
        same(&set, &model);
        for range in asked {
            prop_assert_eq!(set.overlap(range.clone()), model.overlap(range.clone()));
            prop_assert_eq!(set.covers(range.clone()), model.covers(range.clone()));
            prop_assert_eq!(set.contains(range.start), model.contains(range.start));
            let around = model.iter().find(|held| held.contains(&range.start));
            prop_assert_eq!(set.around(range.start), around);
            let inside = model.within(range.clone()).collect::<Vec<_>>();
            prop_assert_eq!(set.within(range).collect::<Vec<_>>(), inside);
        }
        prop_assert_eq!(&set, &model.iter().collect::<BlockSet>());
    }

    #[test]
    fn a_chunk_changes_its_form_and_keeps_its_runs(
        steps in prop::collection::vec(crowded(), 500..1500),
    ) {
        let (mut set, mut model) = (BlockSet::new(), Extents::new());
        for step in steps {
            take(step, &mut set, &mut model);
        }
        same(&set, &model);
    }
}

#[test]
fn the_ends_of_the_address_space_work() {
    let mut set = BlockSet::from(0..u64::MAX);
    assert_eq!(set.covered(), u64::MAX);
    assert!(set.contains(u64::MAX - 1) && !set.contains(u64::MAX));
    assert_eq!(set.longest(), Some(0..u64::MAX));
    assert_eq!(set.remove(1..u64::MAX - 1), u64::MAX - 2);
    let left = [0..1, u64::MAX - 1..u64::MAX];
    assert_eq!(set.iter().collect::<Vec<_>>(), left);
    assert_eq!(set.len(), 2);
    set.clear();
    assert_eq!((set.pop_first(), set.longest()), (None, None));
}
