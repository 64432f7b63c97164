use proptest::prelude::*;

use super::*;

const GROUP: u64 = 128 * MIB;

/// Shows no free space beforehand.
struct Silent;

impl Forecast for Silent {
    fn group(&mut self, _: u64) -> Option<Ahead> {
        None
    }

    fn behind(&mut self, _: u64) -> NextFree {
        NextFree::Unknown
    }
}

/// Shows the contents of block groups.
struct OfGroups<F>(F);

impl<F: FnMut(u64) -> Option<Ahead>> Forecast for OfGroups<F> {
    fn group(&mut self, group: u64) -> Option<Ahead> {
        (self.0)(group)
    }

    fn behind(&mut self, _: u64) -> NextFree {
        NextFree::Unknown
    }
}

/// Shows free extents.
struct Extents(Vec<Range<u64>>);

impl Forecast for Extents {
    fn group(&mut self, _: u64) -> Option<Ahead> {
        None
    }

    fn behind(&mut self, position: u64) -> NextFree {
        let found = self.0.iter().find(|extent| extent.end > position);
        found.map_or(NextFree::Nothing, |extent| NextFree::Extent(extent.clone()))
    }
}

fn limit(bytes: u64) -> Limit {
    Limit {
        bytes,
        seconds: 0.020,
    }
}

fn ext4(end: u64) -> Windows {
    let layout = Layout::Groups {
        group: GROUP,
        first: 0,
        block: 4096,
    };
    Windows::new(layout, 0..u64::MAX, end)
}

/// All windows, each of which came to the same.
fn all(mut windows: Windows, limit: Limit, came: WindowResult) -> Vec<Window> {
    let mut found = Vec::new();
    while !windows.is_done() {
        let window = windows.next(limit, &mut Silent);
        windows.landed(&window, came, limit);
        found.push(window);
        assert!(found.len() < 100_000, "it doesn't end");
    }
    found
}

#[test]
fn groups_are_whole_and_the_last_goes_to_the_end() {
    let found = all(ext4(10 * GROUP + 5), limit(MIB), WindowResult::default());
    assert_eq!(found[0].length, GROUP);
    assert!(found.iter().all(|window| window.start % GROUP == 0));
    assert_eq!(found.last().unwrap().length, u64::MAX);
    assert_eq!(found.iter().map(|w| w.spans).sum::<u64>(), 10 * GROUP + 5);
}

#[test]
fn a_range_begins_and_ends_where_it_was_asked() {
    let layout = Layout::Groups {
        group: GROUP,
        first: 1024,
        block: 1024,
    };
    let windows = Windows::new(layout, 5 * MIB..GROUP + 7 * MIB, GIB);
    assert_eq!(windows.all(), GROUP + 2 * MIB);
    let found = all(windows, limit(MIB), WindowResult::default());
    let first = found[0];
    assert_eq!(
        (first.start, first.start + first.length),
        (5 * MIB, GROUP + 1024)
    );
    let last = found.last().unwrap();
    assert_eq!(last.start + last.length, GROUP + 7 * MIB);
}

#[test]
fn full_groups_are_taken_together_and_fragmented_ones_cut() {
    let mut windows = ext4(100 * GROUP);
    let mut ahead = OfGroups(|group: u64| {
        let (blocks, extents) = match group {
            0..10 => (0, 0),
            10..12 => (32768, 1),
            _ => (8000, 4000),
        };
        Some(Ahead {
            group,
            blocks,
            extents,
        })
    });
    let limit = limit(130 * MIB);
    // Nothing is known of what a discard takes: one extent is tried alone.
    let full = windows.next(limit, &mut ahead);
    assert_eq!(full.length, 11 * GROUP);
    let came = WindowResult {
        bytes: GROUP,
        discards: 1,
        busy: 0.002,
    };
    windows.landed(&full, came, limit);
    let next = windows.next(limit, &mut ahead);
    assert_eq!((next.start, next.length), (11 * GROUP, GROUP));
    windows.landed(&next, came, limit);
    let part = windows.next(limit, &mut ahead);
    assert_eq!(part.length, GROUP / 32, "8 s of 4000 discards at 2 ms");
    for _ in 0..32 {
        let window = windows.next(limit, &mut ahead);
        assert_eq!(window.length, GROUP / 32);
        windows.landed(&window, came, limit);
    }
    assert_eq!(windows.position(), 13 * GROUP);
}

