//! The claims of a verdict: only what was measured, with how sure it is.

use super::build::{Actor, level, reader};
use super::faults::{BASE, run};
use crate::verdict::{Finding, Reason};
use record::LoopKind;
use record::units::GIB;

/// 0.13 s of discards that nearly stop the reads: too short for a stall, and no "no stall".
#[test]
fn reads_that_stop_for_less_than_a_stall_takes_are_inconclusive_with_the_size_to_try() {
    for begin in [6.0, 6.03, 6.05, 6.08] {
        let short = begin..begin + 0.13;
        let mut it = run(0.1, short.clone(), vec![level(short, 0.05 * BASE)]);
        it.devices[0].wait_ms = 2.0; // one after the other
        let canary = Actor {
            name: "canary".into(),
            loop_kind: LoopKind::Open {
                rate_per_s: 1000.0,
                poisson: false,
                depth: 1,
            },
            ..reader(vec![level(0.0..25.0, 1000.0)])
        };
        it.actors.push(canary);
        let verdict = it.verdict();
        assert_eq!(
            verdict.verdict,
            Finding::Inconclusive,
            "{}",
            verdict.summary
        );
        assert_eq!(verdict.reasons, [Reason::TooLittleDeleted], "{begin}");
        let size = verdict.try_bytes.unwrap();
        assert!((64 * GIB..=256 * GIB).contains(&size), "{size}");
        assert!(verdict.summary.contains("(try "), "{}", verdict.summary);
    }
}

/// 8 GiB within 3 ms of discards: had the drive stood still, no 100 ms would show it.
#[test]
fn discards_too_short_to_show_a_stall_do_not_clear_a_drive() {
    let mut it = run(0.1, 6.0..6.1, vec![]);
    it.devices[0].wait_ms = 0.05;
    let verdict = it.verdict();
    assert_eq!(
        verdict.verdict,
        Finding::Inconclusive,
        "{}",
        verdict.summary
    );
    assert_eq!(verdict.reasons, [Reason::TooLittleDeleted]);
    // The same drive, busy for 60 of the 100 ms, would have shown it.
    it.devices[0].wait_ms = 1.0;
    assert_eq!(it.verdict().verdict, Finding::None);
}

#[test]
fn an_open_loops_stall_is_told_by_its_waits() {
    let mut it = run(0.1, 7.0..8.0, vec![]);
    it.actors = vec![Actor {
        name: "canary".into(),
        loop_kind: LoopKind::Open {
            rate_per_s: 1000.0,
            poisson: false,
            depth: 1,
        },
        hangs: vec![7.0..8.0],
        ..reader(vec![level(0.0..25.0, 1000.0), level(7.0..8.0, 600.0)])
    }];
    let verdict = it.verdict();
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    let stall = verdict.foreground[0].stall.unwrap();
    assert_eq!(stall.limit_us, Some(100e3));
    let told = "(waits above 100 ms; the longest took 1.0 s)";
    assert!(verdict.summary.contains(told), "{}", verdict.summary);
    assert!(!verdict.summary.contains('%'), "{}", verdict.summary);
}

/// 64 discards at a depth of 8: 8 operations between two are a barrier, 12 aren't surely one,
/// and a drive that does 45 % of its work meanwhile is none.
#[test]
fn a_barrier_is_said_only_where_it_is_sure() {
    for (between, left, expected) in [
        (8.0, None, Some(true)),
        (12.0, None, None),
        (8.0, Some(0.45), Some(false)),
    ] {
        let rate = left.map_or(between * 64.0 / 3.0, |left: f64| left * BASE);
        let fit = run(0.1, 6.0..9.0, vec![level(6.0..9.0, rate)])
            .verdict()
            .fit
            .unwrap();
        assert_eq!(fit.barrier, expected, "{fit:?}");
        let (blocked, [low, high]) = (fit.blocked.unwrap(), fit.blocked_95.unwrap());
        assert!(low <= blocked && blocked <= high, "{fit:?}");
        let (ops, [fewest, most]) = (
            fit.ops_per_discard.unwrap(),
            fit.ops_per_discard_95.unwrap(),
        );
        assert!(fewest <= ops && ops <= most, "{fit:?}");
        assert_eq!(fit.depth, Some(8));
    }
}

/// As on btrfs: discards wait for flushes of commits, and reads go on in that time.
#[test]
fn a_drive_that_wrote_in_the_stall_is_not_said_to_serve_reads_beside_discards() {
    let slow = vec![level(6.0..9.0, 0.4 * BASE)];
    let it = run(0.1, 6.0..9.0, slow);
    let barrier = |writes: &[usize]| {
        let mut record = it.record();
        for &i in writes {
            record.intervals.devices[0].writes[i] = 3;
        }
        let verdict = crate::judge(&record, &crate::JudgeOptions::default());
        verdict.fit.unwrap().barrier
    };
    assert_eq!(barrier(&[]), Some(false));
    // Before and after it, and once in it: nothing follows.
    assert_eq!(barrier(&[30, 75, 120]), Some(false));
    assert_eq!(barrier(&[62, 67, 72, 77, 82, 87]), None);
}
