//! Whose discards count: the deletion's, and not those of others; and the report where
//! nobody counts.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::gate::{LOOP_EXT4, Need, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL, must, names};
use crate::quick::{Files, begin, measure, number};

/// A loop device whose counters are off; they outlive the device, so they come on again.
struct Uncounted(PathBuf);

impl Uncounted {
    fn of(fs: &LoopFs) -> Self {
        let file = fs.device().queue("iostats");
        fs::write(&file, "0").unwrap();
        Self(file)
    }

    fn is_off(&self) -> bool {
        fs::read_to_string(&self.0).unwrap().trim() == "0"
    }
}

impl Drop for Uncounted {
    fn drop(&mut self) {
        let _ = fs::write(&self.0, "1");
    }
}

#[test]
fn a_run_without_counters_is_refused_unless_it_may_be_blind() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    let counters = Uncounted::of(&fs);
    let words = [
        "counters of loop",
        "echo 1 > ",
        "--set",
        "counters=enable",
        "--set",
        "counters=blind",
    ];
    measure(fs.path(), &[]).done.fails_with(2, &words);
    measure(fs.path(), &["--dry-run"])
        .done
        .fails_with(2, &words);
    assert_eq!(names(fs.path()), [""; 0]);
    let blind = measure(
        fs.path(),
        &["--set", "counters=blind", "--set", "phases.drain-limit=2s"],
    )
    .succeeds();
    assert_eq!(blind.verdict["verdict"], "inconclusive");
    let reasons = blind.reasons();
    assert!(reasons.contains(&"counters-off"), "{reasons:?}");
    for wrong in [
        "no-discards",
        "dips-without-discards",
        "discards-did-not-come",
    ] {
        assert!(!reasons.contains(&wrong), "{reasons:?}");
    }
    let text = blind.done.text();
    assert!(!text.contains("not TRIM's doing"), "{text}");
    assert!(blind.verdict["discard"]["bytes"].is_null());
    assert!(counters.is_off());
}

#[test]
fn counters_are_switched_on_for_the_run_and_off_again_even_after_a_kill() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    let counters = Uncounted::of(&fs);
    let counted = measure(fs.path(), &["--set", "counters=enable"]).succeeds();
    assert!(number(&counted.verdict["discard"]["bytes"]) > 0.0);
    assert!(!counted.reasons().contains(&"counters-off"));
    let said = counted.done.text();
    assert!(!said.contains("counters switched off"), "{said}");
    assert!(counters.is_off());
    let files = Files::new();
    let arguments = ["--set", "counters=enable", "--baseline", "1h"];
    let mut running = begin(fs.path(), &files, &arguments);
    running.until("the baseline", || files.in_phase("baseline"));
    assert!(!counters.is_off());
    running.signal(Signal::KILL);
    running.wait();
    let given_up = Instant::now() + Duration::from_secs(30);
    while !counters.is_off() {
        assert!(Instant::now() < given_up, "they are still on");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn discards_of_others_are_told_apart_where_the_mount_sends_none() {
    let _turn = beside();
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("mkfs.xfs"), Need::Tool("fstrim")]) {
        return;
    }
    let fs = LoopFs::new(Fs::Xfs, "nodiscard", SMALL, On::Tmpfs);
    let files = Files::new();
    let mut running = begin(fs.path(), &files, &["--baseline", "1s"]);
    while !running.is_over() {
        must("fstrim", &[&fs.path().to_string_lossy()]);
        std::thread::sleep(Duration::from_millis(50));
    }
    let measured = files.read(running.wait()).succeeds();
    let text = measured.done.text();
    assert_eq!(
        measured.verdict["others"]["why"], "mount-sends-none",
        "{text}"
    );
    assert!(number(&measured.verdict["others"]["bytes"]) > 1e9, "{text}");
    assert_eq!(number(&measured.verdict["discard"]["bytes"]), 0.0, "{text}");
    assert!(measured.reasons().contains(&"foreign-discards"), "{text}");
    assert!(
        text.contains("not this deletion's: the mount sends none"),
        "{text}"
    );
    assert_ne!(measured.verdict["verdict"], "stall", "{text}");
}

/// The hint for a mount that sends no discards works: after it the mount sends them.
#[test]
fn the_hint_how_to_switch_discards_on_does_so() {
    let _turn = beside();
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("mkfs.xfs"), Need::Tool("mkfs.btrfs")]) {
        return;
    }
    for kind in [Fs::Ext4, Fs::Xfs, Fs::Btrfs] {
        let fs = LoopFs::new(kind, "nodiscard", SMALL, On::Tmpfs);
        let without = measure(fs.path(), &[]).succeeds();
        assert!(without.reasons().contains(&"no-discards"), "{kind:?}");
        let text = without.done.text();
        let words: Vec<&str> = text.split_whitespace().collect();
        let text = words.join(" ");
        let hint = text.split_once("they would do: ").expect("no hint").1;
        let hint = hint.split_once(", then run again").expect("no end").0;
        must("sh", &["-c", hint]);
        let with = measure(fs.path(), &[]).succeeds();
        assert_eq!(with.head()["target"]["discard"], "on", "{hint}");
        assert!(number(&with.verdict["discard"]["bytes"]) > 0.0, "{hint}");
    }
}
