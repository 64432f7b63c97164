//! The words and reasons of a verdict.

use super::build::{assert_inconclusive, level};
use super::faults::{BASE, run};
use crate::verdict::Reason;
use crate::{JudgeOptions, judge};
use record::units::GIB;
use record::{End, EndReason, EventKind, RunRecord};

#[test]
fn the_summary_can_be_quoted() {
    let verdict = run(0.1, 6.0..7.1, vec![level(6.0..7.1, 0.006 * BASE)]).verdict();
    assert_eq!(
        verdict.summary,
        "Deleting 8.0 GiB stalled reads for 1.1 s (to 0.6 % of 60,000/s): TRIM ran at 8.1 GB/s \
         (7.5 GiB/s)."
    );
}

#[test]
fn no_more_is_advised_than_fits() {
    // 8 GiB, discarded within 0.15 s.
    let mut record = run(0.1, 6.0..6.15, vec![level(6.0..6.15, 0.2 * BASE)]).record();
    let judged = |record: &RunRecord| judge(record, &JudgeOptions::default());
    let told = judged(&record);
    assert_eq!(told.reasons, [Reason::TooLittleDeleted], "{}", told.summary);
    let try_bytes = told.try_bytes.unwrap();
    record.head.target.mount = Some("/srv".into());
    for (size_bytes, advised) in [
        (16 * GIB, None),
        // Half of it lasts long enough to try.
        (try_bytes, Some(try_bytes / 2)),
        (2 * try_bytes, Some(try_bytes)),
    ] {
        record.head.target.size_bytes = size_bytes;
        record.head.target.available_bytes = Some(size_bytes - GIB / 4);
        let told = judged(&record);
        assert_eq!(told.try_bytes, advised);
        let full = told
            .summary
            .ends_with("more than fits here would be needed.");
        assert_eq!(full, advised.is_none(), "{}", told.summary);
    }
    // A simulated volume is as large as its setting.
    (record.head.target.size_bytes, record.head.target.mount) = (10 * GIB, None);
    record.head.scenario = serde_json::json!({"simulated": {}});
    assert_eq!(judged(&record).try_bytes, Some(try_bytes));
}

#[test]
fn discards_beside_which_nothing_ran_stall_nothing_that_is_known() {
    let it = run(0.1, 6.0..7.1, vec![level(6.0..7.1, 0.0)]);
    let mut record = it.record();
    record.head.actors.clear();
    record.intervals.actors.clear();
    let verdict = judge(&record, &JudgeOptions::default());
    assert_inconclusive(&verdict, Reason::TooFewOperations);
    let end = "stalls anything: no reads or writes were measured meanwhile.";
    assert!(verdict.summary.ends_with(end), "{}", verdict.summary);
}

#[test]
fn what_has_no_files_is_discarded_and_not_deleted() {
    let it = run(0.1, 6.0..7.1, vec![level(6.0..7.1, 0.006 * BASE)]);
    let mut record = it.record();
    record.deletions[0].files = 0; // an fstrim, or a raw device
    let verdict = judge(&record, &JudgeOptions::default());
    let begin = "Discarding 8.0 GiB stalled reads for 1.1 s";
    assert!(verdict.summary.starts_with(begin), "{}", verdict.summary);
}

#[test]
fn discards_longer_than_an_interval_have_a_rate() {
    // 2 GiB every 0.4 s, each of which took so long: 5 GiB/s. Few of them, and many.
    for (count, told) in [(2, false), (4, false), (40, true)] {
        let end_s = 6.0 + 0.4 * count as f64;
        let mut it = run(0.1, 6.0..end_s, vec![level(6.0..end_s, 0.0)]);
        it.length_s += 20.0;
        let mut record = it.record();
        let device = &mut record.intervals.devices[0];
        device.discard_bytes.fill(0);
        device.discards.fill(0);
        device.discard_ms.fill(0);
        for i in (63..).step_by(4).take(count) {
            device.discard_bytes[i] = 2 * GIB;
            device.discards[i] = 1;
            device.discard_ms[i] = 400;
        }
        let discard = judge(&record, &JudgeOptions::default()).discard;
        let gib_per_s = discard.bytes_per_s.unwrap() / GIB as f64;
        assert_eq!(
            discard.bytes_per_s_is_lower_bound, !told,
            "{count}: {gib_per_s}"
        );
        let range = if told { 4.7..5.3 } else { 3.0..5.01 };
        assert!(range.contains(&gib_per_s), "{count}: {gib_per_s}");
    }
}

#[test]
fn small_discards_beside_long_ones_leave_a_bound_of_the_rate() {
    // As btrfs sends them: 1 GiB every 0.4 s, and small ones meanwhile.
    let mut record = run(0.1, 6.0..7.6, vec![level(6.0..7.6, 0.0)]).record();
    let device = &mut record.intervals.devices[0];
    device.discard_bytes.fill(0);
    device.discards.fill(0);
    device.discard_ms.fill(0);
    for i in 60..76 {
        (device.discard_bytes[i], device.discards[i]) = (32 << 10, 3);
        if i % 4 == 3 {
            (device.discard_bytes[i], device.discards[i]) = (GIB, 2);
            device.discard_ms[i] = 800;
        }
    }
    let discard = judge(&record, &JudgeOptions::default()).discard;
    let gib_per_s = discard.bytes_per_s.unwrap() / GIB as f64;
    assert!((2.0..2.6).contains(&gib_per_s), "{gib_per_s}");
    assert!(discard.bytes_per_s_is_lower_bound);
}

#[test]
fn a_failed_run_says_failed() {
    let mut it = run(0.1, 6.0..9.0, vec![]);
    (it.completed, it.length_s) = (false, 5.8);
    it.phases.pop();
    let mut record = it.record();
    record.end = Some(End {
        at_s: 5.8,
        reason: EndReason::Failed,
        message: Some("The disk is full.".into()),
        unfinished: vec![],
        lives: Vec::new(),
    });
    let verdict = judge(&record, &JudgeOptions::default());
    assert_inconclusive(&verdict, Reason::Failed);
    assert!(!verdict.reasons.contains(&Reason::Interrupted));
    assert!(verdict.summary.contains("failed"), "{}", verdict.summary);
}

#[test]
fn the_wait_for_discards_is_told_as_long_as_it_was() {
    let mut it = run(0.1, 6.0..9.0, vec![]);
    it.devices[0].discards.clear();
    it.events = vec![(EventKind::DiscardsDidNotCome, 8.0)];
    let mut record = it.record();
    let told = |record: &RunRecord| judge(record, &JudgeOptions::default()).summary;
    record.head.scenario = serde_json::json!({"timing": {"drain_limit_s": 5.0}});
    assert!(
        told(&record).contains("within 5.0 s of"),
        "{}",
        told(&record)
    );
    record.head.scenario = serde_json::Value::Null;
    let text = told(&record);
    assert!(
        text.contains("while they were waited for") && !text.contains("within"),
        "{text}"
    );
}
