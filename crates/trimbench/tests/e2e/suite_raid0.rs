//! `trimbench suite --raid0`: two drives striped by md, or by btrfs itself where there is no md.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use crate::common::gate::{LOOP_EXT4, beside, lacks};
use crate::common::loop_fs::{Fs, LoopDevice, LoopFs, On, SMALL};
use crate::common::run::{Running, record, run, start, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};
use crate::suite::{assert_is_of_schema, results};

/// Three steps in each of two cells. A killed suite leaves a file system, which may be overwritten.
const STRIPED: [&str; 12] = [
    "--destroy-data",
    "--force",
    "--cells",
    "ext4/discard/discard,btrfs/discard/sync",
    "--steps",
    "create,rm,fstrim",
    "--set=repeats=1",
    "--set=files=4",
    "--set=size=64M",
    "--set=writers=2",
    "--output",
    "s.jsonl",
];

fn striped(drives: &[PathBuf; 2], directory: &Path, more: &[&str]) -> Running {
    let mut command = trimbench();
    command.args(["suite", "--raid0"]).args(drives);
    command.args(STRIPED).args(more).current_dir(directory);
    start(command)
}

/// Fails if a suite has left a mount or an array, or a process still holds a drive.
fn assert_nothing_is_left(pid: u32, drives: &[PathBuf; 2]) {
    let is_free = |drive: &PathBuf| {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .custom_flags(rustix::fs::OFlags::EXCL.bits().cast_signed());
        options.open(drive).is_ok()
    };
    let gone = || {
        let places = fs::read_dir("/run/trimbench/suite").into_iter().flatten();
        let mut names = places.flatten().map(|place| place.file_name());
        let own = [pid.to_string(), format!("{pid}.lock")];
        names.all(|name| own.iter().all(|own| name != **own)) && drives.iter().all(is_free)
    };
    for _ in 0..600 {
        if gone() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("something is left of {pid}");
}

#[test]
fn suite_stripes_over_two_drives_goes_on_after_a_kill_and_leaves_them_blank() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let drives = ["one", "two"].map(|name| lab.up(name, &["--profile", "ideal", "--size", "2G"]));
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let log = at.join("s.jsonl");
    let is_created = || {
        let made = |line: &Value| line["cell"] == "btrfs/discard/sync" && line["step"] == "create";
        record(&log).iter().any(made)
    };
    let mut running = striped(&drives, at, &[]);
    running.until("files on btrfs", is_created);
    let pid = running.pid().as_raw_nonzero().get().unsigned_abs();
    running.signal(Signal::KILL);
    running.wait();
    assert_nothing_is_left(pid, &drives);

    let running = striped(&drives, at, &[]);
    let pid = running.pid().as_raw_nonzero().get().unsigned_abs();
    let done = running.wait();
    assert_nothing_is_left(pid, &drives);
    let json = results(at, "s.jsonl");
    assert_is_of_schema(&json);
    let drive = &json["head"]["drive"];
    assert_eq!(drive["size_bytes"], 4_u64 << 30, "{drive}");
    assert_eq!(drive["members"][1]["path"], drives[1].to_str().unwrap());
    let failures = |cell: usize| json["cells"][cell]["failures"].as_array().unwrap().clone();
    assert_eq!(failures(1), [Value::Null; 0], "{}", done.text());
    match drive["striping"] == "md" {
        true => {
            done.succeeds();
            assert_eq!(failures(0), [Value::Null; 0], "{}", done.text());
        }
        // What btrfs alone can do is done; the rest are rows with their reason.
        false => {
            assert_eq!(done.code(), Some(1), "{}", done.text());
            let why = failures(0)[0]["why"].as_str().unwrap().to_owned();
            assert!(why.contains("cannot be striped"), "{why}");
        }
    }
    let figures = json["cells"][1]["figures"].as_array().unwrap();
    for step in ["mkfs", "create", "rm", "fstrim"] {
        assert!(figures.iter().any(|f| f["step"] == step), "{step}: {json}");
    }
    assert_both_are_counted(&lab, &log);
    // Blank: no signature has to be named any more.
    let mut dry = trimbench();
    dry.args(["suite", "--raid0"]).args(&drives);
    dry.args(["--destroy-data", "--cells", "btrfs", "--dry-run"]);
    let dry = run(dry);
    for part in ["RAID 0 of", "It writes about"] {
        assert!(dry.succeeds().stdout.contains(part), "{}", dry.text());
    }
    shown_again(at);
}

