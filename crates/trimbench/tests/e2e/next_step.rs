//! Where something is wrong, trimbench prints what to do next.

use std::fs;
use std::path::Path;

use crate::common::gate::{LOOP_EXT4, Need, beside, lacks};
use crate::common::loop_fs::LoopFs;
use crate::common::run::{Done, run, start, trimbench};

fn done(arguments: &[&str]) -> Done {
    let mut command = trimbench();
    command.args(arguments);
    run(command)
}

#[test]
fn an_unknown_option_is_answered_with_the_commands_that_have_it() {
    let said = |arguments: &[&str], words: &str| {
        let done = done(arguments);
        done.fails_with(2, &[words]);
        assert!(!done.stderr.contains("as a value"), "{}", done.text());
    };
    said(
        &["compare", "--why", "a", "b"],
        "tip: `trimbench run` has --why",
    );
    said(
        &["guard", "--preserve-root", "/"],
        "tip: `trimbench rm` has --preserve-root",
    );
    said(
        &["verify", "--fail-on", "stall>1s", "/"],
        "--fail-on is an option of run, ",
    );
    said(
        &["lab", "list", "--reset"],
        "`trimbench lab stats` has --reset",
    );
    // What was an option once, or is one elsewhere, can be a key.
    said(
        &["run", "--chunk", "4M", "/"],
        "--chunk is a key: `run --set deletion.chunk=…`",
    );
    said(&["verify", "--seed", "3", "/"], "--seed is a key: ");
    // Other programs' words for it.
    said(
        &["run", "--duration", "5s", "/"],
        "--for is a key: `run --set deletion.for=…`",
    );
    said(&["verify", "--runtime", "5s", "/"], "--for is a");
    // One that is much like an own option is that option.
    said(&["run", "--dry-rum", "/"], "'--dry-run'");
    said(&["import", "--no-such-option", "log"], "--no-such-option");
}

#[test]
fn a_mistyped_command_is_answered_with_the_ones_that_are_near() {
    done(&["rn"]).fails_with(2, &["'run', 'rm'"]);
    done(&["wy"]).fails_with(2, &["'why'"]);
    let other = done(&["zz"]);
    other.fails_with(2, &["zz"]);
    assert!(!other.stderr.contains("tip:"), "{}", other.text());
    let dash = done(&["lab", "list", "--json", "-"]);
    dash.fails_with(2, &["unexpected argument '-'"]);
    assert!(!dash.stderr.contains("is an option of"), "{}", dash.text());
}

#[test]
fn a_place_that_no_drive_holds_is_named_as_that() {
    for place in ["/proc", "/sys"] {
        done(&["fstrim", place]).fails_with(1, &[place, "name the mount point"]);
        done(&["inspect", "--prove", place])
            .fails_with(1, &[place, "no block device holds; name another"]);
        done(&["verify", place]).fails_with(2, &[place, "give a directory of a file system"]);
    }
}

#[test]
fn a_read_only_mount_is_named_before_free_space_is() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let fs = LoopFs::small();
    fs.remount("ro");
    let at = fs.path().to_str().unwrap();
    done(&["verify", at]).fails_with(2, &[at, "mounted read-only; remount"]);
    done(&["inspect", "--prove", at]).fails_with(1, &[at, "mounted read-only; remount"]);
}

#[test]
fn verify_writes_nowhere_unless_it_is_told_where() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = trimbench();
    command.arg("verify").current_dir(directory.path());
    run(command).fails_with(2, &["<PATH|DEVICE>"]);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn sizes_are_printed_in_units_that_fit() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let at = directory.path().to_str().unwrap();
    let run =
        |more: &[&str]| done(&[&["run", "--dry-run", "--set=buffered=true", at], more].concat());
    run(&["--size", "50T"]).fails_with(2, &["needs 50.", " TiB, and only "]);
    run(&["--size", "3", "--files", "2500"]).fails_with(
        2,
        &["3 B in 2,500 files leaves less than a block of 4.0 KiB"],
    );
}

#[test]
fn a_dry_run_has_no_result_for_standard_output() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let at = directory.path().to_str().unwrap();
    for command in [
        &["run", "--set=buffered=true", "--json"][..],
        &["tune", "--json"],
        &["fit", "--output"],
    ] {
        let all = [command, &["-", "--dry-run", at]].concat();
        done(&all).fails_with(2, &["a dry run measures nothing", "--dry-run out"]);
    }
}

#[test]
fn a_dry_run_of_a_latency_says_that_it_was_not_tried() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let fs = LoopFs::small();
    let file = fs.path().join("file");
    fs::write(&file, vec![1; 8 << 20]).unwrap();
    let (file, at) = (file.to_str().unwrap(), fs.path().to_str().unwrap());
    for (command, place) in [("rm", file), ("fstrim", at)] {
        let dry = |more: &[&str]| {
            let words = [command, "--dry-run", "--max-latency", "7us", place];
            done(&[&words, more].concat())
        };
        let open = dry(&[]);
        let text = &open.succeeds().stdout;
        assert!(text.contains("doesn't test --max-latency 7us"), "{text}");
        // A card knows.
        let card = dry(&["--profile", "ocz-vertex-2"]);
        assert_ne!(card.code(), Some(0), "{}", card.text());
        assert!(card.stderr.contains("can be met"), "{}", card.text());
    }
    assert!(Path::new(file).exists());
}

#[test]
fn a_stack_is_offered_where_one_may_be_named_and_explained_elsewhere() {
    done(&["sim", "run", "--profile", "t500-raid0"]).fails_with(
        2,
        &[
            "did you mean 'crucial-t500-2tb-raid0'?",
            "no-trim, crucial-t500-2tb-raid0",
        ],
    );
    if lacks(&[Need::Root]) {
        return;
    }
    let up = [
        "lab",
        "up",
        "no",
        "--size",
        "1G",
        "--profile",
        "crucial-t500-2tb-raid0",
    ];
    done(&up).fails_with(2, &["a stack of drives, which only `trimbench sim` takes"]);
}

#[test]
fn a_second_trimbench_on_a_device_is_known_by_its_lock() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let fs = LoopFs::small();
    let [one, two] = ["one", "two"].map(|name| fs.path().join(name));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    let dry = || {
        let mut command = trimbench();
        command.args(["run", "--dry-run"]).arg(&two);
        run(command).succeeds().stderr.clone()
    };
    assert!(!dry().contains("another trimbench"), "{}", dry());
    let mut command = trimbench();
    command.args(["run", "--size", "64M", "--set", "foreground.size=64M"]);
    command.args(["--baseline", "60s"]).arg(&one);
    let mut running = start(command);
    running.until("it works", || fs::read_dir(&one).unwrap().count() > 0);
    let said = format!(
        "another trimbench (pid {}, in ",
        running.pid().as_raw_nonzero()
    );
    assert!(dry().contains(&said), "{said}: {}", dry());
}
