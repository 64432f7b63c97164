//! Each option that `--help` lists is named by a test that checks its effect.

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

/// Every command, as words, with its long options.
fn all_options() -> Vec<(Vec<String>, BTreeSet<String>)> {
    let all = all_commands(&[]).into_iter();
    let with_options = |words: Vec<String>| {
        let options = options(&help(&words));
        (words, options)
    };
    all.map(with_options).collect()
}

/// Calls of helpers that name the words of a command for their caller.
const HELPERS: [(&str, &[&str]); 3] = [
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

    /// Whether it asserts something behind the option; or a comment says which test does.
    fn checks(&self, option: &str) -> bool {
        let behind = self.text.split_once(&format!("\"--{option}\""));
        let marked = self.text.contains(&format!("// Effect of --{option}: "));
        behind.is_some_and(|(_, text)| text.contains("assert")) || marked
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
fn every_option_has_a_test_that_names_it_with_its_command_and_checks_its_effect() {
    let all = all_options();
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
        .filter(|(command, option)| {
            let tests = |f: &Function| f.names(command, option) && f.checks(option);
            !functions.iter().any(tests)
        })
        .map(|(command, option)| format!("{} --{option}", command.join(" ")))
        .collect();
    assert!(
        untested.is_empty(),
        "no test names and asserts something of {untested:#?}"
    );
}

/// How many options a help text lists, but for help and version.
fn count(help: &str) -> usize {
    let own = help.split("Examples:").next().unwrap_or_default();
    let option = |line: &&str| {
        let indent = line.len() - line.trim_start().len();
        (2..=6).contains(&indent) && line.trim_start().starts_with('-')
    };
    let general = |line: &&str| {
        ["-h, --help", "--version"]
            .iter()
            .any(|it| line.contains(it))
    };
    let lines = own.lines().filter(option);
    lines.filter(|line| !general(line)).count()
}

/// Every command, in whatever depth, as words.
fn all_commands(so_far: &[String]) -> Vec<Vec<String>> {
    let deeper = commands(&help(so_far)).into_iter();
    let deeper = deeper.flat_map(|name| all_commands(&[so_far, &[name]].concat()));
    std::iter::once(so_far.to_vec()).chain(deeper).collect()
}

/// Everything else is a key of `--set`. `scripts/options` prints the table.
#[test]
fn options_are_few_and_the_short_help_fits_a_screen() {
    let all = all_commands(&[]);
    let counts: Vec<(String, usize)> = all
        .iter()
        .map(|words| (words.join(" "), count(&help(words))))
        .collect();
    let sum: usize = counts.iter().map(|(_, count)| count).sum();
    assert!((100..=200).contains(&sum), "{sum} options: {counts:#?}");
    let of_run = counts.iter().find(|(command, _)| command == "run");
    assert!((10..=26).contains(&of_run.unwrap().1), "{of_run:?}");
    for words in &all {
        let mut command = trimbench();
        command.args(words).arg("-h");
        let short = run(command).succeeds().stdout.clone();
        let lines = short.lines().count();
        assert!(lines <= 40, "{}: {lines} lines:\n{short}", words.join(" "));
    }
}

#[test]
fn keys_are_listed_with_their_defaults_and_found_by_a_part_of_their_name() {
    let keys = |arguments: &[&str]| {
        let mut command = trimbench();
        command.args(["scenarios", "keys"]).args(arguments);
        run(command)
    };
    let all = keys(&[]).succeeds().stdout.clone();
    for command in [
        "run", "rm", "fstrim", "guard", "tune", "suite", "verify", "lab up", "sim",
    ] {
        let title = format!("trimbench {command} --set KEY=VALUE\n");
        assert!(all.contains(&title), "{title} missing in:\n{all}");
    }
    let chunk = all.lines().find(|line| line.contains("deletion.chunk"));
    assert!(
        chunk.unwrap().contains("[default: 128M; device: 1G]"),
        "{chunk:?}"
    );
    let found = keys(&["write-rate"]).succeeds().stdout.clone();
    assert!(
        found.contains("deletion.write-rate") && !found.contains("deletion.chunk"),
        "{found}"
    );
    // One key alone has the words that it takes; a command has its own keys alone.
    let how = keys(&["deletion.how"]).succeeds().stdout.clone();
    assert!(
        how.contains("truncate") && how.contains("from the tail in steps"),
        "{how}"
    );
    let verify = keys(&["verify"]).succeeds().stdout.clone();
    assert_eq!(verify.matches("--set KEY=VALUE").count(), 1, "{verify}");
    keys(&["chnuk"]).fails_with(2, &["chnuk", "did you mean"]);
}

/// A wrong key or value of each command's `--set`, with the answer.
#[test]
fn a_setting_that_is_wrong_is_answered_with_the_key_the_value_and_the_nearest_key() {
    for (arguments, words) in [
        (
            &["run", "--set", "chnuk=1M"][..],
            &["chnuk=1M", "did you mean 'chunk'?"][..],
        ),
        (&["run", "--set", "chunk"], &["KEY=VALUE"]),
        (
            &["run", "--set", "size=1G"],
            &["size=1G", "foreground.size or actor.size"],
        ),
        (
            &["run", "--set", "engine=posix"],
            &["engine=posix", "io_uring", "sync"],
        ),
        (&["rm", "--chunk", "0", "none"], &["--chunk", "more than 0"]),
        (
            &["rm", "--set", "trsh=false", "none"],
            &["trsh=false", "did you mean 'trash'?"],
        ),
        (
            &["fstrim", "--set", "rat=1M/s", "/"],
            &["rat=1M/s", "did you mean 'rate'?"],
        ),
        (&["guard", "--set", "most=0", "/"], &["most=0", "0.1%"]),
        (
            &["guard", "set", "/", "slowdon=1%"],
            &["slowdon=1%", "did you mean 'slowdown'?"],
        ),
        (
            &["tune", "--set", "polices=rm", "/"],
            &["polices=rm", "did you mean 'policies'?"],
        ),
        (
            &["suite", "--set", "files=0"],
            &["files=0", "from 1 to 10000"],
        ),
        (
            &["verify", "--set", "workers=0", "/tmp"],
            &["workers=0", "from 1 to 256"],
        ),
        (
            &["fit", "--set", "spaec=1G", "/tmp"],
            &["spaec=1G", "did you mean 'space'?"],
        ),
        (
            &["report", "--set", "low=100%", "none"],
            &["low=100%", "between 0% and 100%"],
        ),
        (
            &["compare", "--set", "loww=2", "none", "none"],
            &["loww=2", "did you mean 'low'?"],
        ),
        (
            &["import", "--set", "first-report=no", "none"],
            &["first-report=no", "keep nor drop"],
        ),
        (
            &["why", "--set", "rate=0", "--all"],
            &["rate=0", "1 to 1000"],
        ),
        (
            &["sim", "run", "--set", "sise=1G"],
            &["sise=1G", "did you mean 'size'?"],
        ),
    ] {
        let mut command = trimbench();
        command.args(arguments);
        run(command).fails_with(2, words);
    }
}

#[test]
fn help_has_examples_and_exit_codes() {
    let text = help(&["run".to_owned()]);
    for part in ["Examples:", "trimbench run /data", "Exit codes: 0 done"] {
        assert!(text.contains(part), "{part:?} missing in:\n{text}");
    }
}

#[test]
fn help_fits_80_columns_without_breaking_an_example() {
    for words in all_commands(&[]) {
        let text = help(&words);
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
