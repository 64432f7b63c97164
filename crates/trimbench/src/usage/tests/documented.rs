//! The options, their words and the keys that README, docs and the examples of `--help` name.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use crate::usage::*;

/// Words that end a command in a line of a shell.
const ENDS: [&str; 7] = ["|", "||", "&&", ";", "#", "--", ">"];

/// Options of other programs that the docs name alone: of util-linux, fio and podman.
const FOREIGN: [&str; 4] = ["secure", "zeroout", "status-interval", "privileged"];

#[test]
fn every_option_in_the_docs_is_one_of_its_command() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let stem = page.file_stem().unwrap().to_string_lossy().into_owned();
        for code in code(&text) {
            seen += code.matches("--").count();
            let bad = not_had(&code, &stem).into_iter();
            wrong.extend(bad.map(|what| format!("{stem}: {what}: {code}")));
        }
    }
    assert!(seen > 200, "{seen}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_option_in_an_example_is_one_of_its_command() {
    let mut all = Vec::new();
    examples(&Cli::command(), &mut all);
    assert!(all.len() > 60, "{}", all.len());
    let bad = all.iter().map(|line| (line, not_had(line, "")));
    let wrong: Vec<_> = bad.filter(|(_, bad)| !bad.is_empty()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_option_that_a_command_does_not_have_is_found() {
    for (code, page, wrong) in [
        ("trimbench lab up --size 1G", "README", ""),
        ("trimbench lab --size 1G", "README", "--size"),
        ("trimbench guard --slowdown 30% /d", "run", ""),
        ("guard status --slowdown 30% /d", "run", "--slowdown"),
        ("sudo trimbench fstrim --all | grep --color x", "README", ""),
        (
            "trimbench run --set chunk=1M --set chnuk=1M",
            "run",
            "--set chnuk",
        ),
        ("--replace", "guard", "--replace"),
        ("--remount", "guard", ""),
        ("--group", "report", ""),
        ("mkfs.ext4 --replace", "guard", ""),
        ("trimbench report r --format=csv", "README", ""),
        ("trimbench report r --format FORMAT", "README", ""),
        ("trimbench report r --format pdf", "README", "--format pdf"),
    ] {
        assert_eq!(not_had(code, page).concat(), wrong, "{code}");
    }
    let lines = code("a `b\nc` d\n\n```sh\ntrimbench rm \\\n  --force x\ny\n```\n`z`");
    assert_eq!(lines, ["b c", "sh", "trimbench rm    --force x", "y", "z"]);
}

/// README and the pages of docs.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap();
    let docs = docs.map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    pages.chain([root.join("README.md")]).collect()
}

/// The examples that a command and those below it have in their help.
fn examples(command: &Command, all: &mut Vec<String>) {
    let help = command.get_after_help().map(ToString::to_string);
    let lines = help.iter().flat_map(|help| help.lines()).map(str::trim);
    all.extend(
        lines
            .filter(|line| line.starts_with("trimbench "))
            .map(str::to_owned),
    );
    for below in command.get_subcommands() {
        examples(below, all);
    }
}

/// The code of a page: each line of a block, and each span.
fn code(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (index, part) in text.split("```").enumerate() {
        if index % 2 == 1 {
            let lines = part.replace("\\\n", " ");
            all.extend(lines.lines().map(str::to_owned));
            continue;
        }
        for paragraph in part.split("\n\n") {
            let paragraph = paragraph.replace('\n', " ");
            all.extend(paragraph.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    all
}

/// The options and keys in a piece of code that its command does not have.
fn not_had(code: &str, page: &str) -> Vec<String> {
    let cli = Cli::command();
    let words: Vec<&str> = code.split_whitespace().collect();
    let is_called = |word: &&str| *word == "trimbench" || word.ends_with("/trimbench");
    let own = words.iter().rposition(is_called).map(|at| at + 1);
    let first = words.first().and_then(|word| cli.find_subcommand(word));
    let begin = match own.or(first.map(|_| 0)) {
        Some(begin) => begin,
        // An option alone is one of the page's commands.
        None if code.starts_with("--") => 0,
        None => return Vec::new(),
    };
    let ends = |word: &&&str| !ENDS.contains(*word);
    let words: Vec<&str> = words[begin..].iter().take_while(ends).copied().collect();
    let mut of = vec![&cli];
    let mut at = 0;
    while let Some(below) = words.get(at).and_then(|word| of[0].find_subcommand(word)) {
        (of, at) = (vec![below], at + 1);
    }
    let is_alone = at == 0;
    if is_alone {
        let named = |name: &&str| cli.find_subcommand(name).is_some();
        let names = match page {
            "report" => vec!["report", "compare", "import"],
            page => Some(page).into_iter().filter(named).collect(),
        };
        if !names.is_empty() {
            of = names
                .iter()
                .filter_map(|name| cli.find_subcommand(name))
                .collect();
        }
    }
    let mut bad = Vec::new();
    for (index, word) in words.iter().enumerate().skip(at) {
        let Some(option) = word.trim_start_matches('[').strip_prefix("--") else {
            continue;
        };
        let end = option.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
        let name = &option[..end.unwrap_or(option.len())];
        if !of.iter().any(|of| has(of, name, is_alone)) && !FOREIGN.contains(&name) {
            bad.push(format!("--{name}"));
        } else if name == "set" {
            let set = option.strip_prefix("set=");
            let set = set.or_else(|| words.get(index + 1).copied());
            bad.extend(set.and_then(wrong_key));
        } else if let Some(given) = option.strip_prefix(name) {
            let value = given.strip_prefix('=');
            let value = value.or_else(|| words.get(index + 1).copied());
            bad.extend(
                value
                    .filter(|value| !takes(&of, name, value))
                    .map(|value| format!("--{name} {value}")),
            );
        }
    }
    bad
}

/// Whether an option takes a value: one of its words where it has some, or a placeholder.
fn takes(of: &[&Command], name: &str, value: &str) -> bool {
    let arguments = of.iter().flat_map(|of| of.get_arguments());
    let mut named = arguments
        .filter(|one| one.get_long() == Some(name))
        .peekable();
    let is_word = value.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    !is_word
        || named.peek().is_none()
        || named.any(|one| {
            let words = one.get_possible_values();
            let is_flag = !one.get_action().takes_values();
            is_flag || words.is_empty() || words.iter().any(|word| word.matches(value, false))
        })
}

/// Whether a command has an option, or with `deep` one of its commands.
fn has(command: &Command, name: &str, deep: bool) -> bool {
    let own = command
        .get_arguments()
        .any(|one| one.get_long() == Some(name));
    let mut below = command.get_subcommands();
    own || ["help", "version"].contains(&name) || deep && below.any(|one| has(one, name, true))
}

/// The key of a setting, if no command has it.
fn wrong_key(setting: &str) -> Option<String> {
    let (key, _) = setting.split_once('=')?;
    let last = key.rsplit('.').next().unwrap_or(key);
    let is_name = last.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    (is_name && ending_in(last).is_empty()).then(|| format!("--set {key}"))
}
