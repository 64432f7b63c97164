//! Percentiles, service times, what never finished, errors, and the debt.

use super::build::{Build, drive, level, reader};
use crate::verdict::{Finding, Reason, Verdict};
use crate::{JudgeOptions, judge};
use record::units::{GIB, MIB};
use record::*;

const BASE: f64 = 60_000.0;

/// 8 GiB freed at 5 s and discarded from 6 to 9 s, which nearly stops the reads.
fn stalled() -> Build {
    let rate = vec![level(0.0..25.0, BASE), level(6.0..9.0, 600.0)];
    let device = drive(vec![level(6.0..9.0, 64.0 / 3.0)], 128.0 * MIB as f64, 46.0);
    Build::new(0.1, 25.0, reader(rate), device).phases(5.0, 12.0, 8 * GIB)
}

fn judged(record: &RunRecord) -> Verdict {
    let verdict = judge(record, &JudgeOptions::default());
    crate::verdict::schema::assert_conforms(&verdict);
    verdict
}

/// A hundred latencies, one of each whole hundredth of this many microseconds.
fn add_histogram(record: &mut RunRecord, phase: PhaseName, latency: Latency, longest_us: u64) {
    let mut histogram = latency_histogram();
    (1..=100).for_each(|i| histogram.record(i * longest_us * 10).unwrap());
    record.histograms.push(PhaseHistogram {
        actor: 0,
        latency,
        phase,
        part: Part::Main,
        histogram,
    });
}

#[test]
fn percentiles_come_from_the_phases_histograms() {
    let mut record = stalled().record();
    add_histogram(&mut record, PhaseName::Baseline, Latency::Response, 1_000);
    add_histogram(&mut record, PhaseName::Delete, Latency::Response, 900_000);
    add_histogram(&mut record, PhaseName::Delete, Latency::Service, 300_000);
    let verdict = judged(&record);
    let foreground = &verdict.foreground[0];
    let near = |figure: Option<f64>, us: f64| (figure.unwrap() / us - 1.0).abs() < 0.001;
    assert!(near(foreground.baseline.p50_us, 500.0) && near(foreground.baseline.p99_us, 990.0));
    assert!(
        near(foreground.delete.p99_us, 891_000.0),
        "{:?}",
        foreground.delete
    );
    assert!(near(foreground.delete.p999_us, 900_000.0));
    assert!(near(foreground.delete.max_us, 900_000.0));
    let service = foreground.service.unwrap();
    assert!(near(service.delete.p99_us, 297_000.0), "{service:?}");
    assert_eq!(service.baseline.p99_us, None, "not recorded, so not told");
    // Without one: from the intervals, and no p99.9.
    assert_eq!(foreground.recovery.p999_us, None);
    assert!(
        near(foreground.recovery.p99_us, 200.0),
        "{:?}",
        foreground.recovery
    );
    assert!(near(foreground.recovery.ops_per_s, BASE));
}

/// Latencies of each tenth of a second of the deletion: 10 ms beside discards, else 100 µs.
fn add_stretches(record: &mut RunRecord, span: std::ops::Range<usize>) {
    for i in span {
        let mut histogram = second_histogram();
        let us = if (60..90).contains(&i) { 10_000 } else { 100 };
        histogram.record_n(us * 1000, 60).unwrap();
        let over = Grain::Stretch {
            at_s: record.intervals.at_s[i],
            seconds: 0.1,
        };
        let line = HistogramLine {
            actor: 0,
            latency: Latency::Response,
            over,
            part: Part::Main,
            v2: encode_histogram(&histogram),
        };
        record.push(&Line::Histogram(line)).unwrap();
    }
}

#[test]
fn figures_beside_discards_leave_out_the_wait_for_more_of_them() {
    let mut it = stalled();
    it.completed = false;
    let mut record = it.record();
    add_histogram(&mut record, PhaseName::Delete, Latency::Response, 1_000);
    add_stretches(&mut record, 50..120);
    let verdict = judged(&record);
    let seen = &verdict.foreground[0];
    let near = |figure: Option<f64>, right: f64| (figure.unwrap() / right - 1.0).abs() < 0.02;
    let beside = seen.discarding.unwrap();
    assert!(near(beside.ops_per_s, 600.0), "{beside:?}");
    assert!(
        near(beside.p50_us, 10_000.0) && near(beside.p999_us, 10_000.0),
        "{beside:?}"
    );
    assert!(
        near(seen.delete.ops_per_s, (4.0 * BASE + 3.0 * 600.0) / 7.0),
        "{:?}",
        seen.delete
    );
    assert!(near(seen.delete.p99_us, 990.0), "{:?}", seen.delete);
    assert_eq!(seen.beside(), &beside);
}

#[test]
fn histograms_of_a_part_of_the_discards_stand_for_nothing() {
    let mut it = stalled();
    it.completed = false;
    let mut record = it.record();
    add_stretches(&mut record, 50..75);
    let beside = judged(&record).foreground[0].discarding.unwrap();
    assert_eq!(beside.p999_us, None, "{beside:?}");
}

#[test]
fn a_wait_that_nobody_measured_is_unknown() {
    let mut it = stalled();
    assert!((it.verdict().discard.await_us.unwrap() - 46e3).abs() < 1e3);
    it.devices[0].wait_ms = 0.0;
    let discard = it.verdict().discard;
    assert_eq!(discard.await_us, None);
    assert_eq!(discard.bytes, Some(8 * GIB));
}