#[test]
fn a_first_group_in_pieces_is_cut() {
    let mut fragmented = OfGroups(|group| {
        Some(Ahead {
            group,
            blocks: 8000,
            extents: 4000,
        })
    });
    let mut windows = ext4(100 * GROUP);
    let first = windows.next(limit(MIB), &mut fragmented);
    assert_eq!(first.length, GROUP / 32, "nothing is known of its cost");
}

#[test]
fn windows_learn_what_they_may_hold() {
    let layout = Layout::Allocation { group: 10 * GIB };
    let mut windows = Windows::new(layout, 0..u64::MAX, 100 * GIB);
    let limit = limit(100 * MIB);
    let mut lengths = Vec::new();
    for busy in [0.0, 0.0, 0.0, 0.0, 0.0, 0.080, 0.020] {
        let window = windows.next(limit, &mut Silent);
        lengths.push(window.length / MIB);
        let came = WindowResult {
            bytes: 0,
            discards: 1,
            busy,
        };
        windows.landed(&window, came, limit);
    }
    assert_eq!(lengths, [100, 200, 400, 800, 800, 800, 200]);
    // It never crosses a boundary of groups.
    windows.seek(10 * GIB - 5 * MIB);
    assert_eq!(windows.next(limit, &mut Silent).length, 5 * MIB);
}

#[test]
fn one_limit_is_no_measure_for_another() {
    let layout = Layout::Anywhere;
    let mut windows = Windows::new(layout, 0..u64::MAX, 100 * GIB);
    // All is free: a window holds what is allowed, however that grows.
    for allowed in [64 << 10, MIB, 8 * MIB, 64 * MIB, 8 * MIB] {
        let limit = limit(allowed);
        let window = windows.next(limit, &mut Silent);
        assert_eq!(window.length, allowed.max(MIB));
        let came = WindowResult {
            bytes: window.length,
            discards: 1,
            busy: 0.001,
        };
        windows.landed(&window, came, limit);
    }
}

#[test]
fn what_is_told_is_neither_cut_nor_heaped_up() {
    let layout = Layout::Allocation { group: 10 * GIB };
    let mut windows = Windows::new(layout, 0..u64::MAX, 20 * GIB);
    let at = |mib: u64, length: u64| mib * MIB..(mib + length) * MIB;
    let mut told = Extents(vec![
        at(4, 2),
        at(100, 1),
        at(200, 1),
        at(300, 900),
        at(9000, 5000),
    ]);
    let mut ends = Vec::new();
    // A part; the rest and two more; a part; the rest; up to the boundary.
    for allowed in [1, 4, 100, 800, 4096] {
        let limit = limit(allowed * MIB);
        let window = windows.next(limit, &mut told);
        let came = WindowResult {
            bytes: MIB,
            discards: 1,
            busy: 0.001,
        };
        windows.landed(&window, came, limit);
        ends.push(windows.position() / MIB);
    }
    assert_eq!(ends, [5, 300, 400, 9000, 10240]);
    let last = windows.next(limit(4 * GIB), &mut told);
    assert_eq!(last.length, u64::MAX);
}

#[test]
fn what_a_window_holds_is_told_with_it() {
    let layout = Layout::Allocation { group: 10 * GIB };
    let asked = 0..GIB + 5 * MIB;
    let windows = || Windows::new(layout.clone(), asked.clone(), 20 * GIB).at_least(MIB);
    let extents = vec![
        MIB..3 * MIB,
        // Shorter than the minimum.
        5 * MIB..5 * MIB + 4096,
        10 * MIB..12 * MIB,
        // Part of it lies behind what was asked for.
        GIB..2 * GIB,
    ];
    let held = |limit: Limit| {
        let (mut windows, mut told) = (windows(), Extents(extents.clone()));
        let mut held = Vec::new();
        while !windows.is_done() {
            let window = windows.next(limit, &mut told);
            held.push(window.holds.map(|bytes| bytes / MIB));
            let came = WindowResult {
                bytes: MIB,
                discards: 1,
                busy: 0.001,
            };
            windows.landed(&window, came, limit);
        }
        held
    };
    // Of the first nothing is known of its cost.
    assert_eq!(held(limit(2 * MIB)), [2, 2, 2, 2, 1].map(Some));
    assert_eq!(held(limit(u64::MAX)), [Some(9)]);
    let silent = windows().next(limit(MIB), &mut Silent);
    assert_eq!(silent.holds, None);
    let unpaced = windows().next(limit(u64::MAX), &mut Silent);
    assert_eq!(unpaced.holds, None);
}

