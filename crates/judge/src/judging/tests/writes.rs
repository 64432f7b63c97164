//! Lumps of writeback: how lumpy, and that they are no stall of TRIM.

use super::build::{Build, drive, level, reader};
use crate::judging::writes::lumpiness;
use crate::verdict::{Finding, Reason, Verdict};
use crate::{JudgeOptions, judge};
use record::absence::{Absent, Cause};
use record::units::{GIB, MIB};
use record::*;

const BASE: f64 = 50_000.0;

/// A writer that nearly stops for three seconds while 8 GiB are discarded.
fn stopped() -> Build {
    let rate = vec![level(0.0..25.0, BASE), level(6.0..9.0, 500.0)];
    let device = drive(vec![level(6.0..9.0, 64.0 / 3.0)], 128.0 * MIB as f64, 46.0);
    let mut build = Build::new(0.1, 25.0, reader(rate), device).phases(5.0, 12.0, 8 * GIB);
    (build.actors[0].name, build.actors[0].op) = ("writer".into(), "write");
    build
}

/// The same with writes that the device got: so many MiB in each interval.
fn with_writes(build: &Build, direct: bool, mib: impl Fn(usize) -> u64) -> RunRecord {
    let mut record = build.record();
    record.head.actors[0].direct = Some(direct);
    for i in 0..record.intervals.len() {
        record.intervals.devices[0].write_bytes[i] = mib(i) * MIB;
        record.intervals.devices[0].writes[i] = 1;
    }
    record
}

/// All that ten intervals write, in one of them.
fn lumps(i: usize) -> u64 {
    if i.is_multiple_of(10) { 100 } else { 0 }
}

fn judged(record: &RunRecord) -> Verdict {
    let verdict = judge(record, &JudgeOptions::default());
    crate::verdict::schema::assert_conforms(&verdict);
    verdict
}

#[test]
fn lumpiness_is_the_standard_deviation_over_the_mean() {
    assert_eq!(lumpiness(&[5.0; 8]), Some(0.0));
    let tenth: Vec<f64> = (0..100).map(|i| lumps(i) as f64).collect();
    assert!((lumpiness(&tenth).unwrap() - 3.0).abs() < 1e-9);
    let halves: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
    assert!((lumpiness(&halves).unwrap() - 1.0).abs() < 1e-9);
    assert_eq!(lumpiness(&[1.0; 4]), None);
    assert_eq!(lumpiness(&[0.0; 50]), None);
}

#[test]
fn writes_are_lumpy_before_a_deletion_and_even_beside_it() {
    // The baseline ends at interval 50, the delete phase at 120.
    let record = with_writes(&stopped(), false, |i| if i < 50 { lumps(i) } else { 20 });
    let writes = judged(&record).writes.unwrap();
    let (before, during) = (writes.baseline.unwrap(), writes.delete.unwrap());
    assert!((before.lumpiness.unwrap() - 3.0).abs() < 1e-3, "{before:?}");
    assert!((before.bytes_per_s / (100.0 * MIB as f64) - 1.0).abs() < 1e-3);
    assert!(during.lumpiness.unwrap() < 1e-3, "{during:?}");
    assert!((during.bytes_per_s / (200.0 * MIB as f64) - 1.0).abs() < 1e-3);
    assert_eq!(writes.interval_ms, 100.0);
}

#[test]
fn intervals_in_which_trimbench_was_away_are_left_out() {
    let mut record = with_writes(&stopped(), false, |i| if i == 20 { 5_000 } else { 20 });
    let before = |record: &RunRecord| judged(record).writes.unwrap().baseline.unwrap();
    assert!(before(&record).lumpiness.unwrap() > 1.0);
    let absent = Absent {
        seconds: 0.1,
        cause: Cause::Stopped,
    };
    record.intervals.absent.insert(20, absent);
    assert!(before(&record).lumpiness.unwrap() < 1e-3);
}

#[test]
fn a_drive_that_hardly_writes_has_no_such_figure() {
    let record = with_writes(&stopped(), true, |i| u64::from(i.is_multiple_of(50)));
    assert_eq!(judged(&record).writes, None);
}

#[test]
fn lumps_of_a_writer_into_the_page_cache_are_no_stall_of_trim() {
    let verdict = judged(&with_writes(&stopped(), false, lumps));
    assert_eq!(verdict.verdict, Finding::Inconclusive);
    assert_eq!(verdict.reasons, [Reason::Writeback]);
    assert!(
        verdict.summary.contains("page cache"),
        "{}",
        verdict.summary
    );
    // Direct writes that stop are a stall.
    let direct = judged(&with_writes(&stopped(), true, lumps));
    assert_eq!(direct.verdict, Finding::Stall);
}

#[test]
fn a_reader_that_stops_beside_the_writer_still_proves_a_stall() {
    let mut build = stopped();
    let rate = vec![level(0.0..25.0, BASE), level(6.0..9.0, 500.0)];
    build.actors.push(reader(rate));
    let verdict = judged(&with_writes(&build, false, lumps));
    assert_eq!(verdict.verdict, Finding::Stall);
}
