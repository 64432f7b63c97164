//! Random operations, each done to a drive and to a plain file: both always
//! hold the same.
//!
//! `TRIMBENCH_SEED` repeats each worker's steps; how they meet is up to the
//! machine.

mod compare;
mod media;
mod step;

use std::time::Duration;

use crate::common::{Bench, NAME, cannot, soak_or};
use crate::gate::beside;
use compare::{SIZE, compare};

/// In `make test` always the same, in `make soak` another each time.
fn seed() -> u64 {
    if let Ok(given) = std::env::var("TRIMBENCH_SEED") {
        return given.parse().unwrap();
    }
    match std::env::var_os("TRIMBENCH_SOAK") {
        Some(_) => fastrand::u64(..),
        None => 20_240_501,
    }
}

/// Of drives that differ in what they do at once and in which order.
const DRIVES: [(&str, &[&str]); 3] = [
    ("ideal", &[]),
    // Reads, writes and discards wait for each other, and none is soon done.
    ("samsung-870-evo-2tb", &["a=300us"]),
    // All at once, each as long as it likes.
    (
        "ideal",
        &[
            "a=100us",
            "read.latency=80us",
            "read.jitter=30%",
            "write.latency=80us",
        ],
    ),
];

fn drive((profile, changes): (&str, &[&str])) -> Bench {
    let bench = Bench::new(profile, changes, SIZE >> 20, |spec| {
        // What a volatile cache could lose is kept beside the data.
        spec.volatile_cache = !changes.is_empty();
    });
    // What is read after a trim is then known.
    let card = bench.info.spec.card().unwrap();
    let discard = card.figures().discard.as_ref().unwrap();
    assert_eq!(discard.read_after_trim, ssd::ReadAfterTrim::Zeros);
    bench
}

#[test]
fn random_operations_leave_what_they_leave_in_a_plain_file() {
    if cannot(&[]) {
        return;
    }
    let _turn = beside();
    for given in DRIVES {
        let bench = drive(given);
        let span = soak_or(Duration::from_secs(8)) / DRIVES.len() as u32;
        let outcome = compare(bench.device(), seed(), span);
        let compared = outcome.unwrap_or_else(|difference| panic!("{given:?}: {difference}"));
        eprintln!("{given:?}: {compared:?}");
        assert!(compared.overlapping > 1000);
        let stats = bench.lab.stats(NAME).unwrap();
        let idle = stats.kinds.iter().find(|kind| kind.commands == 0);
        assert_eq!(idle, None, "every kind of command came");
    }
}

#[test]
fn wrong_data_of_every_kind_are_found() {
    if cannot(&[]) {
        return;
    }
    let _turn = beside();
    for fault in [
        "read zeros rate 2%",
        "read flip rate 2%",
        "read holes rate 2%",
        "write lost rate 2%",
        "discard nothing rate 10%",
        "discard neighbour 4k rate 10%",
        "discard late 20ms rate 10%",
    ] {
        let bench = drive(DRIVES[0]);
        bench.lab.add_fault(NAME, &fault.parse().unwrap()).unwrap();
        // It stops at the first difference.
        let difference = compare(bench.device(), seed(), Duration::from_secs(60));
        let told = difference.expect_err(fault);
        assert!(
            told.contains("differ") && told.contains("TRIMBENCH_SEED="),
            "{told}"
        );
        eprintln!("{fault}: {told}\n");
    }
}
