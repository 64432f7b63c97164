//! `trimbench sim`: runs in virtual time, comparisons.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::gate::beside;
use crate::common::run::{Done, run, trimbench};

/// Settings that make a run short.
const SMALL: [&str; 4] = ["--set", "size=256M", "--set", "recovery=200ms"];

fn sim(arguments: &[&str]) -> Done {
    let mut command = trimbench();
    command.arg("sim").args(arguments);
    run(command)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&text(path)).unwrap()
}

#[test]
fn a_run_writes_a_record_that_report_shows_and_its_figures() {
    let _turn = beside();
    let dir = TempDir::new().unwrap();
    let (record, figures) = (dir.path().join("r.jsonl"), dir.path().join("f.json"));
    let mut arguments = vec!["run", "--profile", "870-evo", "--workload", "drop-file"];
    arguments.extend(SMALL);
    arguments.extend(["--policy", "ext4-online", "--set", "piece=1M"]);
    arguments.extend([
        "--output",
        record.to_str().unwrap(),
        "--json",
        figures.to_str().unwrap(),
    ]);
    let done = sim(&arguments);
    let shown = done.succeeds().stdout.clone();
    assert!(
        shown.contains("virtual time, no drive was touched"),
        "{shown}"
    );
    let figures = &json(&figures)["runs"][0]["figures"];
    // 256 MiB in pieces of 1 MiB; the tables of two groups cut two of them.
    let commands = figures["commands"].as_u64().unwrap();
    assert!((256..262).contains(&commands), "{figures}");
    let mut command = trimbench();
    command.args(["report", "--format", "json"]).arg(&record);
    let verdict: Value = serde_json::from_str(&run(command).succeeds().stdout).unwrap();
    assert_eq!(
        verdict["discard"]["bytes"].as_u64(),
        Some(256 << 20),
        "{verdict}"
    );

    // The record again. Its discards have one size, so nothing is known of another policy's.
    let like = ["run", "--like", record.to_str().unwrap(), "--json", "-"];
    let other = [&like[..], &["--policy", "btrfs-sync"]].concat();
    sim(&other).fails_with(
        2,
        &["only ext4-online can be simulated", "add --profile CARD"],
    );
    // A card knows.
    let drive = sim(&[&other[..], &["--profile", "vertex-2"]].concat());
    let drive: Value = serde_json::from_str(&drive.succeeds().stdout).unwrap();
    let settings = &drive["runs"][0]["settings"];
    assert_eq!(settings["readers"], "8", "{drive}");
    assert!(settings.to_string().contains("vertex-2"), "{drive}");
    let like = sim(&like);
    let noted = "In the record itself: It is unknown whether deleting 256 MiB";
    assert!(like.stderr.contains(noted), "{}", like.stderr);
    let like: Value = serde_json::from_str(&like.succeeds().stdout).unwrap();
    let run = &like["runs"][0];
    assert_eq!(run["settings"]["readers"], "8", "{like}");
    let beside = sim(&["compare", "--like", record.to_str().unwrap()]);
    let beside = beside.succeeds().stdout.clone();
    let rows = beside.lines().filter(|line| !line.starts_with('!'));
    let rows = rows.filter(|line| line.contains(" none ") || line.contains(" ext4-online "));
    assert_eq!(rows.count(), 2, "{beside}");
    assert!(
        !beside.contains("btrfs-sync") && beside.contains("add --profile CARD"),
        "{beside}"
    );
    let discarded = run["figures"]["discarded_bytes"].as_u64().unwrap() as f64;
    assert!(
        (discarded / f64::from(256 << 20) - 1.0).abs() < 0.02,
        "{like}"
    );
}

