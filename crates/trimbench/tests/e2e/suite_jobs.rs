//! `trimbench suite --steps engines,mmap-writeback,msync-writeback`: the jobs of 2008 and 2009.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::common::gate::{beside, lacks};
use crate::common::run::{run, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};

const JOBS: [&str; 11] = [
    "suite",
    "--lab",
    "ideal",
    "--set",
    "lab-size=3G",
    "--cells",
    "ext4/nodiscard/discard",
    "--quick",
    "--set=repeats=1",
    "--set=files=2",
    "--set=size=64M",
];

fn figures(lab: &OwnLab, directory: &Path, steps: &str) -> (Value, String) {
    let mut command = lab.in_here(trimbench());
    command
        .args(JOBS)
        .args(["--steps", steps])
        .args(["--set", "lab-slower=1.5"])
        .current_dir(directory);
    let done = run(command);
    let text = done.succeeds().stdout.clone();
    let json = crate::suite::results(directory, "trimbench-suite.jsonl");
    crate::suite::assert_is_of_schema(&json);
    let mut report = trimbench();
    report.args(["suite", "report", "trimbench-suite.jsonl"]);
    report.args(["--format", "parquet", "--output", "s.parquet"]);
    report.current_dir(directory);
    run(report).succeeds();
    assert_eq!(json["head"]["drive"]["slower"], 1.5);
    assert!(text.contains("1.5 times slower"), "{text}");
    let table = fs::read(directory.join("s.parquet")).unwrap();
    assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"));
    let has = |text: &str| {
        let mut windows = table.windows(text.len());
        windows.any(|part| part == text.as_bytes())
    };
    assert!(has("ext4/nodiscard/discard") && has(steps.split(',').next().unwrap()));
    (json["cells"][0].clone(), text)
}

#[test]
fn suite_compares_engines_and_names_what_the_drive_cannot_do() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let directory = tempfile::tempdir().unwrap();
    let (cell, text) = figures(&lab, directory.path(), "engines");
    let runs = cell["engines"][0]["runs"].as_array().unwrap();
    let of = |engine: &str, cache: &str| {
        let found = runs
            .iter()
            .find(|run| run["engine"] == engine && run["cache"] == cache);
        found.unwrap_or_else(|| panic!("{engine} {cache}: {cell:#}"))
    };
    for cache in ["direct", "cold", "cached"] {
        for engine in ["io_uring", "libaio", "sync"] {
            assert!(of(engine, cache)["reads_per_s"].as_f64().unwrap() > 0.0);
        }
    }
    assert!(of("io_uring-sqpoll", "direct")["cpu_us"].as_f64().unwrap() > 0.0);
    assert!(
        runs.iter()
            .any(|run| run["engine"] == "io_uring" && run["batch"] == 8)
    );
    // A loop device has no queues for polling.
    let polled = of("io_uring-iopoll", "direct");
    assert_eq!(polled["reads_per_s"], Value::Null);
    assert!(
        polled["why"]
            .as_str()
            .unwrap()
            .contains("queues for polling")
    );
    for part in [
        "Reads by engine",
        "io_uring-iopoll",
        "no queues for",
        "reading of trimbench's",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn suite_shows_how_lumpy_writeback_is_alone_and_beside_a_deletion() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let directory = tempfile::tempdir().unwrap();
    let steps = "mmap-writeback,msync-writeback";
    let (cell, text) = figures(&lab, directory.path(), steps);
    let median = |step: &str, measure: &str| {
        let all = cell["figures"].as_array().unwrap();
        let found = all
            .iter()
            .find(|f| f["step"] == step && f["measure"] == measure);
        found.map(|figure| figure["median"].as_f64().unwrap())
    };
    for beside in ["", "-beside"] {
        let msync = |measure: &str| median("msync-writeback", &format!("{measure}{beside}"));
        assert!(msync("written").unwrap() > 0.0, "{cell:#}");
        assert!(msync("lumpiness").is_some(), "{cell:#}");
        let utilisation = msync("utilisation").unwrap();
        assert!(utilisation > 0.0 && utilisation <= 1.0, "{cell:#}");
        assert!(median("mmap-writeback", &format!("dirtied{beside}")).unwrap() > 0.0);
    }
    for part in [
        "Writeback of a mapped file",
        "by msync, beside a deletion",
        "lumpiness",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let discarded = median("msync-writeback", "discarded").unwrap();
    assert!(discarded >= 32e6, "{cell:#}");
}
