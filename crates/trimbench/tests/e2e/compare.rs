//! `trimbench compare`: runs and groups of repeats, on records made here and on recorded logs.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::recorded::{CONTROL, T500};

use crate::common::gate::{Need, lacks};
use crate::common::recorded::recorded;
use crate::common::run::{Done, run, trimbench};
use crate::common::schema::Schema;

fn compare(arguments: &[&str]) -> Done {
    let mut command = trimbench();
    command.arg("compare").args(arguments);
    run(command)
}

/// A record of a stall of so many seconds, at 100 ms, with 5 % of noise.
pub fn record(folder: &Path, name: &str, seed: u64, stall_s: f64, kernel: &str) -> String {
    let path = folder.join(name);
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut noise = || {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        1.0 + 0.05 * ((random >> 33) as f64 / (1_u64 << 30) as f64 - 1.0)
    };
    let (delete, begin) = (10.0, 11.0);
    let end = begin + stall_s * (1.0 + 0.2 * (noise() - 1.0));
    let mut lines = vec![
        json!({"line": "head", "schema": "trimbench.run/1", "version": "0.1.0",
            "started_unix_s": 1.7e9,
            "host": {"name": "oak", "kernel": kernel, "cpus": 8, "memory_bytes": 1_u64 << 34},
            "target": {"path": "/data", "mount": "/data", "source": "/dev/sda", "fs": "ext4",
                "options": ["rw", "discard"], "discard": "on", "size_bytes": 1_u64 << 40,
                "available_bytes": seed},
            "scenario": {}, "interval_ms": 100.0,
            "actors": [{"name": "reader", "op": "read", "loop": "closed", "depth": 8,
                "block_bytes": 4096, "pattern": "random", "direct": true, "engine": "null"}],
            "devices": [{"name": "sda", "kind": "disk", "level": 0, "below": [], "leaf": true,
                "model": "Drive 1", "size_bytes": 1_u64 << 40, "rotational": false, "scheduler": null,
                "discard": {"granularity_bytes": 512, "max_bytes": 1, "max_hw_bytes": 1, "max_segments": 1}}],
        }),
    ];
    for (name, at_s) in [
        ("baseline", 0.0),
        ("delete", delete),
        ("recovery", end + 2.0),
    ] {
        lines.push(json!({"line": "phase", "name": name, "at_s": at_s}));
    }
    let bytes = (stall_s * 1e10) as u64;
    lines.push(
        json!({"line": "deletion", "at_s": delete, "seconds": 0.2, "bytes": bytes,
        "files": 1, "errors": 0}),
    );
    let count = ((end + 5.0) / 0.1) as u32;
    for i in 0..count {
        let at_s = f64::from(i) * 0.1;
        let share = ((end.min(at_s + 0.1) - begin.max(at_s)) / 0.1).clamp(0.0, 1.0);
        let ops = (2000.0 * (1.0 - 0.95 * share) * noise()).round() as u64;
        let (us, discards) = (100.0 * noise(), (100.0 * share * noise()).round() as u64);
        lines.push(json!({"line": "interval", "at_s": at_s, "seconds": 0.1,
            "actors": [{"ops": ops, "bytes": ops * 4096, "p50_us": us, "p99_us": 2.0 * us,
                "max_us": 4.0 * us, "oldest_us": us}],
            "devices": [{"reads": ops, "read_bytes": ops * 4096, "read_ms": 0, "writes": 0,
                "write_bytes": 0, "write_ms": 0, "discards": discards,
                "discard_bytes": discards * 10_000_000, "discard_ms": discards * 2, "in_flight": 1}],
            "freed_bytes": if i == 100 { bytes } else { 0 }}));
    }
    lines.push(json!({"line": "end", "at_s": f64::from(count) * 0.1, "reason": "completed"}));
    let text: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&path, text.concat()).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Three repeats each of a stall of 2 s and, with another kernel, of 3 s.
