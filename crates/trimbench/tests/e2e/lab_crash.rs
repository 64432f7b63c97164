//! `trimbench lab`: what is there after a power cut, and data that outlive a drive.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde_json::Value;

use crate::common::gate::{beside, lacks};
use crate::lab_drive::{NEEDS, OwnLab, dd};

const BLOCK: usize = 4096;

/// Writes a block of one value, past the page cache.
#[track_caller]
fn write(dir: &Path, device: &Path, block: usize, value: u8) {
    let file = dir.join("block");
    fs::write(&file, [value; BLOCK]).unwrap();
    let from = format!("if={}", file.display());
    let to = format!("of={}", device.display());
    let seek = format!("seek={block}");
    assert!(dd(&[&from, &to, &seek, "oflag=direct", "conv=notrunc"]));
}

fn sync(device: &Path) {
    let file = OpenOptions::new().write(true).open(device).unwrap();
    file.sync_all().unwrap();
}

/// A log of two writes, each followed by a sync and a mark, with a fault set in between.
fn log_of_two(lab: &OwnLab, dir: &Path, fault: Option<&str>) -> String {
    let log = dir.join("log");
    let _ = fs::remove_file(&log);
    let log = log.to_str().unwrap().to_owned();
    let log_option = format!("log={log}");
    let mut options = vec!["--profile", "ideal", "--size", "1M", "--set", &log_option];
    options.extend(["--set", "log-limit=8M"]);
    let device = lab.up("logged", &options);
    lab.lab(&["mark", "logged", "none"]).succeeds();
    if let Some(fault) = fault {
        lab.lab(&["fault", "logged", fault]).succeeds();
    }
    for value in [1, 2] {
        write(dir, &device, value.into(), value);
        sync(&device);
        lab.lab(&["mark", "logged", &value.to_string()]).succeeds();
    }
    lab.lab(&["down", "logged"]).succeeds();
    log
}

/// Fails where a block is missing that the mark says was synced.
const CHECK: &str = "case $TRIMBENCH_CRASH_MARK in none) n=0;; *) n=$TRIMBENCH_CRASH_MARK;; esac
    test -n \"$TRIMBENCH_CRASH_STATE\" || exit 9
    for i in 1 2; do
        test $i -gt $n && break
        got=$(dd if=$TRIMBENCH_CRASH_DEVICE bs=4096 skip=$i count=1 2>/dev/null | od -An -tu1 -N1)
        test $got -eq $i || { echo block $i is $got; exit 1; }
    done";

#[test]
fn crash_states_keep_what_was_synced_unless_flushes_are_lost() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let dir = tempfile::tempdir().unwrap();
    let log = log_of_two(&lab, dir.path(), None);
    let scratch = format!("scratch={}", dir.path().display());
    let how = [
        "--set",
        "seed=3",
        "--set",
        "torn=512",
        "--set",
        "timeout=20s",
    ];
    let crash = |more: &[&str], check: &str| {
        let command = ["--set", &*scratch, "--", "sh", "-c", check];
        lab.lab(
            &[
                &["crash", &log, "--set", "from=none"],
                &how[..],
                more,
                &command,
            ]
            .concat(),
        )
    };
    let done = crash(&["--json"], CHECK);
    let found: Value = serde_json::from_str(&done.succeeds().stdout).unwrap();
    assert!(found["checked"].as_u64().unwrap() >= 4, "{found}");
    assert_eq!(found["failed"], Value::Array(Vec::new()));
    crash(&["--set", "limit=1"], "exit 3").fails_with(1, &[]);
    let failed = crash(&["--set", "limit=1"], "echo no; exit 3");
    assert!(
        failed.stdout.contains("exit status: 3"),
        "{}",
        failed.text()
    );
    let others = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(
        others, 2,
        "the log and the block, and nothing of the states"
    );
    lab.lab(&["crash", dir.path().to_str().unwrap(), "--", "true"])
        .fails_with(2, &["cannot read the log"]);
    lab.lab(&["crash", &log, "--", "/no/such/program"])
        .fails_with(2, &["cannot run /no/such/program"]);

    let log = log_of_two(&lab, dir.path(), Some("flush lost"));
    let done = lab.lab(&["crash", &log, "--", "sh", "-c", CHECK]);
    assert_eq!(done.code(), Some(1), "{}", done.text());
    assert!(done.stdout.contains("block 1 is 0"), "{}", done.text());
}

