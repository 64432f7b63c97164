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
