//! Every scenario that is shipped, run small: its record shows what its file promises.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::common::gate::{LOOP_EXT4, Need, beside, lacks, soak};
use crate::common::loop_fs::{Fs, LoopFs, On};
use crate::common::run::{run, trimbench};
use crate::quick::{Measured, measure, number};

const SIZE: u64 = 64 << 20;
/// Room for the logs and tables that some actors keep; sparse.
const ROOM: u64 = 8 * 1024;

fn scenarios(arguments: &[&str]) -> String {
    let mut command = trimbench();
    command.arg("scenarios").args(arguments);
    run(command).succeeds().stdout.clone()
}

/// The shipped ones, as the list has them.
fn names() -> Vec<String> {
    scenarios(&[])
        .lines()
        .take_while(|line| !line.is_empty())
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect()
}

#[test]
fn a_key_is_found_by_its_last_part() {
    let found = scenarios(&["keys", "files"]);
    assert!(found.contains("  deletion.files "), "{found}");
    assert!(found.contains("trimbench suite"), "{found}");
    let one = scenarios(&["keys", "deletion.how"]);
    assert!(
        one.contains("unlink the files") && !one.contains("deletion.files"),
        "{one}"
    );
}

/// A scenario's file: its actors and its deletion, by key.
struct File {
    actors: Vec<String>,
    deletion: BTreeMap<String, String>,
}

impl File {
    fn of(name: &str) -> File {
        let text = scenarios(&["show", name]);
        let mut file = File {
            actors: Vec::new(),
            deletion: BTreeMap::new(),
        };
        let mut section = "";
        for line in text.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let Some((key, value)) = line.split_once(" = ") else {
                continue;
            };
            let value = value.split_once(" #").map_or(value, |(value, _)| value);
            let value = value.trim().trim_matches('"').to_owned();
            match (section, key) {
                ("[[actor]]", "name") => file.actors.push(value),
                ("[deletion]", _) => drop(file.deletion.insert(key.to_owned(), value)),
                _ => {}
            }
        }
        file
    }

    fn how(&self) -> &str {
        &self.deletion["how"]
    }

    fn is_continuous(&self) -> bool {
        ["lsm", "spill"].contains(&self.how())
    }

    /// The options that make it short. `sync` also waits for other tests' file systems, and for
    /// those that hang on purpose.
    fn hurried(&self) -> &'static [&'static str] {
        match self.how() {
            _ if self.actors.iter().any(|name| name == "sync") => {
                &["--actor", "name=sync,op=syncfs,rate=5"]
            }
            "truncate" | "punch" => &["--set", "deletion.chunk=8M", "--set", "deletion.sleep=10ms"],
            "purge" => &["--set", "deletion.every=100ms"],
            "lsm" => &[
                "--set",
                "deletion.file-size=1M",
                "--set",
                "deletion.write-rate=64M",
                "--set",
                "deletion.for=2s",
            ],
            "spill" => &["--set", "deletion.sleep=50ms", "--set", "deletion.for=2s"],
            _ => &[],
        }
    }
}

fn keeps_its_promise(name: &str, kind: Fs) {
    let file = File::of(name);
    // What a mount with discard has discarded already fstrim needn't.
    let options = match file.how() {
        "fstrim" => "nodiscard",
        _ => "discard",
    };
    let fs = LoopFs::new(kind, options, ROOM, On::Tmpfs);
    let short = [
        "--size",
        "64M",
        "--baseline",
        "500ms",
        "--set",
        "phases.drain-limit=20s",
        "--scenario",
        name,
    ];
    let measured = measure(fs.path(), &[&short, file.hurried()].concat()).succeeds();
    let text = measured.done.text();
    assert_eq!(fs.names(), [""; 0], "{name}: it left something behind");
    assert!(text.contains("Look at: "), "{name}: {text}");
    assert_eq!(measured.head()["scenario"]["scenario"], name);
    every_actor_worked(name, &file, &measured);
    the_deletion_was_made(name, &file, &measured);
    // Btrfs puts discards off; elsewhere what was freed was discarded.
    let discarded = number(&measured.verdict["discard"]["bytes"]);
    let expected = match (kind, file.is_continuous()) {
        (Fs::Btrfs, _) => 0.0,
        (_, true) => 1.0,
        (_, false) => 0.9 * SIZE as f64,
    };
    assert!(discarded >= expected, "{name}: {discarded} of {text}");
}

