//! Compares the queue with theory, of which the model knows nothing.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use ssd::{Card, Drive, Time, profiles};
use testkit::harness::{Harness, Outcome, Pace, Pieces, Readers, Sample};

const GIB: u64 = 1 << 30;

fn card(name: &str, changes: &[&str]) -> Card {
    let shipped = profiles::by_name(name).unwrap().clone();
    changes
        .iter()
        .fold(shipped, |card, change| card.with(change).unwrap())
}

fn full(card: &Card, seed: u64) -> Drive {
    let mut drive = Drive::new(card.figures().clone(), 1 << 41, seed);
    drive.premap(0..1 << 41);
    drive
}

fn closed(depth: u32) -> Readers {
    Readers::Closed {
        depth,
        per_io: Duration::from_micros(2),
    }
}

#[track_caller]
fn near(got: f64, expected: f64, tolerance: f64) {
    let off = (got / expected - 1.0).abs();
    assert!(off <= tolerance, "{got}, expected {expected}");
}

fn beside_discards(card: &Card, depth: u32, piece: u64, gap: Duration) -> Outcome {
    let discards = Pieces::new(0..1 << 40, piece, Pace::Gap(gap));
    Harness::new(closed(depth), 5)
        .drive(full(card, 5), discards)
        .run(Duration::from_secs(2))
        .unwrap()
}

#[test]
fn reads_per_discard_are_the_depth() {
    for name in ["samsung-870-evo-2tb", "crucial-t500-2tb"] {
        for depth in [1, 8, 32] {
            let gap = Duration::from_micros(20);
            let outcome = beside_discards(&card(name, &[]), depth, 1 << 27, gap);
            let ratio = outcome.reads_while_discarding() as f64 / outcome.discards.len() as f64;
            println!("{name}, depth {depth}: {ratio:.3} reads per discard");
            near(ratio, f64::from(depth), 0.02);
        }
    }
}

#[test]
fn and_are_not_where_discards_hold_nobody() {
    for changes in [&["phi=0"][..], &["queue=parallel 4", "phi=0"]] {
        let outcome = beside_discards(
            &card("crucial-t500-2tb", changes),
            8,
            1 << 27,
            Duration::ZERO,
        );
        let without = Harness::new(closed(8), 5)
            .drive(
                full(&card("no-trim", &["read.latency=77us"]), 5),
                Pieces::of([].into_iter(), Pace::Gap(Duration::ZERO)),
            )
            .run(Duration::from_secs(2))
            .unwrap();
        near(outcome.reads.len() as f64, without.reads.len() as f64, 0.02);
        assert!(outcome.discards.len() > 900);
    }
}

#[test]
fn a_closed_loop_beside_an_exclusive_discard_reads_depth_over_s_plus_delta() {
    // S = 2 ms; the host leaves δ = 0.3 ms between two, too short for a second turn.
    let card = card(
        "crucial-t500-2tb",
        &[
            "a=2ms",
            "b=0ns/MiB",
            "discard.jitter=0",
            "read.latency=200us",
        ],
    );
    for depth in [1, 4, 16] {
        let gap = Duration::from_micros(150);
        let outcome = beside_discards(&card, depth, 1 << 20, gap);
        let rate = outcome.reads.len() as f64 / 2.0;
        near(rate, f64::from(depth) / (0.002 + gap.as_secs_f64()), 0.01);
    }
}

#[test]
fn poisson_reads_are_delayed_as_the_duty_says() {
    // P(delay > t) = D(1 - t/S), mean delay λS²/2.
    let service = 0.004;
    let card = card(
        "crucial-t500-2tb",
        &["a=4ms", "b=0ns/MiB", "discard.jitter=0", "read.jitter=0"],
    );
    let own = card.figures().read.latency;
    for per_s in [25.0, 125.0] {
        let period = Duration::from_secs_f64(1.0 / per_s);
        let discards = Pieces::new(0..1 << 41, 256 << 20, Pace::Period(period));
        let outcome = Harness::new(Readers::Open { per_s: 4_000.0 }, 11)
            .drive(full(&card, 11), discards)
            .run(Duration::from_secs(60))
            .unwrap();
        let duty = per_s * service;
        for t in [0.0, 0.001, 0.002, 0.003] {
            let limit = own + Duration::from_secs_f64(t + 1e-9);
            let expected = duty * (1.0 - t / service);
            // 240,000 reads: three standard deviations of a share, and a little.
            let noise = 3.0 * (expected * (1.0 - expected) / outcome.reads.len() as f64).sqrt();
            let got = outcome.share_above(limit);
            println!("D = {duty}: P(delay > {t}) = {got:.4}, expected {expected:.4}");
            assert!(
                (got - expected).abs() < noise * 3.0,
                "{got}, expected {expected} ± {noise}"
            );
        }
        let total: f64 = outcome
            .reads
            .iter()
            .map(|r| (r.latency() - own).as_secs_f64())
            .sum();
        near(
            total / outcome.reads.len() as f64,
            per_s * service * service / 2.0,
            0.05,
        );
    }
}