fn repeats() -> TempDir {
    let folder = TempDir::new().unwrap();
    for i in 0..3 {
        record(
            folder.path(),
            &format!("old-{i}.jsonl"),
            1 + i,
            2.0,
            "6.12.1",
        );
        record(
            folder.path(),
            &format!("new-{i}.jsonl"),
            11 + i,
            3.0,
            "6.13.0",
        );
    }
    folder
}

fn groups(folder: &Path) -> [String; 2] {
    ["old", "new"].map(|name| format!("{name}={}/{name}-*.jsonl", folder.display()))
}

fn parsed(done: &Done) -> Value {
    static SCHEMA: Schema = Schema::new(judge::compare::COMPARE_JSON_SCHEMA);
    SCHEMA.parse(&done.succeeds().stdout)
}

fn figure<'a>(comparison: &'a Value, name: &str) -> &'a Value {
    let mut all = comparison["figures"].as_array().unwrap().iter();
    all.find(|f| f["figure"] == name).unwrap()
}

#[test]
fn two_runs_are_compared_as_text() {
    let folder = TempDir::new().unwrap();
    let a = record(folder.path(), "a.jsonl", 1, 2.0, "6.12.1");
    let b = record(folder.path(), "b.jsonl", 2, 3.0, "6.13.0");
    let done = compare(&[&a, &b]);
    for said in [
        "b against a (reader): lost time",
        "stall 2.0 s → 3.0 s (+5",
        "kernel  6.12.1 → 6.13.0",
        "One run each",
        "Drive",
    ] {
        assert_eq!(
            done.succeeds().stdout.contains(said),
            said != "Drive",
            "{}",
            done.text()
        );
    }
    let done = compare(&["--format", "markdown", &a, &b]);
    assert!(
        done.succeeds()
            .stdout
            .contains("| kernel | 6.12.1 | 6.13.0 |"),
        "{}",
        done.text()
    );
    // The same way round, the same text; the other way round, the ratio turned over.
    assert_eq!(
        compare(&["--format", "markdown", &a, &b]).stdout,
        done.stdout
    );
    let there = parsed(&compare(&["--format", "json", &a, &b]));
    let back = parsed(&compare(&["--format", "json", &b, &a]));
    let change = |c: &Value, what: &str| figure(c, "lost")["changes"][0][what].as_f64().unwrap();
    assert_eq!(change(&there, "absolute"), -change(&back, "absolute"));
    let (low, high) = (
        1.0 + change(&there, "relative_low"),
        1.0 + change(&back, "relative_high"),
    );
    assert!((low * high - 1.0).abs() < 1e-9, "{low} {high}");
}

#[test]
fn a_run_does_not_differ_from_itself() {
    let folder = TempDir::new().unwrap();
    let a = record(folder.path(), "a.jsonl", 1, 2.0, "6.12.1");
    let comparison = parsed(&compare(&["--format", "json", &a, &a]));
    for figure in comparison["figures"].as_array().unwrap() {
        assert!(figure["changes"][0]["finding"] != "differs", "{figure}");
    }
    assert_eq!(comparison["set_up"], json!([]));
}

#[test]
fn groups_are_patterns_or_files() {
    let folder = repeats();
    let [old, new] = groups(folder.path());
    let by_pattern = compare(&["--format", "json", "--group", &old, &new]);
    let comparison = parsed(&by_pattern);
    let names = |i: usize| comparison["groups"][i]["runs"].as_array().unwrap().len();
    assert_eq!((names(0), names(1)), (3, 3));
    let lost = &figure(&comparison, "lost")["changes"][0];
    assert_eq!(
        (&lost["finding"], &lost["basis"]),
        (&json!("differs"), &json!("repeats"))
    );
    let relative = lost["relative"].as_f64().unwrap();
    assert!((relative - 0.5).abs() < 0.05, "{relative}");
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let by_file = compare(&[
        "--group",
        &format!("old={}", file("old-0.jsonl")),
        &file("old-1.jsonl"),
        &file("old-2.jsonl"),
        "--group",
        &new,
        "--format",
        "json",
    ]);
    assert_eq!(by_file.stdout, by_pattern.stdout, "{}", by_file.text());
}

