//! Deletions by another process, which the run only watched.

use serde_json::json;

use super::build::{Build, drive, level, reader};
use crate::judging::{JudgeOptions, judge};
use crate::verdict::{Finding, Reason, Verdict};
use record::RunRecord;
use record::units::{GIB, MIB};

/// Reads stop at 6–9 s, while 8 GiB are discarded; the event begins at 5 s.
fn stalled(command: &str) -> RunRecord {
    let rate = vec![level(0.0..20.0, 60_000.0), level(6.0..9.0, 600.0)];
    let discards = vec![level(6.0..9.0, 64.0 / 3.0)];
    let device = drive(discards, 128.0 * MIB as f64, 40.0);
    let build = Build::new(0.1, 20.0, reader(rate), device).phases(5.0, 12.0, 8 * GIB);
    let mut record = build.record();
    record.head.scenario = json!({
        "deletion": { "method": { "event": { "text": command, "argv": [command], "quiet_s": 2.0 } } }
    });
    record
}

/// The event freed so many bytes by the file system's free space.
fn freeing(mut record: RunRecord, bytes: u64) -> Verdict {
    for deletion in &mut record.deletions {
        (deletion.bytes, deletion.files) = (bytes, 0);
        (deletion.space_freed_bytes, deletion.exit_code) = (Some(bytes), Some(0));
    }
    record.intervals.freed_bytes.fill(0);
    let verdict = judge(&record, &JudgeOptions::default());
    crate::verdict::schema::assert_conforms(&verdict);
    verdict
}

#[test]
fn an_event_that_freed_space_is_named_with_it() {
    let verdict = freeing(stalled("mysql t -e 'DROP TABLE big'"), 8 * GIB);
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    let words = "`mysql t -e 'DROP TABLE big'` freed 8.0 GiB; the discards it caused stalled reads";
    assert!(verdict.summary.starts_with(words), "{}", verdict.summary);
    let deletion = verdict.deletion.unwrap();
    assert_eq!(
        deletion.event.as_deref(),
        Some("mysql t -e 'DROP TABLE big'")
    );
    assert_eq!(deletion.exit_code, Some(0));
    // As the first builds wrote it.
    let mut old = stalled("purge");
    old.head.scenario = json!({
        "deletion": { "method": { "event": { "trigger": { "command": { "text": "purge" } } } } }
    });
    let verdict = freeing(old, 8 * GIB);
    assert!(verdict.summary.starts_with("`purge` freed 8.0 GiB;"));
}

#[test]
fn an_event_that_freed_nothing_but_discards_is_named_with_them() {
    let verdict = freeing(stalled("fstrim /data"), 4096);
    assert_eq!(verdict.verdict, Finding::Stall);
    let words = "The discards of `fstrim /data` (8.0 GiB) stalled reads";
    assert!(verdict.summary.starts_with(words), "{}", verdict.summary);
}

#[test]
fn all_discards_of_an_events_phase_are_its_own() {
    // Others wrote 6 GiB meanwhile, so the free space grew by 2 GiB only.
    let verdict = freeing(stalled("purge"), 2 * GIB);
    let discarded = verdict.discard.bytes.unwrap() as f64;
    assert!(discarded > 7.9 * GIB as f64, "{discarded}");
}

#[test]
fn an_event_without_space_and_discards_deleted_nothing() {
    let mut record = stalled("true");
    for device in &mut record.intervals.devices {
        device.discard_bytes.fill(0);
        device.discards.fill(0);
    }
    let verdict = freeing(record, 0);
    assert_eq!(verdict.verdict, Finding::Inconclusive);
    assert_eq!(verdict.reasons[0], Reason::NothingDeleted);
    assert!(verdict.summary.contains("`true`"), "{}", verdict.summary);
}