/// A thin volume that holds nothing where it is free.
#[test]
fn what_swallows_discards_is_done_in_ever_longer_windows() {
    let layout = Layout::Allocation { group: 100 * GIB };
    let mut windows = Windows::new(layout, 0..u64::MAX, 100 * GIB);
    let small = |i: u64| GIB + 2 * i * MIB..GIB + 2 * i * MIB + 4096;
    let extents = std::iter::once(MIB..GIB);
    let mut told = Extents(extents.chain((1..400).map(small)).collect());
    let limit = limit(MIB);
    let mut held = Vec::new();
    while windows.position() < GIB {
        let window = windows.next(limit, &mut told);
        windows.landed(&window, WindowResult::default(), limit);
        held.push(window.holds.unwrap() / MIB);
    }
    assert_eq!(held[..8], [1, 2, 4, 8, 16, 32, 64, 128]);
    assert_eq!(held.iter().sum::<u64>(), 1023);
    assert!(held.iter().all(|&mib| mib <= 128 + 128 / REST), "{held:?}");
    let many = windows.next(limit, &mut told);
    assert_eq!(many.holds, Some(128 * 4096));
    // Once something is seen, it is as careful as ever.
    let came = WindowResult {
        bytes: 128 * 4096,
        discards: 128,
        busy: 1.0,
    };
    windows.landed(&many, came, limit);
    let next = windows.next(limit, &mut told);
    assert_eq!(next.holds, Some(2 * 4096), "two at 8 ms");
}

#[test]
fn an_allocation_group_is_never_asked_for_whole() {
    let layout = Layout::Allocation { group: GIB };
    let mut windows = Windows::new(layout, 0..u64::MAX, 2 * GIB).in_blocks(4096);
    let limit = limit(4 * GIB);
    for start in [0, GIB] {
        let window = windows.next(limit, &mut Extents(Vec::new()));
        assert_eq!(window.start, start);
        assert_eq!(windows.begins(&window), start + 4096);
        windows.landed(&window, WindowResult::default(), limit);
    }
    let mut groups = ext4(2 * GROUP);
    let window = groups.next(limit, &mut Silent);
    assert_eq!(groups.begins(&window), 0);
}

#[test]
fn no_part_is_shorter_than_the_minimum() {
    let layout = Layout::Allocation { group: 10 * GIB };
    let windows = Windows::new(layout, 0..u64::MAX, 10 * GIB);
    let mut windows = windows.at_least(4 * MIB);
    let mut told = Extents(vec![MIB..2 * MIB, 8 * MIB..18 * MIB, 20 * MIB..22 * MIB]);
    let mut ends = Vec::new();
    while !windows.is_done() {
        let limit = limit(MIB);
        let window = windows.next(limit, &mut told);
        windows.landed(&window, WindowResult::default(), limit);
        ends.push(windows.position() / MIB);
    }
    assert_eq!(ends, [12, 18, u64::MAX / MIB]);
}

#[test]
fn where_extents_are_discarded_whole_no_window_ends_within_one() {
    let layout = Layout::Allocation { group: 4 * GIB };
    let windows = || Windows::new(layout.clone(), 0..u64::MAX, 8 * GIB).of_whole_extents(true);
    let extents = vec![
        MIB..GIB,
        2 * GIB..2 * GIB + MIB,
        3 * GIB..4 * GIB,
        5 * GIB..8 * GIB,
    ];
    let found = |limit: Limit| {
        let (mut windows, mut told) = (windows(), Extents(extents.clone()));
        let mut found = Vec::new();
        while !windows.is_done() {
            let window = windows.next(limit, &mut told);
            windows.landed(&window, WindowResult::default(), limit);
            found.push(window);
        }
        found
    };
    for limit in [limit(64 * MIB), limit(u64::MAX)] {
        let found = found(limit);
        let held: Vec<u64> = found.iter().map(|window| window.holds.unwrap()).collect();
        let all: u64 = extents.iter().map(|extent| extent.end - extent.start).sum();
        assert_eq!(held.iter().sum::<u64>(), all, "{held:?}");
        let ends = found.iter().map(|w| w.start.saturating_add(w.length));
        let cuts = |end: u64| extents.iter().any(|e| e.start < end && end < e.end);
        assert!(!ends.into_iter().any(cuts), "{found:?}");
    }
    assert_eq!(found(limit(64 * MIB)).len(), 4);
    // Where it isn't told what is free, a group is the least that is whole.
    let window = windows().next(limit(64 * MIB), &mut Silent);
    assert_eq!(window.length, 4 * GIB);
}

