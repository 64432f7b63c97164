//! The SSD of 2013 whose owner waited seconds for every `sync`: btrfs with
//! `discard`, one TRIM of 42.6 ms after the other in the commit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::common::gate::{few, lacks};
use crate::common::run::at_once;
use crate::lab_drive::{NEEDS, OwnLab};

/// The drive is so many times faster than it was, for the test's sake.
const FASTER: f64 = 4.0;
/// The time of one TRIM, in seconds.
const TRIM_S: f64 = 0.0426 / FASTER;
/// Extents that are freed, none next to another: btrfs joins neighbours.
const EXTENTS: usize = 165;

/// The machine has one drive of a name.
fn name(lab: &OwnLab) -> &str {
    lab.dir().file_name().unwrap().to_str().unwrap()
}

fn file(lab: &OwnLab, i: usize) -> PathBuf {
    lab.mount().join(format!("file-{i}"))
}

/// A drive with files on it, which commits only when it is asked to.
fn filled(options: &str) -> OwnLab {
    let lab = OwnLab::new();
    let mount = lab.mount();
    let mut drive = vec!["--profile", "ocz-agility-2", "--size", "1G"];
    drive.extend(["--slower", "0.25", "--fs", "btrfs", "--mount"]);
    drive.extend([mount.to_str().unwrap(), "-o", options]);
    lab.up(name(&lab), &drive);
    fill(&lab);
    lab
}

/// Too large to be kept in the tree itself.
fn fill(lab: &OwnLab) {
    (0..2 * EXTENTS).for_each(|i| fs::write(file(lab, i), [i as u8; 8192]).unwrap());
    sync(&lab.mount());
    sync(&lab.mount());
}

/// Two syncs after the extents were freed: their seconds, and the discards of
/// the first and of both.
fn syncs(lab: &OwnLab) -> ([f64; 2], [u64; 2]) {
    let mount = lab.mount();
    lab.lab(&["stats", name(lab), "--reset"]).succeeds();
    let discards = || {
        let kinds = lab.stats(name(lab))["kinds"].clone();
        let discard = kinds.as_array().unwrap().iter();
        let discard = discard.clone().find(|kind| kind["kind"] == "discard");
        discard.unwrap()["commands"].as_u64().unwrap()
    };
    (0..EXTENTS).for_each(|i| fs::remove_file(file(lab, 2 * i)).unwrap());
    let first = (sync(&mount), discards());
    let second = (sync(&mount), discards());
    ([first.0, second.0], [first.1, second.1])
}

/// How long a `sync` of this file system takes, in seconds.
fn sync(mount: &Path) -> f64 {
    let began = Instant::now();
    let done = Command::new("sync").arg("-f").arg(mount).status().unwrap();
    assert!(done.success());
    began.elapsed().as_secs_f64()
}

#[test]
fn a_sync_waits_for_one_trim_after_the_other() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = few();
    let with = |options| move || filled(options);
    let [with, without] = at_once([
        &with("discard=sync,commit=300"),
        &with("nodiscard,commit=300"),
    ]);
    let (took, sent) = syncs(&with);
    let told = format!("with discards {took:.2?} s for {sent:?}");
    eprintln!("{told}");
    // The extents, and a few that the trees of metadata gave up.
    let extents = EXTENTS as u64;
    assert!((extents..extents + 30).contains(&sent[0]), "{told}");
    // 165 x 42.6 ms are the 7 s of 2013, and here it is what the drive says; and what a busy
    // machine adds to each.
    let share = took[0] / (sent[0] as f64 * TRIM_S);
    assert!((0.95..3.0).contains(&share), "{share}: {told}");
    // Since 2013 a commit sends what it freed once: a second sync has nothing to wait for.
    assert!(sent[1] <= sent[0] + 8 && took[1] < took[0] / 4.0, "{told}");
    // Without them there is hardly anything to wait for.
    let (took_without, sent_without) = syncs(&without);
    let told = format!("without {took_without:.3?} s for {sent_without:?}; {told}");
    assert_eq!(sent_without, [0, 0], "{told}");
    assert!(took_without[0] < took[0] / 10.0, "{told}");
}
