//! `trimbench rm -r` of many small files: what it costs, and what it must not miss.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::common::gate::{Need, lacks};
use crate::common::loop_fs::{Fs, must};
use crate::common::run::run;
use crate::rm_place::{ground, rm, seen};

/// Calls that could be made for each file. The walk, the canary and the pacer make others,
/// but not for each.
const FOR_A_FILE: [&str; 8] = [
    "newfstatat",
    "fstat",
    "openat2",
    "fcntl",
    "ioctl",
    "unlinkat",
    "fsync",
    "syncfs",
];

/// Small files in directories of five hundred, on the disk.
fn fill(tree: &Path, files: usize, bytes: usize) {
    for number in 0..files {
        let directory = tree.join((number / 500).to_string());
        if number % 500 == 0 {
            fs::create_dir_all(&directory).unwrap();
        }
        fs::write(directory.join(number.to_string()), vec![1; bytes]).unwrap();
    }
    must("sync", &["-f", &tree.to_string_lossy()]);
}

/// How often a call was made, by `strace -c`.
fn made(summary: &str, call: &str) -> usize {
    let words = summary.lines().map(|line| line.split_whitespace());
    words
        .map(|line| line.collect::<Vec<&str>>())
        .filter(|line| line.last() == Some(&call))
        .filter_map(|line| line.get(3)?.parse::<usize>().ok())
        .sum()
}

#[test]
fn rm_makes_three_calls_for_each_small_file_and_few_commits() {
    if lacks(&[Need::Tool("strace")]) {
        return;
    }
    for kind in [Fs::Ext4, Fs::Xfs, Fs::Btrfs] {
        let Some(fs) = ground(kind, "discard", 512) else {
            continue;
        };
        let here = fs.path();
        let files = 4000;
        fill(&here.join("t"), files, 4096);
        let summary = here.join("summary");
        let ours = rm(here, &["-r", "t", "--quiet"]);
        let mut traced = Command::new("strace");
        traced.args(["-f", "-c", "-o"]).arg(&summary);
        traced.arg(ours.get_program()).args(ours.get_args());
        traced.current_dir(here);
        for (name, value) in ours.get_envs() {
            traced.env(name, value.unwrap_or_default());
        }
        run(traced).succeeds();
        let summary = fs::read_to_string(&summary).unwrap();
        let all: usize = FOR_A_FILE.iter().map(|call| made(&summary, call)).sum();
        assert!(all <= files * 33 / 10, "{kind:?}: {all} calls\n{summary}");
        let commits = made(&summary, "fsync") + made(&summary, "syncfs");
        assert!(commits <= files / 20, "{kind:?}: {commits}\n{summary}");
        assert!(!here.join("t").exists());
    }
}

/// Files that changed well after the last that is on the disk are asked, each of them. (Of those
/// that changed within the same second up to 63 are taken to be written, too.)
#[test]
fn rm_waits_for_no_discard_of_small_files_that_were_never_written() {
    let Some(fs) = ground(Fs::Ext4, "discard", 512) else {
        return;
    };
    let here = fs.path();
    for written in [true, false] {
        fill(&here.join("t"), 600, 8192);
        std::thread::sleep(Duration::from_secs(3));
        for number in 0..if written { 0 } else { 600 } {
            fs::write(here.join(format!("t/0/fresh{number}")), vec![1; 8192]).unwrap();
        }
        let done = run(rm(here, &["-r", "t", "--slowdown", "50%"]));
        let text = done.succeeds().text();
        assert!(!text.contains("no discards came"), "{text}");
        assert_eq!(seen(here), [""; 0]);
    }
}
