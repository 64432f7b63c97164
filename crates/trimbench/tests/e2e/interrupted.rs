//! Ctrl-C and SIGTERM, in every phase: the record ends and says so, files are removed.

use std::time::Duration;

use rustix::process::Signal;

use crate::common::gate::{LOOP_EXT4, beside, lacks, times};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::common::run::Running;
use crate::quick::{Files, begin};

/// Interrupts a run in a phase that is long enough to be found.
fn interrupt(fs: &LoopFs, phase: &str, arguments: &[&str], signal: Signal) {
    let options = fs.options();
    let files = Files::new();
    let mut running = begin(fs.path(), &files, arguments);
    running.until(phase, || files.in_phase(phase));
    ends_cleanly(fs, &files, running, phase, signal);
    assert_eq!(fs.options(), options);
}

fn ends_cleanly(fs: &LoopFs, files: &Files, running: Running, phase: &str, signal: Signal) {
    running.signal(signal);
    let measured = files.read(running.wait());
    let text = measured.done.text();
    let code = 128 + signal.as_raw();
    assert_eq!(measured.done.code(), Some(code), "{phase}: {text}");
    assert!(text.contains("nterrupted"), "{phase}: {text}");
    assert_eq!(
        measured.phases().last(),
        Some(&phase),
        "it was another phase"
    );
    assert_eq!(measured.end()["reason"], "interrupted", "{phase}");
    assert!(measured.happened("interrupted"), "{phase}");
    assert_eq!(fs.names(), [""; 0], "{phase}: it left something behind");
}

const IN_EACH_PHASE: [(&str, &[&str]); 5] = [
    ("prepare", &["--size", "2G"]),
    ("settle", &["--settle", "1h"]),
    ("baseline", &["--baseline", "1h"]),
    (
        "delete",
        &[
            "--delete",
            "truncate",
            "--set",
            "deletion.chunk=1M",
            "--set",
            "deletion.sleep=1s",
        ],
    ),
    ("recovery", &["--recovery", "1h"]),
];

#[test]
fn ctrl_c_in_every_phase() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", 2 * SMALL, On::Tmpfs);
    for _ in 0..times(1, 20) {
        for (phase, arguments) in IN_EACH_PHASE {
            interrupt(&fs, phase, arguments, Signal::INT);
        }
    }
}

#[test]
fn sigterm_in_every_phase() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", 2 * SMALL, On::Tmpfs);
    for _ in 0..times(1, 20) {
        for (phase, arguments) in IN_EACH_PHASE {
            interrupt(&fs, phase, arguments, Signal::TERM);
        }
    }
}

#[test]
fn in_the_middle_of_a_deletion_that_goes_on() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", 2 * SMALL, On::Tmpfs);
    let lsm = [
        "--delete",
        "lsm",
        "--set",
        "deletion.file-size=1M",
        "--set",
        "deletion.for=1h",
    ];
    let spill = [
        "--delete",
        "spill",
        "--set",
        "deletion.for=1h",
        "--op",
        "save",
    ];
    let purge = [
        "--delete",
        "purge",
        "--set",
        "deletion.every=1h",
        "--actor",
        "sync",
    ];
    for arguments in [&lsm[..], &spill, &purge] {
        interrupt(&fs, "delete", arguments, Signal::INT);
    }
}

#[test]
fn while_discards_are_waited_for() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    // Without journal commits of its own, the file system sends none for long.
    let fs = LoopFs::new(Fs::Ext4, "discard,commit=300", SMALL, On::Tmpfs);
    let files = Files::new();
    let mut running = begin(
        fs.path(),
        &files,
        &[
            "--set",
            "deletion.no-sync=true",
            "--set",
            "phases.drain-limit=1h",
        ],
    );
    running.until("the deletion returned", || {
        std::fs::read_to_string(files.record())
            .is_ok_and(|text| text.contains("\"deletion-returned\""))
    });
    ends_cleanly(&fs, &files, running, "delete", Signal::INT);
}

#[test]
fn in_a_remounted_control_the_options_come_back() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    for _ in 0..times(1, 20) {
        for signal in [Signal::INT, Signal::TERM] {
            let before = fs.options();
            let files = Files::new();
            let arguments = ["--control=remount", "--baseline", "1h"];
            let mut running = begin(fs.path(), &files, &arguments);
            running.until("the remount", || fs.options() != before);
            running.until("the baseline", || files.in_phase("baseline"));
            ends_cleanly(&fs, &files, running, "baseline", signal);
            assert_eq!(fs.options(), before);
        }
    }
}

#[test]
fn an_outside_program_is_ended_too() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    let files = Files::new();
    let program = "sh -c 'echo $$ > /dev/stderr; exec sleep 1000' {}";
    let theirs = sleepers();
    let ours = || -> Vec<String> {
        let new = |pid: &String| !theirs.contains(pid);
        sleepers().into_iter().filter(new).collect()
    };
    let mut running = begin(fs.path(), &files, &["--delete", program]);
    running.until("the program", || !ours().is_empty());
    ends_cleanly(&fs, &files, running, "delete", Signal::INT);
    assert_eq!(ours(), [""; 0], "it still runs");
}

#[test]
fn the_trash_of_our_own_rm_goes_too() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", SMALL, On::Tmpfs);
    let files = Files::new();
    let program = format!(
        "{} rm --chunk 1M --sleep 1s {{}}",
        env!("CARGO_BIN_EXE_trimbench")
    );
    let mut running = begin(fs.path(), &files, &["--delete", &program]);
    running.until("a trash", || {
        let work = std::fs::read_dir(fs.path()).unwrap().flatten();
        let mut inside = work.flat_map(|entry| std::fs::read_dir(entry.path()));
        inside.any(|mut names| {
            names.any(|name| {
                let name = name.unwrap().file_name();
                name.to_string_lossy().starts_with(".trimbench-trash-")
            })
        })
    });
    ends_cleanly(&fs, &files, running, "delete", Signal::INT);
}

/// Processes that `sleep 1000`.
fn sleepers() -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            std::fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == b"sleep\x001000\0")
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_second_ctrl_c_ends_it_at_once() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    let files = Files::new();
    let place = tempfile::tempdir().unwrap();
    let deaf = place.path().join("deaf");
    // It doesn't heed SIGTERM, so that the first Ctrl-C waits until it is killed, 2 s later.
    let program = format!(
        "sh -c 'trap \"\" TERM; echo > {}; sleep 20' {{}}",
        deaf.display()
    );
    let mut running = begin(fs.path(), &files, &["--delete", &program]);
    running.until("the program", || deaf.exists());
    running.signal(Signal::INT);
    // Far enough apart not to be one signal.
    std::thread::sleep(Duration::from_millis(300));
    assert!(!running.is_over(), "the first did not wait");
    running.signal(Signal::INT);
    let done = running.wait();
    assert_eq!(done.code(), Some(130), "{}", done.text());
    let measured = files.read(done);
    assert_eq!(
        measured.lines("end").count(),
        0,
        "the first ended it, not the second"
    );
    // Whatever that left, the next start removes.
    crate::quick::measure(fs.path(), &["--delete", "none"]).succeeds();
    assert_eq!(fs.names(), [""; 0]);
}
