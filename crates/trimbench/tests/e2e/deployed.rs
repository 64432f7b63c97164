//! The commands in manifests and units are commands that the program knows.

use std::fs;
use std::path::Path;

use crate::common::run::{run, trimbench};

/// The files of a folder, by name; the path begins at this crate.
fn deployed(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = fs::read_dir(folder).unwrap().map(|file| {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(path).unwrap())
    });
    files.collect()
}

/// The file of this name in a folder.
fn one(folder: &str, name: &str) -> String {
    let all = deployed(folder);
    all.into_iter().find(|(file, _)| file == name).unwrap().1
}

/// The capabilities of a unit, without their prefix.
pub fn capabilities(unit: &str) -> Vec<String> {
    let text = one("systemd", unit);
    let mut lines = text.lines();
    let set = lines.find_map(|line| line.strip_prefix("CapabilityBoundingSet="));
    let names = set.unwrap().split(' ');
    names
        .map(|name| name.strip_prefix("CAP_").unwrap().to_owned())
        .collect()
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
    for (file, text) in deployed("../../deploy/kubernetes") {
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
    assert_eq!(commands, 4);
}

#[test]
fn the_pods_have_the_capabilities_of_the_units_and_no_more() {
    for (manifest, command, unit) in [
        ("node.yaml", "guard", "trimbench-guard@.service"),
        ("fstrim.yaml", "fstrim", "trimbench-fstrim.service"),
    ] {
        let text = one("../../deploy/kubernetes", manifest);
        let args = format!("args: [\"{command}\"");
        let mut pods = text.split("\n---\n");
        let pod = pods.find(|pod| pod.contains(&args)).unwrap();
        let add = pod
            .lines()
            .filter_map(|line| line.trim().strip_prefix("add: "));
        let add: Vec<Vec<String>> = add.map(|add| serde_json::from_str(add).unwrap()).collect();
        assert_eq!(add, [capabilities(unit)], "{manifest}");
        assert!(
            !pod.contains("hostPID") && !pod.contains("privileged: true"),
            "{pod}"
        );
    }
}

#[test]
fn the_manual_opens_with_three_examples_that_the_program_knows() {
    let (_, text) = deployed("man")
        .into_iter()
        .find(|(file, _)| file == "examples.roff")
        .unwrap();
    let commands: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix(".B trimbench "))
        .collect();
    assert_eq!(commands.len(), 3, "{text}");
    for command in commands {
        let words = command.replace('\\', "");
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        knows("examples.roff", &words);
    }
}

#[test]
fn a_shell_that_asks_for_a_profile_gets_its_name() {
    let mut command = trimbench();
    command
        .envs([
            ("TRIMBENCH_COMPLETE", "bash"),
            ("_CLAP_COMPLETE_INDEX", "5"),
        ])
        .args([
            "--",
            "trimbench",
            "lab",
            "up",
            "x",
            "--profile",
            "samsung-8",
        ]);
    let answered = run(command);
    assert_eq!(answered.succeeds().stdout, "samsung-870-evo-2tb");
}
