//! Options that say how long the phases last, and how they are looked at.

use crate::common::gate::{LOOP_EXT4, Need, beside, lacks, undisturbed};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::quick::{measure, number};

#[test]
fn phases_come_in_order_and_last_as_told() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    let arguments = [
        "--settle",
        "4s",
        "--baseline",
        "1500ms",
        "--recovery",
        "700ms",
    ];
    let measured = measure(fs.path(), &arguments).succeeds();
    assert_eq!(
        measured.phases(),
        ["prepare", "settle", "baseline", "delete", "recovery"]
    );
    // However slow the machine is, a phase isn't shorter; and it ends within a few seconds.
    assert!((1.45..10.0).contains(&measured.phase_s("baseline")));
    assert!((0.65..10.0).contains(&measured.phase_s("recovery")));
    assert!(measured.phase_s("settle") < 10.0);
    assert!(measured.happened("settle-steady") != measured.happened("settle-limit"));
}

#[test]
fn intervals_are_as_long_as_told_and_none_is_missing() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let Some(_turn) = undisturbed() else { return };
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    for (interval, nominal, more) in [
        ("100ms", 0.1, &["--delete", "none"][..]),
        ("10ms", 0.01, &[]),
    ] {
        let set = format!("phases.interval={interval}");
        let arguments = [&["--set", &*set, "--baseline", "1s"], more].concat();
        let measured = measure(fs.path(), &arguments).succeeds();
        assert_eq!(number(&measured.head()["interval_ms"]), nominal * 1e3);
        let intervals: Vec<_> = measured.lines("interval").collect();
        // Each begins where the one before it ended: no time is left out.
        for pair in intervals.windows(2) {
            let end = number(&pair[0]["at_s"]) + number(&pair[0]["seconds"]);
            assert!(
                (end - number(&pair[1]["at_s"])).abs() < 1e-4,
                "a gap after {end}"
            );
        }
        let mut lengths: Vec<f64> = intervals.iter().map(|i| number(&i["seconds"])).collect();
        lengths.sort_by(f64::total_cmp);
        let median = lengths[lengths.len() / 2];
        assert!(
            (0.95..1.05).contains(&(median / nominal)),
            "{interval}: {median}"
        );
    }
}

#[test]
fn low_is_written_down_and_taken() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    measure(fs.path(), &["--set", "judge.low=20%"]).succeeds();
    // A share of the baseline, and so below it.
    let measured = measure(fs.path(), &["--set", "judge.low=150%"]);
    measured
        .done
        .fails_with(2, &["judge.low=150%", "0% to 100%"]);
}

#[test]
fn discards_that_do_not_come_are_not_waited_for_longer_than_told() {
    let _turn = beside();
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("mkfs.btrfs")]) {
        return;
    }
    // btrfs waits for reuse, 120 s by default, before it discards in the background.
    let fs = LoopFs::new(Fs::Btrfs, "discard=async", SMALL, On::Tmpfs);
    let measured = measure(fs.path(), &["--set", "phases.drain-limit=1s"]).succeeds();
    assert!(measured.happened("discards-did-not-come"));
    assert!(
        measured.reasons().contains(&"discards-did-not-come"),
        "{:?}",
        measured.reasons()
    );
    assert_ne!(measured.verdict["verdict"], "stall");
    assert_ne!(measured.verdict["verdict"], "slowdown");
}