fn every_actor_worked(name: &str, file: &File, measured: &Measured) {
    let series = measured.head()["actors"].as_array().unwrap();
    assert!(!file.actors.is_empty(), "{name}: an actor without a name");
    for actor in &file.actors {
        let own: Vec<usize> = series
            .iter()
            .enumerate()
            .filter(|(_, info)| belongs_to(info, actor))
            .map(|(index, _)| index)
            .collect();
        assert!(!own.is_empty(), "{name}: no series of {actor}");
        for index in own {
            assert!(measured.total(index, "ops") > 0, "{name}: {actor} was idle");
            assert_eq!(measured.total(index, "errors"), 0, "{name}: {actor}");
        }
    }
}

fn belongs_to(info: &Value, actor: &str) -> bool {
    let name = info["name"].as_str().unwrap();
    name == actor
        || name
            .strip_prefix(actor)
            .is_some_and(|rest| rest.starts_with('-'))
}

fn the_deletion_was_made(name: &str, file: &File, measured: &Measured) {
    let deletion = measured.deletion();
    let continuous = deletion["continuous"] == true;
    assert_eq!(continuous, file.is_continuous(), "{name}: {deletion}");
    if file.how() == "fstrim" {
        return;
    }
    let files = deletion["files"].as_u64().unwrap();
    let bytes = deletion["bytes"].as_u64().unwrap();
    if continuous {
        assert!(files > 1 && bytes > 0, "{name}: {deletion}");
    } else {
        let wanted = file.deletion.get("files").map_or("1", String::as_str);
        assert_eq!(files.to_string(), wanted, "{name}: {deletion}");
        assert!(bytes >= SIZE * 9 / 10, "{name}: {deletion}");
    }
}

/// Each is a test of its own to the gate, which lets in as many as may run at once.
#[test]
fn each_keeps_its_promise() {
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("mkfs.xfs"), Need::Tool("mkfs.btrfs")]) {
        return;
    }
    let kinds: &[Fs] = match soak() {
        true => &[Fs::Ext4, Fs::Xfs, Fs::Btrfs],
        false => &[Fs::Ext4],
    };
    let mut names = names();
    // Its ground is a drive: see gain.rs.
    names.retain(|name| name != "never-trimmed");
    assert!(names.len() > 10, "{names:?}");
    std::thread::scope(|scope| {
        for name in &names {
            scope.spawn(move || {
                let _turn = beside();
                kinds.iter().for_each(|&kind| keeps_its_promise(name, kind));
            });
        }
    });
}

#[test]
fn the_list_tells_each_with_what_it_is() {
    let list = scenarios(&[]);
    for name in ["big-delete", "drop-table", "lsm-compaction", "fragmented"] {
        let line = list.lines().find(|line| line.starts_with(name));
        let about = line.unwrap_or_else(|| panic!("{name} missing in {list}"));
        assert!(about.len() > name.len() + 20, "{about}");
    }
    assert!(list.lines().all(|line| line.len() <= 100), "{list}");
}

#[test]
fn what_show_prints_is_a_scenario_again() {
    let directory = tempfile::tempdir().unwrap();
    for name in names() {
        let path = directory.path().join("mine.toml");
        std::fs::write(&path, scenarios(&["show", &name])).unwrap();
        let list = crate::own_scenario::dry(&path, &[]);
        assert!(
            !list.stderr.contains("mine.toml"),
            "{name}: {}",
            list.text()
        );
    }
}

#[test]
fn an_unknown_one_is_answered_with_the_nearest() {
    let mut command = trimbench();
    command.args(["scenarios", "show", "drop-tabel"]);
    run(command).fails_with(2, &["drop-tabel", "did you mean 'drop-table'?"]);
    let mut command = trimbench();
    command.args(["run", "--dry-run", "--scenario", "zzz"]);
    run(command).fails_with(2, &["no scenario 'zzz'", "trimbench scenarios"]);
}

#[test]
fn the_default_is_big_delete() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    let plain = measure(fs.path(), &[]).succeeds();
    let named = measure(fs.path(), &["--scenario", "big-delete"]).succeeds();
    let without_name = |measured: &Measured| {
        let mut plan = measured.head()["scenario"].clone();
        plan["scenario"] = Value::Null;
        // Only a scenario that is named says what to look at.
        plan["look_at"] = Value::Null;
        plan
    };
    assert_eq!(without_name(&plain), without_name(&named));
    // The phases are given in each run, so they are compared as written.
    let text = scenarios(&["show", "big-delete"]);
    for phase in [
        "settle = \"60s\"",
        "baseline = \"10s\"",
        "recovery = \"10s\"",
    ] {
        assert!(text.contains(phase), "{text}");
    }
}
