//! Discards that can't be the deletion's: the verdict reports their effect, and not as the
//! deletion's.

use super::build::{Build, Device, assert_inconclusive, drive, level, reader};
use super::faults::{BASE, run};
use crate::verdict::{DipDiscards, Finding, NotTheDeletions, Reason, Verdict};
use crate::{JudgeOptions, judge};
use record::units::{GIB, MIB};
use record::*;

/// 8 GiB deleted at 5 s by unlink; the drive discards 128 MiB 64 times from 6 s to 9 s, and reads
/// stop meanwhile.
fn stalled() -> Build {
    run(0.1, 6.0..9.0, vec![level(6.0..9.0, 600.0)])
}

fn judged(build: &Build, change: impl FnOnce(&mut Head)) -> Verdict {
    let mut record = build.record();
    record.head.scenario = serde_json::json!({"deletion": {"method": {"unlink": {"parallel": 1}}}});
    record.head.target.discards_at_most = Some(DiscardsAtMost {
        per_byte: 1.02,
        more_bytes: 64 << 20,
    });
    change(&mut record.head);
    let verdict = judge(&record, &JudgeOptions::default());
    crate::verdict::schema::assert_conforms(&verdict);
    verdict
}

/// Inconclusive because of others, who stalled reads for so long.
fn disturbed(verdict: &Verdict, why: NotTheDeletions, seconds: f64) {
    let summary = &verdict.summary;
    assert_eq!(verdict.verdict, Finding::Inconclusive, "{summary}");
    assert!(
        verdict.reasons.contains(&Reason::ForeignDiscards),
        "{verdict:?}"
    );
    assert!(
        !verdict.reasons.contains(&Reason::DipsWithoutDiscards),
        "{verdict:?}"
    );
    assert_eq!(verdict.others.unwrap().why, why);
    let stall = verdict.foreground[0]
        .stall_by_others
        .unwrap_or_else(|| panic!("{verdict:?}"));
    assert!((stall.seconds - seconds).abs() < 0.3, "{stall:?}");
    assert!(
        summary.starts_with("Discards of others (8.0 GiB"),
        "{summary}"
    );
    assert!(summary.contains(why.in_words()), "{summary}");
    let end = "; it is unknown whether deleting 8.0 GiB does.";
    assert!(summary.ends_with(end), "{summary}");
}

#[test]
fn a_mount_that_sends_none_is_not_blamed() {
    let off = |head: &mut Head| head.target.discard = DiscardSetting::Off;
    let verdict = judged(&stalled(), off);
    disturbed(&verdict, NotTheDeletions::MountSendsNone, 3.0);
    assert_eq!(verdict.discard.bytes, Some(0));
    // Where nothing stalled, it is known that the deletion stalled nothing.
    let verdict = judged(&run(0.1, 6.0..9.0, vec![]), off);
    assert_eq!(verdict.verdict, Finding::None, "{}", verdict.summary);
    assert!(
        verdict.summary.contains("others discarded 8.0 GiB"),
        "{}",
        verdict.summary
    );
    // An outside program may trim by itself.
    let verdict = judged(&stalled(), |head| {
        off(head);
        head.scenario = serde_json::json!({"deletion": {"method": {"command": {"argv": ["x"]}}}});
    });
    assert_eq!((verdict.verdict, verdict.others), (Finding::Stall, None));
}

#[test]
fn discards_before_the_deletion_spoil_no_baseline() {
    let mut it = stalled();
    // 8 GiB from 1 s to 2.5 s, by others.
    it.devices[0].discards.push(level(1.0..2.5, 64.0 / 1.5));
    it.actors[0].rate.push(level(1.0..2.5, 600.0));
    let verdict = judged(&it, |_| ());
    let seen = &verdict.foreground[0];
    assert_eq!(verdict.verdict, Finding::Stall, "{}", verdict.summary);
    assert!((seen.baseline.ops_per_s.unwrap() / BASE - 1.0).abs() < 0.01);
    assert_eq!(verdict.others.unwrap().why, NotTheDeletions::BeforeIt);
    assert!((seen.stall_by_others.unwrap().seconds - 1.5).abs() < 0.3);
    assert!(
        verdict
            .warnings
            .iter()
            .any(|w| w.contains("leaves out the seconds"))
    );
    // They last for most of it.
    it.devices[0].discards = vec![level(0.5..4.5, 16.0)];
    it.actors[0].rate = vec![level(0.0..25.0, BASE), level(0.5..4.5, 600.0)];
    let verdict = judged(&it, |_| ());
    assert_inconclusive(&verdict, Reason::ForeignDiscards);
}