#[test]
fn fail_on_is_for_those_who_qualify() {
    let folder = repeats();
    let [old, new] = groups(folder.path());
    let qualified = |more: &[&str]| {
        let done = compare(&[&["--group", &old, &new], more].concat());
        (done.code(), done.text())
    };
    for (condition, code) in [
        ("lost > +10%", 3),
        ("lost>+500ms", 3),
        ("lost > +100%", 0),
        ("baseline < -20%", 0),
        // No run has it.
        ("p999 > +10%", 1),
    ] {
        let (got, text) = qualified(&["--fail-on", condition]);
        assert_eq!(got, Some(code), "{condition}: {text}");
        assert_eq!(
            text.contains("holds: lost of reader, new: +"),
            code == 3,
            "{text}"
        );
    }
    // The rates are alike, but not to a hundredth of a per cent for sure.
    let (code, text) = qualified(&["--fail-on", "baseline < -0.01%"]);
    assert_eq!(code, Some(1), "{text}");
    let change = "is unknown: baseline of reader, new: −";
    let needs = "; it needs more repeats";
    assert!(text.contains(change) && text.contains(needs), "{text}");
    for (wrong, said) in [
        ("lost > 10%", "+ or -"),
        ("iops > +10%", "baseline"),
        ("lost", "lost > +10%"),
    ] {
        compare(&["--group", &old, &new, "--fail-on", wrong]).fails_with(2, &["--fail-on", said]);
    }
}

/// The tests of a file of JUnit's XML: the condition, the element of its result, and that one's message.
pub fn junit(file: &Path) -> Vec<[String; 3]> {
    // The names are those of Jenkins' schema, junit-10.xsd.
    let script = "import json, sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
suite, = root
cases = list(suite)
assert (root.tag, suite.tag, {one.tag for one in cases}) == ('testsuites', 'testsuite', {'testcase'})
assert set(suite.attrib) == {'name', 'tests', 'failures', 'errors'}
results = [(list(one) or [tree.Element('passed', message='')])[0] for one in cases]
tags = [one.tag for one in results]
assert [int(suite.get(n)) for n in ('tests', 'failures', 'errors')] == [len(tags), tags.count('failure'), tags.count('error')]
assert all(set(one.attrib) == {'classname', 'name'} for one in cases)
assert all(set(one.attrib) == {'message'} for one in results)
print(json.dumps([[one.get('name'), two.tag, two.get('message')] for one, two in zip(cases, results)]))";
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(file);
    serde_json::from_str(&run(python).succeeds().stdout).unwrap()
}

#[test]
fn junit_has_a_test_for_each_condition() {
    if lacks(&[Need::Tool("python3")]) {
        return;
    }
    let folder = repeats();
    let [old, new] = groups(folder.path());
    let odd = format!("<\"new\" & ]]> '\u{1b}\n{new}");
    let file = folder.path().join("junit.xml");
    let conditions = ["lost > +10%", "baseline < -20%", "p999 > +10%"];
    let mut arguments = vec!["--group", &old, &odd, "--junit", file.to_str().unwrap()];
    arguments.extend(conditions.iter().flat_map(|one| ["--fail-on", one]));
    let done = compare(&arguments);
    assert_eq!(done.code(), Some(3), "{}", done.text());
    let cases = junit(&file);
    let names: Vec<&str> = cases.iter().map(|[name, ..]| name.as_str()).collect();
    assert_eq!(names, conditions);
    for ([_, tag, message], (wanted, words)) in cases.iter().zip([
        ("failure", "holds: lost of reader, <\"new\" & ]]> '"),
        ("passed", ""),
        ("error", "needs p999 measured in both"),
    ]) {
        assert_eq!(tag, wanted);
        assert!(message.contains(words), "{message}");
    }
    let stdout = [
        "--group",
        &old,
        &new,
        "--junit",
        "-",
        "--fail-on",
        "lost > +10%",
    ];
    compare(&stdout).fails_with(2, &["give a file"]);
    compare(&["--group", &old, &new, "--junit", "x"]).fails_with(2, &["--fail-on"]);
    let both = ["--output", file.to_str().unwrap()];
    compare(&[&arguments[..], &both].concat()).fails_with(2, &["--output and --junit"]);
}