#[test]
fn a_run_that_ends_at_its_limit_prints_so_and_the_barrier_that_report_prints() {
    let _turn = beside();
    let dir = TempDir::new().unwrap();
    let record = dir.path().join("r.jsonl");
    let path = record.to_str().unwrap();
    let mut arguments = vec!["run", "--profile", "vertex-2", "--policy", "ext4-online"];
    arguments.extend(["--set", "size=16G", "--set", "volume=64G"]);
    arguments.extend(["--set", "limit=3s", "--output", path]);
    let shown = sim(&arguments).succeeds().stdout.clone();
    assert!(shown.contains("not within 3.0 s"), "{shown}");
    assert!(shown.contains("give a larger `limit`"), "{shown}");
    let line = |text: &str, label: &str| {
        let mut lines = text.lines().map(str::trim);
        lines
            .find(|line| line.starts_with(label))
            .map(str::to_owned)
    };
    assert_eq!(
        line(&shown, "freed, MB/s")
            .unwrap()
            .split_whitespace()
            .last(),
        Some("–")
    );
    let mut command = trimbench();
    command.arg("report").arg(&record);
    let report = run(command).succeeds().stdout.clone();
    let barrier = line(&report, "barrier");
    assert!(barrier.is_some(), "{report}");
    assert_eq!(line(&shown, "barrier"), barrier);
}

#[test]
fn f2fs_beside_readers_needs_no_larger_limit() {
    let _turn = beside();
    let run = |readers| {
        let mut arguments = vec!["run", "--profile", "t500", "--policy", "f2fs"];
        arguments.extend(["--set", "size=64M", "--set", "limit=10s"]);
        arguments.extend(["--set", readers]);
        sim(&arguments).succeeds().stdout.clone()
    };
    let (beside, alone) = (run("readers=1"), run("readers=0"));
    assert!(beside.contains("the drive was never idle"), "{beside}");
    assert!(!beside.contains("larger `limit`"), "{beside}");
    assert!(!alone.contains("the drive was never idle"), "{alone}");
}

/// The first actor's rate before the deletion.
fn reads_per_s(record: &Path) -> f64 {
    let mut command = trimbench();
    command.args(["report", "--format", "json"]).arg(record);
    let verdict: Value = serde_json::from_str(&run(command).succeeds().stdout).unwrap();
    verdict["foreground"][0]["baseline"]["ops_per_s"]
        .as_f64()
        .unwrap()
}

#[test]
fn a_run_like_a_record_reads_as_fast_as_its_readers_did() {
    let _turn = beside();
    let dir = TempDir::new().unwrap();
    let (record, again) = (dir.path().join("r.jsonl"), dir.path().join("again.jsonl"));
    let mut arguments = vec!["run", "--profile", "870-evo", "--workload", "drop-file"];
    arguments.extend(SMALL);
    // The drive could serve three times as many: the readers' own work limits them.
    arguments.extend(["--set", "per-io=50us", "--output", record.to_str().unwrap()]);
    sim(&arguments).succeeds();
    let path = record.to_str().unwrap();
    sim(&["run", "--like", path, "--output", again.to_str().unwrap()]).succeeds();
    let (was, is) = (reads_per_s(&record), reads_per_s(&again));
    assert!(
        (is / was - 1.0).abs() < 0.03,
        "{is} reads/s, {was} in the record"
    );
    // By a card of the same drive, too.
    let like = ["run", "--like", path, "--profile", "870-evo", "--output"];
    sim(&[&like[..], &[again.to_str().unwrap()]].concat()).succeeds();
    let is = reads_per_s(&again);
    assert!(
        (is / was - 1.0).abs() < 0.05,
        "{is} reads/s, {was} in the record"
    );
}