#[test]
fn more_than_was_freed_is_not_all_the_deletions() {
    let mut it = stalled();
    it.devices[0].bytes_each *= 10.0;
    let verdict = judged(&it, |_| ());
    assert_inconclusive(&verdict, Reason::ForeignDiscards);
    let end = "they are more than it freed) stalled reads for 3.0 s; it is unknown whether \
               deleting 8.0 GiB does.";
    assert!(verdict.summary.ends_with(end), "{}", verdict.summary);
    let others = verdict.others.unwrap();
    assert_eq!(others.why, NotTheDeletions::MoreThanFreed);
    assert!(
        (others.bytes as f64 / (71.8 * GIB as f64) - 1.0).abs() < 0.01,
        "{others:?}"
    );
    // What the file system discards beside what was freed, it may.
    let verdict = judged(&it, |head| {
        head.target.discards_at_most = Some(DiscardsAtMost {
            per_byte: 10.0,
            more_bytes: 0,
        });
    });
    assert_eq!((verdict.verdict, verdict.others), (Finding::Stall, None));
}

/// Another process truncates files on the drive below a loop device.
#[test]
fn what_did_not_come_through_a_loop_device_is_others() {
    let mut it = stalled();
    it.devices[0].level = 1;
    it.devices.insert(
        0,
        Device {
            name: "loop0".into(),
            level: 0,
            leaf: false,
            ..drive(vec![level(5.0..5.5, 2.0)], 10.0 * MIB as f64, 1.0)
        },
    );
    let as_loop = |head: &mut Head| head.devices[0].kind = DeviceKind::Loop;
    let mut record = it.record();
    record.intervals.devices[0].reads.fill(100);
    record.head.target.discards_at_most = None;
    as_loop(&mut record.head);
    let verdict = judge(&record, &JudgeOptions::default());
    assert_eq!(
        verdict.verdict,
        Finding::Inconclusive,
        "{}",
        verdict.summary
    );
    assert_eq!(verdict.others.unwrap().why, NotTheDeletions::FromElsewhere);
    // md counts no discards, so that nothing follows from what it shows.
    record.head.devices[0].kind = DeviceKind::Md;
    let verdict = judge(&record, &JudgeOptions::default());
    assert_eq!((verdict.verdict, verdict.others), (Finding::Stall, None));
}

#[test]
fn without_a_deletion_all_discards_are_others() {
    let mut it = stalled();
    it.phases = vec![(PhaseName::Baseline, Part::Main, 0.0)];
    it.deletions.clear();
    it.freed.clear();
    let none = |head: &mut Head| head.scenario = serde_json::json!({"deletion": null});
    let verdict = judged(&it, none);
    assert_eq!(verdict.verdict, Finding::Inconclusive);
    assert_eq!(
        verdict.reasons,
        [Reason::NoDeletion, Reason::ForeignDiscards]
    );
    assert!(
        verdict
            .summary
            .starts_with("Discards of others (8.0 GiB) stalled reads for 3.")
            || verdict
                .summary
                .starts_with("Discards of others (8.0 GiB) stalled reads for 2.9"),
        "{}",
        verdict.summary
    );
    // A foreground that frees space itself has discards of its own.
    let verdict = judged(&it, |head| {
        none(head);
        head.actors[0].op = "save".into();
    });
    assert_eq!(verdict.others, None);
    assert!(!verdict.reasons.contains(&Reason::DipsWithoutDiscards));
}

