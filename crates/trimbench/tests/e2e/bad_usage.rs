//! Arguments that make no sense are refused before anything is done.

use crate::common::run::{run, trimbench};

/// Runs on the temporary directory: the refusal must come before it is touched.
fn refused(arguments: &[&str], words: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = trimbench();
    command
        .args(["run", "--dry-run"])
        .args(arguments)
        .arg(directory.path());
    run(command).fails_with(2, words);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn no_size_is_no_run() {
    refused(&["--size", "0"], &["--size", "more than 0"]);
    refused(
        &["--set", "foreground.size=0"],
        &["foreground.size", "more than 0"],
    );
    refused(
        &["--set", "actor.block-size=0"],
        &["actor.block-size", "more than 0"],
    );
    refused(
        &["--set", "deletion.extent-size=0"],
        &["deletion.extent-size", "more than 0"],
    );
    refused(&["--size", "lots"], &["--size", "lots"]);
    refused(&["--size=-1G"], &["--size"]);
    refused(&["--size", "99999999999T"], &["--size"]);
}

#[test]
fn depth_0_asks_for_nothing() {
    refused(&["--depth", "0"], &["--depth 0", "from 1 to 4096"]);
    refused(
        &["--set", "actor.batch=0"],
        &["actor.batch=0", "from 1 to 4096"],
    );
    refused(&["--files", "0"], &["--files"]);
    refused(
        &["--set", "parallel=0"],
        &["--set parallel=0", "from 1 to 256"],
    );
}

#[test]
fn an_unknown_engine_is_answered_with_the_known_ones() {
    refused(
        &["--engine", "posix"],
        &["posix", "io_uring", "sync", "mmap", "null"],
    );
}

#[test]
fn a_rate_is_a_positive_number() {
    for rate in ["0", "-5", "nan", "inf", "1e99"] {
        refused(&[&*format!("--rate={rate}")], &["--rate"]);
    }
}

#[test]
fn times_have_units_and_limits() {
    refused(&["--baseline", "0s"], &["--baseline", "more than 0"]);
    refused(
        &["--set", "phases.interval=1ms"],
        &["phases.interval", "10ms to 10s"],
    );
    refused(
        &["--set", "phases.interval=1h"],
        &["phases.interval", "10ms to 10s"],
    );
    refused(&["--recovery", "soon"], &["--recovery", "soon"]);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    refused(
        &["--delete", "unlnk"],
        &["--delete unlnk", "did you mean 'unlink'?"],
    );
    let both = ["--delete", "unlink", "--set", "deletion.how=punch"];
    refused(&both, &["deletion.how=punch", "set twice"]);
    refused(&["--control=remuont"], &["--control remuont", "'remount'"]);
    refused(&["--destroy-data"], &["--destroy-data", "PATH"]);
    refused(&["--set", "actor.batch=9", "--depth", "8"], &["batch 9"]);
    refused(&["--delete", ""], &["--delete"]);
    refused(&["--delete", "rm '{}"], &["--delete"]);
    refused(&["--delete", "event"], &["--event"]);
    refused(&["--event", "rm 'old"], &["--event", "quote"]);
    refused(
        &["--event", "no-such-program"],
        &["--event", "no-such-program"],
    );
    refused(
        &["--event", "true", "--control"],
        &["--control", "only once"],
    );
    refused(&["--event", "true", "--delete", "rm {}"], &["--event"]);
    refused(
        &[
            "--set",
            "actor.block-size=64k",
            "--set",
            "foreground.size=4k",
        ],
        &["smaller block size"],
    );
}

#[test]
fn a_block_must_suit_the_disk() {
    refused(
        &["--set", "actor.block-size=1000"],
        &["block-size 1000", "multiples of"],
    );
}

#[test]
fn an_unknown_option_is_named() {
    refused(&["--sise", "1G"], &["--sise", "--size"]);
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    refused(
        &["--set", "actor.arrival=poisson"],
        &["actor.arrival", "--rate"],
    );
    refused(
        &["--set", "actor.batch=2", "--rate", "100"],
        &["actor.batch", "--rate"],
    );
    for option in [
        &["--set", "deletion.chunk=1M"][..],
        &["--set", "deletion.sleep=1ms"],
        &["--set", "deletion.fsync=true"],
    ] {
        let (key, _) = option[1].split_once('=').unwrap();
        refused(option, &[key, "how = truncate"]);
        let with_program = [option, &["--delete", "rm {}"]].concat();
        refused(&with_program, &[key, "how = truncate"]);
    }
    for other in [["--delete", "truncate"], ["--delete", "rm {}"]] {
        let arguments = [&["--set", "deletion.parallel=2"][..], &other].concat();
        refused(&arguments, &["deletion.parallel", "unlink"]);
    }
    for option in [
        &["--size", "1G"][..],
        &["--files", "2"],
        &["--set", "deletion.parallel=2"],
    ] {
        let arguments = [option, &["--event", "true"]].concat();
        let key = option[usize::from(option[0] == "--set")].split('=').next();
        refused(&arguments, &[key.unwrap(), "only does something"]);
    }
    let quiet = ["--set", "event-quiet=5s"];
    refused(
        &quiet,
        &["--set deletion.event-quiet", "event or trim (--delete)"],
    );
    for option in [
        &["--size", "32M"][..],
        &["--files", "2"],
        &["--set", "deletion.extent-size=64k"],
        &["--set", "deletion.no-sync=true"],
    ] {
        let arguments = [option, &["--delete", "none"]].concat();
        refused(&arguments, &[option[0], "a deletion"]);
    }
}

#[test]
fn a_raw_device_refuses_what_files_take() {
    for option in [
        &["--files", "2"][..],
        &["--set", "deletion.extent-size=64k"],
        &["--set", "deletion.parallel=2"],
        &["--set", "deletion.sleep=1ms"],
        &["--set", "deletion.fsync=true"],
        &["--set", "deletion.no-sync=true"],
    ] {
        let mut command = trimbench();
        command.args([
            "run",
            "--dry-run",
            "--device",
            "/dev/null",
            "--destroy-data",
        ]);
        command.args(option);
        let key = option[usize::from(option[0] == "--set")].split('=').next();
        run(command).fails_with(2, &[key.unwrap(), "--device"]);
    }
}

#[test]
fn what_would_fail_after_the_writing_is_refused_before() {
    refused(
        &["--delete", "no-such-program {}"],
        &["--delete", "no-such-program", "install"],
    );
    refused(
        &["--set", "actor.block-size=4G"],
        &["actor.block-size", "at most 16M"],
    );
    refused(
        &["--set", "actor.block-size=1G"],
        &["actor.block-size", "at most 16M"],
    );
}
