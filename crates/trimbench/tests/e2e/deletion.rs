//! Options that say what is deleted, and how.

use crate::common::gate::{LOOP_EXT4, Need, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::quick::{Measured, measure, number};

const MIB: u64 = 1 << 20;

/// A run on a file system that sends no discards: it needn't wait for any.
fn deleted(arguments: &[&str]) -> Option<Measured> {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return None;
    }
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    let measured = measure(fs.path(), arguments).succeeds();
    assert_eq!(fs.names(), [""; 0], "it left something behind");
    Some(measured)
}

fn bytes(measured: &Measured) -> u64 {
    measured.deletion()["bytes"].as_u64().unwrap()
}

#[test]
fn size_is_what_is_deleted() {
    let Some(measured) = deleted(&["--size", "48M"]) else {
        return;
    };
    assert_eq!(bytes(&measured), 48 * MIB);
    assert_eq!(measured.deletion()["files"], 1);
    assert_eq!(measured.verdict["deletion"]["bytes"], 48 * MIB);
}

#[test]
fn files_share_the_size() {
    let Some(measured) = deleted(&["--size", "32M", "--files", "8"]) else {
        return;
    };
    assert_eq!(measured.deletion()["files"], 8);
    assert_eq!(bytes(&measured), 32 * MIB);
}

#[test]
fn parallel_unlinks_delete_all() {
    let Some(measured) = deleted(&["--files", "64", "--set", "deletion.parallel=4"]) else {
        return;
    };
    assert_eq!(measured.deletion()["files"], 64);
    assert_eq!(bytes(&measured), 32 * MIB);
}

#[test]
fn extent_size_fragments_the_file() {
    let Some(measured) = deleted(&["--size", "16M", "--set", "deletion.extent-size=64k"]) else {
        return;
    };
    let extents: u64 = measured
        .lines("event")
        .filter_map(|event| event["detail"].as_str())
        .filter_map(|detail| detail.strip_suffix(" extents"))
        .filter_map(|detail| detail.rsplit(' ').next())
        .filter_map(|count| count.parse::<u64>().ok())
        .sum();
    // 256 are asked for; a few may happen to touch.
    assert!(extents >= 200, "{extents}");
    // What describes so many extents takes some blocks itself, and they are freed, too.
    assert!((16 * MIB..17 * MIB).contains(&bytes(&measured)));
}

#[test]
fn delete_none_only_measures() {
    let Some(measured) = deleted(&["--delete", "none"]) else {
        return;
    };
    assert_eq!(measured.lines("deletion").count(), 0);
    assert!(!measured.phases().contains(&"delete"));
    assert!(
        measured.reasons().contains(&"no-deletion"),
        "{:?}",
        measured.reasons()
    );
}

#[test]
fn truncation_goes_in_chunks_with_sleep_and_fsync() {
    let steps = [
        "--delete",
        "truncate",
        "--set",
        "deletion.chunk=8M",
        "--set",
        "deletion.sleep=200ms",
        "--set",
        "deletion.fsync=true",
    ];
    let Some(measured) = deleted(&steps) else {
        return;
    };
    assert_eq!(bytes(&measured), 32 * MIB);
    // Four chunks: at least three pauses between them.
    assert!(number(&measured.deletion()["seconds"]) >= 0.6);
    // Freed bit by bit, not all in one interval.
    let freeing = measured
        .lines("interval")
        .filter(|interval| interval["freed_bytes"].as_u64() > Some(0));
    assert!(freeing.count() >= 2);
}

#[test]
fn an_outside_program_deletes() {
    // Run once for each file, or once for all.
    for program in ["rm {}", "rm -f"] {
        let Some(measured) = deleted(&["--files", "4", "--delete", program]) else {
            return;
        };
        assert_eq!(measured.deletion()["files"], 4);
        assert_eq!(bytes(&measured), 32 * MIB);
    }
}

