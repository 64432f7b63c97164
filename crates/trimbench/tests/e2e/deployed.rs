//! The commands in manifests and units are commands that the program knows.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use crate::common::gate::{LOOP_EXT4, beside, lacks, lacks_rare};
use crate::common::loop_fs::{Fs, LoopFs, On};
use crate::common::run::{run, trimbench};
use crate::compare::{junit, record};

const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy");

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

/// Fails unless the validator, a program of Python's index, takes these files below deploy/.
fn validated(program: &str, options: &[&str], files: &[&str]) {
    let mut command = Command::new(program);
    command.args(options).args(files).current_dir(DEPLOY);
    run(command).succeeds();
}

#[test]
fn the_manifests_are_kubernetes_and_the_pipelines_githubs_and_gitlabs() {
    if lacks_rare("kubernetes-validate") || lacks_rare("check-jsonschema") {
        return;
    }
    let names: Vec<String> = deployed("../../deploy/kubernetes")
        .into_iter()
        .map(|(name, _)| format!("kubernetes/{name}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for version in [&["--strict", "-k", "1.26"][..], &["--strict"]] {
        validated("kubernetes-validate", version, &names);
    }
    for (schema, file) in [
        ("vendor.github-workflows", "ci/github.yml"),
        ("vendor.gitlab-ci", "ci/gitlab.yml"),
    ] {
        validated("check-jsonschema", &["--builtin-schema", schema], &[file]);
    }
}

/// The commands of a pipeline, in their order.
fn commands_of(pipeline: &str) -> String {
    let script = "import sys, yaml
job = yaml.safe_load(open(sys.argv[1]))
job = job.get('jobs', job)['trim']
print('\\n'.join(job.get('script') or [step['run'] for step in job['steps'] if 'run' in step]))";
    let mut python = Command::new("python3");
    python.args(["-c", script, pipeline]).current_dir(DEPLOY);
    run(python).succeeds().stdout.clone()
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs take the place of `trimbench run`, which the program still has to know.
#[test]
fn the_pipelines_fail_if_a_change_makes_it_worse() {
    // It brings a reader of YAML.
    if lacks_rare("kubernetes-validate") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let stand_in = folder.path().join("trimbench");
    let program = env!("CARGO_BIN_EXE_trimbench");
    let text = format!(
        "#!/bin/sh\nset -e\n[ \"$1\" = run ] || exec {program} \"$@\"\n\
         {program} \"$@\" --help >/dev/null\ncp \"runs/$4\" \"$4\"\n"
    );
    executable(&stand_in, &text);
    let path = std::env::var("PATH").unwrap();
    for (pipeline, stall_s, code, tag) in [
        ("ci/github.yml", 4.0, 3, "failure"),
        ("ci/gitlab.yml", 4.0, 3, "failure"),
        ("ci/github.yml", 2.0, 0, "passed"),
        ("ci/gitlab.yml", 2.0, 0, "passed"),
    ] {
        for (directory, name, seed, stall_s) in
            [("reference", "old", 0, 2.0), ("runs", "new", 10, stall_s)]
        {
            let directory = folder.path().join(directory);
            fs::create_dir_all(&directory).unwrap();
            for i in 1..=5 {
                record(
                    &directory,
                    &format!("{name}-{i}.jsonl"),
                    seed + i,
                    stall_s,
                    "6.12.1",
                );
            }
        }
        let mut shell = Command::new("bash");
        shell
            .args(["-e", "-c", &commands_of(pipeline)])
            .current_dir(folder.path())
            .env("PATH", format!("{}:{path}", folder.path().display()))
            .env("GITHUB_STEP_SUMMARY", folder.path().join("summary.md"));
        let done = run(shell);
        assert_eq!(done.code(), Some(code), "{pipeline}: {}", done.text());
        let cases = junit(&folder.path().join("trim.xml"));
        assert!(
            cases.len() == 2 && cases.iter().all(|[_, one, _]| one == tag),
            "{cases:?}"
        );
    }
    let summary = fs::read_to_string(folder.path().join("summary.md")).unwrap();
    assert!(summary.starts_with("**new against old"), "{summary}");
}

/// As SLURM runs them: as root, with its variables and no others.
#[test]
fn the_prolog_makes_scratch_and_the_epilog_removes_and_trims_it() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let made = LoopFs::new(Fs::Ext4, "nodiscard", 256, On::Tmpfs);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let logger = format!(
        "#!/bin/sh\necho \"$@\" >>{0}\nexec cat >>{0}\n",
        log.display()
    );
    executable(&folder.path().join("logger"), &logger);
    let hook = |name: &str| {
        let mut command = Command::new(format!("{DEPLOY}/slurm/{name}"));
        command.env_clear().envs([
            ("PATH", folder.path().to_str().unwrap()),
            ("STATE_DIRECTORY", folder.path().to_str().unwrap()),
            ("SCRATCH", made.path().to_str().unwrap()),
            ("SLURM_JOB_ID", "4711"),
            ("SLURM_JOB_UID", "1234"),
        ]);
        run(command).succeeds();
    };
    // A node is not drained, whatever happens.
    let program = folder.path().join("trimbench");
    executable(&program, "#!/bin/sh\necho it fails >&2\nexit 1\n");
    hook("epilog");
    assert!(fs::read_to_string(&log).unwrap().contains("it fails"));
    fs::remove_file(&program).unwrap();
    symlink(env!("CARGO_BIN_EXE_trimbench"), &program).unwrap();
    hook("prolog");
    let scratch = made.path().join("4711");
    let found = scratch.metadata().unwrap();
    assert_eq!((found.uid(), found.mode() & 0o777), (1234, 0o700));
    let file = scratch.join("checkpoint");
    fs::write(&file, vec![7; 64 << 20]).unwrap();
    fs::File::open(&file).unwrap().sync_all().unwrap();
    let before = made.device().discards().1;
    hook("epilog");
    assert!(!scratch.exists());
    assert!(
        made.device().discards().1 - before >= 64 << 20,
        "{}",
        fs::read_to_string(&log).unwrap()
    );
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
    assert_eq!(commands, ["fstrim", "fstrim", "guard", "watch"]);
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
        ("volume.yaml", "fstrim", "trimbench-fstrim.service"),
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
fn the_commands_of_the_fleets_page_are_known() {
    let text = fs::read_to_string(format!("{DEPLOY}/../docs/fleet.md")).unwrap();
    let blocks = text.split("```sh\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().unwrap().lines());
    let lines = lines.filter(|line| line.starts_with("trimbench "));
    let commands = lines.map(|line| shlex::split(&line.replace(" > fleet.jsonl", "")).unwrap());
    let commands: Vec<_> = commands.collect();
    for command in &commands {
        knows("fleet.md", &command[1..]);
    }
    assert_eq!(commands.len(), 4);
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
