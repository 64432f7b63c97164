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
        &["--foreground-size", "0"],
        &["--foreground-size", "more than 0"],
    );
    refused(&["--block-size", "0"], &["--block-size", "more than 0"]);
    refused(&["--extent-size", "0"], &["--extent-size", "more than 0"]);
    refused(&["--size", "lots"], &["--size", "lots"]);
    refused(&["--size=-1G"], &["--size"]);
    refused(&["--size", "99999999999T"], &["--size"]);
}

#[test]
fn depth_0_asks_for_nothing() {
    refused(&["--depth", "0"], &["--depth", "1..=4096"]);
    refused(&["--batch", "0"], &["--batch"]);
    refused(&["--files", "0"], &["--files"]);
    refused(&["--parallel", "0"], &["--parallel"]);
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
    refused(&["--interval", "1ms"], &["--interval", "10ms to 10s"]);
    refused(&["--interval", "1h"], &["--interval", "10ms to 10s"]);
    refused(&["--recovery", "soon"], &["--recovery", "soon"]);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    refused(
        &["--delete", "unlink", "--delete-with", "rm {}"],
        &["--delete"],
    );
    refused(&["--remount"], &["--control"]);
    refused(&["--destroy-data"], &["--destroy-data", "PATH"]);
    refused(&["--batch", "9", "--depth", "8"], &["--batch"]);
    refused(&["--delete-with", ""], &["--delete-with"]);
    refused(&["--delete-with", "rm '{}"], &["--delete-with"]);
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
    refused(&["--event", "true", "--delete-with", "rm {}"], &["--event"]);
    refused(&["--event-at", "5s", "--baseline", "5s"], &["--event-at"]);
    refused(
        &["--block-size", "64k", "--foreground-size", "4k"],
        &["smaller block size"],
    );
}

#[test]
fn a_block_must_suit_the_disk() {
    refused(&["--block-size", "1000"], &["--block-size", "multiples of"]);
}

#[test]
fn an_unknown_option_is_named() {
    refused(&["--sise", "1G"], &["--sise", "--size"]);
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    refused(&["--arrival", "poisson"], &["--arrival", "--rate"]);
    refused(&["--batch", "2", "--rate", "100"], &["--batch", "--rate"]);
    for option in [&["--chunk", "1M"][..], &["--sleep", "1ms"], &["--fsync"]] {
        refused(option, &[option[0], "--delete truncate"]);
        let with_program = [option, &["--delete-with", "rm {}"]].concat();
        refused(&with_program, &[option[0], "--delete truncate"]);
    }
    for other in [["--delete", "truncate"], ["--delete-with", "rm {}"]] {
        let arguments = [&["--parallel", "2"][..], &other].concat();
        refused(&arguments, &["--parallel", "--delete unlink"]);
    }
    for option in [
        &["--size", "1G"][..],
        &["--files", "2"],
        &["--parallel", "2"],
    ] {
        let arguments = [option, &["--event", "true"]].concat();
        refused(&arguments, &[option[0], "only does something"]);
    }
    for option in [["--event-at", "5s"], ["--event-quiet", "5s"]] {
        refused(&option, &[option[0], "--delete event"]);
    }
    for option in [
        &["--size", "32M"][..],
        &["--files", "2"],
        &["--extent-size", "64k"],
        &["--no-sync"],
    ] {
        let arguments = [option, &["--delete", "none"]].concat();
        refused(&arguments, &[option[0], "a deletion"]);
    }
}

#[test]
fn a_raw_device_refuses_what_files_take() {
    for option in [
        &["--files", "2"][..],
        &["--extent-size", "64k"],
        &["--parallel", "2"],
        &["--sleep", "1ms"],
        &["--fsync"],
        &["--no-sync"],
        &["--keep"],
        &["--reuse"],
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
        run(command).fails_with(2, &[option[0], "--device"]);
    }
}

#[test]
fn what_would_fail_after_the_writing_is_refused_before() {
    refused(
        &["--delete-with", "no-such-program {}"],
        &["--delete-with", "no-such-program", "install"],
    );
    refused(&["--block-size", "4G"], &["--block-size", "at most 16M"]);
    refused(&["--block-size", "1G"], &["--block-size", "at most 16M"]);
}

#[test]
fn keep_does_not_replace_somebody_elses_file() {
    for dry in [true, false] {
        let directory = tempfile::tempdir().unwrap();
        let theirs = directory.path().join(".trimbench-foreground");
        std::fs::write(&theirs, "years of work").unwrap();
        let mut command = trimbench();
        command.args(["run", "--keep", "--size", "16M", "--foreground-size", "16M"]);
        command.args(dry.then_some("--dry-run"));
        command.arg("--buffered").arg(directory.path());
        run(command).fails_with(2, &[".trimbench-foreground", "move it"]);
        assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "years of work");
    }
}
