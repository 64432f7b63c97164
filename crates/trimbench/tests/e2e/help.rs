//! Each option that `--help` lists is named by a test.

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

/// Every command that takes options, as words, with its long options.
fn all_options(words: &[String]) -> Vec<(Vec<String>, BTreeSet<String>)> {
    let text = help(words);
    let mut all = vec![(words.to_vec(), options(&text))];
    for name in commands(&text) {
        all.append(&mut all_options(&[words, &[name]].concat()));
    }
    all
}

/// Calls of helpers that name the words of a command for their caller.
const HELPERS: [(&str, &[&str]); 4] = [
    ("grid.sweep(", &["sim", "sweep"]),
    (".up(", &["lab", "up"]),
    ("trimmed(", &["fstrim"]),
    ("command_on(", &["run"]),
];

/// A function of a test file.
struct Function {
    /// The command that the file's name begins with; `run` where it names none.
    of: String,
    text: String,
}

impl Function {
    /// Whether it names an option as an argument of its own, and all words of the command. The
    /// first word may stand in the file's name.
    fn names(&self, command: &[String], option: &str) -> bool {
        let has = |word: &str| self.text.contains(&format!("\"{word}\""));
        let called = HELPERS
            .iter()
            .any(|(call, words)| *words == command && self.text.contains(call));
        let mut words = command.iter().enumerate();
        let named = words.all(|(i, word)| has(word) || i == 0 && *word == self.of);
        has(&format!("--{option}")) && (named || called)
    }
}

/// The functions of all end-to-end tests.
fn functions(top: &[String]) -> Vec<Function> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e");
    let files = fs::read_dir(directory).unwrap();
    let paths = files.map(|entry| entry.unwrap().path());
    let tests = paths.filter(|path| !NO_TESTS.iter().any(|name| path.ends_with(name)));
    let mut all = Vec::new();
    for path in tests {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let first = name.split('_').next().unwrap_or_default();
        let of = top.iter().find(|command| *command == first);
        let of = of.map_or("run", String::as_str);
        let text = fs::read_to_string(&path).unwrap();
        all.extend(text.split("\n}\n").map(|text| Function {
            of: of.to_owned(),
            text: text.to_owned(),
        }));
    }
    all
}

#[test]
fn every_option_has_a_test_that_names_it_with_its_command() {
    let all = all_options(&[]);
    let functions = functions(&commands(&help(&[])));
    let size = |words: &[&str]| {
        let found = all.iter().find(|(command, _)| command == words);
        found.is_some_and(|(_, options)| options.contains("size"))
    };
    assert!(size(&["run"]) && size(&["lab", "up"]), "{all:?}");
    let untested: Vec<String> = all
        .iter()
        .flat_map(|(command, options)| options.iter().map(move |option| (command, option)))
        .filter(|(_, option)| *option != "help" && *option != "version")
        .filter(|(command, option)| !functions.iter().any(|f| f.names(command, option)))
        .map(|(command, option)| format!("{} --{option}", command.join(" ")))
        .collect();
    assert!(untested.is_empty(), "no test names {untested:#?}");
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
