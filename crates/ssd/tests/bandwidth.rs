//! The rate and the bandwidth of each card's drive, beside the figures of its maker.

#![allow(clippy::unwrap_used)]

use std::ops::Range;

use ssd::{Command, Drive, Time, profiles};

const CAPACITY: u64 = 1 << 30;

/// Commands a second of one kind and size, with so many in flight.
fn rate(name: &str, bytes: u64, depth: usize, command: fn(Range<u64>) -> Command) -> f64 {
    let card = profiles::by_name(name).unwrap();
    let mut drive = Drive::new(card.figures().clone(), CAPACITY, 1);
    drive.premap(0..CAPACITY);
    for _ in 0..depth {
        drive.submit(Time::ZERO, command(0..bytes)).unwrap();
    }
    let (mut done, mut completed) = (Vec::new(), 0);
    let mut now = Time::ZERO;
    while completed < 20_000 {
        now = drive.next_event().unwrap();
        drive.advance(now, &mut done);
        for _ in done.drain(..) {
            completed += 1;
            drive.submit(now, command(0..bytes)).unwrap();
        }
    }
    f64::from(completed) / now.as_secs_f64()
}

fn mb_per_s(name: &str, bytes: u64, depth: usize, command: fn(Range<u64>) -> Command) -> f64 {
    rate(name, bytes, depth, command) * bytes as f64 / 1e6
}

fn is_near(measured: f64, published: f64) -> bool {
    (measured / published - 1.0).abs() < 0.02
}

#[test]
fn a_drive_transfers_no_more_than_its_interface() {
    for (name, read, write) in [
        ("samsung-870-evo-2tb", 560.0, 530.0),
        ("crucial-t500-2tb", 7400.0, 7000.0),
        ("samsung-980-pro-1tb", 7000.0, 5000.0),
        ("ocz-vertex-2", 285.0, 285.0),
        ("ocz-agility-2", 285.0, 285.0),
        ("fusionio", 1500.0, 1300.0),
        ("emc-xtremio-10tb", 3200.0, 3200.0),
    ] {
        let measured = mb_per_s(name, 128 << 10, 64, Command::Read);
        assert!(is_near(measured, read), "{name} reads {measured} MB/s");
        let measured = mb_per_s(name, 1 << 20, 64, Command::Write);
        assert!(is_near(measured, write), "{name} writes {measured} MB/s");
        for bytes in [8192, 16_384, 65_536] {
            let measured = mb_per_s(name, bytes, 256, Command::Read);
            assert!(measured < read * 1.01, "{name}: {measured} MB/s of {bytes}");
        }
    }
}

#[test]
fn small_commands_reach_the_rates_of_the_card_s_source() {
    for (name, reads, writes) in [
        ("samsung-870-evo-2tb", 98_000.0, 88_000.0),
        ("crucial-t500-2tb", 1_180_000.0, 1_440_000.0),
        ("samsung-980-pro-1tb", 1_000_000.0, 1_000_000.0),
    ] {
        let measured = rate(name, 4096, 128, Command::Read);
        assert!(is_near(measured, reads), "{name}: {measured} reads/s");
        let measured = rate(name, 4096, 128, Command::Write);
        assert!(
            (measured / writes - 1.0).abs() < 0.03,
            "{name}: {measured} writes/s"
        );
    }
}

#[test]
fn the_size_of_a_single_command_adds_its_transfer() {
    // 124 us, and 124 KiB at 560 MB/s.
    let alone = 1e6 / rate("samsung-870-evo-2tb", 128 << 10, 1, Command::Read);
    assert!((alone - 350.7).abs() < 3.0, "{alone} us");
    let alone = 1e6 / rate("samsung-870-evo-2tb", 4096, 1, Command::Read);
    assert!((alone - 124.0).abs() < 1.0, "{alone} us");
}