#[test]
fn a_dip_with_late_discards_is_not_said_to_have_none() {
    let mut it = stalled();
    // Half of what was freed comes when the deletion is over (at 15 s).
    it.devices[0].discards = vec![level(6.0..7.5, 32.0 / 1.5), level(20.0..21.5, 32.0 / 1.5)];
    it.actors[0].rate = vec![
        level(0.0..25.0, BASE),
        level(6.0..7.5, 600.0),
        level(20.0..21.5, 600.0),
    ];
    let verdict = judged(&it, |_| ());
    assert_eq!(verdict.verdict, Finding::Stall);
    assert_eq!(
        verdict.foreground[0].dips[0].discards,
        Some(DipDiscards::Unsure)
    );
    assert!(!verdict.reasons.contains(&Reason::DipsWithoutDiscards));
}

#[test]
fn counters_that_are_off_clear_nobody() {
    let mut it = stalled();
    it.devices[0].discards.clear();
    let off = |head: &mut Head| head.devices[0].counting.off = true;
    let verdict = judged(&it, off);
    assert_eq!(
        verdict.verdict,
        Finding::Inconclusive,
        "{}",
        verdict.summary
    );
    assert_eq!(verdict.reasons, [Reason::CountersOff]);
    assert_eq!(
        verdict.foreground[0].dips[0].discards,
        Some(DipDiscards::Unknown)
    );
    assert_eq!(verdict.discard.bytes, None);
    assert!(
        verdict.summary.contains("discards were not counted"),
        "{}",
        verdict.summary
    );
}

#[test]
fn without_a_known_device_the_reason_is_that() {
    let level = level(0.0..25.0, BASE);
    let mut it = Build::new(0.1, 25.0, reader(vec![level]), drive(vec![], 1.0, 1.0));
    it = it.phases(5.0, 15.0, 8 * GIB);
    it.devices.clear();
    let verdict = judged(&it, |_| ());
    assert_eq!(verdict.verdict, Finding::Inconclusive);
    assert_eq!(verdict.reasons, [Reason::DevicesUnknown]);
}

#[test]
fn a_deletion_within_a_part_of_an_interval_sent_its_discards_itself() {
    // Begun and discarded before an interval's middle, after it, and across a boundary.
    for (begin_s, end_s) in [(7.01, 7.04), (7.06, 7.09), (7.08, 7.12), (7.94, 8.01)] {
        let per_s = 64.0 / (end_s - begin_s);
        let discards = vec![level(begin_s..end_s, per_s)];
        let device = drive(discards, 32.0 * MIB as f64, 0.4);
        // Reads stop meanwhile.
        let reads = vec![level(0.0..20.0, BASE), level(begin_s..end_s, 600.0)];
        let it = Build::new(0.1, 20.0, reader(reads), device);
        let mut it = it.phases(begin_s, end_s, 2 * GIB);
        it.deletions[0].2 = 0.001;
        let verdict = it.verdict();
        assert_eq!(verdict.others, None, "{begin_s}: {}", verdict.summary);
        let discarded = verdict.discard.bytes.unwrap() as f64;
        assert!(
            (discarded / (2.0 * GIB as f64) - 1.0).abs() < 0.05,
            "{begin_s}: {discarded}"
        );
        assert_inconclusive(&verdict, Reason::TooLittleDeleted);
    }
}

#[test]
fn nobody_else_discards_in_a_simulation() {
    // Twice as much as was freed, as an fstrim of a volume with free space; reads stop all the time.
    let mut it = run(0.1, 6.0..10.0, vec![level(6.0..10.0, 600.0)]);
    it.devices[0].bytes_each *= 2.0;
    // Some before the deletion, too.
    it.devices[0].discards.push(level(1.0..1.5, 16.0));
    let verdict = judged(&it, |head| {
        head.scenario = serde_json::json!({"simulated": {"policy": "fstrim"}});
        head.target.discard = record::DiscardSetting::Off;
    });
    assert_eq!(verdict.others, None, "{}", verdict.summary);
    assert_eq!(verdict.warnings, Vec::<String>::new());
    assert_eq!(verdict.verdict, Finding::Stall);
    let discarded = verdict.discard.bytes.unwrap() as f64;
    assert!(
        (discarded / (16.0 * GIB as f64) - 1.0).abs() < 0.05,
        "{discarded}"
    );
    let stall = verdict.foreground[0].stall.unwrap();
    assert!((stall.seconds - 4.0).abs() < 0.3, "{stall:?}");
}
