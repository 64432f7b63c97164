//! Foregrounds beyond reads: writers, logs, mixes, tasks, and several at once.

use crate::common::gate::{LOOP_EXT4, Turn, alone, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::common::run::run;
use crate::quick::{Files, Measured, command_on, measure, number};

fn loaded(arguments: &[&str]) -> Option<Measured> {
    loaded_in(beside(), arguments)
}

/// A run that deletes nothing: only its foregrounds are looked at.
fn loaded_in(_turn: Turn, arguments: &[&str]) -> Option<Measured> {
    if lacks(LOOP_EXT4) {
        return None;
    }
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", 2 * SMALL, On::Tmpfs);
    let arguments = [&["--delete", "none"], arguments].concat();
    let measured = measure(fs.path(), &arguments).succeeds();
    assert_eq!(fs.names(), [""; 0], "it left something behind");
    Some(measured)
}

/// Names of the series, the canary's left out.
fn names(measured: &Measured) -> Vec<&str> {
    let actors = measured.head()["actors"].as_array().unwrap();
    let names = actors.iter().map(|actor| actor["name"].as_str().unwrap());
    names.filter(|name| *name != "canary").collect()
}

#[track_caller]
fn all_worked(measured: &Measured) {
    for index in 0..names(measured).len() {
        let name = &measured.actor(index)["name"];
        assert!(measured.total(index, "ops") > 0, "{name} was idle");
        assert_eq!(measured.total(index, "errors"), 0, "{name}");
    }
}

#[test]
fn a_mix_has_a_series_of_reads_and_one_of_writes() {
    let arguments = [
        "--op",
        "mixed",
        "--set",
        "actor.reads=80%",
        "--baseline",
        "1s",
    ];
    let Some(measured) = loaded(&arguments) else {
        return;
    };
    assert_eq!(names(&measured), ["mixed-read", "mixed-write"]);
    all_worked(&measured);
    let (reads, writes) = (measured.total(0, "ops"), measured.total(1, "ops"));
    let share = reads as f64 / (reads + writes) as f64;
    assert!((0.75..0.85).contains(&share), "{share}");
}

#[test]
fn append_writes_a_file_of_its_own() {
    let Some(measured) = loaded(&["--op", "append", "--set", "actor.block-size=64k"]) else {
        return;
    };
    assert_eq!(names(&measured), ["appender"]);
    all_worked(&measured);
    assert_eq!(measured.actor(0)["block_bytes"], 65536);
}

#[test]
fn every_task_works_as_the_foreground() {
    for task in [
        "save",
        "append-fsync",
        "overwrite-fdatasync",
        "metadata",
        "syncfs",
    ] {
        // Once a second is too seldom for half a second.
        let Some(measured) = loaded(&["--op", task, "--rate", "20"]) else {
            return;
        };
        all_worked(&measured);
        let first = names(&measured)[0].to_owned();
        assert!(first.starts_with(task), "{task}: {first}");
        assert_eq!(measured.actor(0)["engine"], "sync", "{task}");
    }
}

#[test]
fn the_second_of_two_syncs_is_a_series_of_its_own() {
    let Some(measured) = loaded(&["--actor", "syncfs,rate=5"]) else {
        return;
    };
    assert_eq!(names(&measured), ["reader", "syncfs-first", "syncfs-again"]);
    all_worked(&measured);
    // This one waits for every file system of the machine, those of other tests and those that
    // they freeze among them; how often it ends in a second is no matter of ours.
    let arguments = ["--actor", "sync,rate=5", "--baseline", "1s"];
    let Some(measured) = loaded_in(alone(), &arguments) else {
        return;
    };
    assert_eq!(names(&measured), ["reader", "sync-first", "sync-again"]);
    assert!(measured.total(0, "ops") > 0);
    assert_eq!(measured.total(1, "errors") + measured.total(2, "errors"), 0);
}

#[test]
fn actors_run_beside_the_reader() {
    let arguments = [
        "--actor",
        "save",
        "--actor",
        "append-fsync,rate=50,block-size=16k,size=16M",
        "--actor",
        "name=pages,op=write,depth=2",
    ];
    let Some(measured) = loaded(&arguments) else {
        return;
    };
    assert_eq!(
        names(&measured),
        ["reader", "save", "append-fsync", "pages"]
    );
    all_worked(&measured);
    let log = measured.actor(2);
    assert_eq!(
        (&log["loop"], number(&log["rate_per_s"])),
        (&"open".into(), 50.0)
    );
    assert_eq!(log["block_bytes"], 16384);
}

#[test]
fn engine_libaio_is_had() {
    let Some(measured) = loaded(&["--engine", "libaio"]) else {
        return;
    };
    assert_eq!(measured.actor(0)["engine"], "libaio");
    all_worked(&measured);
}

#[test]
fn engine_mmap_dirties_pages_that_reach_the_drive() {
    for engine in ["mmap", "mmap-sync"] {
        let writer = "name=pages,op=write,depth=2";
        let Some(measured) = loaded(&["--engine", engine, "--actor", writer]) else {
            return;
        };
        all_worked(&measured);
        let engines = [0, 1].map(|i| measured.actor(i)["engine"].clone());
        assert_ne!(engines[0], engine, "the reader maps nothing");
        assert_eq!(engines[1], engine);
        assert_eq!(measured.actor(1)["direct"], false);
    }
}

#[test]
fn mapped_writes_beside_a_deletion_have_a_lumpiness_and_are_no_stall() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", 2 * SMALL, On::Tmpfs);
    let arguments = [
        "--engine",
        "mmap-sync",
        "--op",
        "write",
        "--set",
        "canary=0",
    ];
    let arguments = [&arguments[..], &["--baseline", "1s"]].concat();
    let measured = measure(fs.path(), &arguments).succeeds();
    let writes = &measured.verdict["writes"];
    for phase in ["baseline", "delete"] {
        assert!(number(&writes[phase]["bytes_per_s"]) > 0.0, "{writes}");
    }
    assert!(number(&writes["baseline"]["lumpiness"]) >= 0.0, "{writes}");
    assert!(measured.done.text().contains("/s ± "));
    let verdict = measured.verdict["verdict"].as_str().unwrap();
    assert!(["none", "inconclusive"].contains(&verdict), "{verdict}");
}

