//! On the machine's own disk (`make soak`): what is found is found ten times of ten.

use std::path::Path;

use crate::common::gate::{alone, only_in_soak, skip};
use crate::quick::{measure, number};

/// Bytes for the deletion, the foreground's file, and room to spare.
const NEEDED: u64 = 14 << 30;

/// Why the disk below a directory can't be used; `None` if it can.
fn unfit(place: &Path) -> Option<String> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    // The longest mount point above it, and of several there the last.
    let mount = mounts
        .lines()
        .map(|line| line.split(' ').collect::<Vec<_>>())
        .filter(|fields| place.starts_with(fields[1]))
        .max_by_key(|fields| fields[1].len())?;
    if !mount[3].split(',').any(|option| option == "discard") {
        return Some(format!("{} is mounted without discard", mount[1]));
    }
    let space = rustix::fs::statvfs(place).unwrap();
    let free = space.f_bavail * space.f_frsize;
    (free < NEEDED).then(|| format!("{} has too little space", mount[1]))
}

#[test]
fn ten_of_ten() {
    let _turn = alone();
    if !only_in_soak() {
        return;
    }
    let place = tempfile::tempdir_in(crate::common::sweep::disk_dir()).unwrap();
    if let Some(why) = unfit(&place.path().canonicalize().unwrap()) {
        eprintln!("{why}");
        return skip("need a disk with discards and space");
    }
    let mut first = None;
    for run in 1..=10 {
        let arguments = [
            "--size",
            "8G",
            "--set",
            "foreground.size=1G",
            "--settle",
            "20s",
            "--baseline",
            "5s",
            "--recovery",
            "2s",
            "--set",
            "phases.interval=100ms",
        ];
        let measured = measure(place.path(), &arguments).succeeds();
        let text = measured.done.text();
        let found = measured.verdict["verdict"].as_str().unwrap().to_owned();
        assert_ne!(found, "inconclusive", "run {run}: {text}");
        let discarded = number(&measured.verdict["discard"]["bytes"]);
        let share = discarded / number(&measured.verdict["deletion"]["bytes"]);
        assert!((0.98..1.02).contains(&share), "run {run}: {share}, {text}");
        let first = first.get_or_insert(found.clone());
        if first == "stall" {
            assert_eq!(found, "stall", "run {run}: {text}");
        }
    }
}
