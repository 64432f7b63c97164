//! Discards across the ends of intervals, noise far from them, and a log that outlives its load.

use std::ops::Range;

use super::build::{drive, level};
use super::faults::{BASE, not_a_stall, run};
use crate::verdict::{Finding, Reason};
use crate::{JudgeOptions, judge};
use record::units::GIB;
use record::*;

/// Discards of 50 ms each, which begin in one interval and complete in the next. Their
/// cost doesn't depend on how the time is cut.
#[test]
fn discards_across_the_ends_of_intervals_cost_what_they_cost() {
    let discards: Vec<Range<f64>> = (0..12)
        .map(|i| 6.07 + 0.61 * f64::from(i))
        .map(|at_s| at_s..at_s + 0.05)
        .collect();
    for interval_s in [0.1, 0.05, 0.01] {
        let stopped = discards.iter().map(|at| level(at.clone(), 0.0)).collect();
        let mut it = run(interval_s, 6.0..14.0, stopped);
        it.devices[0].discards = discards
            .iter()
            .map(|at| level(at.end - 0.002..at.end, 500.0))
            .collect();
        it.devices[0].bytes_each = 8.0 / 12.0 * GIB as f64;
        it.devices[0].wait_ms = 50.0;
        let verdict = it.verdict();
        let lost_s = verdict.foreground[0].lost_s.unwrap();
        assert!((lost_s - 0.6).abs() < 0.01, "{interval_s}: {lost_s}");
        // Pauses between them are no work done beside a discard.
        let fit = verdict.fit.unwrap();
        assert_eq!(fit.barrier, None, "{interval_s}: {fit:?}");
        assert!(fit.blocked.is_none_or(|share| share > 0.9), "{fit:?}");
    }
}

/// Seconds after a stall, something else slows reads by half. A stall that leaves next to nothing is
/// one all the same; one that leaves as much as such noise isn't.
#[test]
fn noise_elsewhere_does_not_hide_a_stall_that_is_far_deeper() {
    let with = |left: f64, noise: f64| {
        let stalled = level(6.0..7.3, left * BASE);
        let noisy = [
            level(16.0..19.0, noise * BASE),
            level(20.0..23.5, noise * BASE),
        ];
        run(0.1, 6.0..7.3, [vec![stalled], noisy.to_vec()].concat()).verdict()
    };
    let verdict = with(0.01, 0.4);
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    not_a_stall(&with(0.3, 0.4));
    not_a_stall(&with(0.01, 0.02));
}

/// Reads at a fixed rate wait for a single short discard, and catch up. It shows nothing of a longer
/// deletion, however slow the drive.
#[test]
fn a_moment_of_discards_clears_no_drive_at_an_open_loop() {
    for wait_ms in [9.0, 50.0] {
        let mut it = run(0.1, 6.0..6.05, vec![]);
        it.actors[0].loop_kind = LoopKind::Open {
            rate_per_s: BASE,
            poisson: false,
            depth: 64,
        };
        it.devices[0].discards = vec![level(6.0..6.05, 20.0)];
        it.devices[0].bytes_each = 8.0 * GIB as f64;
        it.devices[0].wait_ms = wait_ms;
        let verdict = it.verdict();
        assert_eq!(verdict.verdict, Finding::Inconclusive, "{wait_ms}");
        assert_eq!(verdict.reasons, [Reason::TooLittleDeleted], "{wait_ms}");
    }
}

/// iostat went on after fio had ended: no dip, also where the user named the deletion's moment.
#[test]
fn the_end_of_an_imported_load_is_no_dip() {
    for imported in [true, false] {
        let mut it = run(
            0.1,
            6.0..7.4,
            vec![level(6.0..7.4, 600.0), level(23.5..25.0, 0.0)],
        );
        it.actors[0].hangs.clear();
        let mut record = it.record();
        if imported {
            record.head.scenario = serde_json::json!({"imported_from": "iostat and fio"});
        }
        let verdict = judge(&record, &JudgeOptions::default());
        if imported {
            assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
        }
        let dips = verdict.foreground[0].dips.len();
        assert_eq!(dips, usize::from(!imported), "{verdict:?}");
    }
}

/// A paced deletion: a discard of 4 ms every 0.2 s, in 40 intervals of 0.1 s. They did not end too soon.
#[test]
fn sparse_discards_are_not_over_too_soon() {
    let mut it = run(0.1, 6.0..14.0, vec![]);
    it.devices[0].discards = vec![level(6.0..14.0, 5.0)];
    it.devices[0].bytes_each = 8.0 / 40.0 * GIB as f64;
    it.devices[0].wait_ms = 4.0;
    let verdict = it.verdict();
    assert_eq!(
        verdict.reasons,
        [Reason::TooLittleDeleted],
        "{}",
        verdict.summary
    );
    let words =
        "the discards took 0.16 s of the 4.0 s in which they came, too little to tell a stall";
    assert!(verdict.summary.contains(words), "{}", verdict.summary);
}