#[test]
fn the_comparison_is_written_to_its_file() {
    let folder = repeats();
    let [old, new] = groups(folder.path());
    let file = folder.path().join("comparison.json");
    let to = file.to_str().unwrap();
    let options = ["--format", "json", "--output", to, "--set", "low=40%"];
    let done = compare(&[&["--group", &old, &new], &options[..]].concat());
    assert_eq!(done.succeeds().stdout, "");
    let written: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(written["schema"], "trimbench.compare/1");
    assert_eq!(written["groups"].as_array().unwrap().len(), 2);
}

#[test]
fn a_slowed_drives_run_is_compared_in_the_time_of_the_drive_it_stands_for() {
    let folder = TempDir::new().unwrap();
    let real = record(folder.path(), "real.jsonl", 1, 2.0, "6.12.0");
    let text = fs::read_to_string(&real).unwrap();
    let times = r#""slower":{"times":4.0,"converted":false},"leaf":true"#;
    let slowed = folder.path().join("slowed.jsonl");
    fs::write(&slowed, text.replacen(r#""leaf":true"#, times, 1)).unwrap();
    let slowed = slowed.to_str().unwrap();
    let stalled = |options: &[&str]| {
        let all = [&[real.as_str(), slowed, "--format", "json"], options].concat();
        let comparison = parsed(&compare(&all));
        let sides = figure(&comparison, "stall")["sides"].clone();
        [&sides[0], &sides[1]].map(|side| side["value"].as_f64().unwrap())
    };
    let [one, same] = stalled(&[]);
    assert_eq!(one, same);
    let [one, shorter] = stalled(&["--set", "as-drive=true"]);
    assert!((one / shorter - 4.0).abs() < 0.1, "{one} and {shorter}");
    compare(&[&real, &real, "--set", "as-drive=true"])
        .fails_with(2, &["as-drive", "lab up --slower"]);
}

#[test]
fn what_is_no_comparison_is_refused() {
    let folder = TempDir::new().unwrap();
    let a = record(folder.path(), "a.jsonl", 1, 2.0, "6.12.1");
    compare(&[]).fails_with(2, &["Usage"]);
    compare(&[&a]).fails_with(2, &["at least two"]);
    compare(&[&a, "--group", "x=y"]).fails_with(2, &["--group"]);
    compare(&["--group", &a, "x=y"]).fails_with(2, &["before="]);
    compare(&["--group", "x=/nowhere/*", "y=z"]).fails_with(2, &["no file matches"]);
    compare(&[&a, "/nowhere/b.jsonl"]).fails_with(2, &["/nowhere/b.jsonl"]);
    let before = fs::read(&a).unwrap();
    compare(&[&a, &a, "--output", &a]).fails_with(2, &["--output", "another file"]);
    assert_eq!(fs::read(&a).unwrap(), before);
    let text = folder.path().join("b.txt");
    fs::write(&text, "no record\n").unwrap();
    compare(&[&a, text.to_str().unwrap()]).fails_with(2, &["b.txt"]);
}

#[test]
fn a_recorded_stall_and_its_control_differ() {
    let folder = TempDir::new().unwrap();
    let with = recorded(T500, folder.path());
    let without = recorded(CONTROL, folder.path());
    let files = [&without, &with].map(|path| path.to_str().unwrap());
    let comparison = parsed(&compare(&[&["--format", "json"], &files[..]].concat()));
    let lost = figure(&comparison, "lost");
    assert_eq!(lost["sides"][0]["value"], 0.0);
    assert!(
        (lost["sides"][1]["value"].as_f64().unwrap() - 16.2).abs() < 0.3,
        "{lost}"
    );
    assert_eq!(lost["changes"][0]["finding"], "differs");
    let done = compare(&[&files[..], &["--fail-on", "lost > +10%"]].concat());
    assert_eq!(done.code(), Some(3), "{}", done.text());
}