#[test]
fn the_power_is_cut_at_a_write_and_a_full_log_fails_writes() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let mut options = vec![
        "--profile",
        "ideal",
        "--size",
        "1M",
        "--set",
        "sector-size=4096",
    ];
    let log_option = format!("log={}", log.display());
    options.extend(["--set", &log_option, "--set", "log-limit=20k"]);
    let device = lab.up("cut", &options);
    let name = device.file_name().unwrap().to_str().unwrap();
    let sector = format!("/sys/block/{name}/queue/logical_block_size");
    assert_eq!(fs::read_to_string(sector).unwrap().trim(), "4096");
    let to = format!("of={}", device.display());
    let write = || dd(&["if=/dev/zero", &to, "oflag=direct"]);
    lab.lab(&["fault", "cut", "write power after 1"]).succeeds();
    assert!(
        write() && !write() && !write(),
        "the second write cuts the power"
    );
    let faults = lab.lab(&["fault", "cut"]);
    assert!(faults.stdout.contains("power off"), "{}", faults.text());
    assert!(faults.stdout.contains(": 1 struck"), "{}", faults.text());
    lab.lab(&["fault", "cut", "clear"]).succeeds();
    let written = (0..10).take_while(|_| write()).count();
    assert!((1..5).contains(&written), "{written} of 4 KiB in 20 KiB");
    lab.lab(&[
        "up",
        "other",
        "--profile",
        "ideal",
        "--size",
        "1M",
        "--set",
        &log_option,
    ])
    .fails_with(2, &["its log", "is there already"]);
    let listed = lab.lab(&["list"]).stdout;
    assert!(listed.contains("its log is full"), "{listed}");
    let stats = lab.lab(&["stats", "cut"]).stdout;
    assert!(stats.contains("log full   "), "{stats}");
}

#[test]
fn a_store_is_opened_again_and_what_holds_something_else_is_not_emptied() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = path.to_str().unwrap();
    let options = ["--profile", "ideal", "--size", "1M", "--store", store];
    let other = |file: &str, more: &[&str], why: &str| {
        let up = [
            "up",
            "other",
            "--profile",
            "ideal",
            "--size",
            "1M",
            "--store",
            file,
        ];
        lab.lab(&[&up, more].concat()).fails_with(2, &[why]);
    };
    other(store, &["--set", "keep=true"], "no such file");
    other(dir.path().to_str().unwrap(), &[], "is a directory");
    other("/no/such/directory/store", &[], "its directory isn't there");
    other("/dev/null", &[], "isn't a file");
    fs::write(&path, "a letter").unwrap();
    lab.lab(&[&["up", "kept"], &options[..]].concat())
        .fails_with(2, &["isn't a drive's data", "--force"]);
    assert_eq!(fs::read(&path).unwrap(), b"a letter");
    let device = lab.up("kept", &[&options[..], &["--force"]].concat());
    write(dir.path(), &device, 3, 7);
    other(store, &["--force"], "is in use");
    lab.lab(&["down", "kept"]).succeeds();

    let mut again = options;
    again[3] = "2M";
    lab.lab(&[&["up", "kept"], &again[..], &["--set", "keep=true"]].concat())
        .fails_with(2, &["--size"]);
    let device = lab.up("kept", &[&options[..], &["--set", "keep=true"]].concat());
    let mut block = [0; BLOCK];
    let file = fs::File::open(&device).unwrap();
    file.read_exact_at(&mut block, 3 * BLOCK as u64).unwrap();
    assert_eq!(block, [7; BLOCK]);
    assert!(lab.stats("kept")["mapped_bytes"].as_u64().unwrap() >= 4096);
    drop(file);
    lab.lab(&["down", "kept"]).succeeds();
}