/// Rows of a second, of which a stall fills one whole and most of two. Seconds later, single discards
/// hardly use the drive: they are no time in which it discards.
#[test]
fn a_stall_is_not_averaged_with_seconds_that_hardly_discard() {
    let mut it = run(1.0, 6.4..8.6, vec![level(6.4..8.6, 0.0)]);
    it.devices[0].discards = vec![level(6.4..8.6, 20.0), level(10.0..15.0, 1.0)];
    it.devices[0].bytes_each = 8.0 / 49.0 * GIB as f64;
    it.devices[0].wait_ms = 50.0;
    let beside = it.verdict().foreground[0].discarding.unwrap();
    let kept = beside.ops_per_s.unwrap() / BASE;
    assert!((0.2..0.35).contains(&kept), "{kept}");
    // Of a deletion with pauses, every second has both.
    it.devices[0].discards = vec![level(6.0..14.0, 5.0)];
    (it.actors[0].rate, it.actors[0].hangs) = (vec![level(0.0..25.0, BASE)], vec![]);
    let beside = it.verdict().foreground[0].discarding.unwrap();
    assert!((beside.ops_per_s.unwrap() / BASE - 1.0).abs() < 0.02);
}

/// A deletion with pauses discards in each second. Its pace isn't the drive's rate.
#[test]
fn a_pace_is_not_the_rate_of_the_drive() {
    let mut it = run(1.0, 6.0..14.0, vec![]);
    it.devices[0].discards = vec![level(6.0..14.0, 5.0)];
    it.devices[0].bytes_each = 8.0 / 40.0 * GIB as f64;
    it.devices[0].wait_ms = 4.0;
    let discard = it.verdict().discard;
    assert!(discard.bytes_per_s_is_lower_bound, "{discard:?}");
    let rate = discard.bytes_per_s.unwrap() / (8.0 * GIB as f64 / 0.16);
    assert!((0.95..=1.0).contains(&rate), "{discard:?}");
}

#[test]
fn a_few_discards_are_told_as_few_and_not_as_none() {
    let mut it = run(0.1, 6.0..14.0, vec![]);
    it.devices[0].discards = vec![level(6.0..14.0, 5.0)];
    it.devices[0].bytes_each = 65536.0;
    let verdict = it.verdict();
    assert_eq!(verdict.reasons, [Reason::NoDiscards]);
    let words = "sent the devices only 2.5 MiB of discards, so TRIM stalled nothing";
    assert!(verdict.summary.contains(words), "{}", verdict.summary);
}

/// A log may know the bytes and not the count: no device discards bytes with no discard.
#[test]
fn bytes_without_a_discard_are_discards_of_an_unknown_number() {
    let mut record = run(0.5, 6.0..9.0, vec![level(6.0..9.0, 0.0)]).record();
    let known = judge(&record, &JudgeOptions::default()).discard;
    let discards = &mut record.intervals.devices[0].discards;
    let first = discards.iter().position(|&n| n > 0).unwrap();
    // One interval of six is enough: the others' count is not that of all.
    discards[first] = 0;
    let discard = judge(&record, &JudgeOptions::default()).discard;
    assert_eq!(discard.bytes, known.bytes);
    assert!(known.commands.is_some() && known.mean_bytes.is_some());
    let unknown = (discard.commands, discard.mean_bytes, discard.await_us);
    assert_eq!(unknown, (None, None, None));
}

/// Reads go on beside a deletion with pauses. The sentence has no rate, since the drive's is not the
/// deletion's.
#[test]
fn a_paced_deletion_went_on_at_no_rate() {
    let mut it = run(0.1, 6.0..14.0, vec![]);
    it.devices[0].discards = vec![level(6.0..14.0, 5.0)];
    it.devices[0].bytes_each = 8.0 / 40.0 * GIB as f64;
    it.devices[0].wait_ms = 40.0;
    let verdict = it.verdict();
    assert_eq!(verdict.verdict, Finding::None, "{}", verdict.summary);
    assert!(!verdict.summary.contains("TRIM ran"), "{}", verdict.summary);
}

/// A log doesn't tell what was freed. The file system's own discards, all through it, are no part of
/// the deletion.
#[test]
fn small_discards_all_through_a_log_are_not_the_deletions() {
    let mut it = run(0.1, 6.0..8.0, vec![]);
    (it.phases, it.deletions, it.freed) = (vec![], vec![], vec![]);
    it.devices[0].discards = vec![level(6.0..8.0, 20.0)];
    it.devices[0].bytes_each = 64.0 * 1024.0 * 1024.0;
    it.devices[0].wait_ms = 50.0;
    let alone = it.verdict().discard;
    let mut small = drive(vec![level(0.0..25.0, 20.0)], 8192.0, 1.0);
    small.name = "sdb".into();
    it.devices.push(small);
    let among = it.verdict().discard;
    assert_eq!(alone.commands, Some(40));
    assert!(among.commands.unwrap() <= 84, "{among:?}");
}