#[test]
fn compare_runs_every_policy_the_same_each_time() {
    let _turn = beside();
    let dir = TempDir::new().unwrap();
    let compare = || {
        let file = dir.path().join("c.json");
        let mut arguments = vec![
            "compare",
            "--profile",
            "vertex-2",
            "--workload",
            "drop-many",
        ];
        arguments.extend([
            "--set",
            "size=16M",
            "--set",
            "files=10",
            "--set",
            "limit=10s",
        ]);
        arguments.extend(["--set", "every=2s", "--set", "delay=1s"]);
        arguments.extend(["--json", file.to_str().unwrap()]);
        let shown = sim(&arguments).succeeds().stdout.clone();
        (shown, json(&file))
    };
    let (shown, figures) = compare();
    let first = "! fstrim: it trims what was free before, too";
    assert!(shown.contains(first), "{shown}");
    for policy in [
        "none",
        "per-block",
        "queued",
        "btrfs-async",
        "adaptive",
        "guard",
    ] {
        assert!(shown.contains(policy), "{policy} in {shown}");
    }
    assert!(shown.contains("Pareto front"), "{shown}");
    assert_eq!(figures["runs"].as_array().unwrap().len(), 12);
    assert_eq!(compare(), (shown, figures));
    let two = sim(&[
        "compare",
        "--policy",
        "none,ext4-online",
        "--set",
        "size=64M",
        "--set",
        "readers=1",
        "--json",
        "-",
    ]);
    let two: Value = serde_json::from_str(&two.succeeds().stdout).unwrap();
    assert_eq!(two["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn list_names_what_can_be_given() {
    let _turn = beside();
    let shown = sim(&["list"]).succeeds().stdout.clone();
    for name in [
        "ext4-online",
        "iops-limit",
        "log-purge",
        "per-discard",
        "intel-x25-e",
        "crucial-t500-2tb-raid0",
    ] {
        assert!(shown.contains(name), "{name} in {shown}");
    }
}

#[test]
fn a_mistake_is_reported_with_the_nearest_name() {
    let _turn = beside();
    let refused = |arguments: &[&str], said: &str| {
        let done = sim(arguments);
        assert_eq!(done.code(), Some(2), "{}", done.stderr);
        assert!(done.stderr.contains(said), "{said} in {}", done.stderr);
    };
    refused(&["run", "--policy", "qeued"], "did you mean 'queued'?");
    refused(
        &["run", "--workload", "drop-fiel"],
        "did you mean 'drop-file'?",
    );
    refused(&["run", "--set", "sise=1G"], "did you mean 'size'?");
    refused(&["compare", "--set", "pices=1M"], "did you mean");
    refused(
        &["run", "--set", "volume=1G", "--set", "size=2G"],
        "give a larger `volume`",
    );
}

#[test]
fn what_a_card_of_another_size_does_not_tell_is_left_out() {
    let _turn = beside();
    let dir = TempDir::new().unwrap();
    let card = dir.path().join("mine.toml");
    let t500 = ssd::profiles::by_name("crucial-t500-2tb").unwrap();
    let alone = "It holds for discards of about 2.0 MiB alone: how a discard's cost depends on its \
                 size was not measured.";
    fs::write(&card, t500.to_string().replace(t500.about(), alone)).unwrap();
    let arguments = |command, piece| {
        let mut all = vec![command, "--profile", card.to_str().unwrap()];
        all.extend(SMALL);
        all.extend(["--policy", "ext4-online,none", "--set", piece]);
        if command == "run" {
            let policy = all.len() - 3;
            all[policy] = "ext4-online";
        }
        all
    };
    let why = "ext4-online sends discards of 28.";
    let refused = sim(&arguments("run", "piece=32M"));
    refused.fails_with(2, &[why, "holds for about 2.0 MiB alone", "fit DIRECTORY"]);
    let known = sim(&arguments("run", "piece=2M"));
    let known = &known.succeeds().stdout;
    assert!(known.contains("virtual time"), "{known}");
    let rows = |shown: &str| {
        let rows = shown.lines().filter(|line| line.contains(" none "));
        assert_eq!(rows.count(), 1, "{shown}");
        shown.lines().any(|line| line.starts_with("*  ext4-online"))
    };
    let beside = sim(&arguments("compare", "piece=32M"))
        .succeeds()
        .stdout
        .clone();
    assert!(
        !rows(&beside) && beside.contains(&format!("Left out: {why}")),
        "{beside}"
    );
    let beside = sim(&arguments("compare", "piece=2M"))
        .succeeds()
        .stdout
        .clone();
    assert!(rows(&beside) && !beside.contains("Left out"), "{beside}");
}