#[test]
fn the_engine_mmap_without_a_writer_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let refused = measure(place.path(), &["--engine", "mmap"]);
    refused.done.fails_with(2, &["--engine mmap", "--op write"]);
}

#[test]
fn what_an_actor_cannot_be_is_told() {
    let place = tempfile::tempdir().unwrap();
    let files = Files::new();
    let refused = |arguments: &[&str], words: &[&str]| {
        let arguments = [&["--dry-run"], arguments].concat();
        run(command_on(place.path(), &files, &arguments)).fails_with(2, words);
    };
    refused(
        &["--actor", "sav"],
        &["--actor", "there is no operation 'sav'", "save"],
    );
    refused(&["--actor", "read,dept=3"], &["did you mean 'depth'?"]);
    refused(
        &["--actor", "save,pattern=random"],
        &["pattern", "op = read"],
    );
    refused(&["--actor", "name=Big,op=read"], &["'Big'", "lower-case"]);
    refused(
        &["--set", "actor.reads=70%"],
        &["--set actor.reads", "op = mixed"],
    );
    refused(
        &["--op", "mixed", "--set", "actor.reads=100%"],
        &["actor.reads=100%", "1% to 99%"],
    );
    refused(
        &["--op", "save", "--set", "actor.batch=2"],
        &["--set actor.batch", "op = read"],
    );
    let tasks_alone = ["--op", "save", "--set", "canary=0"];
    refused(
        &[&tasks_alone[..], &["--set", "foreground.size=16M"]].concat(),
        &["only does something with a reader"],
    );
}