#[test]
fn chunks_and_nothing_between_them() {
    let chunks = vec![MIB..9 * MIB, GIB..2 * GIB];
    let windows = Windows::new(Layout::Chunks(chunks), 0..u64::MAX, 2 * GIB);
    assert_eq!(windows.position(), MIB);
    assert_eq!(windows.all(), 8 * MIB + GIB);
    let found = all(windows, limit(u64::MAX), WindowResult::default());
    let starts: Vec<u64> = found.iter().map(|window| window.start).collect();
    assert_eq!(starts, [MIB, GIB]);
}

#[test]
fn a_chunk_is_told_from_its_beginning_wherever_it_was_asked_from() {
    let chunks = vec![MIB..9 * MIB, GIB..2 * GIB, 2 * GIB..3 * GIB];
    let asked = GIB + 300 * MIB..2 * GIB + 7 * MIB;
    let mut windows = Windows::new(Layout::Chunks(chunks), asked.clone(), 3 * GIB);
    assert_eq!(windows.position(), asked.start, "no cursor lies before it");
    assert_eq!(windows.all(), GIB - 300 * MIB + 7 * MIB);
    let limit = limit(MIB);
    let mut told = Vec::new();
    while !windows.is_done() {
        let window = windows.next(limit, &mut Silent);
        told.push(windows.begins(&window)..window.start + window.length);
        windows.landed(&window, WindowResult::default(), limit);
    }
    assert_eq!(told, [GIB..2 * GIB, 2 * GIB..asked.end]);
    assert_eq!(windows.position(), asked.end, "nor behind its end");
}

#[test]
fn no_range_is_shorter_than_a_block() {
    let block = 32 * MIB;
    for start in [0, block - 1, 3 * block + MIB] {
        for allowed in [64 << 10, 40 * MIB] {
            let windows = Windows::new(Layout::Anywhere, start..u64::MAX, 10 * GIB);
            let mut windows = windows.in_blocks(block);
            let limit = limit(allowed);
            let mut at = start / block * block;
            while !windows.is_done() {
                let window = windows.next(limit, &mut Silent);
                let begins = windows.begins(&window);
                assert_eq!(begins, at, "a block is left out: {start} {allowed}");
                at = window.start.saturating_add(window.length);
                assert!(at - begins >= block, "{start} {allowed}: {window:?}");
                windows.landed(&window, WindowResult::default(), limit);
            }
        }
    }
    let whole = Windows::new(Layout::Whole, 4097..u64::MAX, GIB);
    let mut whole = whole.in_blocks(4096);
    let window = whole.next(limit(MIB), &mut Silent);
    assert_eq!(whole.begins(&window), 4096);
}

proptest! {
    #[test]
    fn windows_cover_all_without_a_gap(
        kind in 0..5,
        start in 0..3 * GIB,
        length in prop_oneof![Just(u64::MAX), 1..3 * GIB],
        allowed in prop_oneof![Just(u64::MAX), 1..GIB],
        bytes in 0..GIB,
        busy in 0.0..0.3,
    ) {
        let layout = match kind {
            0 => Layout::Groups { group: GROUP, first: 1024, block: 1024 },
            1 | 4 => Layout::Allocation { group: GIB / 3 },
            2 => Layout::Anywhere,
            _ => Layout::Whole,
        };
        let asked = start..start.saturating_add(length);
        let mut windows = Windows::new(layout, asked.clone(), 4 * GIB);
        let limit = limit(allowed);
        let mut free = Extents((0..30).map(|i| i * (130 << 20)..i * (130 << 20) + (1 << (2 * (i % 14)))).collect());
        let mut at = start;
        let mut count = 0;
        while !windows.is_done() {
            let window = match kind {
                4 => windows.next(limit, &mut free),
                _ => windows.next(limit, &mut Silent),
            };
            prop_assert_eq!(window.start, at);
            prop_assert!(window.length > 0);
            at = window.start.saturating_add(window.length);
            windows.landed(&window, WindowResult { bytes, discards: 3, busy }, limit);
            count += 1;
            prop_assert!(count < 10_000);
        }
        prop_assert_eq!(at, asked.end);
    }
}
