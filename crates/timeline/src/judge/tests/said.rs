//! What a verdict says, in words and reasons.

use super::build::level;
use super::faults::{BASE, run};
use crate::record::{End, EndReason, EventKind, RunRecord};
use crate::verdict::{Finding, Reason};
use crate::{JudgeOptions, judge};

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
    });
    let verdict = judge(&record, &JudgeOptions::default());
    assert_eq!(verdict.verdict, Finding::Inconclusive);
    assert!(verdict.reasons.contains(&Reason::Failed));
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
