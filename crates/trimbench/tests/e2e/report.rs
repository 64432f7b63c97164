//! `trimbench report`: what is shown of a record.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::common::gate::{LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::common::run::{Done, run, trimbench};
use crate::import::iostat;
use crate::quick::{Files, command_on, conforms};

fn report(arguments: &[&str], runs: &[&Path]) -> Done {
    let mut command = trimbench();
    command.arg("report").args(arguments).args(runs);
    run(command)
}

/// A record of a stall, and the folder it is in.
fn imported() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let (log, path) = (folder.path().join("log"), folder.path().join("evo.jsonl"));
    fs::write(&log, iostat(4, 90)).unwrap();
    let mut command = trimbench();
    command.arg("import").arg(log).arg("--output").arg(&path);
    run(command).succeeds();
    (folder, path)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|n| n.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_run_and_the_report_of_its_record_say_the_same() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", SMALL, On::Tmpfs);
    let files = Files::new();
    // What the verdict depends on must be in the record.
    let done = run(command_on(fs.path(), &files, &["--set", "low=40%"]));
    let ended = &done.succeeds().stdout;
    let path = files.record();
    let shown = report(&[], &[&path]);
    let end = shown.succeeds().stdout.split_once("\n\n").unwrap().1;
    assert!(ended.ends_with(end), "run:\n{ended}\nreport:\n{end}");
    assert!(shown.stdout.contains("ext4 at "), "{}", shown.stdout);
    let json = report(&["--format", "json"], &[&path]);
    assert_eq!(
        json.succeeds().stdout,
        fs::read_to_string(files.verdict()).unwrap()
    );
    let html = report(&["--format", "html"], &[&path])
        .succeeds()
        .stdout
        .clone();
    assert!(html.contains("Percentile curves") && html.contains("curves-0"));
}

#[test]
fn a_run_on_a_drive_that_counts_its_writes_shows_them() {
    let (_folder, path) = imported();
    assert!(!report(&[], &[&path]).stdout.contains("its life"));
    // The record of a run on such a drive.
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let life =
        |host: u64, flash: u64| json!({"host_written_bytes": host, "flash_written_bytes": flash});
    let devices = lines[0]["devices"].as_array_mut().unwrap();
    let none = vec![Value::Null; devices.len() - 1];
    devices[0]["life"] = life(38 << 40, 44 << 40);
    let end = lines.last_mut().unwrap();
    end["lives"] = [vec![life(39 << 40, 47 << 40)], none].concat().into();
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    fs::write(&path, lines.join("\n")).unwrap();
    let life = "over its life 38.0 TiB written by the host, 44.0 TiB to flash";
    let counted = "1.0 TiB written by the host, 3.0 TiB to flash: write amplification 3.00";
    let shown = |format: &str| {
        let done = report(&["--format", format], &[&path]);
        let words: Vec<String> = done
            .succeeds()
            .stdout
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        words.join(" ")
    };
    for format in ["text", "html"] {
        let text = shown(format);
        assert!(text.contains(life) && text.contains(counted), "{text}");
    }
    let verdict: Value = serde_json::from_str(&shown("json")).unwrap();
    conforms(&verdict);
    assert_eq!(
        verdict["origin"]["drives"][0]["written"]["flash_written_bytes"],
        3_u64 << 40
    );
}

#[test]
fn every_format_has_what_it_is_for() {
    let (folder, path) = imported();
    let of = |format: &str| {
        report(&["--format", format], &[&path])
            .succeeds()
            .stdout
            .clone()
    };
    let verdict: Value = serde_json::from_str(&of("json")).unwrap();
    conforms(&verdict);
    let sentence = verdict["summary"].as_str().unwrap();
    assert!(sentence.contains("stalled reads for 15.0 s"), "{sentence}");
    let csv = of("csv");
    assert!(csv.starts_with("at_s,seconds,part,phase,actor,"), "{csv}");
    assert_eq!(csv.lines().count(), 1 + 93);
    let devices = of("csv-devices");
    assert!(
        devices
            .lines()
            .next()
            .unwrap()
            .contains(",discards,discard_bytes,")
    );
    assert!(of("markdown").contains("| rate "), "{}", of("markdown"));
    let html = of("html");
    assert!(html.starts_with("<!DOCTYPE html>") && html.contains(sentence));
    assert_eq!(report(&["-q"], &[&path]).succeeds().stdout.trim(), sentence);
    assert_eq!(
        report(&["--quiet"], &[&path]).succeeds().stdout.trim(),
        sentence
    );
    // Judged anew by another measure.
    let low = report(&["--set", "low=1%", "--format", "json"], &[&path]);
    let low: Value = serde_json::from_str(&low.succeeds().stdout).unwrap();
    assert_ne!(low["verdict"], "stall");
    // Pictures beside the text.
    let pictures = folder.path().join("charts");
    report(&["--svg", pictures.to_str().unwrap(), "-q"], &[&path]).succeeds();
    let made = names(&pictures);
    assert!(
        made.contains(&"trim.svg".to_owned()) && made.len() >= 3,
        "{made:?}"
    );
    let svg = fs::read_to_string(pictures.join("trim.svg")).unwrap();
    assert!(svg.contains("<svg ") && svg.trim_end().ends_with("</svg>"));
}

