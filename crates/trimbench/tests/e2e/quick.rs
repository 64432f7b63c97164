//! A run that is over soon, and what it recorded.

use std::path::Path;
use std::process::Command;

use judge::verdict::VERDICT_JSON_SCHEMA;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::run::{Done, Running, record, run, start, trimbench};
use crate::common::schema::Schema;

/// The options of every quick run, unless the test gives others.
const BASE: [(&str, &str); 6] = [
    ("--size", "32M"),
    ("--set", "foreground.size=16M"),
    ("--settle", "0s"),
    ("--baseline", "500ms"),
    ("--recovery", "200ms"),
    ("--set", "phases.interval=50ms"),
];

/// A run that has ended.
pub struct Measured {
    pub done: Done,
    /// The verdict; null when none was written.
    pub verdict: Value,
    pub record: Vec<Value>,
}

/// Where a run under way writes its verdict and its record.
pub struct Files(TempDir);

impl Files {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn verdict(&self) -> std::path::PathBuf {
        self.0.path().join("verdict.json")
    }

    pub fn record(&self) -> std::path::PathBuf {
        self.0.path().join("record.jsonl")
    }

    /// Whether the record says so far that a phase has begun.
    pub fn in_phase(&self, name: &str) -> bool {
        record(&self.record())
            .iter()
            .any(|line| line["line"] == "phase" && line["name"] == name)
    }

    /// Reads what is in them now.
    pub fn read(&self, done: Done) -> Measured {
        // Made before the work begins, and filled when it is over.
        let text = std::fs::read_to_string(self.verdict()).unwrap_or_default();
        let verdict = serde_json::from_str(&text).unwrap_or(Value::Null);
        if !verdict.is_null() {
            conforms(&verdict);
        }
        Measured {
            done,
            verdict,
            record: record(&self.record()),
        }
    }
}

/// Asserts that a verdict has the form that its schema promises. Every run's is held to it.
#[track_caller]
pub fn conforms(verdict: &Value) {
    static SCHEMA: Schema = Schema::new(VERDICT_JSON_SCHEMA);
    SCHEMA.holds(verdict);
}

/// `trimbench run` with the base options, those of the test in their place, and both outputs.
pub fn command(files: &Files, arguments: &[&str]) -> Command {
    let mut command = trimbench();
    command.arg("run").args(arguments);
    let deletes = !arguments.windows(2).any(|pair| {
        matches!(
            pair,
            ["--delete", "none" | "trim"] | ["--scenario", "never-trimmed"]
        )
    });
    for (name, value) in BASE {
        let key = value.split_once('=').map_or(name, |(key, _)| key);
        let given = arguments
            .iter()
            .any(|argument| argument.trim_start_matches("--set=").starts_with(key));
        if !given && (deletes || name != "--size") {
            command.args([name, value]);
        }
    }
    command.arg("--json").arg(files.verdict());
    command.arg("--output").arg(files.record());
    command
}

/// The same, on the file system of a directory.
pub fn command_on(path: &Path, files: &Files, arguments: &[&str]) -> Command {
    let mut command = command(files, arguments);
    command.arg(path);
    command
}

/// Runs it to its end.
pub fn measure(path: &Path, arguments: &[&str]) -> Measured {
    let files = Files::new();
    let done = run(command_on(path, &files, arguments));
    files.read(done)
}

/// Starts it.
pub fn begin(path: &Path, files: &Files, arguments: &[&str]) -> Running {
    start(command_on(path, files, arguments))
}

impl Measured {
    /// Asserts that all went well.
    #[track_caller]
    pub fn succeeds(self) -> Self {
        self.done.succeeds();
        assert_eq!(self.end()["reason"], "completed");
        self
    }

    /// The record's first line.
    #[track_caller]
    pub fn head(&self) -> &Value {
        let head = self.record.first().expect("an empty record");
        assert_eq!(head["line"], "head");
        head
    }

    /// The record's last line.
    #[track_caller]
    pub fn end(&self) -> &Value {
        let end = self.record.last().expect("an empty record");
        assert_eq!(end["line"], "end", "{}", self.done.text());
        end
    }

    /// Lines of one kind.
    pub fn lines<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.record.iter().filter(move |line| line["line"] == kind)
    }

    /// Names of the phases, in order.
    pub fn phases(&self) -> Vec<&str> {
        self.lines("phase")
            .map(|p| p["name"].as_str().unwrap())
            .collect()
    }

    /// Seconds from a phase's begin to the next one's, or to the end.
    #[track_caller]
    pub fn phase_s(&self, name: &str) -> f64 {
        let marks: Vec<&Value> = self
            .record
            .iter()
            .filter(|line| line["line"] == "phase" || line["line"] == "end")
            .collect();
        let begin = marks.iter().position(|mark| mark["name"] == name).unwrap();
        number(&marks[begin + 1]["at_s"]) - number(&marks[begin]["at_s"])
    }

    /// Whether an event of some kind happened.
    pub fn happened(&self, kind: &str) -> bool {
        self.lines("event").any(|event| event["kind"] == kind)
    }

    /// All that was warned of.
    pub fn warnings(&self) -> String {
        self.lines("event")
            .filter(|event| event["kind"] == "warning")
            .filter_map(|event| event["detail"].as_str())
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// The record's line about the deletion.
    #[track_caller]
    pub fn deletion(&self) -> &Value {
        self.lines("deletion").last().expect("nothing was deleted")
    }

    /// An actor of the head, by its place: the foreground is the first.
    pub fn actor(&self, index: usize) -> &Value {
        &self.head()["actors"][index]
    }

    /// The foreground of the verdict (not the canary).
    #[track_caller]
    pub fn foreground(&self) -> &Value {
        let name = &self.actor(0)["name"];
        let actors = self.verdict["foreground"].as_array().expect("no verdict");
        actors.iter().find(|actor| actor["actor"] == *name).unwrap()
    }

    /// Sum of a field of an actor over all intervals.
    pub fn total(&self, actor: usize, field: &str) -> u64 {
        self.lines("interval")
            .filter_map(|interval| interval["actors"][actor][field].as_u64())
            .sum()
    }

    /// The verdict's reasons.
    pub fn reasons(&self) -> Vec<&str> {
        let reasons = self.verdict["reasons"].as_array().expect("no verdict");
        reasons
            .iter()
            .map(|reason| reason.as_str().unwrap())
            .collect()
    }
}

/// A number that must be there.
#[track_caller]
pub fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("not a number: {value}"))
}