#[test]
fn what_can_have_no_effect_is_refused_and_a_missing_program_has_the_code_of_a_shell() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let device = lab.up("own", &["--profile", "870-evo", "--size", "1M"]);
    assert!(device.exists());
    for (change, word) in [("supported=false", "supported"), ("granule=8k", "granule")] {
        lab.lab(&["set", "own", change])
            .fails_with(2, &[word, "lab up --set"]);
    }
    let faults = [
        "read error rate 0%",
        "read error times 0",
        "read error at 2M+4k",
    ];
    for fault in faults {
        assert_eq!(lab.lab(&["fault", "own", fault]).code(), Some(2), "{fault}");
    }
    let done = lab.lab(&["exec", "own", "--", "/no/such/program"]);
    assert_eq!(done.code(), Some(127), "{}", done.text());
    let done = lab.lab(&["set", "own", "foo=1"]);
    assert!(!done.stderr.contains("did you mean"), "{}", done.text());
    lab.lab(&["mark", "own", "1"])
        .fails_with(2, &["lab up --set log=FILE"]);
    let shown = lab.lab(&["profiles", "show", "ideal"]);
    let shown = &shown.succeeds().stdout;
    assert!(
        shown.contains("# discard.max_bytes = 4G: most bytes"),
        "{shown}"
    );
}

#[test]
fn a_new_drive_says_how_near_it_comes_to_its_card() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let up = lab.lab(&[
        "up",
        "own",
        "--profile",
        "870-evo",
        "--size",
        "16M",
        "--slower",
        "4",
    ]);
    let said = &up.succeeds().stderr;
    assert!(
        said.contains("at depth 1,") && said.contains("of the card's rate"),
        "{said}"
    );
    let done = lab.lab(&["stats", "own", "--json"]);
    let stats: Value = serde_json::from_str(&done.succeeds().stdout).unwrap();
    let depths = stats["drive"]["near"]["depths"].as_array().unwrap();
    let listed: Vec<_> = depths
        .iter()
        .map(|at| at["depth"].as_u64().unwrap())
        .collect();
    assert_eq!(listed, [1, 2, 4, 8, 16, 32]);
    assert_eq!(
        stats["stats"]["kinds"][0]["commands"], 0,
        "its reads aren't counted"
    );
    // Other figures for reads: nothing is known of them.
    lab.lab(&["set", "own", "read.latency=1ms"]).succeeds();
    let done = lab.lab(&["stats", "own"]);
    assert!(!done.stdout.contains("near "), "{}", done.text());
}

#[test]
fn a_snapshot_holds_one_moment_and_can_be_opened() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("copy");
    let copy = file.to_str().unwrap();
    let options = ["--profile", "ideal", "--size", "4M"];
    let device = lab.up("first", &options);
    for block in 1..=3 {
        write(dir.path(), &device, block, 7);
    }
    // What was discarded reads as zeros in the copy, punched out already or not.
    let discarded = linux::block::discard(
        &OpenOptions::new().write(true).open(&device).unwrap(),
        &(8192..12288),
    );
    discarded.unwrap();
    lab.lab(&["snapshot", "first", copy]).succeeds();
    write(dir.path(), &device, 1, 8);
    // Nobody's file is written over, and nothing is left of what fails.
    lab.lab(&["snapshot", "first", copy])
        .fails_with(2, &["cannot copy", copy, "name a new one"]);
    let nowhere = dir.path().join("none/copy");
    lab.lab(&["snapshot", "first", nowhere.to_str().unwrap()])
        .fails_with(2, &["No such file"]);
    lab.up(
        "pattern",
        &[&options[..], &["--set", "premapped=true"]].concat(),
    );
    let other = dir.path().join("other");
    lab.lab(&["snapshot", "pattern", other.to_str().unwrap()])
        .fails_with(2, &["premapped"]);
    assert!(!other.exists());
    lab.lab(&["down", "first", "pattern"]).succeeds();

    let opened = lab.up(
        "second",
        &[&options[..], &["--store", copy, "--set", "keep=true"]].concat(),
    );
    let mut found = vec![0; 4 * BLOCK];
    let read = std::fs::File::open(opened).unwrap();
    read.read_exact_at(&mut found, 0).unwrap();
    let firsts: Vec<u8> = found.chunks(BLOCK).map(|block| block[0]).collect();
    assert_eq!(firsts, [0, 7, 0, 7]);
}
