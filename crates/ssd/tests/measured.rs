//! The drives measured in 2024, again in virtual time.
//!
//! The discards (how many of which size in each second) are those of the iostat
//! logs; everything else has to come out of the card and the queue.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use ssd::{Drive, Time, profiles};
use testkit::harness::{Harness, Interval, Outcome, Pace, Pieces, Readers, Stall};
use testkit::measured::{EVO_870, Measured, T500, median, near};

const SECOND: Duration = Duration::from_secs(1);

/// The drive beside eight reads, with discards of these lengths.
fn run(row: &Measured, lengths: impl Iterator<Item = u64>, seed: u64) -> Outcome {
    let card = profiles::by_name(row.profile).unwrap();
    let mut drive = Drive::new(card.figures().clone(), 1 << 41, seed);
    drive.premap(0..1 << 41);
    let readers = Readers::Closed {
        depth: 8,
        per_io: row.per_io,
    };
    let pieces = lengths.scan(0, |start, length| {
        *start += length;
        Some(*start - length..*start)
    });
    let pieces: Vec<_> = pieces.collect();
    // Neither begins nor ends with a second, as in the log.
    let discards = Pieces::of(pieces.into_iter(), Pace::Gap(row.per_discard));
    Harness::new(readers, seed)
        .drive(drive, discards.from(Time::from_secs_f64(4.1)))
        .run(Duration::from_secs(24))
        .unwrap()
}

fn is_as_measured(row: &Measured) {
    let outcome = run(row, row.lengths(), 1);
    let seconds = outcome.intervals(SECOND);
    let base = median(seconds[..4].iter().map(|i| i.reads as f64));
    near("base reads/s", base, row.base, 0.05);

    let stall = outcome.stall(SECOND, base).unwrap();
    near("stall s", stall.seconds, row.stall_s, 0.05);
    near("lost s", stall.lost_s, row.lost_s, 0.05);

    let full: Vec<Interval> = seconds
        .into_iter()
        .filter(|i| (i.reads as f64) < base * 0.5)
        .collect();
    let of = |f: fn(&Interval) -> f64| median(full.iter().map(f));
    near("reads/s", of(|i| i.reads as f64), row.reads_per_s, 0.05);
    near(
        "discards/s",
        of(|i| i.discards as f64),
        row.discards_per_s,
        0.05,
    );
    near("d_await ms", of(|i| i.d_await_ms), row.d_await_ms, 0.05);
    near("r_await ms", of(|i| i.r_await_ms), row.r_await_ms, 0.05);
}

#[test]
fn samsung_870_evo_under_ext4() {
    is_as_measured(&EVO_870);
}

#[test]
fn crucial_t500_under_ext4() {
    is_as_measured(&T500);
}

#[test]
fn samsung_980_pro_hardly_loses_anything() {
    let row = Measured {
        profile: "samsung-980-pro-1tb",
        per_io: Duration::from_nanos(8_400),
        per_discard: Duration::ZERO,
        discards: &[(131, 512.0 * 1024.0)],
        base: 102_091.0,
        ..T500
    };
    let outcome = run(&row, row.lengths(), 3);
    let seconds = outcome.intervals(SECOND);
    let base = median(seconds[..4].iter().map(|i| i.reads as f64));
    near("base reads/s", base, row.base, 0.05);
    assert_eq!(outcome.discards.len(), 131);
    assert_eq!(outcome.stall(SECOND, base), None::<Stall>);
    // All that is missing between the first discard and well after the last.
    let missing: f64 = seconds[4..6]
        .iter()
        .map(|i| 1.0 - i.reads as f64 / base)
        .sum();
    println!("lost s: {missing:.3}");
    assert!((0.02..0.1).contains(&missing), "lost {missing} s");
}
