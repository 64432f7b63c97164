//! Names with escape codes: no command lets them through to the terminal.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::gate::{Need, lacks};
use crate::common::run::{Done, run, trimbench};

/// Clears the screen, turns text red, sets the window's title, and ends the line.
const HOSTILE: &str = "a\x1b[2J\x1b[31m\x1b]0;title\x07\r\u{9b}1m\u{202e}z";

/// Nothing but text and line ends was printed, and the name was part of it.
fn prints_text(done: &Done, what: &[&str]) {
    let text = done.text();
    let raw = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
    assert!(!text.chars().any(raw), "{what:?}: {text:?}");
    assert!(
        text.contains("title"),
        "{what:?} does not name it: {text:?}"
    );
}

fn command(arguments: &[&str], directory: &Path) -> Command {
    let mut command = trimbench();
    command.args(arguments).current_dir(directory);
    command
}

#[test]
fn no_command_lets_the_escape_codes_of_a_missing_path_through() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [
        &["run", HOSTILE][..],
        &["run", "--dry-run", "--scenario", HOSTILE],
        &["run", "--dry-run", "--delete", HOSTILE],
        &["run", "--device", HOSTILE, "--destroy-data"],
        &["run", "--size", HOSTILE],
        &["run", "--fail-on", HOSTILE],
        &["scenarios", "show", HOSTILE],
        &["report", HOSTILE],
        &["report", "--svg", "/proc/title", HOSTILE],
        &["compare", HOSTILE, HOSTILE],
        &["compare", "--group", &format!("title={HOSTILE}"), "b=b"],
        &["import", HOSTILE],
        &["fit", HOSTILE],
        &["fit", HOSTILE, "--destroy-data"],
        &["rm", HOSTILE],
        &["rm", "--max-latency", "5ms", "--profile", HOSTILE, "."],
        &["fstrim", HOSTILE],
        &["tune", HOSTILE],
        &["lab", "up", "drive", "--size", "1G", "--profile", HOSTILE],
        &["lab", "up", HOSTILE, "--size", "1G", "--profile", "ideal"],
        &["lab", "down", HOSTILE],
        &["lab", "stats", HOSTILE],
        &[HOSTILE],
    ] {
        if arguments[0] == "lab" && lacks(&[Need::Root]) {
            continue;
        }
        let done = run(command(arguments, directory.path()));
        assert_ne!(done.code(), Some(0), "{arguments:?}");
        prints_text(&done, arguments);
    }
}

#[test]
fn no_command_lets_the_escape_codes_of_a_file_through() {
    let directory = tempfile::tempdir().unwrap();
    let file: PathBuf = directory.path().join(HOSTILE);
    fs::write(&file, "no record, no log and no profile").unwrap();
    let output = format!("{HOSTILE}/file");
    for arguments in [
        &["run", HOSTILE][..],
        &["run", "--dry-run", "--json", &output, "."],
        &["run", "--dry-run", "--output", &output, "."],
        &["run", "--dry-run", "--scenario", &format!("./{HOSTILE}")],
        &["report", HOSTILE],
        &["compare", HOSTILE, HOSTILE],
        &["import", HOSTILE],
        &["fit", HOSTILE],
        &["fstrim", HOSTILE],
        &[
            "lab",
            "up",
            "drive",
            "--size",
            "1G",
            "--profile",
            &format!("./{HOSTILE}"),
        ],
        &["rm", "--dry-run", HOSTILE],
        &["rm", "-v", HOSTILE],
    ] {
        if arguments[0] == "lab" && lacks(&[Need::Root]) {
            continue;
        }
        let done = run(command(arguments, directory.path()));
        prints_text(&done, arguments);
    }
    assert!(!file.exists(), "rm kept it");
}

#[test]
fn a_run_shows_a_directory_without_its_escape_codes() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join(HOSTILE)).unwrap();
    let arguments = ["run", "--dry-run", HOSTILE];
    prints_text(&run(command(&arguments, directory.path())), &arguments);
}

/// A record of another machine, of which each name is hostile: none of its outputs lets one through.
#[test]
fn no_output_of_a_record_lets_the_escape_codes_of_its_names_through() {
    let directory = tempfile::tempdir().unwrap();
    let sim = [
        "sim",
        "run",
        "--profile",
        "870-evo",
        "--workload",
        "drop-file",
        "--policy",
        "coalesce",
        "--set",
        "size=64M",
        "--set",
        "recovery=200ms",
        "--output",
        "sim.jsonl",
    ];
    assert_eq!(run(command(&sim, directory.path())).code(), Some(0));
    let text = fs::read_to_string(directory.path().join("sim.jsonl")).unwrap();
    let lines = text.lines().map(|line| {
        let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
        spoil(&mut line);
        format!("{line}\n")
    });
    fs::write(
        directory.path().join("run.jsonl"),
        lines.collect::<String>(),
    )
    .unwrap();
    let mut seen = 0;
    for arguments in [
        &["report", "run.jsonl"][..],
        &["report", "--format", "csv", "run.jsonl"],
        &["report", "--format", "csv-devices", "run.jsonl"],
        &["report", "--format", "markdown", "run.jsonl"],
        &["report", "--format", "json", "run.jsonl"],
        &["report", "--quiet", "run.jsonl"],
        &["report", "run.jsonl", "run.jsonl"],
        &["compare", "run.jsonl", "run.jsonl"],
        &["fit", "run.jsonl"],
    ] {
        let done = run(command(arguments, directory.path()));
        let text = done.text();
        let raw = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        let found = text.find(raw);
        assert_eq!(found, None, "{arguments:?}: {text:?}");
        seen += usize::from(text.contains("title"));
    }
    assert!(seen >= 4, "names are shown in {seen} outputs");
}

/// Makes the texts hostile that aren't words of the format.
fn spoil(value: &mut serde_json::Value) {
    use serde_json::Value;
    const NAMES: [&str; 11] = [
        "name", "model", "kernel", "host", "cpu", "path", "fs", "mount", "detail", "version",
        "command",
    ];
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(text) if NAMES.contains(&key.as_str()) => *text += HOSTILE,
                    other => spoil(other),
                }
            }
        }
        Value::Array(members) => members.iter_mut().for_each(spoil),
        _ => {}
    }
}
