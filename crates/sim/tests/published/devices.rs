//! The drives measured in 2024: a file of 1 TiB removed beside 8 reads in flight.

use std::time::Duration;

use sim::{Drives, Outcome, PolicyKind, Setup, WorkloadKind};
use testkit::measured::{EVO_870, Measured, T500, median, near};

use super::{card, run, single};

const MIB: f64 = 1024.0 * 1024.0;

/// A second of the record, as `iostat 1` prints it.
#[derive(Debug, Clone, Copy, Default)]
struct Second {
    reads: f64,
    discards: f64,
    mib: f64,
    d_await_ms: f64,
    r_await_ms: f64,
}

/// Rows of one second, whole stack together.
fn seconds(outcome: &Outcome) -> Vec<Second> {
    let intervals = &outcome.record.intervals;
    let rows = intervals.len();
    (0..rows)
        .map(|row| {
            let sum = |f: &dyn Fn(&record::DeviceColumns) -> f64| -> f64 {
                intervals.devices.iter().map(f).sum()
            };
            let reads = sum(&|d| f64::from(d.reads[row]));
            let discards = sum(&|d| f64::from(d.discards[row]));
            Second {
                reads,
                discards,
                mib: sum(&|d| d.discard_bytes[row] as f64) / MIB,
                d_await_ms: sum(&|d| f64::from(d.discard_ms[row])) / discards.max(1.0),
                r_await_ms: sum(&|d| f64::from(d.read_ms[row])) / reads.max(1.0),
            }
        })
        .collect()
}

fn setup(drives: Drives, policy: PolicyKind, per_io: Duration, per_discard: Duration) -> Setup {
    Setup {
        size: 1 << 40,
        per_io,
        per_discard,
        // Neither begins nor ends with a second, as in the log.
        baseline: Duration::from_millis(5_100),
        recovery: Duration::from_secs(4),
        interval: Duration::from_secs(1),
        ..Setup::new(drives, policy, WorkloadKind::DropFile)
    }
}

fn is_as_measured(name: &str, outcome: &Outcome, row: &Measured) {
    println!("{name:<34}{:>12}{:>12}", "simulated", "measured");
    let foreground = &outcome.verdict.foreground[0];
    let stall = foreground.stall.unwrap();
    near(
        "base reads/s",
        foreground.baseline.ops_per_s.unwrap(),
        row.base,
        0.05,
    );
    near("stall s", stall.seconds, row.stall_s, 0.05);
    near("lost s", stall.lost_s, row.lost_s, 0.05);
    let full: Vec<Second> = full(outcome, row.base);
    let of = |f: fn(&Second) -> f64| median(full.iter().map(f));
    near(
        "reads/s in the stall",
        of(|s| s.reads),
        row.reads_per_s,
        0.05,
    );
    near("discards/s", of(|s| s.discards), row.discards_per_s, 0.05);
    near("GiB/s", of(|s| s.mib) / 1024.0, row.gib_per_s, 0.05);
    near("d_await ms", of(|s| s.d_await_ms), row.d_await_ms, 0.05);
    near("r_await ms", of(|s| s.r_await_ms), row.r_await_ms, 0.05);
}

/// Seconds that are low as a whole.
fn full(outcome: &Outcome, base: f64) -> Vec<Second> {
    let all = seconds(outcome);
    let low = |s: &&Second| s.reads < base / 2.0 && s.discards > 0.0;
    all.iter().filter(low).copied().collect()
}

/// Removes what was removed then; of the discards' sizes where they are given.
fn removal(drive: &Measured, extents: Vec<u64>) -> Outcome {
    run(&Setup {
        extents,
        ..setup(
            single(drive.profile),
            PolicyKind::Ext4Online,
            drive.per_io,
            drive.per_discard,
        )
    })
}

#[test]
fn crucial_t500_under_ext4() {
    let outcome = removal(&T500, Vec::new());
    is_as_measured("T500, ext4", &outcome, &T500);
    near("discards", outcome.figures.commands as f64, 8_222.0, 0.01);
}

#[test]
fn samsung_870_evo_under_ext4() {
    let outcome = removal(&EVO_870, EVO_870.lengths().collect());
    is_as_measured("870 EVO, ext4", &outcome, &EVO_870);
    near("discards", outcome.figures.commands as f64, 9_796.0, 0.01);
}

#[test]
fn samsung_980_pro_under_xfs() {
    let setup = Setup {
        size: 512 << 30,
        ..setup(
            single("samsung-980-pro-1tb"),
            PolicyKind::XfsOnline,
            Duration::from_nanos(8_400),
            Duration::ZERO,
        )
    };
    let outcome = run(&setup);
    let all = seconds(&outcome);
    let foreground = &outcome.verdict.foreground[0];
    let base = foreground.baseline.ops_per_s.unwrap();
    println!(
        "{:<34}{:>12}{:>12}",
        "980 PRO, XFS", "simulated", "measured"
    );
    near("base reads/s", base, 102_091.0, 0.05);
    // The log has one second of it; here the discards may lie in two.
    let loss: f64 = all
        .iter()
        .filter(|s| s.discards > 0.0)
        .map(|s| base - s.reads)
        .sum();
    near("reads/s in that second", base - loss, 93_363.0, 0.05);
    near("discards", outcome.figures.commands as f64, 131.0, 0.05);
    let busy = all.iter().map(|s| s.d_await_ms * s.discards).sum::<f64>();
    near(
        "d_await ms",
        busy / outcome.figures.commands as f64,
        10.1,
        0.05,
    );
    assert!(foreground.stall.is_none());
}

#[test]
fn two_t500_as_raid0_under_xfs() {
    // Another run of the same drive had 151,000 reads/s: 45 us.
    let member = card("crucial-t500-2tb", &["read.latency=45us"]);
    let drives = Drives {
        name: "two T500 as RAID 0".to_owned(),
        cards: vec![member.clone(), member],
        chunk: 512 << 10,
    };
    let per_io = Duration::from_nanos(6_500);
    let outcome = run(&setup(
        drives,
        PolicyKind::XfsOnline,
        per_io,
        Duration::ZERO,
    ));
    println!(
        "{:<34}{:>12}{:>12}",
        "2 x T500 RAID 0, XFS", "simulated", "measured"
    );
    let foreground = &outcome.verdict.foreground[0];
    let stall = foreground.stall.unwrap();
    let full = full(&outcome, 151_700.0);
    near(
        "base reads/s",
        foreground.baseline.ops_per_s.unwrap(),
        151_700.0,
        0.10,
    );
    near("stall s", stall.seconds, 4.75, 0.10);
    near("lost s", stall.lost_s, 4.73, 0.10);
    // One in flight on each drive, out of phase: the log's first second of that kind. Later its
    // drives were in phase, and each read waited for a whole discard (403/s). The model's drives
    // don't stay in phase, not even if they begin so with `depth=1` (616/s).
    let second = full[1];
    near("reads/s, one in flight", second.reads, 572.0, 0.10);
    near("discards/s of each", second.discards / 2.0, 57.0, 0.10);
    near("d_await ms, one in flight", second.d_await_ms, 17.8, 0.10);
    near("r_await ms, one in flight", second.r_await_ms, 13.8, 0.10);
    near(
        "discards of each",
        outcome.figures.commands as f64,
        257.0,
        0.10,
    );
}
