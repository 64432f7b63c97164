//! The options and keys that messages name.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::*;

mod documented;

static CLI: LazyLock<Command> = LazyLock::new(Cli::command);

/// Programs of others: a message that names one may name its options.
const FOREIGN: [&str; 6] = [
    "fio",
    "losetup",
    "blockdev",
    "systemctl",
    "VBoxManage",
    "ansible-playbook",
];

#[test]
fn messages_name_only_options_that_their_command_has() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for file in sources(crates) {
        let source = std::fs::read_to_string(&file).unwrap();
        let path = file.strip_prefix(crates).unwrap().to_string_lossy();
        for message in literals(&source) {
            let bad = not_had(&message, owner(&path));
            seen += usize::from(message.contains("--"));
            wrong.extend(
                bad.into_iter()
                    .map(|name| format!("{path}: {name}: {message}")),
            );
        }
    }
    assert!(seen > 100, "{seen}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_option_of_another_command_is_found() {
    let bad = |message: &str, command| not_had(message, Some(command));
    assert_eq!(bad("give a larger --size", "suite"), ["--size"]);
    assert_eq!(bad("give a larger --size", "run"), [""; 0]);
    assert_eq!(bad("a larger --set size=2G", "suite"), [""; 0]);
    assert_eq!(bad("a larger --set sizes=2G", "suite"), ["--set sizes"]);
    assert_eq!(bad("give `run --size` more", "suite"), [""; 0]);
    assert_eq!(bad("see blockdev --setrw", "run"), [""; 0]);
}

/// Product sources: all but tests, and the options' own descriptions.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let skipped = [
            "tests",
            "benches",
            "fuzz",
            "testkit",
            "examples",
            "args.rs",
            "tests.rs",
            "build.rs",
            "documented.rs",
        ];
        if skipped.contains(&&*name) || path.ends_with("usage/named.rs") {
            continue;
        }
        if path.is_dir() {
            found.extend(sources(&path));
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
    found
}

/// The command whose messages a file has; `None`: any.
fn owner(path: &str) -> Option<&str> {
    let folders = ["trimbench/src/commands/", "experiments/src/"];
    let below = folders.iter().find_map(|folder| path.strip_prefix(folder));
    let name = match path {
        _ if path.starts_with("bench/src/") || path.starts_with("load/src/") => "run",
        _ if path.starts_with("ssd/src/fit/") => "fit",
        _ => below?.split('/').next()?,
    };
    // A list of keys names all commands.
    let known = name != "scenarios" && CLI.find_subcommand(name).is_some();
    known.then_some(name)
}

/// The text of each string literal outside of comments and tests.
fn literals(source: &str) -> Vec<String> {
    let product = source.split("#[cfg(test)]").next().unwrap_or_default();
    let code: Vec<&str> = product
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let code = code.join("\n").replace("'\"'", "");
    let code = code.replace("\\\\", "").replace("\\\"", "'");
    let inner = code.split('"').skip(1).step_by(2);
    let joined = inner.map(|text| {
        let lines = text.split("\\\n");
        lines.map(str::trim_start).collect::<String>()
    });
    joined.collect()
}

/// The options and keys in a message that neither its command has, nor one that it names.
fn not_had(message: &str, command: Option<&str>) -> Vec<String> {
    let is_argument = message.starts_with("--") && !message.contains(": ");
    if is_argument || FOREIGN.iter().any(|program| message.contains(program)) {
        return Vec::new();
    }
    let called = |name: &str| {
        let forms = [
            format!("trimbench {name}"),
            format!("`{name} "),
            format!("trimbench}} {name}"),
        ];
        forms.iter().any(|form| message.contains(form))
    };
    let is_asked = |owner: &str| {
        let name = owner.split(' ').next().unwrap_or_default();
        command.is_none_or(|command| command == name) || called(name)
    };
    let mut bad = Vec::new();
    for (at, _) in message.match_indices("--") {
        let rest = &message[at + 2..];
        let end = rest
            .find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c)));
        let word = rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', '-']);
        let is_own = word == "help" || word == "version";
        if word.is_empty()
            || is_own
            || message[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-')
        {
            continue;
        }
        let mut owners = Vec::new();
        owners_of(&format!("--{word}"), &CLI, "", &mut owners);
        let key = rest.strip_prefix("set ").map(|key| {
            let end = key.find(|c: char| {
                !(c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c))
            });
            &key[..end.unwrap_or(key.len())]
        });
        match key.filter(|key| !key.is_empty() && rest["set ".len() + key.len()..].starts_with('='))
        {
            Some(key) => {
                let last = key.rsplit('.').next().unwrap_or(key);
                let has = |known: &String| {
                    let (owner, path) = known.trim_matches('`').split_once(" --set ").unwrap();
                    let path = path.trim_end_matches("=…");
                    // `run` takes the last part of a path, too.
                    (path == key || owner == "run" && key == last) && is_asked(owner)
                };
                if !ending_in(last).iter().any(has) {
                    bad.push(format!("--set {key}"));
                }
            }
            None if !owners.iter().any(|owner| is_asked(owner)) => bad.push(format!("--{word}")),
            None => {}
        }
    }
    bad
}
