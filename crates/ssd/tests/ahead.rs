//! A drive whose answers take a way of their own, with and without a head start for it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use ssd::{Card, Command, Drive, Time, profiles};

const CAPACITY: u64 = 1 << 30;
const WAY: Duration = Duration::from_micros(40);

/// Reads a second of a reader with so many in flight whose reads are on their way for [`WAY`].
/// `burst`: the reader waits until so many are done, and submits that many at once.
fn reads_per_s(card: &Card, depth: usize, burst: usize, ahead: Duration) -> f64 {
    let mut drive = Drive::new(card.figures().clone(), CAPACITY, 1);
    drive.set_head_start(ahead);
    // When how many reads reach the drive.
    let mut coming = BTreeMap::from([(Time::ZERO, depth)]);
    let (mut completed, mut unseen, mut done, mut now) = (0_u32, 0, Vec::new(), Time::ZERO);
    while completed < 20_000 {
        let next = coming.keys().next().copied();
        now = [next, drive.next_event()]
            .into_iter()
            .flatten()
            .min()
            .unwrap();
        drive.advance(now, &mut done);
        for _ in done.drain(..) {
            completed += 1;
            unseen += 1;
        }
        if unseen >= burst {
            *coming.entry(now + WAY).or_default() += std::mem::take(&mut unseen);
        }
        for _ in 0..coming.remove(&now).unwrap_or(0) {
            drive.submit(now, Command::Read(0..4096)).unwrap();
        }
    }
    f64::from(completed) / now.as_secs_f64()
}

#[test]
fn a_head_start_takes_a_round_trip_out_of_the_time_of_reads() {
    let card = profiles::by_name("samsung-870-evo-2tb").unwrap();
    let card = card.with("read.jitter=0").unwrap();
    for depth in [1, 2, 8, 32] {
        let published = card.figures().read.per_s(depth as f64);
        let without = reads_per_s(&card, depth, 1, Duration::ZERO);
        let with = reads_per_s(&card, depth, 1, WAY);
        assert!((with / published - 1.0).abs() < 0.01, "{depth}: {with}");
        // 164 us instead of 124, unless more wait than the drive works at.
        let slower = if depth < 12 { 124.0 / 164.0 } else { 1.0 };
        let share = without / published;
        assert!((share - slower).abs() < 0.01, "{depth}: {share}");
    }
}

#[test]
fn a_head_start_longer_than_a_command_makes_no_rate_higher_than_the_card_s() {
    let card = profiles::by_name("samsung-870-evo-2tb").unwrap();
    let card = card.with("read.latency=10us").unwrap();
    let rate = reads_per_s(&card, 64, 1, WAY);
    assert!(rate <= card.figures().read.per_s(64.0) * 1.01, "{rate}");
}

#[test]
fn reads_that_come_in_bursts_use_places_that_were_idle_before() {
    let card = profiles::by_name("samsung-870-evo-2tb").unwrap();
    let card = card.with("read.jitter=0").unwrap();
    // The first of eight waits for seven others: 7 x 124 / 12 us.
    let longest = WAY + Duration::from_micros(73);
    let published = card.figures().read.per_s(16.0);
    let without = reads_per_s(&card, 16, 8, Duration::ZERO);
    let with = reads_per_s(&card, 16, 8, longest);
    assert!((with / published - 1.0).abs() < 0.03, "{with}");
    assert!(without < published * 0.9, "{without}");
}
