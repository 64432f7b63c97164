//! The drives measured in 2024, again in virtual time.
//!
//! The discards (how many of which size in each second) are those of the iostat
//! logs; everything else has to come out of the card and the queue.

#![allow(clippy::unwrap_used)]

use std::ops::Range;
use std::time::Duration;

use ssd::{Drive, Time, profiles};
use testkit::harness::{Harness, Interval, Outcome, Pace, Pieces, Readers, Stall};

const MIB: f64 = 1024.0 * 1024.0;
const SECOND: Duration = Duration::from_secs(1);

/// One measured drive under ext4, with 8 reads in flight.
struct Row {
    profile: &'static str,
    /// Host's time for each read: with it, the baseline is the measured one.
    per_io: Duration,
    /// Host's time between two discards: the log's 1/rate less d_await.
    gap: Duration,
    /// Discards and MB (of 1024²) in each second.
    discards: &'static [(u32, f64)],
    base: f64,
    reads_per_s: f64,
    discards_per_s: f64,
    d_await_ms: f64,
    r_await_ms: f64,
    stall_s: f64,
    lost_s: f64,
}

const EVO_870: Row = Row {
    profile: "samsung-870-evo-2tb",
    per_io: Duration::from_micros(15),
    gap: Duration::from_micros(70),
    discards: &[
        (510, 62304.0),
        (590, 73864.0),
        (584, 73368.0),
        (585, 72768.0),
        (585, 72920.0),
        (597, 73144.0),
        (601, 74756.0),
        (617, 76632.0),
        (607, 76512.0),
        (606, 77216.0),
        (643, 74280.0),
        (699, 66544.0),
        (694, 66016.0),
        (606, 73016.0),
        (1217, 33136.0),
        (55, 1352.0),
    ],
    base: 57_590.0,
    reads_per_s: 4_832.0,
    discards_per_s: 606.0,
    d_await_ms: 1.58,
    r_await_ms: 1.53,
    stall_s: 15.0,
    lost_s: 13.7,
};

const T500: Row = Row {
    profile: "crucial-t500-2tb",
    per_io: Duration::from_micros(10),
    gap: Duration::from_micros(50),
    discards: &[(8_222, 8_222.0 * 127.7)],
    base: 92_080.0,
    reads_per_s: 3_920.0,
    discards_per_s: 490.0,
    d_await_ms: 1.99,
    r_await_ms: 1.94,
    stall_s: 16.9,
    lost_s: 16.2,
};

impl Row {
    fn pieces(&self) -> Vec<Range<u64>> {
        let mut start = 0;
        let mut pieces = Vec::new();
        for &(count, mib) in self.discards {
            let blocks = (mib * MIB / f64::from(count) / 4096.0).round() as u64;
            for _ in 0..count {
                pieces.push(start..start + blocks * 4096);
                start += blocks * 4096;
            }
        }
        pieces
    }

    fn run(&self, seed: u64) -> Outcome {
        let card = profiles::by_name(self.profile).unwrap();
        let mut drive = Drive::new(card.figures().clone(), 1 << 41, seed);
        drive.premap(0..1 << 41);
        let readers = Readers::Closed {
            depth: 8,
            per_io: self.per_io,
        };
        // Neither begins nor ends with a second, as in the log.
        let discards = Pieces::of(self.pieces().into_iter(), Pace::Gap(self.gap));
        Harness::new(readers, seed)
            .drive(drive, discards.from(Time::from_secs_f64(4.1)))
            .run(Duration::from_secs(24))
            .unwrap()
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[track_caller]
fn near(what: &str, got: f64, expected: f64, tolerance: f64) {
    let off = got / expected - 1.0;
    println!(
        "{what}: {got:.3}, expected {expected:.3} ({:+.1} %)",
        off * 100.0
    );
    assert!(off.abs() <= tolerance, "{what}: {got}, expected {expected}");
}

fn is_as_measured(row: &Row) {
    let outcome = row.run(1);
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
    let row = Row {
        profile: "samsung-980-pro-1tb",
        per_io: Duration::from_nanos(8_400),
        gap: Duration::ZERO,
        discards: &[(131, 512.0 * 1024.0)],
        base: 102_091.0,
        reads_per_s: 93_363.0,
        ..T500
    };
    let outcome = row.run(3);
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
