//! `trimbench suite`: a small one on a simulated drive, from the plan to the page.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::gate::{LOOP_EXT4, LOOP_XFS, beside, lacks};
use crate::common::loop_fs::{Fs, LoopDevice, LoopFs, On, SMALL};
use crate::common::run::{Done, Running, record, run, start, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};

/// Two cells in one round, with four small files.
const SMALL_SUITE: [&str; 16] = [
    "suite",
    "--lab",
    "ideal",
    "--set",
    "lab-size=3G",
    "--cells",
    "ext4/nodiscard/discard,xfs/discard/nodiscard",
    "--steps",
    "create,rm-each,rm,rm-trimbench,fstrim,fstrim-trimbench,run",
    "--quick",
    "--set",
    "repeats=1",
    "--set",
    "files=4",
    "--set",
    "size=64M",
];

fn suite(lab: &OwnLab, directory: &Path, more: &[&str]) -> Running {
    let mut command = lab.in_here(trimbench());
    command.args(SMALL_SUITE).args(more).current_dir(directory);
    start(command)
}

/// Fails if a suite has left something.
fn assert_nothing_is_left(lab: &OwnLab, pid: u32) {
    let gone = || {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let mount = format!("/run/trimbench/suite/{pid}");
        !mounts.contains(&mount) && !Path::new(&mount).exists() && lab.list().is_empty()
    };
    // A guardian takes a drive down whose server was killed.
    for _ in 0..600 {
        if gone() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("something is left: {:?}", lab.list());
}

#[test]
fn suite_goes_on_after_a_kill_and_shows_every_cell() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let log = at.join("s.jsonl");
    let steps = || {
        record(&log)
            .iter()
            .filter(|line| line["line"] == "step")
            .count()
    };
    let more = ["--output", "s.jsonl", "--set", "writers=2"];

    // Killed in the first cell, interrupted in the second.
    let mut running = suite(&lab, at, &more);
    running.until("three steps", || steps() >= 3);
    let pid = running.pid().as_raw_nonzero().get().unsigned_abs();
    running.signal(Signal::KILL);
    running.wait();
    assert_nothing_is_left(&lab, pid);
    let before = steps();
    let mut running = suite(&lab, at, &more);
    running.until("the second cell", || steps() >= before + 9);
    let pid = running.pid().as_raw_nonzero().get().unsigned_abs();
    running.signal(Signal::INT);
    let interrupted = running.wait();
    interrupted.fails_with(130, &["interrupted", "goes on"]);
    assert_nothing_is_left(&lab, pid);

    let done = suite(&lab, at, &more).wait();
    assert!(
        done.succeeds().stdout.contains("Resumed: "),
        "{}",
        done.text()
    );
    let json = results(at, "s.jsonl");
    assert_eq!((&json["done"], &json["turns"]), (&2.into(), &2.into()));
    assert_is_of_schema(&json);
    let cells = json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        assert_eq!(cell["failures"], serde_json::json!([]), "{}", done.text());
        let has = |step: &str, measure: &str| {
            let figures = cell["figures"].as_array().unwrap();
            figures
                .iter()
                .any(|f| f["step"] == step && f["measure"] == measure)
        };
        for step in [
            "mkfs",
            "create",
            "rm-each",
            "rm",
            "rm-trimbench",
            "fstrim",
            "fstrim-trimbench",
        ] {
            assert!(has(step, "time"), "{step}: {}", done.text());
        }
        assert!(has("rm", "second-sync"), "{}", done.text());
    }
    let run = json["cells"][0]["verdicts"]["run"].as_array().unwrap();
    assert_eq!(run.len(), 1, "{}", done.text());
    assert_nothing_is_left(&lab, pid);
    shown_again(at, &log);
}

/// Returns the JSON that `suite report` writes of a log.
pub fn results(directory: &Path, log: &str) -> Value {
    let mut report = trimbench();
    report.args(["suite", "report", log, "--format", "json"]);
    let done = run({
        report.current_dir(directory);
        report
    });
    serde_json::from_str(&done.succeeds().stdout).unwrap()
}

/// A finished suite is shown without a drive.
fn shown_again(at: &Path, log: &Path) {
    let shown = |arguments: &[&str]| -> Done {
        let mut command = trimbench();
        command.arg("suite").args(arguments).current_dir(at);
        run(command)
    };
    let log = log.to_str().unwrap();
    let report = shown(&["report", log]);
    for part in [
        "mkfs",
        "Creating and removing the files",
        "xfs/discard/nodiscard",
    ] {
        assert!(report.succeeds().stdout.contains(part), "{}", report.text());
    }
    shown(&["report", log, "--format", "json", "--output", "r"]).succeeds();
    let text = fs::read_to_string(at.join("r")).unwrap();
    assert!(text.contains("\"ext4/nodiscard/discard\""), "{text}");
    shown(&["report", "none.jsonl"]).fails_with(2, &["none.jsonl"]);
}

