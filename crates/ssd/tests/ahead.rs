//! A drive whose answers take a way of their own, with and without a head start for it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::time::Duration;

use ssd::{Card, Command, Drive, HeadStart, Time, profiles};

const CAPACITY: u64 = 1 << 30;
const WAY: Duration = Duration::from_micros(40);

/// Reads a second of a reader with so many in flight whose reads are on their way for [`WAY`].
fn reads_per_s(card: &Card, depth: usize, ahead: HeadStart) -> f64 {
    let mut drive = Drive::new(card.figures().clone(), CAPACITY, 1);
    drive.set_head_start(ahead);
    // When how many reads reach the drive.
    let mut coming = BTreeMap::from([(Time::ZERO, depth)]);
    let (mut completed, mut done, mut now) = (0, Vec::new(), Time::ZERO);
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
            *coming.entry(now + WAY).or_default() += 1;
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
        let without = reads_per_s(&card, depth, HeadStart::default());
        let with = reads_per_s(&card, depth, HeadStart([WAY; HeadStart::STEPS]));
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
    let rate = reads_per_s(&card, 64, HeadStart([WAY; HeadStart::STEPS]));
    assert!(rate <= card.figures().read.per_s(64.0) * 1.01, "{rate}");
}
