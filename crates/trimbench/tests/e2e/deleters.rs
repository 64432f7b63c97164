//! Ways to delete beyond unlink and truncate, with the options of each.

use crate::common::gate::{self, LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::{Fs, LoopFs, On, SMALL};
use crate::quick::{Measured, measure, number};

const MIB: u64 = 1 << 20;

fn on(options: &str, arguments: &[&str]) -> Option<Measured> {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return None;
    }
    let fs = LoopFs::new(Fs::Ext4, options, SMALL, On::Tmpfs);
    let measured = measure(fs.path(), arguments).succeeds();
    assert_eq!(fs.names(), [""; 0], "it left something behind");
    Some(measured)
}

fn bytes(measured: &Measured) -> u64 {
    measured.deletion()["bytes"].as_u64().unwrap()
}

fn discarded(measured: &Measured) -> f64 {
    number(&measured.verdict["discard"]["bytes"])
}

/// Intervals in which something was freed.
fn freeing(measured: &Measured) -> usize {
    let intervals = measured.lines("interval");
    intervals
        .filter(|interval| interval["freed_bytes"].as_u64() > Some(0))
        .count()
}

#[test]
fn holes_are_punched_from_either_end() {
    for end in ["head", "tail"] {
        let from = format!("from={end}");
        let arguments = [
            "--delete",
            "punch",
            "--set",
            &from,
            "--set",
            "deletion.chunk=8M",
            "--set",
            "deletion.sleep=100ms",
        ];
        let Some(measured) = on("discard", &arguments) else {
            return;
        };
        assert_eq!(bytes(&measured), 32 * MIB, "{end}");
        assert!(freeing(&measured) >= 2, "{end}: freed at once");
        assert!(discarded(&measured) > 0.9 * (32 * MIB) as f64, "{end}");
        let plan = measured.head()["scenario"]["deletion"].to_string();
        assert!(plan.contains(end), "{plan}");
    }
}

#[test]
fn a_table_is_swapped_for_its_replacement() {
    let Some(measured) = on("discard", &["--delete", "swap", "--files", "2"]) else {
        return;
    };
    assert_eq!(measured.deletion()["files"], 2);
    assert_eq!(bytes(&measured), 32 * MIB);
    assert!(discarded(&measured) > 0.9 * (32 * MIB) as f64);
}

#[test]
fn a_purge_goes_in_steps() {
    let arguments = [
        "--delete",
        "purge",
        "--files",
        "8",
        "--set",
        "deletion.at-once=2",
        "--set",
        "deletion.every=200ms",
    ];
    let Some(measured) = on("nodiscard", &arguments) else {
        return;
    };
    assert_eq!(measured.deletion()["files"], 8);
    assert!(freeing(&measured) >= 2);
    // Four purges have three pauses between them.
    assert!(number(&measured.deletion()["seconds"]) >= 0.6);
}

#[test]
fn an_lsm_tree_lives_for_its_time() {
    let arguments = [
        "--delete",
        "lsm",
        "--set",
        "deletion.levels=3",
        "--set",
        "deletion.file-size=1M",
        "--set",
        "deletion.write-rate=40M/s",
        "--set",
        "deletion.for=3s",
        "--size",
        "64M",
    ];
    let Some(measured) = on("discard", &arguments) else {
        return;
    };
    let deletion = measured.deletion();
    assert_eq!(deletion["continuous"], true, "{deletion}");
    // A run that is killed has no such line, only the event.
    assert!(measured.happened("continuous-deletion-began"));
    assert!(deletion["files"].as_u64() > Some(4), "{deletion}");
    assert!(number(&deletion["seconds"]) >= 2.9, "{deletion}");
    assert!(freeing(&measured) >= 2);
}

#[test]
fn spills_come_and_go() {
    let arguments = [
        "--delete",
        "spill",
        "--set",
        "deletion.parallel=2",
        "--set",
        "deletion.sleep=50ms",
        "--set",
        "deletion.for=2s",
    ];
    let Some(measured) = on("discard", &arguments) else {
        return;
    };
    let deletion = measured.deletion();
    assert_eq!(deletion["continuous"], true, "{deletion}");
    assert!(deletion["files"].as_u64() >= Some(2), "{deletion}");
    assert!(bytes(&measured) >= 32 * MIB, "{deletion}");
    assert!(discarded(&measured) > 0.0);
}

#[test]
fn fstrim_discards_what_was_deleted_before() {
    let Some(measured) = on("nodiscard", &["--delete", "fstrim"]) else {
        return;
    };
    assert!(discarded(&measured) >= (32 * MIB) as f64);
    // Nothing is freed by it.
    let before = measured.verdict["discard"]["debt_max_bytes"].as_f64();
    assert!(before.unwrap_or(0.0) < (33 * MIB) as f64, "{before:?}");
}

#[test]
fn what_a_way_does_not_take_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let refused = |arguments: &[&str], words: &[&str]| {
        let arguments = [&["--dry-run"], arguments].concat();
        measure(place.path(), &arguments).done.fails_with(2, words);
    };
    refused(
        &["--set", "deletion.from=tail"],
        &["deletion.from", "punch"],
    );
    refused(
        &["--set", "deletion.at-once=2"],
        &["deletion.at-once", "purge"],
    );
    refused(
        &["--set", "deletion.every=1s"],
        &["deletion.every", "purge"],
    );
    refused(&["--set", "deletion.levels=3"], &["deletion.levels", "lsm"]);
    refused(
        &["--set", "deletion.file-size=1M"],
        &["deletion.file-size", "lsm"],
    );
    refused(
        &["--set", "deletion.write-rate=1M"],
        &["deletion.write-rate", "lsm"],
    );
    refused(
        &["--set", "deletion.for=1s"],
        &["deletion.for", "lsm or spill"],
    );
    let lsm = ["--delete", "lsm"];
    refused(
        &[&lsm[..], &["--files", "2"]].concat(),
        &["--files", "unlink"],
    );
    // A plain user may not trim at all.
    let may_trim = !gate::lacks(&[gate::Need::Root]);
    for how in ["lsm", "fstrim", "truncate"] {
        if how == "fstrim" && !may_trim {
            continue;
        }
        refused(&["--delete", how, "--control"], &["--control"]);
    }
    let crowded = [
        "--delete",
        "lsm",
        "--set",
        "deletion.file-size=16M",
        "--size",
        "32M",
    ];
    refused(&crowded, &["LSM tree", "smaller files"]);
}