#[test]
fn an_outside_program_that_deletes_nothing_is_a_failure() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    // What isn't there is known before the work begins.
    for (program, said, code) in [
        ("false {}", "false", 1),
        ("/no/such/program {}", "/no/such/program", 2),
    ] {
        let measured = measure(fs.path(), &["--delete", program]);
        measured.done.fails_with(code, &[said]);
        assert_eq!(fs.names(), [""; 0], "it left something behind");
    }
}

#[test]
fn no_sync_forces_no_commit() {
    let Some(forced) = deleted(&[]) else {
        return;
    };
    assert!(forced.happened("commit-forced") && forced.happened("commit-returned"));
    let Some(left_alone) = deleted(&["--set", "deletion.no-sync=true"]) else {
        return;
    };
    assert!(!left_alone.happened("commit-forced"));
}

#[test]
fn control_unlinks_a_second_name() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    let measured = measure(fs.path(), &["--control"]).succeeds();
    let control = &measured.verdict["control"];
    assert_eq!(control["method"], "second name", "{control}");
    assert!(
        number(&control["discard_bytes"]) < 0.1 * (32 * MIB) as f64,
        "{control}"
    );
    // The run itself did discard: the file was still there to be deleted.
    assert!(number(&measured.verdict["discard"]["bytes"]) > 0.9 * (32 * MIB) as f64);
    let phases = measured.phases();
    assert_eq!(
        phases.iter().filter(|phase| **phase == "delete").count(),
        2,
        "{phases:?}"
    );
}

#[test]
fn control_remounts_without_discards_and_back() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::small();
    let before = fs.options();
    assert!(
        before.contains("discard") && !before.contains("nodiscard"),
        "{before}"
    );
    let measured = measure(fs.path(), &["--control=remount"]).succeeds();
    let control = &measured.verdict["control"];
    assert_eq!(control["method"], "nodiscard", "{control}");
    assert!(
        number(&control["discard_bytes"]) < 0.1 * (32 * MIB) as f64,
        "{control}"
    );
    assert!(number(&measured.verdict["discard"]["bytes"]) > 0.9 * (32 * MIB) as f64);
    assert_eq!(fs.options(), before);
}

#[test]
fn on_xfs_which_keeps_discard_the_control_is_a_second_name_or_refused() {
    let _turn = beside();
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("mkfs.xfs")]) {
        return;
    }
    let fs = LoopFs::new(Fs::Xfs, "discard", SMALL, On::Tmpfs);
    let measured = measure(fs.path(), &["--control=remount"]).succeeds();
    assert_eq!(measured.verdict["control"]["method"], "second name");
    assert!(
        measured.done.stdout.contains("XFS"),
        "{}",
        measured.done.text()
    );
    let cut = ["--control=remount", "--delete", "truncate"];
    measure(fs.path(), &cut)
        .done
        .fails_with(2, &["XFS", "nodiscard"]);
    assert_eq!(fs.names(), [""; 0]);
}

#[test]
fn a_remount_that_cannot_be_had_is_refused_before_anything_is_written() {
    let _turn = beside();
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("setpriv")]) {
        return;
    }
    let words = ["give --control alone", "second name"];
    let off = LoopFs::new(Fs::Ext4, "nodiscard", SMALL, On::Tmpfs);
    for more in [&["--dry-run"][..], &[]] {
        let arguments = [&["--control=remount"], more].concat();
        let measured = measure(off.path(), &arguments);
        measured.done.fails_with(2, &words);
        measured.done.fails_with(2, &["without discard already"]);
        assert!(measured.record.is_empty());
        assert_eq!(off.names(), [""; 0]);
    }
    // Somebody else than root, in a directory of theirs.
    let on = LoopFs::small();
    let theirs = on.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(65534), Some(65534)).unwrap();
    let program = crate::common::run::copied_to(on.path());
    let mut command = crate::common::run::as_plain_user(&program);
    command.args(["run", "--size", "16M"]);
    command
        .args(["--set", "foreground.size=16M", "--control=remount"])
        .arg(&theirs);
    let done = crate::common::run::run(command);
    done.fails_with(2, &["needs root"]);
    done.fails_with(2, &words);
}
