//! More files than may be open at once, and more extents than space for them.

use std::process::Command;

use crate::common::gate::{LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::common::run::run;
use crate::quick::{Files, begin, command_on};

fn file_system(mib: u64) -> Option<LoopFs> {
    (!lacks(LOOP_EXT4)).then(|| LoopFs::new(Fs::Ext4, "nodiscard", mib, On::Tmpfs))
}

/// The run with so few files that it, or anybody, may have open.
fn limited(fs: &LoopFs, files: &Files, limit: &str, arguments: &[&str]) -> Command {
    let whole = command_on(fs.path(), files, arguments);
    let mut command = Command::new("prlimit");
    command.arg(format!("--nofile={limit}"));
    command.arg(whole.get_program()).args(whole.get_args());
    command
}

#[test]
fn many_files_need_not_be_open_at_once() {
    let _turn = beside();
    let Some(fs) = file_system(SMALL) else { return };
    let files = Files::new();
    let arguments = ["--files", "500", "--size", "4M"];
    let done = run(limited(&fs, &files, "320", &arguments));
    let measured = files.read(done).succeeds();
    let deleted = measured.lines("deletion").next().unwrap();
    assert_eq!(deleted["files"], 500);
}

#[test]
fn what_keeps_extents_apart_may_be_open_as_often_as_is_allowed() {
    let _turn = beside();
    let Some(fs) = file_system(SMALL) else { return };
    let arguments = [
        "--files",
        "100",
        "--size",
        "4M",
        "--set",
        "deletion.extent-size=8k",
    ];
    let files = Files::new();
    let done = run(limited(&fs, &files, "64:1024", &arguments));
    files.read(done).succeeds();
    let files = Files::new();
    run(limited(&fs, &files, "64:100", &arguments)).fails_with(2, &["--files", "ulimit -n"]);
    let dry = [&arguments[..], &["--dry-run"]].concat();
    run(limited(&fs, &files, "64:100", &dry)).fails_with(2, &["--files", "ulimit -n"]);
    assert_eq!(fs.names(), [""; 0]);
}

#[test]
fn small_extents_leave_the_reserve_free() {
    let _turn = beside();
    let Some(fs) = file_system(SMALL) else { return };
    let reserve = 1 << 30;
    let room = fs.free() - reserve - (16 << 20);
    let extents = |bytes: u64| {
        let size = (bytes >> 20 << 20).to_string();
        ["--set", "deletion.extent-size=4k", "--size"]
            .map(str::to_owned)
            .into_iter()
            .chain([size])
            .collect::<Vec<_>>()
    };
    // The data alone would fit.
    let too_much = extents(room / 2);
    let too_much: Vec<&str> = too_much.iter().map(String::as_str).collect();
    run(command_on(fs.path(), &Files::new(), &too_much)).fails_with(2, &["too little space"]);

    let enough = extents(room / 4);
    let enough: Vec<&str> = enough.iter().map(String::as_str).collect();
    let files = Files::new();
    let mut running = begin(fs.path(), &files, &enough);
    let mut least = u64::MAX;
    running.until("the files", || {
        least = least.min(fs.free());
        files.in_phase("baseline")
    });
    let measured = files.read(running.wait()).succeeds();
    assert!(
        measured
            .done
            .stdout
            .contains("Keeping the extents apart takes")
    );
    assert!(
        least < reserve + room / 2,
        "never looked while files were made"
    );
    assert!(
        least >= reserve,
        "{} MiB too little",
        (reserve - least) >> 20
    );
}

#[test]
fn extents_that_are_no_whole_blocks_are_refused_before_anything_is_written() {
    let _turn = beside();
    let Some(fs) = file_system(SMALL) else { return };
    let before = fs.free();
    let done = run(command_on(
        fs.path(),
        &Files::new(),
        &["--set", "deletion.extent-size=6000"],
    ));
    done.fails_with(2, &["deletion.extent-size", "4096"]);
    assert_eq!((fs.free(), fs.names()), (before, Vec::new()));
}
