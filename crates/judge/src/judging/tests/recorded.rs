//! The runs recorded in 2024.

use super::build::{Build, Device, drive, reader};
use crate::verdict::{Finding, Foreground, Verdict};
use crate::{JudgeOptions, judge};
use record::units::GIB;
use record::{ActorInterval, DeviceInterval, Interval, Line, RunRecord};
use testkit::recorded::{CONTROL, EVO, PRO, RAID, Recorded, T500};

/// One second of one device: reads/s, discards/s, discarded MB/s (really MiB), wait in ms.
type Row = [f64; 4];

/// The rows of these devices, second by second.
fn seconds(run: &Recorded, devices: &[&str]) -> Vec<Vec<Row>> {
    let mut all = vec![vec![Row::default(); devices.len()]; run.seconds()];
    run.each(|second, device, figures| {
        // The reader's device may be a leaf, too.
        let rows = all[second - 1].iter_mut().zip(devices);
        for (row, _) in rows.filter(|(_, name)| **name == device) {
            *row = ["r/s", "d/s", "dMB/s", "d_await"].map(|column| figures.figure(column));
        }
    });
    all
}

/// A record whose reader is the first device and whose leaves are the others.
fn record(run: &Recorded, reads_of: &str, leaves: &[&str]) -> RunRecord {
    let mut names = vec![reads_of];
    names.extend(leaves);
    let mut head = Build::new(1.0, 0.0, reader(vec![]), drive(vec![], 0.0, 0.0));
    head.devices = leaves
        .iter()
        .map(|name| Device {
            name: (*name).to_owned(),
            ..drive(vec![], 0.0, 0.0)
        })
        .collect();
    let mut record = head.record();
    record.end = None;
    for (i, rows) in seconds(run, &names).iter().enumerate() {
        let reader = ActorInterval {
            ops: rows[0][0] as u64,
            ..ActorInterval::default()
        };
        let devices = rows[1..]
            .iter()
            .map(|&[_, discards, mib, wait_ms]| DeviceInterval {
                discards: discards as u64,
                discard_bytes: (mib * 1048576.0) as u64,
                discard_ms: (discards * wait_ms).round() as u64,
                ..DeviceInterval::default()
            });
        let interval = Interval {
            at_s: i as f64,
            seconds: 1.0,
            actors: vec![Some(reader)],
            devices: devices.collect(),
            freed_bytes: 0,
            ..Interval::default()
        };
        record.push(&Line::Interval(interval)).unwrap();
    }
    record.end = Some(record::End {
        at_s: 90.0,
        reason: record::EndReason::Completed,
        message: None,
        unfinished: vec![],
        lives: Vec::new(),
    });
    record
}

fn verdict(run: &Recorded, reads_of: &str, leaves: &[&str]) -> Verdict {
    let record = record(run, reads_of, leaves);
    let verdict = judge(&record, &JudgeOptions::default());
    println!(
        "{run}: {}\n{:?}\n{:?}",
        verdict.summary, verdict.foreground, verdict.discard
    );
    verdict
}

fn near(value: f64, expected: f64, share: f64) -> bool {
    (value / expected - 1.0).abs() <= share
}

/// Base reads per second; the one actor that read.
fn check_none(verdict: &Verdict, base: f64) -> &Foreground {
    assert_eq!(verdict.verdict, Finding::None);
    let foreground = &verdict.foreground[0];
    let rate = foreground.baseline.ops_per_s.unwrap();
    assert!(near(rate, base, 0.03), "base {rate}");
    foreground
}

/// Base and stalled reads per second, stalled and lost seconds, TRIM rate in GiB/s.
fn check_stall(verdict: &Verdict, base: f64, stalled: f64, seconds: f64, lost: f64, trim: f64) {
    assert_eq!(verdict.verdict, Finding::Stall);
    let foreground = &verdict.foreground[0];
    let stall = foreground.stall.unwrap();
    let rate = foreground.baseline.ops_per_s.unwrap();
    assert!(near(rate, base, 0.03), "base {rate}");
    assert!(
        near(stall.depth * rate, stalled, 0.03),
        "stalled {}",
        stall.depth * rate
    );
    assert!((stall.seconds - seconds).abs() <= 1.0, "{stall:?}");
    assert!(
        (stall.seconds - seconds).abs() <= 0.1,
        "closer is possible: {stall:?}"
    );
    assert!((stall.lost_s - lost).abs() <= 0.1, "{stall:?}");
    let bytes_per_s = verdict.discard.bytes_per_s.unwrap() / GIB as f64;
    assert!(near(bytes_per_s, trim, 0.03), "TRIM {bytes_per_s} GiB/s");
    assert!(!verdict.discard.bytes_per_s_is_lower_bound);
}

#[test]
fn samsung_870_evo() {
    let verdict = verdict(EVO, "sdb", &["sdb"]);
    check_stall(&verdict, 57_590.0, 4_832.0, 15.0, 13.7, 71.5);
    assert_eq!(verdict.fit.unwrap().barrier, Some(true));
}

#[test]
fn crucial_t500() {
    let verdict = verdict(T500, "nvme0n1", &["nvme0n1"]);
    check_stall(&verdict, 92_080.0, 3_920.0, 16.9, 16.2, 61.1);
    assert_eq!(verdict.fit.unwrap().barrier, Some(true));
}

#[test]
fn crucial_t500_raid0() {
    let verdict = verdict(RAID, "md0", &["nvme0n1", "nvme1n1"]);
    check_stall(&verdict, 151_700.0, 519.0, 4.75, 4.73, 220.0);
}

#[test]
fn samsung_980_pro() {
    let verdict = verdict(PRO, "nvme0n1", &["nvme0n1"]);
    let foreground = check_none(&verdict, 102_091.0);
    assert!(
        (foreground.lost_s.unwrap() - 0.086).abs() < 0.02,
        "{:?}",
        foreground.lost_s
    );
    assert!(verdict.discard.bytes_per_s_is_lower_bound);
    assert!(verdict.discard.bytes_per_s.unwrap() >= 500.0 * GIB as f64);
}

#[test]
fn crucial_t500_without_discards() {
    let verdict = verdict(CONTROL, "nvme0n1", &["nvme0n1"]);
    let foreground = check_none(&verdict, 151_303.0);
    assert!(
        !foreground.dips.is_empty(),
        "the slow seconds after the big write are told"
    );
}