/// Data are on both drives, and the discards of a trim are those of both.
fn assert_both_are_counted(lab: &OwnLab, log: &Path) {
    for name in ["one", "two"] {
        let stats = lab.stats(name);
        let kind = |kind: &str| {
            let kinds = stats["kinds"].as_array().unwrap().iter();
            kinds.clone().find(|one| one["kind"] == kind).unwrap()
        };
        assert!(
            kind("write")["bytes"].as_u64().unwrap() > 32 << 20,
            "{stats}"
        );
        assert!(kind("discard")["commands"].as_u64().unwrap() > 0, "{stats}");
    }
    let lines = record(log);
    let trim = lines
        .iter()
        .rfind(|line| line["cell"] == "btrfs/discard/sync" && line["step"] == "fstrim");
    let trimmed = trim.unwrap()["outcome"]["done"]["discard_bytes"].as_u64();
    // One drive alone has 2 GiB.
    assert!(trimmed.unwrap() > 5 << 29, "{trim:?}");
}

fn shown_again(at: &Path) {
    let shown = |arguments: &[&str]| {
        let mut command = trimbench();
        command.arg("suite").args(arguments).current_dir(at);
        run(command).succeeds().stdout.clone()
    };
    assert!(shown(&["report", "s.jsonl"]).contains("RAID 0 of"));
}

/// A second loop device over the file of another, by another name of the file.
struct Twin(String);

impl Twin {
    fn of(device: &str) -> Twin {
        let name = device.trim_start_matches("/dev/");
        let file = format!("/sys/block/{name}/loop/backing_file");
        let file = PathBuf::from(fs::read_to_string(file).unwrap().trim());
        let other_name = file.with_extension("twin.img");
        fs::hard_link(&file, &other_name).unwrap();
        let mut losetup = std::process::Command::new("losetup");
        let made = losetup.args(["--show", "-f"]).arg(&other_name).output();
        fs::remove_file(&other_name).unwrap();
        let text = String::from_utf8(made.unwrap().stdout).unwrap();
        Twin(text.trim().to_owned())
    }
}

impl Drop for Twin {
    fn drop(&mut self) {
        let mut losetup = std::process::Command::new("losetup");
        let _ = losetup.args(["-d", &self.0]).status();
    }
}

#[test]
fn suite_refuses_a_raid0_of_one_device_and_of_devices_in_use() {
    if lacks(LOOP_EXT4) {
        return;
    }
    let _turn = beside();
    let mounted = LoopFs::new(Fs::Ext4, "discard", SMALL, On::Tmpfs);
    let free = LoopDevice::new(SMALL, On::Tmpfs);
    let (mounted, free) = (mounted.device().node().to_owned(), free.node().to_owned());
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&free, &link).unwrap();
    let refused = |devices: &[&str], more: &[&str], said: &str| {
        let mut command = trimbench();
        command.args(["suite", "--raid0"]).args(devices).args(more);
        let done = run({
            command.current_dir(directory.path());
            command
        });
        done.fails_with(2, &[said]);
    };
    let destroy = ["--destroy-data", "--force"];
    refused(&[&free], &destroy, "2 values required");
    refused(&[&free, &free], &destroy, "are one device");
    refused(&[&free, link.to_str().unwrap()], &destroy, "are one device");
    let twin = Twin::of(&free);
    refused(&[&free, &twin.0], &destroy, "loop devices over one file");
    drop(twin);
    refused(&[&free, &mounted], &destroy, "in use");
    refused(&[&mounted, &free], &destroy, "in use");
    refused(&[&free, "/dev/null"], &destroy, "not a block device");
    refused(&[&free, &mounted], &[], "--destroy-data");
    refused(
        &[&free, &mounted],
        &["--destroy-data", "--lab", "ideal"],
        "cannot be used",
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}
