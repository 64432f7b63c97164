//! The manual's commands for published measurements.

use std::path::Path;

use crate::common::gate::{alone, lacks};
use crate::common::run::{Done, run, trimbench};
use crate::lab_drive::NEEDS;

/// The commands of a page's section on published cases, without `sudo`, as words.
fn commands(page: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let section = text.split("\n## Published cases\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let commands = section.lines().filter_map(|line| {
        let line = line.strip_prefix("$ ")?;
        let line = line.strip_prefix("sudo ").unwrap_or(line);
        line.strip_prefix("trimbench ")
    });
    commands
        .map(|command| shlex::split(command).unwrap())
        .collect()
}

fn done(words: &[String], more: &[&str]) -> Done {
    let mut command = trimbench();
    command.args(words).args(more);
    run(command)
}

#[test]
fn the_suites_of_published_cases_would_run_as_they_are_written() {
    if lacks(NEEDS) {
        return;
    }
    let commands = commands("suite.md");
    // Drives of their own are not there.
    let own = |words: &&Vec<String>| words.iter().all(|word| !word.starts_with("/dev/"));
    let suites: Vec<_> = commands
        .iter()
        .filter(own)
        .filter(|words| words[0] == "suite")
        .collect();
    assert!(suites.len() >= 4, "{commands:?}");
    for words in suites {
        done(words, &["--dry-run"]).succeeds();
    }
}

#[test]
fn the_simulations_of_published_cases_print_the_figures_of_the_manual() {
    let _turn = alone();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sim.md");
    let text = std::fs::read_to_string(path).unwrap();
    let commands = commands("sim.md");
    assert!(commands.len() >= 6, "{commands:?}");
    for words in commands {
        let figures = done(&words, &[]).succeeds().stdout.clone();
        let command = words.join(" ");
        let quoted = text.split(&command).nth(1).unwrap();
        let quoted = quoted
            .lines()
            .skip(1)
            .take_while(|line| !line.starts_with(['$', '`']));
        for line in quoted.filter(|line| !line.is_empty()) {
            assert!(
                figures.contains(line),
                "{command}: {line:?} is not in:\n{figures}"
            );
        }
    }
}
