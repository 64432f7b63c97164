//! What `--help` lists works: each option is named by a test.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::run::{Done, run, trimbench};

/// These only help or list; what they name, they don't test.
const NO_TESTS: [&str; 3] = ["help.rs", "quick.rs", "main.rs"];

fn help(commands: &[String]) -> String {
    let mut command = trimbench();
    command.args(commands).arg("--help");
    run(command).succeeds().stdout.clone()
}

/// Names of the commands that a help text lists.
fn commands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Long options that a help text lists.
fn options(help: &str) -> BTreeSet<String> {
    help.lines()
        .map(str::trim_start)
        .filter(|line| line.starts_with('-'))
        .filter_map(|line| {
            let long = &line[line.find("--")? + 2..];
            let end = long.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
            Some(long[..end.unwrap_or(long.len())].to_owned())
        })
        .collect()
}

/// Every option of the program and of its commands, in whatever depth.
fn all_options(commands_so_far: &[String]) -> BTreeSet<String> {
    let text = help(commands_so_far);
    let mut all = options(&text);
    for name in commands(&text) {
        let deeper = [commands_so_far, &[name]].concat();
        all.append(&mut all_options(&deeper));
    }
    all
}

#[test]
fn every_option_has_a_test_that_names_it() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e");
    let tests: String = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !NO_TESTS.iter().any(|name| path.ends_with(name)))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let all = all_options(&[]);
    assert!(all.contains("size") && all.contains("help"), "{all:?}");
    let untested: Vec<_> = all
        .iter()
        // As an argument of its own: "--size" is not "--size-of-something".
        .filter(|option| !tests.contains(&format!("\"--{option}\"")))
        .filter(|option| *option != "help")
        .collect();
    assert!(untested.is_empty(), "no test names {untested:?}");
}

#[test]
fn help_has_examples_and_exit_codes() {
    let text = help(&["run".to_owned()]);
    for part in ["Examples:", "trimbench run /data", "Exit codes: 0 done"] {
        assert!(text.contains(part), "{part:?} missing in:\n{text}");
    }
}

/// The help of every command, in whatever depth.
fn all_help(so_far: &[String]) -> Vec<String> {
    let text = help(so_far);
    let deeper = commands(&text)
        .into_iter()
        .flat_map(|name| all_help(&[so_far, &[name]].concat()));
    std::iter::once(text.clone())
        .chain(deeper.collect::<Vec<_>>())
        .collect()
}

#[test]
fn help_fits_80_columns_without_breaking_an_example() {
    for text in all_help(&[]) {
        let wide = |line: &&str| line.chars().count() > 80;
        // clap wraps its own part to the terminal; what we wrote below it has our own breaks.
        let ours = text.split_once("Examples:").map_or("", |(_, ours)| ours);
        let too_wide: Vec<&str> = ours.lines().filter(wide).collect();
        assert!(too_wide.is_empty(), "{too_wide:#?}");
    }
}

#[test]
fn without_a_command_it_says_how_to_use_it() {
    let done: Done = run(trimbench());
    done.fails_with(2, &["Usage: trimbench", "run"]);
}

#[test]
fn the_examples_of_help_are_understood() {
    let text = help(&["run".to_owned()]);
    let examples: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  trimbench run"))
        .collect();
    assert!(examples.len() >= 5, "{text}");
    for example in examples {
        // What follows two spaces is the explanation.
        let end = example.find("  ").unwrap_or(example.len());
        let arguments = example[..end]
            .replace("/data", "/")
            .replace("/dev/sdX", "/dev/null");
        let mut command = std::process::Command::new("sh");
        command
            .arg("-c")
            .arg(format!("exec \"$0\" run --dry-run {arguments}"))
            .arg(env!("CARGO_BIN_EXE_trimbench"));
        let done = run(command);
        // Whether this machine can do it is another matter; usage errors of clap show "Usage:".
        assert!(
            !done.stderr.contains("Usage:"),
            "{arguments}: {}",
            done.text()
        );
        assert!(
            !done.stderr.contains("panicked"),
            "{arguments}: {}",
            done.text()
        );
    }
}
