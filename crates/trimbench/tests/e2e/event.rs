//! Deletions by other programs, watched with `--event`; and programs that delete nothing.

use std::path::Path;

use rustix::process::Signal;

use crate::common::gate::{LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::common::run::{run, trimbench};
use crate::quick::{Files, Measured, command_on, measure, number};

const MIB: u64 = 1 << 20;

/// A file system with another program's file on it; `None` where none can be made.
fn with_old_file(options: &str) -> Option<LoopFs> {
    if lacks(LOOP_EXT4) {
        return None;
    }
    let fs = LoopFs::new(Fs::Ext4, options, SMALL, On::Tmpfs);
    let old = fs.path().join("old");
    std::fs::write(&old, vec![7; 48 * MIB as usize]).unwrap();
    rustix::fs::syncfs(std::fs::File::open(&old).unwrap()).unwrap();
    Some(fs)
}

fn rm_old(fs: &LoopFs) -> String {
    format!("rm {}", fs.path().join("old").display())
}

/// The event, with no size of a deletion of our own.
fn watched(path: &Path, arguments: &[&str]) -> Measured {
    let files = Files::new();
    let mut command = trimbench();
    command.arg("run").arg(path).args(arguments);
    for option in [
        "--set=foreground.size=16M",
        "--settle=0s",
        "--recovery=200ms",
        "--set=phases.interval=50ms",
    ] {
        command.arg(option);
    }
    command.arg("--json").arg(files.verdict());
    command.arg("--output").arg(files.record());
    files.read(run(command))
}

#[test]
fn event_frees_what_the_free_space_says_and_its_discards_are_counted() {
    let _turn = beside();
    let Some(fs) = with_old_file("discard") else {
        return;
    };
    let arguments = ["--event", &rm_old(&fs), "--baseline", "700ms"];
    let measured = watched(fs.path(), &arguments).succeeds();
    assert!(fs.names().is_empty(), "it left something behind");
    let freed = measured.deletion()["bytes"].as_u64().unwrap();
    assert!((47 * MIB..49 * MIB).contains(&freed), "{freed}");
    assert_eq!(measured.deletion()["space_freed_bytes"], freed);
    assert_eq!(measured.deletion()["exit_code"], 0);
    let told = &measured.verdict["deletion"];
    assert_eq!(told["event"], *rm_old(&fs));
    assert_eq!(told["bytes"], freed);
    let discarded = number(&measured.verdict["discard"]["bytes"]);
    assert!(discarded > 0.9 * freed as f64, "{discarded}");
    let summary = measured.verdict["summary"].as_str().unwrap();
    assert!(summary.contains("`rm "), "{summary}");
    assert!(measured.phase_s("baseline") >= 0.69);
    assert!(measured.happened("deletion-began"));
}

#[test]
fn event_is_over_when_the_discards_have_been_quiet_for_event_quiet() {
    let _turn = beside();
    let Some(fs) = with_old_file("discard") else {
        return;
    };
    let base = ["--event", &rm_old(&fs), "--baseline", "500ms"];
    let arguments = [
        &base[..],
        &[
            "--set",
            "deletion.event-quiet=4s",
            "--set",
            "deletion.no-sync=true",
        ],
    ]
    .concat();
    let measured = watched(fs.path(), &arguments).succeeds();
    assert!(measured.phase_s("delete") >= 3.9);
    assert!(!measured.happened("commit-forced"));
}

#[test]
fn event_that_fails_is_reported_with_its_exit_code() {
    let _turn = beside();
    let Some(fs) = with_old_file("discard") else {
        return;
    };
    let script = format!("sh -c \"{}; echo no table >&2; exit 3\"", rm_old(&fs));
    let measured = watched(fs.path(), &["--event", &script, "--baseline", "500ms"]).succeeds();
    assert_eq!(measured.deletion()["exit_code"], 3);
    assert_eq!(measured.verdict["deletion"]["exit_code"], 3);
    let warnings = measured.warnings();
    assert!(warnings.contains("exited with 3"), "{warnings}");
    assert!(warnings.contains("no table"), "{warnings}");
    assert!(measured.done.stdout.contains("exited with 3"));
}

#[test]
fn event_that_frees_nothing_is_inconclusive() {
    let _turn = beside();
    let Some(fs) = with_old_file("discard") else {
        return;
    };
    let arguments = [
        "--event",
        "true",
        "--baseline=500ms",
        "--fail-on",
        "stall>1s",
    ];
    let measured = watched(fs.path(), &arguments);
    measured.done.fails_with(1, &["`true`", "freed nothing"]);
    assert_eq!(measured.verdict["verdict"], "inconclusive");
    assert_eq!(measured.reasons()[0], "nothing-deleted");
}

#[test]
fn event_of_a_scenario_is_run() {
    let _turn = beside();
    let Some(fs) = with_old_file("discard") else {
        return;
    };
    let dir = tempfile::TempDir::new().unwrap();
    let scenario = dir.path().join("purge.toml");
    let text = format!(
        "[deletion]\nhow = \"event\"\nevent = '{}'\n[phases]\nbaseline = \"300ms\"\n",
        rm_old(&fs)
    );
    std::fs::write(&scenario, text).unwrap();
    let arguments = ["--scenario", scenario.to_str().unwrap()];
    let measured = watched(fs.path(), &arguments).succeeds();
    assert_eq!(measured.verdict["deletion"]["event"], *rm_old(&fs));
    assert!(measured.deletion()["bytes"].as_u64() > Some(47 * MIB));
}

#[test]
fn event_that_is_interrupted_is_ended_with_its_children() {
    let _turn = beside();
    let Some(fs) = with_old_file("discard") else {
        return;
    };
    let alive = fs.path().join("alive");
    let script = format!("sh -c 'echo $$ > {}; sleep 600'", alive.display());
    let mut command = trimbench();
    command.arg("run").arg(fs.path()).args(["--event", &script]);
    command.args([
        "--set=foreground.size=16M",
        "--settle=0s",
        "--baseline=300ms",
    ]);
    let mut running = crate::common::run::start(command);
    running.until("the event", || {
        std::fs::read_to_string(&alive).is_ok_and(|text| text.ends_with('\n'))
    });
    let pid = std::fs::read_to_string(&alive).unwrap();
    running.signal(Signal::INT);
    running.wait().fails_with(130, &["interrupted"]);
    let gone = || !Path::new("/proc").join(pid.trim()).exists();
    let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !gone() && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(gone(), "the event's command lives on");
}

#[test]
fn a_program_that_deletes_nothing_gives_no_verdict() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", SMALL, On::Tmpfs);
    let kept = fs.path().join("kept");
    let moves = format!("mv {{}} {}", kept.display());
    for program in ["true {}", &moves] {
        // No discards come of a file that was only moved.
        let base = ["--delete", program, "--set", "phases.drain-limit=1s"];
        let arguments = [&base[..], &["--fail-on", "stall>1s"]].concat();
        let files = Files::new();
        let measured = files.read(run(command_on(fs.path(), &files, &arguments)));
        measured.done.fails_with(1, &["nothing was deleted"]);
        assert_eq!(measured.verdict["verdict"], "inconclusive", "{program}");
        assert_eq!(measured.reasons()[0], "nothing-deleted", "{program}");
    }
    let freed = measure(fs.path(), &["--delete", "rm {}"]).succeeds();
    let space = freed.deletion()["space_freed_bytes"].as_u64().unwrap();
    assert!(space >= 32 * MIB, "{space}");
    assert!(!freed.reasons().contains(&"nothing-deleted"));
}
