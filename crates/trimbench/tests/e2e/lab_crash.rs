//! `trimbench lab`: what is there after a power cut, and data that outlive a drive.

use std::fs;
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

#[test]
fn the_power_is_cut_at_a_write() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let options = ["--profile", "ideal", "--size", "1M"];
    let sectors = ["--set", "sector-size=4096"];
    let device = lab.up("cut", &[&options[..], &sectors].concat());
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
    assert!(write());
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
