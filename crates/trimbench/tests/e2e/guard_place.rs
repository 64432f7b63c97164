//! Where tests of `trimbench guard` work, and the command itself.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::loop_fs::names;
use crate::common::run::{Done, Running, run, start, trimbench};

/// `trimbench guard` in a directory.
pub fn guard(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = trimbench();
    command.current_dir(directory).arg("guard").args(arguments);
    command
}

/// The same, to its end.
pub fn guarded(directory: &Path, arguments: &[&str]) -> Done {
    run(guard(directory, arguments))
}

/// A guard of a directory that frees as fast as it can; it runs and has looked once.
#[track_caller]
pub fn started(directory: &Path, arguments: &[&str]) -> Running {
    let fast = [".", "--min-size", "1M", "--slowdown", "100%"];
    let mut running = start(guard(directory, &[&fast, arguments].concat()));
    running.until("a hidden directory with a status", || {
        hidden(directory).is_some_and(|hidden| directory.join(hidden).join("status").exists())
    });
    running
}

/// The hidden directory.
pub fn hidden(directory: &Path) -> Option<String> {
    let is_ours = |name: &String| name.starts_with(".trimbench-guard-");
    fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .find(is_ours)
}

/// How many second names there are.
pub fn second_names(directory: &Path) -> usize {
    let Some(hidden) = hidden(directory) else {
        return 0;
    };
    // It may be removed just now.
    let entries = fs::read_dir(directory.join(hidden))
        .into_iter()
        .flatten()
        .flatten();
    let is_number = |name: String| name.parse::<u64>().is_ok();
    entries
        .filter(|entry| is_number(entry.file_name().to_string_lossy().into_owned()))
        .count()
}

/// `guard status --json`.
#[track_caller]
pub fn status(directory: &Path) -> Value {
    let done = guarded(directory, &["status", "--json", "."]);
    serde_json::from_str(&done.succeeds().stdout).unwrap()
}

/// Ends a guard as a service manager does, which must go well.
#[track_caller]
pub fn ended(running: Running) -> Done {
    running.signal(Signal::TERM);
    let done = running.wait();
    done.succeeds();
    done
}

/// Names in a directory, without a hidden one.
pub fn seen(directory: &Path) -> Vec<String> {
    let mut all = names(directory);
    all.retain(|name| !name.starts_with(".trimbench-guard-"));
    all
}