pub fn assert_is_of_schema(json: &Value) {
    let validator = testkit::schema::open(include_str!("../../../experiments/schema/suite-1.json"));
    let wrong: Vec<String> = validator.iter_errors(json).map(|e| e.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn suite_goes_on_beside_a_cell_that_fails_and_leaves_a_device_blank() {
    if lacks(LOOP_EXT4) || lacks(LOOP_XFS) {
        return;
    }
    let _turn = beside();
    let own = LoopDevice::new(SMALL, On::Tmpfs);
    let directory = tempfile::tempdir().unwrap();
    let mkfs = directory.path().join("mkfs.xfs");
    fs::write(&mkfs, "#!/bin/sh\necho no room >&2\nexit 3\n").unwrap();
    fs::set_permissions(&mkfs, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", directory.path().display());
    let suite = |more: &[&str]| {
        let mut command = trimbench();
        command.args(["suite", own.node(), "--destroy-data"]);
        command.args(["--cells", "ext4/nodiscard,xfs/nodiscard/discard"]);
        command.args(["--steps", "rm,fstrim", "--set", "repeats=1"]);
        command
            .args(["--set", "files=2", "--set", "size=8M"])
            .args(more);
        command.env("PATH", &path).current_dir(directory.path());
        run(command)
    };
    let done = suite(&[]);
    assert_eq!(done.code(), Some(1), "{}", done.text());
    for word in ["Steps that failed", "no room", "ext4/nodiscard/nodiscard"] {
        assert!(done.stdout.contains(word), "{}", done.text());
    }
    // All of it is in the log, so nothing is measured again. No signature is refused.
    let again = suite(&[]);
    let json = results(directory.path(), "trimbench-suite.jsonl");
    assert_eq!(
        (again.code(), &json["done"]),
        (Some(1), &3.into()),
        "{}",
        again.text()
    );
    let failures = [0, 1, 2].map(|i| json["cells"][i]["failures"].as_array().unwrap().len());
    assert_eq!(failures, [0, 0, 3], "{}", again.text());
    assert_is_of_schema(&json);
}

#[test]
fn suite_refuses_what_it_may_not_destroy_and_what_it_does_not_know() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let own = LoopFs::new(Fs::Ext4, "discard", SMALL, On::Tmpfs);
    let directory = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str]| -> Done {
        let mut command = trimbench();
        command
            .arg("suite")
            .args(arguments)
            .current_dir(directory.path());
        run(command)
    };
    let device = own.device().node();
    refused(&[]).fails_with(2, &["--on-file", "--lab"]);
    refused(&[device]).fails_with(2, &["--destroy-data"]);
    refused(&[device, "--destroy-data"]).fails_with(2, &["in use"]);
    let overwrite = ["--destroy-data", "--force"];
    refused(&[&[device][..], &overwrite].concat()).fails_with(2, &["in use"]);
    refused(&["--lab", "ideal", "--cells", "ext5"]).fails_with(2, &["did you mean 'ext4'?"]);
    refused(&["--lab", "ideal", "--set", "lab-slower=NaN"]).fails_with(2, &["0.001 to 1000"]);
    refused(&["--lab", "ideal", "--steps", "fstrin"]).fails_with(2, &["did you mean 'fstrim'?"]);
    refused(&["--lab", "ideal", "--set", "lab-size=1G"]).fails_with(2, &["too small"]);
    refused(&["--on-file", "1P", "--set", "dir=."]).fails_with(2, &["--on-file"]);
    refused(&["--on-file", "900T", "--set", "dir=."]).fails_with(2, &["stay free"]);
    let dry = refused(&["--lab", "ideal", "--dry-run", "--quick", "--cells", "ext4"]);
    for part in ["It writes about", "ext4/nodiscard/discard", "2 rounds"] {
        assert!(dry.succeeds().stdout.contains(part), "{}", dry.text());
    }
    let file = directory.path().join("other.jsonl");
    fs::write(&file, "hello\n").unwrap();
    let other = [
        "--lab",
        "ideal",
        "--cells",
        "ext4",
        "--output",
        "other.jsonl",
    ];
    refused(&other).fails_with(2, &["other.jsonl"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "hello\n");
    let left = fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 1);
}
