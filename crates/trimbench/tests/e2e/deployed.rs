//! The commands in manifests and units are commands that the program knows.

use std::fs;
use std::path::Path;

use crate::common::run::{run, trimbench};

/// The files of a folder below `deploy`, by name.
fn deployed(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../deploy/{folder}"));
    let files = fs::read_dir(folder).unwrap().map(|file| {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    files.collect()
}

/// Fails unless the program takes these words. It reads `--help` last, after the words before it.
fn knows(file: &str, words: &[String]) {
    let mut command = trimbench();
    command.args(words).arg("--help");
    println!("{file}: {words:?}");
    run(command).succeeds();
}

#[test]
fn the_commands_of_the_pods_are_known() {
    let mut commands = Vec::new();
    for (file, text) in deployed("kubernetes") {
        let arguments = text.lines().filter_map(|l| l.trim().strip_prefix("args: "));
        for words in arguments {
            // A list of YAML's in one line is one of JSON's.
            let words: Vec<String> = serde_json::from_str(words).unwrap();
            knows(&file, &words);
            commands.push(words[0].clone());
        }
    }
    commands.sort();
    assert_eq!(commands, ["fstrim", "guard", "watch"]);
}

#[test]
fn the_commands_of_the_units_are_known() {
    let mut commands = 0;
    for (file, text) in deployed("systemd") {
        for line in text.lines() {
            let Some(command) = line.strip_prefix("ExecStart=/usr/bin/trimbench ") else {
                continue;
            };
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            knows(&file, &words);
            commands += 1;
        }
    }
    assert_eq!(commands, 3);
}
