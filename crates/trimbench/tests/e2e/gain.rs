//! `run --scenario never-trimmed` finds the gain that the model of a drive has, and no other.

use std::path::Path;

use rustix::process::Signal;

use crate::common::gate::{LOOP_EXT4, beside, few, lacks};
use crate::common::loop_fs::LoopFs;
use crate::common::run::{run, start, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};
use crate::quick::{Files, Measured, command_on, measure, number};

const MIB: u64 = 1 << 20;
const LIMIT: u64 = 3 << 30;

/// The pages that such a drive writes for each page that its host writes, before the trim over after
/// it: `lab stats` counted 2.75 and 2.76 in two runs.
const MODEL: f64 = 2.75;

/// Phases long enough for the drive's flash to get used to the writers.
const RUN: &[&str] = &[
    "--scenario",
    "never-trimmed",
    "--set",
    "writes-at-most=3G",
    "--set",
    "foreground.size=128M",
    "--settle",
    "30s",
    "--baseline",
    "10s",
    "--recovery",
    "14s",
    "--set",
    "phases.interval=100ms",
];

/// A drive with a file system.
fn drive(fs: &str, settings: &[&str]) -> OwnLab {
    let lab = OwnLab::new();
    let mount = lab.mount();
    let name = lab.dir().file_name().unwrap().to_str().unwrap().to_owned();
    let mut drive = vec!["--profile", "vertex-2", "--size", "1600M", "--fs", fs];
    drive.extend(["--mount", mount.to_str().unwrap(), "-o", "nodiscard"]);
    settings.iter().for_each(|set| drive.extend(["--set", set]));
    lab.up(&name, &drive);
    lab
}

/// A run on it.
fn measured(lab: &OwnLab) -> Measured {
    let files = Files::new();
    let done = run(lab.in_here(command_on(&lab.mount(), &files, RUN)));
    files.read(done).succeeds()
}

/// All bytes of the run's files and writers.
fn written(measured: &Measured) -> u64 {
    let of = |index| measured.total(index, "bytes");
    128 * MIB + of(0) + of(1)
}

#[test]
fn fstrim_measures_it_too() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = few();
    let lab = drive("ext4", &[]);
    let mount = lab.mount();
    let mount = mount.to_str().unwrap();
    let gain = |more: &[&str]| {
        let mut command = lab.in_here(trimbench());
        command.args(["fstrim", "--gain", mount]).args(more);
        run(command)
    };
    let shown = gain(&["--dry-run"]);
    let limit = "write at most 32.0 GiB in all";
    assert!(
        shown.succeeds().stdout.contains("never-trimmed"),
        "{}",
        shown.text()
    );
    assert!(shown.stdout.contains(limit), "{}", shown.text());
    gain(&[mount]).fails_with(2, &["--gain", "one MOUNT"]);
    gain(&["--slowdown", "5%"]).fails_with(2, &["--gain", "--slowdown"]);
}

#[test]
fn a_worn_in_drive_gains_what_its_model_says() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = few();
    for fs in ["ext4", "btrfs"] {
        let measured = measured(&drive(fs, &["aged=90%"]));
        let gain = &measured.verdict["gain"];
        assert_eq!(gain["finding"], "gained", "{}", measured.done.text());
        let ratio = number(&gain["rate"]["ratio"]);
        assert!((ratio / MODEL - 1.0).abs() < 0.15, "{fs}: {ratio}");
        let text = measured.done.text();
        assert!(
            text.contains("was not trimmed") && text.contains("at most 3.0 GiB"),
            "{text}"
        );
        assert!(written(&measured) <= LIMIT, "{}", written(&measured));
    }
}

#[test]
fn a_drive_that_was_trimmed_or_ignores_trims_gains_nothing() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = few();
    for settings in [
        &["flash.geometry=16k 64 7% greedy"][..],
        &["aged=90%", "discard.smallest=1T"],
    ] {
        let measured = measured(&drive("ext4", settings));
        let gain = &measured.verdict["gain"];
        assert_ne!(gain["finding"], "gained", "{}", measured.done.text());
        assert!(number(&gain["trimmed_bytes"]) > 1e9, "{gain}");
        assert!(written(&measured) <= LIMIT);
    }
}

#[test]
fn an_interrupted_one_leaves_nothing_and_gains_nothing() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = few();
    let lab = drive("ext4", &["aged=90%"]);
    let (mount, files) = (lab.mount(), Files::new());
    let running = start(lab.in_here(command_on(&mount, &files, RUN)));
    while !files.in_phase("settle") {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    running.signal(Signal::INT);
    running.wait().fails_with(130, &["interrupted"]);
    let left = std::fs::read_dir(&mount).unwrap();
    let names: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().all(|name| name == "lost+found"), "{names:?}");
}

#[test]
fn bad_ground_is_refused_before_anything_is_written() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let fs = LoopFs::small();
    let refused = |path: &Path, arguments: &[&str], words: &[&str]| {
        let measured = measure(
            path,
            &[&["--scenario", "never-trimmed"], arguments].concat(),
        );
        measured.done.fails_with(2, words);
        assert_eq!(fs.names(), [""; 0]);
    };
    refused(fs.path(), &[], &["loop", "the drive below its file"]);
    let tiny = [
        "--set",
        "writes-at-most=64M",
        "--set",
        "foreground.size=32M",
    ];
    refused(fs.path(), &tiny, &["writes-at-most", "raise it"]);
    let reader = [
        "--actor",
        "name=random,op=read",
        "--actor",
        "name=stream,op=save",
    ];
    refused(fs.path(), &reader, &["can't be limited"]);
    let command = command_on(fs.path(), &Files::new(), &["--delete", "trim"]);
    run(command).fails_with(2, &["no actor writes", "never-trimmed"]);
}