#[test]
fn several_runs_follow_each_other_or_have_a_file_each() {
    let (folder, path) = imported();
    let other = folder.path().join("t500.jsonl");
    fs::copy(&path, &other).unwrap();
    let text = report(&[], &[&path, &other]).succeeds().stdout.clone();
    for name in [&path, &other] {
        assert!(
            text.contains(&format!("==> {} <==", name.display())),
            "{text}"
        );
    }
    let csv = report(&["--format", "csv"], &[&path, &other])
        .succeeds()
        .stdout
        .clone();
    assert_eq!(csv.matches("at_s").count(), 1);
    assert_eq!(
        csv.lines().filter(|l| l.contains("t500.jsonl,")).count(),
        93
    );
    let json = report(&["--format", "json"], &[&path, &other])
        .succeeds()
        .stdout
        .clone();
    let all = serde_json::Deserializer::from_str(&json).into_iter::<Value>();
    assert_eq!(all.filter(|v| v.is_ok()).count(), 2);
    // Pages don't follow each other.
    report(&["--format", "html"], &[&path, &other]).fails_with(2, &["directory", "html/"]);
    let pages = folder.path().join("pages/");
    let to = format!("{}/", pages.display());
    report(
        &["--format", "html", "--output", &to],
        &[&path, &other, &path],
    )
    .succeeds();
    assert_eq!(names(&pages), ["evo-2.html", "evo.html", "t500.html"]);
    // One that can't be read doesn't keep the others back.
    let missing = folder.path().join("missing");
    let done = report(&["-q"], &[&missing, &path]);
    done.fails_with(2, &["missing", "No such file"]);
    assert!(done.stdout.contains("stalled reads"), "{}", done.text());
}

#[test]
fn a_report_goes_where_it_is_told_and_spares_its_record() {
    let (folder, path) = imported();
    let whole = fs::read(&path).unwrap();
    let to = folder.path().join("page.html");
    let arguments = ["--format", "html", "--output", to.to_str().unwrap()];
    let done = report(&arguments, &[&path]);
    assert_eq!(done.succeeds().stdout, "");
    assert!(fs::read_to_string(&to).unwrap().ends_with("</html>\n"));
    report(&["--output", path.to_str().unwrap()], &[&path]).fails_with(2, &["at once"]);
    assert_eq!(fs::read(&path).unwrap(), whole);
    // What was there stays if there is nothing to be written.
    report(&arguments, &[folder.path()]).fails_with(2, &["is a directory"]);
    assert!(fs::read_to_string(&to).unwrap().ends_with("</html>\n"));
    report(&["--output", "/nowhere/x"], &[&path]).fails_with(2, &["/nowhere/x"]);
    let stdout = report(&["--output", "-", "-q"], &[&path]);
    assert!(stdout.succeeds().stdout.contains("stalled"));
}

#[test]
fn a_record_that_breaks_off_is_shown_as_far_as_it_goes() {
    let (folder, path) = imported();
    let text = fs::read_to_string(&path).unwrap();
    let cut = folder.path().join("cut.jsonl");
    fs::write(&cut, &text[..text.len() * 3 / 4]).unwrap();
    let done = report(&[], &[&cut]);
    let printed = &done.succeeds().stdout;
    assert!(printed.contains("its run was killed"), "{printed}");
    assert!(
        printed.contains("STALL"),
        "a proven stall stays one: {printed}"
    );
    // Compressed, from standard input.
    let packed = folder.path().join("cut.zst");
    fs::write(
        &packed,
        zstd::encode_all(fs::read(&cut).unwrap().as_slice(), 1).unwrap(),
    )
    .unwrap();
    let mut shell = std::process::Command::new("sh");
    shell.args([
        "-c",
        "cat \"$1\" | \"$0\" report -q -",
        env!("CARGO_BIN_EXE_trimbench"),
    ]);
    shell.arg(&packed);
    assert!(run(shell).succeeds().stdout.contains("stall"));
}

#[test]
fn what_is_no_record_is_refused() {
    let (folder, path) = imported();
    let text = fs::read_to_string(&path).unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("empty"), "").unwrap();
    fs::write(at("noise"), [0xff, 0, 0x80, b'\n'].repeat(9999)).unwrap();
    fs::write(
        at("later"),
        text.replacen("trimbench.run/1", "trimbench.run/9", 1),
    )
    .unwrap();
    fs::write(
        at("absurd"),
        text.replacen("\"at_s\":5.0", "\"at_s\":5e99", 1),
    )
    .unwrap();
    fs::write(
        at("torn"),
        text.replacen("\"line\":\"interval\"", "\"li", 1),
    )
    .unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), fifo, mode, 0).unwrap();
    for (name, words) in [
        ("empty", &["is empty"][..]),
        ("noise", &["is not a record of trimbench"]),
        ("later", &["trimbench.run/9"]),
        ("absurd", &["does not fit"]),
        ("torn", &["line ", "cannot be understood"]),
        ("log", &["it looks like an iostat log", "trimbench import"]),
        ("pipe", &["a pipe without a writer"]),
        ("", &["is a directory", "trimbench import"]),
    ] {
        report(&[], &[&at(name)]).fails_with(2, words);
    }
    report(&[], &[Path::new("/dev/null")]).fails_with(2, &["neither a file nor a pipe"]);
}