#[test]
fn without_discards_the_whole_deletion_is_compared() {
    let quiet = vec![level(0.0..25.0, BASE)];
    let build = Build::new(0.1, 25.0, reader(quiet), drive(vec![], 1e6, 1.0));
    let verdict = judged(&build.phases(5.0, 12.0, 8 * GIB).record());
    let seen = &verdict.foreground[0];
    assert_eq!(seen.discarding, None);
    assert!(seen.beside().ops_per_s.is_some());
}

#[test]
fn what_never_finished_counts_with_its_age() {
    let mut it = stalled();
    it.completed = false;
    let mut record = it.record();
    let unfinished = vec![Unfinished {
        actor: 0,
        operations: 8,
        oldest_us: 18e6,
    }];
    let (at_s, reason) = (25.0, EndReason::Interrupted);
    record
        .push(&Line::End(End {
            at_s,
            reason,
            message: None,
            unfinished,
            lives: Vec::new(),
        }))
        .unwrap();
    let verdict = judged(&record);
    let foreground = &verdict.foreground[0];
    assert_eq!(foreground.unfinished.unwrap().operations, 8);
    // It began at 7 s, in the stall.
    assert_eq!(foreground.baseline.max_us, Some(1e3));
    let by_then = foreground.delete.max_us.unwrap();
    assert!((by_then - 5e6).abs() < 1e3, "{by_then}");
    assert_eq!(foreground.recovery.max_us, Some(18e6));
    assert_eq!(foreground.stall.unwrap().worst_latency_us, Some(18e6));
}

#[test]
fn errors_are_told() {
    let mut record = stalled().record();
    record.intervals.actors[0].errors[70] = 3;
    let verdict = judged(&record);
    assert_eq!(verdict.verdict, Finding::Stall);
    assert_eq!(verdict.reasons, [Reason::ForegroundErrors]);
}

#[test]
fn the_debt_is_never_negative() {
    // What was freed is told only after half of it had been discarded.
    let mut it = stalled();
    it.freed = vec![level(7.5..7.6, 8.0 * GIB as f64 / 0.1)];
    it.deletions[0].2 = 2.6;
    let discard = it.verdict().discard;
    let most = discard.debt_max_bytes.unwrap() as f64 / GIB as f64;
    assert!((3.5..=4.1).contains(&most), "{most}");
    assert!((discard.drain_s.unwrap() - 1.4).abs() < 0.15, "{discard:?}");
    // Never told by the intervals: it counts when the last call returns.
    it.freed.clear();
    let most = it.verdict().discard.debt_max_bytes.unwrap() as f64 / GIB as f64;
    assert!((3.5..=4.1).contains(&most), "{most}");
    // Discarded before the last call returns: paid at once.
    it.deletions[0].2 = 5.0;
    let discard = it.verdict().discard;
    assert!(discard.drain_s.unwrap() <= 0.1 + 1e-6, "{discard:?}");
    assert_eq!(
        discard.first_discard_lag_s.map(|s| (s - 1.0).abs() < 0.11),
        Some(true)
    );
}

/// A run on a drive that counts so much written by hosts and to flash, and wrote 8 GiB by the kernel's
/// count.
fn counted(before: Written, after: Option<Written>) -> Verdict {
    let mut record = stalled().record();
    record.head.devices[0].life = Some(before);
    let writes = &mut record.intervals.devices[0].write_bytes;
    let each = 8 * GIB / writes.len() as u64;
    writes.fill(each);
    record.end.as_mut().unwrap().lives = vec![after];
    judged(&record)
}

fn life(host: u64, flash: impl Into<Option<u64>>) -> Written {
    Written {
        host_written_bytes: Some(host),
        flash_written_bytes: flash.into(),
    }
}

#[test]
fn a_drive_that_counts_its_writes_tells_write_amplification() {
    let before = life(1000 * GIB, 1500 * GIB);
    let of = |after| counted(before, after).origin.drives[0].clone();
    let drive = of(Some(life(1010 * GIB, 1525 * GIB)));
    assert_eq!(drive.life, Some(before));
    assert_eq!(drive.written, Some(life(10 * GIB, 25 * GIB)));
    assert_eq!(drive.write_amplification(), Some(2.5));
    // Without flash, or with a count of it that lags.
    for flash in [None, Some(1500 * GIB), Some(1508 * GIB), Some(1400 * GIB)] {
        let drive = of(Some(life(1010 * GIB, flash)));
        assert_eq!(drive.written, Some(life(10 * GIB, None)), "{flash:?}");
        assert_eq!(drive.write_amplification(), None);
    }
    // A count that lags behind the kernel's, went back, or could not be read.
    for host in [1007, 1000, 999] {
        assert_eq!(of(Some(life(host * GIB, 1525 * GIB))).written, None);
    }
    assert_eq!(of(None).written, None);
}

#[test]
fn little_writing_tells_no_write_amplification() {
    let mut record = stalled().record();
    record.head.devices[0].life = Some(life(GIB, GIB));
    record.end.as_mut().unwrap().lives = vec![Some(life(GIB + 900 * MIB, 3 * GIB))];
    let drive = &judged(&record).origin.drives[0];
    assert_eq!(drive.written, Some(life(900 * MIB, 2 * GIB)));
    assert_eq!(drive.write_amplification(), None);
    // A run that was killed has no second count.
    record.end = None;
    assert_eq!(judged(&record).origin.drives[0].written, None);
}
