//! The disk changes under a run: full, frozen, files gone.

use std::fs::{self, File};
use std::path::PathBuf;

use rustix::process::Signal;

use crate::common::gate::{LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::common::run::run;
use crate::quick::{Files, begin, command_on};

const LARGE: u64 = 6144;

fn quiet_fs(mib: u64) -> Option<LoopFs> {
    (!lacks(LOOP_EXT4)).then(|| LoopFs::new(Fs::Ext4, "nodiscard", mib, On::Tmpfs))
}

/// A file of a run under way, by its name.
fn file_of_run(fs: &LoopFs, name: &str) -> Option<PathBuf> {
    let own = fs
        .names()
        .into_iter()
        .find(|n| n.starts_with(".trimbench-"))?;
    let path = fs.path().join(own).join(name);
    path.exists().then_some(path)
}

/// Another process takes all the space that is left, in a file `theirs`.
fn take_all(fs: &LoopFs) {
    let mut options = File::options();
    let hog = options.create(true).append(true);
    let hog = hog.open(fs.path().join("theirs")).unwrap();
    let mut left = 4 << 30;
    let mut at = hog.metadata().unwrap().len();
    while left >= 1 << 20 {
        match rustix::fs::fallocate(&hog, rustix::fs::FallocateFlags::empty(), at, left) {
            Ok(()) => at += left,
            Err(_) => left /= 2,
        }
    }
}

#[test]
fn a_deletion_that_goes_on_finds_the_disk_full() {
    let _turn = beside();
    let Some(fs) = quiet_fs(LARGE) else { return };
    for how in ["lsm", "spill"] {
        let files = Files::new();
        let arguments = [
            "--delete",
            how,
            "--size",
            "512M",
            "--set",
            "deletion.for=2s",
        ];
        let mut running = begin(fs.path(), &files, &arguments);
        running.until("the deletion", || files.in_phase("delete"));
        // Also what it frees meanwhile.
        while !running.is_over() {
            take_all(&fs);
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let measured = files.read(running.wait());
        // Whether all of it failed or a part, it is told, and nothing stays behind.
        let text = measured.done.text();
        assert!(text.contains("No space left"), "{how}: {text}");
        let reason = &measured.end()["reason"];
        let code = if reason == "completed" { 0 } else { 1 };
        assert_eq!(measured.done.code(), Some(code), "{how}: {text}");
        assert_eq!(fs.names(), ["theirs"], "{how}");
        fs::remove_file(fs.path().join("theirs")).unwrap();
    }
}

#[test]
fn a_disk_that_fills_up_meanwhile_ends_the_run_cleanly() {
    let _turn = beside();
    let Some(fs) = quiet_fs(LARGE) else { return };
    let files = Files::new();
    // Each file takes its space when its turn comes, so that there is a meanwhile.
    let arguments = [
        "--size",
        "4G",
        "--files",
        "8",
        "--set",
        "foreground.size=16M",
    ];
    let mut running = begin(fs.path(), &files, &arguments);
    running.until("it writes the first file to delete", || {
        file_of_run(&fs, "victim-000001").is_some()
    });
    take_all(&fs);
    let measured = files.read(running.wait());
    measured.done.fails_with(1, &["space", "victim-"]);
    assert_eq!(measured.end()["reason"], "failed");
    assert!(
        measured.end()["message"]
            .as_str()
            .unwrap()
            .contains("space")
    );
    assert_eq!(fs.names(), ["theirs"]);
}

#[test]
fn the_foregrounds_file_deleted_by_somebody_else() {
    let _turn = beside();
    let Some(fs) = quiet_fs(SMALL) else { return };
    let files = Files::new();
    let mut running = begin(fs.path(), &files, &["--baseline", "3s"]);
    running.until("the baseline", || files.in_phase("baseline"));
    fs::remove_file(file_of_run(&fs, "foreground").unwrap()).unwrap();
    // The open file goes on being read.
    let measured = files.read(running.wait());
    measured.done.succeeds();
    assert!(measured.lines("deletion").count() == 1);
    assert!(
        measured.verdict["summary"].is_string(),
        "the verdict was lost"
    );
    assert_eq!(fs.names(), [""; 0]);
}

#[test]
fn the_file_to_delete_deleted_by_somebody_else() {
    let _turn = beside();
    let Some(fs) = quiet_fs(SMALL) else { return };
    let files = Files::new();
    let mut running = begin(fs.path(), &files, &["--baseline", "3s"]);
    running.until("the baseline", || files.in_phase("baseline"));
    fs::remove_file(file_of_run(&fs, "victim-000001").unwrap()).unwrap();
    let measured = files.read(running.wait());
    measured
        .done
        .fails_with(1, &["victim-000001", "No such file"]);
    assert_eq!(measured.end()["reason"], "failed");
    assert_eq!(fs.names(), [""; 0]);
}

#[test]
fn the_whole_directory_deleted_by_somebody_else() {
    let _turn = beside();
    let Some(fs) = quiet_fs(SMALL) else { return };
    let files = Files::new();
    let mut running = begin(fs.path(), &files, &["--baseline", "3s"]);
    running.until("the baseline", || files.in_phase("baseline"));
    let own = file_of_run(&fs, "owner").unwrap();
    fs::remove_dir_all(own.parent().unwrap()).unwrap();
    let measured = files.read(running.wait());
    measured.done.fails_with(1, &["No such file"]);
    assert_eq!(fs.names(), [""; 0]);
}

#[test]
fn somebody_elses_file_in_our_directory_stays() {
    let _turn = beside();
    let Some(fs) = quiet_fs(SMALL) else { return };
    let files = Files::new();
    let mut running = begin(fs.path(), &files, &["--baseline", "3s"]);
    running.until("the baseline", || files.in_phase("baseline"));
    let own = file_of_run(&fs, "owner").unwrap();
    let theirs = own.with_file_name("thesis.tex");
    fs::write(&theirs, "years of work").unwrap();
    let measured = files.read(running.wait());
    assert!(
        measured.done.stderr.contains("thesis.tex"),
        "{}",
        measured.done.text()
    );
    assert_eq!(fs::read_to_string(&theirs).unwrap(), "years of work");
}

#[test]
fn outputs_on_a_full_disk_are_a_failure_told() {
    let _turn = beside();
    let Some(fs) = quiet_fs(SMALL) else { return };
    for option in ["--json", "--output"] {
        let mut command = crate::common::run::trimbench();
        command.args([
            "run",
            "--size",
            "16M",
            "--set",
            "foreground.size=16M",
            "--settle",
            "0s",
        ]);
        command.args([
            "--baseline",
            "300ms",
            "--recovery",
            "0s",
            option,
            "/dev/full",
        ]);
        command.arg(fs.path());
        let done = run(command);
        assert_eq!(done.code(), Some(1), "{option}: {}", done.text());
        assert!(
            done.stderr.contains("No space left"),
            "{option}: {}",
            done.text()
        );
        assert_eq!(fs.names(), [""; 0]);
    }
}

#[test]
fn a_verdict_that_cannot_be_written_hides_no_other_ending() {
    let _turn = beside();
    let Some(fs) = quiet_fs(SMALL) else { return };
    let short = |more: &[&str]| {
        let mut command = crate::common::run::trimbench();
        command.args(["run", "--json", "/dev/full", "--settle", "0s"]);
        command.args(["--size", "16M", "--set", "foreground.size=16M"]);
        command.args(["--recovery", "0s"]).args(more).arg(fs.path());
        command
    };
    run(short(&["--baseline", "300ms", "--fail-on", "p99>1ns"])).fails_with(3, &["No space left"]);
    let mut running = crate::common::run::start(short(&["--baseline", "60s"]));
    running.until("it works", || file_of_run(&fs, "victim-000001").is_some());
    running.signal(Signal::INT);
    running
        .wait()
        .fails_with(130, &["No space left", "interrupted"]);
    assert_eq!(fs.names(), [""; 0]);
}

#[test]
fn a_run_beside_another_leaves_the_others_files_alone() {
    let _turn = beside();
    let Some(fs) = quiet_fs(LARGE) else { return };
    let (first, second) = (Files::new(), Files::new());
    let mut long = begin(fs.path(), &first, &["--baseline", "1h"]);
    long.until("the baseline", || first.in_phase("baseline"));
    let done = run(command_on(fs.path(), &second, &[]));
    second.read(done).succeeds();
    assert!(!long.is_over(), "the other ended it");
    for name in ["owner", "foreground", "victim-000001"] {
        assert!(file_of_run(&fs, name).is_some(), "{name}");
    }
    long.signal(Signal::INT);
    long.wait().fails_with(130, &["nterrupted"]);
    assert_eq!(fs.names(), [""; 0]);
}
