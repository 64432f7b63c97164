//! Files that earlier versions wrote, in `tests/formats`.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;
use testkit::formats::{all, newer};

use crate::common::run::{Done, run, trimbench};

/// Runs trimbench with these arguments and a file with that content.
fn read(arguments: &[&str], content: &[u8]) -> Done {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("file.jsonl");
    fs::write(&file, content).unwrap();
    let mut command = trimbench();
    command.args(arguments).arg(&file);
    run(command)
}

/// The path of each field; those of a list are those of its first entry.
fn fields(value: &Value, at: &str, to: &mut Vec<String>) {
    match value {
        Value::Object(all) => {
            for (key, value) in all {
                to.push(format!("{at}/{key}"));
                fields(value, &format!("{at}/{key}"), to);
            }
        }
        Value::Array(all) => {
            if let Some(first) = all.first() {
                fields(first, &format!("{at}/0"), to);
            }
        }
        _ => {}
    }
}

#[test]
fn a_record_of_an_earlier_version_gives_each_field_of_its_verdict() {
    for (record, verdict) in all("record").iter().zip(all("verdict")) {
        let shown = read(&["report", "--format", "json"], record);
        let now: Value = serde_json::from_str(&shown.succeeds().stdout).unwrap();
        let then: Value = serde_json::from_slice(&verdict).unwrap();
        assert_eq!(now["verdict"], then["verdict"]);
        let mut wanted = Vec::new();
        fields(&then, "", &mut wanted);
        assert!(wanted.len() > 50, "{wanted:?}");
        for field in wanted {
            assert!(now.pointer(&field).is_some(), "{field} is gone: {now:#}");
        }
        let later = read(&["report"], &newer(record));
        later.fails_with(2, &["trimbench 99.0.0 wrote it as trimbench.run/9"]);
    }
}

#[test]
fn a_suite_log_of_an_earlier_version_is_shown_and_that_of_a_later_one_is_refused() {
    for log in all("suite-log") {
        read(&["suite", "report"], &log).succeeds();
        let later = read(&["suite", "report"], &newer(&log));
        later.fails_with(2, &["trimbench 99.0.0 wrote it as trimbench.suite-log/9"]);
    }
}
