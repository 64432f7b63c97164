use proptest::prelude::*;
use storage::TrimReach;

use super::*;

const GROUP: u64 = 128 * MIB;

/// Shows no free space beforehand.
fn nothing_shown(_: u64) -> NextFree {
    NextFree::Unknown
}

/// Shows free extents.
struct Extents(Vec<Range<u64>>);

impl Extents {
    fn behind(&self, position: u64) -> NextFree {
        let found = self.0.iter().find(|extent| extent.end > position);
        found.map_or(NextFree::Nothing, |extent| NextFree::Extent(extent.clone()))
    }
}

impl Windows {
    fn at_least(self, minimum: u64) -> Windows {
        Windows { minimum, ..self }
    }

    fn of_whole_extents(self, whole: bool) -> Windows {
        Windows { whole, ..self }
    }

    fn in_blocks(self, block: u64) -> Windows {
        Windows { block, ..self }
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
    };
    Windows::new(layout, 0..u64::MAX, end).of_whole_extents(true)
}

/// All windows, each of which came to the same.
fn all(mut windows: Windows, limit: Limit, came: WindowResult) -> Vec<Window> {
    let mut found = Vec::new();
    while !windows.is_done() {
        let window = windows.next(limit, &mut nothing_shown);
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

/// 20 extents of 1 MiB in a group.
fn fragments(group: u64) -> impl Iterator<Item = Range<u64>> {
    (0..20).map(move |i| group * GROUP + (6 * i + 2) * MIB..group * GROUP + (6 * i + 3) * MIB)
}

#[test]
fn full_groups_go_together_and_fragmented_ones_in_whole_extents() {
    let mut windows = ext4(100 * GROUP);
    // The kernel's list joins free space of neighbouring groups.
    let empty = std::iter::once(10 * GROUP..12 * GROUP);
    let fragmented = (12..100).flat_map(fragments);
    let told = Extents(empty.chain(fragmented).collect());
    let limit = limit(130 * MIB);
    let came = |bytes, discards| WindowResult {
        bytes,
        discards,
        busy: 0.002 * discards as f64,
    };
    // Nothing is known of what a discard takes: one extent is tried alone.
    let full = windows.next(limit, &mut |at| told.behind(at));
    assert_eq!(full.length, 11 * GROUP);
    windows.landed(&full, came(GROUP, 1), limit);
    let next = windows.next(limit, &mut |at| told.behind(at));
    assert_eq!((next.start, next.length), (11 * GROUP, GROUP));
    windows.landed(&next, came(GROUP, 1), limit);
    // 20 discards at 2 ms each are no more than twice what is allowed.
    let whole = windows.next(limit, &mut |at| told.behind(at));
    assert_eq!(whole.length, GROUP);
    windows.landed(&whole, came(20 * MIB, 20), limit);
    let tight = Limit {
        seconds: 0.010,
        ..limit
    };
    let part = windows.next(tight, &mut |at| told.behind(at));
    windows.landed(&part, came(5 * MIB, 5), tight);
    assert_eq!(windows.position(), 13 * GROUP + 32 * MIB, "five extents");
    // What is left of a group goes in parts, too.
    while windows.position() < 14 * GROUP {
        let window = windows.next(tight, &mut |at| told.behind(at));
        windows.landed(&window, came(5 * MIB, 5), tight);
    }
    assert_eq!(
        windows.position(),
        14 * GROUP,
        "the next begins with its group"
    );
}

#[test]
fn a_first_group_in_pieces_begins_with_one_extent() {
    let windows = ext4(100 * GROUP);
    let first = windows.next(limit(MIB), &mut |at| {
        Extents(fragments(0).collect()).behind(at)
    });
    assert_eq!(first.length, 8 * MIB, "nothing is known of its cost");
}

#[test]
fn where_nothing_is_paced_groups_go_together_unseen() {
    let windows = ext4(100 * GROUP);
    let all = windows.next(limit(u64::MAX), &mut |at| {
        Extents(fragments(0).collect()).behind(at)
    });
    assert_eq!(all.length, LONGEST);
}

#[test]
fn windows_learn_what_they_may_hold() {
    let layout = Layout::Allocation { group: 10 * GIB };
    let mut windows = Windows::new(layout, 0..u64::MAX, 100 * GIB);
    let limit = limit(100 * MIB);
    let mut lengths = Vec::new();
    for busy in [0.0, 0.0, 0.0, 0.0, 0.0, 0.080, 0.020] {
        let window = windows.next(limit, &mut nothing_shown);
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
    assert_eq!(windows.next(limit, &mut nothing_shown).length, 5 * MIB);
}

#[test]
fn one_limit_is_no_measure_for_another() {
    let layout = Layout::Anywhere;
    let mut windows = Windows::new(layout, 0..u64::MAX, 100 * GIB);
    // All is free: a window holds what is allowed, however that grows.
    for allowed in [64 << 10, MIB, 8 * MIB, 64 * MIB, 8 * MIB] {
        let limit = limit(allowed);
        let window = windows.next(limit, &mut nothing_shown);
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
    let told = Extents(vec![
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
        let window = windows.next(limit, &mut |at| told.behind(at));
        let came = WindowResult {
            bytes: MIB,
            discards: 1,
            busy: 0.001,
        };
        windows.landed(&window, came, limit);
        ends.push(windows.position() / MIB);
    }
    assert_eq!(ends, [5, 300, 400, 9000, 10240]);
    let last = windows.next(limit(4 * GIB), &mut |at| told.behind(at));
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
        let (mut windows, told) = (windows(), Extents(extents.clone()));
        let mut held = Vec::new();
        while !windows.is_done() {
            let window = windows.next(limit, &mut |at| told.behind(at));
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
    let silent = windows().next(limit(MIB), &mut nothing_shown);
    assert_eq!(silent.holds, None);
    let unpaced = windows().next(limit(u64::MAX), &mut nothing_shown);
    assert_eq!(unpaced.holds, None);
}

/// A thin volume that holds nothing where it is free.
#[test]
fn what_swallows_discards_is_done_in_ever_longer_windows() {
    let layout = Layout::Allocation { group: 100 * GIB };
    let mut windows = Windows::new(layout, 0..u64::MAX, 100 * GIB);
    let small = |i: u64| GIB + 2 * i * MIB..GIB + 2 * i * MIB + 4096;
    let extents = std::iter::once(MIB..GIB);
    let told = Extents(extents.chain((1..400).map(small)).collect());
    let limit = limit(MIB);
    let mut held = Vec::new();
    while windows.position() < GIB {
        let window = windows.next(limit, &mut |at| told.behind(at));
        windows.landed(&window, WindowResult::default(), limit);
        held.push(window.holds.unwrap() / MIB);
    }
    assert_eq!(held[..8], [1, 2, 4, 8, 16, 32, 64, 128]);
    assert_eq!(held.iter().sum::<u64>(), 1023);
    assert!(held.iter().all(|&mib| mib <= 128 + 128 / REST), "{held:?}");
    let many = windows.next(limit, &mut |at| told.behind(at));
    assert_eq!(many.holds, Some(128 * 4096));
    // Once something is seen, it is as careful as ever.
    let came = WindowResult {
        bytes: 128 * 4096,
        discards: 128,
        busy: 1.0,
    };
    windows.landed(&many, came, limit);
    let next = windows.next(limit, &mut |at| told.behind(at));
    assert_eq!(next.holds, Some(2 * 4096), "two at 8 ms");
}

#[test]
fn an_allocation_group_is_never_asked_for_whole() {
    let layout = Layout::Allocation { group: GIB };
    let mut windows = Windows::new(layout, 0..u64::MAX, 2 * GIB).in_blocks(4096);
    let limit = limit(4 * GIB);
    for start in [0, GIB] {
        let window = windows.next(limit, &mut |at| Extents(Vec::new()).behind(at));
        assert_eq!(window.start, start);
        assert_eq!(windows.begins(&window), start + 4096);
        windows.landed(&window, WindowResult::default(), limit);
    }
    let groups = ext4(2 * GROUP);
    let window = groups.next(limit, &mut nothing_shown);
    assert_eq!(groups.begins(&window), 0);
}

#[test]
fn no_part_is_shorter_than_the_minimum() {
    let layout = Layout::Allocation { group: 10 * GIB };
    let windows = Windows::new(layout, 0..u64::MAX, 10 * GIB);
    let mut windows = windows.at_least(4 * MIB);
    let told = Extents(vec![MIB..2 * MIB, 8 * MIB..18 * MIB, 20 * MIB..22 * MIB]);
    let mut ends = Vec::new();
    while !windows.is_done() {
        let limit = limit(MIB);
        let window = windows.next(limit, &mut |at| told.behind(at));
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
        let (mut windows, told) = (windows(), Extents(extents.clone()));
        let mut found = Vec::new();
        while !windows.is_done() {
            let window = windows.next(limit, &mut |at| told.behind(at));
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
    let window = windows().next(limit(64 * MIB), &mut nothing_shown);
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
        let window = windows.next(limit, &mut nothing_shown);
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
                let window = windows.next(limit, &mut nothing_shown);
                let begins = windows.begins(&window);
                assert_eq!(begins, at, "a block is left out: {start} {allowed}");
                at = window.start.saturating_add(window.length);
                assert!(at - begins >= block, "{start} {allowed}: {window:?}");
                windows.landed(&window, WindowResult::default(), limit);
            }
        }
    }
    let whole = Windows::new(Layout::Whole, 4097..u64::MAX, GIB);
    let whole = whole.in_blocks(4096);
    let window = whole.next(limit(MIB), &mut nothing_shown);
    assert_eq!(whole.begins(&window), 4096);
}

/// The free extents that the kernel discards for a range.
fn discarded(free: &[Range<u64>], range: Range<u64>, reach: TrimReach) -> Vec<Range<u64>> {
    let touched = free
        .iter()
        .filter(|e| e.start < range.end && range.start < e.end);
    let part = |extent: &Range<u64>| {
        let from = extent.start.max(range.start);
        match reach {
            TrimReach::Part => from..extent.end.min(range.end),
            TrimReach::End => from..extent.end,
            TrimReach::Whole => extent.clone(),
        }
    };
    touched.map(part).collect()
}

fn join(extents: &mut Vec<Range<u64>>) {
    extents.dedup_by(|next, last| {
        let touch = next.start == last.end;
        if touch {
            last.end = next.end;
        }
        touch
    });
}

proptest! {
    /// ext4 by both rules of its kernels, XFS by both.
    #[test]
    fn each_free_extent_is_discarded_once(
        (ext4, reach) in prop_oneof![
            Just((true, TrimReach::Part)),
            Just((true, TrimReach::End)),
            Just((false, TrimReach::Part)),
            Just((false, TrimReach::Whole)),
        ],
        pieces in prop::collection::vec((1u64..6000, 1u64..9000), 1..200),
        joined in any::<bool>(),
        minimum in prop_oneof![Just(0), Just(64u64 << 10)],
        allowed in prop_oneof![Just(u64::MAX), 1..GIB],
        seconds in 0.001..0.1,
        each in 0.0001..0.01,
    ) {
        let (first, mut at) = (if ext4 { 1024 } else { 0 }, 0);
        let mut free = Vec::new();
        for (used, unused) in pieces {
            let start = at + used * 4096 + first;
            at = start + unused * 4096 - first;
            // The kernel discards no extent across the end of a group.
            let mut from = start;
            while from < at + first {
                let end = (first + (from - first) / GROUP * GROUP + GROUP).min(at + first);
                // The headers of an allocation group are never free.
                let header = if ext4 || !(from - first).is_multiple_of(GROUP) { 0 } else { 4096 };
                free.push(from + header..end);
                from = end;
            }
        }
        free.retain(|extent| !extent.is_empty());
        let mut told = Extents(free.clone());
        if ext4 && joined {
            join(&mut told.0);
        }
        let layout = match ext4 {
            true => Layout::Groups { group: GROUP, first },
            false => Layout::Allocation { group: GROUP },
        };
        let mut windows = Windows::new(layout, 0..u64::MAX, at + GROUP)
            .of_whole_extents(ext4 || reach == TrimReach::Whole)
            .at_least(minimum)
            .in_blocks(if ext4 { 1024 } else { 4096 });
        let limit = Limit { bytes: allowed, seconds };
        let mut sent = Vec::new();
        while !windows.is_done() {
            let window = windows.next(limit, &mut |at| told.behind(at));
            let range = windows.begins(&window)..window.start.saturating_add(window.length);
            let mut now = discarded(&free, range, reach);
            now.retain(|extent| extent.end - extent.start >= minimum);
            let came = WindowResult {
                bytes: now.iter().map(|extent| extent.end - extent.start).sum(),
                discards: now.len() as u64,
                busy: now.len() as f64 * each,
            };
            sent.extend(now);
            windows.landed(&window, came, limit);
            prop_assert!(sent.len() < 100_000);
        }
        let mut all = free;
        all.retain(|extent| extent.end - extent.start >= minimum);
        if reach == TrimReach::Part && !ext4 {
            // A long extent is cut.
            join(&mut sent);
            join(&mut all);
        }
        prop_assert_eq!(sent, all);
    }

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
            0 => Layout::Groups { group: GROUP, first: 1024 },
            1 | 4 => Layout::Allocation { group: GIB / 3 },
            2 => Layout::Anywhere,
            _ => Layout::Whole,
        };
        let asked = start..start.saturating_add(length);
        let mut windows = Windows::new(layout, asked.clone(), 4 * GIB);
        let limit = limit(allowed);
        let free = Extents((0..30).map(|i| i * (130 << 20)..i * (130 << 20) + (1 << (2 * (i % 14)))).collect());
        let mut at = start;
        let mut count = 0;
        while !windows.is_done() {
            let window = match kind {
                4 => windows.next(limit, &mut |at| free.behind(at)),
                _ => windows.next(limit, &mut nothing_shown),
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