#[test]
fn two_drives_out_of_phase_read_four_thirds_of_the_depth_in_a_cycle() {
    // Of those that one drive lets go, half wait on the other one next: before
    // it lets go itself, 2N/3 wait there. Twice a cycle.
    let card = card(
        "crucial-t500-2tb",
        &[
            "a=10ms",
            "b=0ns/MiB",
            "discard.jitter=0",
            "read.latency=1us",
        ],
    );
    let half_a_cycle = Time::from_secs_f64(0.005);
    let discards = |start| Pieces::new(0..1 << 41, 1 << 29, Pace::Gap(Duration::ZERO)).from(start);
    let readers = Readers::Closed {
        depth: 12,
        per_io: Duration::ZERO,
    };
    let outcome = Harness::new(readers, 3)
        .drive(full(&card, 1), discards(Time::ZERO))
        .drive(full(&card, 2), discards(half_a_cycle))
        .run(Duration::from_secs(20))
        .unwrap();
    let cycles = outcome.discards.len() as f64 / 2.0;
    near(outcome.reads_while_discarding() as f64 / cycles, 16.0, 0.02);
}

#[test]
fn the_vertex_2_trims_20_a_second_whatever_the_size() {
    let card = card("ocz-vertex-2", &[]);
    for piece in [32 << 10, 1 << 30] {
        let discards = Pieces::new(0..400 * piece, piece, Pace::Gap(Duration::ZERO));
        let outcome = Harness::new(Readers::None, 1)
            .drive(full(&card, 1), discards)
            .run(Duration::from_secs(10))
            .unwrap();
        assert_eq!(outcome.discards.len(), 200);
        let bytes: u64 = outcome.discards.iter().map(|d| d.bytes).sum();
        if piece == 32 << 10 {
            near(bytes as f64 / 1e6 / 10.0, 0.6, 0.1);
        }
    }
}

#[test]
fn the_agility_2_keeps_a_sync_waiting_for_seconds() {
    // About 165 extents freed: 165 TRIMs in the commit took 7.0 s.
    let card = card("ocz-agility-2", &[]);
    let discards = Pieces::new(0..165 << 14, 1 << 14, Pace::Gap(Duration::ZERO));
    let outcome = Harness::new(Readers::None, 1)
        .drive(full(&card, 1), discards)
        .run(Duration::from_secs(20))
        .unwrap();
    near(
        outcome.discards.last().unwrap().completed.as_secs_f64(),
        7.0,
        0.02,
    );
}

/// How long these discards take, one after the other.
fn discard_all(drive: Drive, piece: u64, end: u64) -> (f64, Drive) {
    let discards = Pieces::new(0..end, piece, Pace::Gap(Duration::ZERO));
    let mut outcome = Harness::new(Readers::None, 1)
        .drive(drive, discards)
        .run(Duration::from_secs(10_000))
        .unwrap();
    let took = outcome
        .discards
        .last()
        .map(|d: &Sample| d.completed.as_secs_f64());
    (took.unwrap(), outcome.drives.remove(0))
}

#[test]
fn the_thin_array_takes_as_long_as_in_2015() {
    let card = card("emc-xtremio-10tb", &[]);
    let volume = 10_240 * GIB;
    let empty = Drive::new(card.figures().clone(), volume, 1);
    // mkfs: nothing is mapped, 2-GiB steps. 152.1 s, of which 4.86 s without discards.
    let (mkfs, _) = discard_all(empty.clone(), 2 * GIB, volume);
    near(mkfs + 4.86, 152.1, 0.02);
    // rm of 1018 GiB that are mapped, a block group at a time. 292.6 s, of which 16.4 s without.
    let mut written = empty;
    written.premap(0..1018 * GIB);
    let (rm, after) = discard_all(written.clone(), GIB / 8, 1018 * GIB);
    near(rm + 16.4, 292.6, 0.02);
    assert!(after.mapped().is_empty());
    // fstrim of the volume after an rm without discards: as much is mapped still. 689 s.
    let (fstrim, _) = discard_all(written, GIB / 8, volume);
    near(fstrim, 689.0, 0.02);
}

#[test]
fn costs_more_where_ranges_cost() {
    let plain = card("crucial-t500-2tb", &["discard.jitter=0"]);
    let dear = plain.with("per_range=1ms").unwrap();
    let time = |card: &Card| discard_all(full(card, 1), 1 << 27, 1 << 30).0;
    near(time(&dear) - time(&plain), 0.008, 1e-6);
}
