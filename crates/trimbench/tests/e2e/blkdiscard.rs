//! `trimbench blkdiscard`: a device is discarded step by step, and nothing that is in use.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use crate::common::gate::{LOOP_EXT4, Need, beside, lacks};
use crate::common::loop_fs::{Fs, LoopDevice, LoopFs, On, must};
use crate::common::run::{Done, run, start, trimbench};
use crate::lab_drive::{NEEDS, OwnLab};

const LOOP: &[Need] = &[Need::Root, Need::File("/dev/loop-control")];
const MIB: u64 = 1 << 20;

fn blkdiscard(device: &Path, arguments: &[&str]) -> Command {
    let mut command = trimbench();
    command.arg("blkdiscard").args(arguments).arg(device);
    command
}

fn discarded(device: &Path, arguments: &[&str]) -> Done {
    run(blkdiscard(device, arguments))
}

/// Fills so many MiB of a device with ones.
fn fill(device: &Path, mib: u64) {
    let file = File::options().write(true).open(device).unwrap();
    for at in 0..mib {
        file.write_all_at(&vec![1; MIB as usize], at * MIB).unwrap();
    }
    file.sync_all().unwrap();
}

/// The first and the last byte of each MiB.
fn bytes(device: &Path, mib: u64) -> Vec<[u8; 2]> {
    let file = File::open(device).unwrap();
    let byte = |at: u64| {
        let mut one = [0; 1];
        file.read_exact_at(&mut one, at).unwrap();
        one[0]
    };
    (0..mib)
        .map(|at| [byte(at * MIB), byte((at + 1) * MIB - 1)])
        .collect()
}

#[test]
fn a_part_of_a_device_is_discarded_and_no_more() {
    let _turn = beside();
    if lacks(LOOP) {
        return;
    }
    let device = LoopDevice::new(64, On::Tmpfs);
    fill(device.path(), 64);
    let part = [
        "--destroy-data",
        "--offset",
        "16M",
        "--length",
        "32M",
        "--step",
        "4M",
        "--slowdown",
        "50%",
        "--verbose",
    ];
    let done = discarded(device.path(), &part);
    let said = format!("Discarded {} bytes from the offset {}", 32 * MIB, 16 * MIB);
    assert!(done.succeeds().stdout.contains(&said), "{}", done.text());
    let (commands, _) = device.discards();
    assert!(commands >= 8, "{commands}");
    let bytes = bytes(device.path(), 64);
    for (at, &found) in bytes.iter().enumerate() {
        let expected = if (16..48).contains(&at) { 0 } else { 1 };
        assert_eq!(found, [expected; 2], "MiB {at}");
    }
    let goals = [
        "--destroy-data",
        "--max-latency",
        "1s",
        "--deadline",
        "1h",
        "--quiet",
    ];
    let done = discarded(device.path(), &goals);
    assert_eq!(done.succeeds().stderr, "");
    assert!(device.allocated() < MIB, "{}", device.allocated());
}

/// Holes reach no drive, and take one call. The first steps over data are short.
#[test]
fn a_loop_device_over_a_disk_is_discarded_as_the_disk_can() {
    let _turn = beside();
    if lacks(LOOP) {
        return;
    }
    let device = LoopDevice::new(2048, On::Disk);
    fill(device.path(), 256);
    let done = discarded(device.path(), &["--destroy-data"]);
    done.succeeds();
    assert!(device.allocated() < MIB, "{}", device.allocated());
    let (commands, _) = device.discards();
    assert!((4..2048).contains(&commands), "{commands}: {}", done.text());
    let sparse = LoopDevice::new(1 << 20, On::Disk);
    let done = discarded(sparse.path(), &["--destroy-data"]);
    assert!(
        done.succeeds().stderr.contains("in 1 call "),
        "{}",
        done.text()
    );
}

#[test]
fn without_destroy_data_nothing_is_discarded() {
    let _turn = beside();
    if lacks(LOOP) {
        return;
    }
    let device = LoopDevice::new(16, On::Tmpfs);
    fill(device.path(), 16);
    discarded(device.path(), &[]).fails_with(2, &["--destroy-data"]);
    let forecast = ["--dry-run", "--profile", "t500", "--slowdown", "5%"];
    let done = discarded(device.path(), &forecast);
    let text = &done.succeeds().stdout;
    for part in [
        "would discard 16.0 MiB from byte 0",
        "in one call the drive would be busy",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (wrong, words) in [
        (["--offset", "1G"], "behind its end"),
        (["--offset", "100B"], "multiple of 512"),
        (["--length", "1000B"], "multiple of 512"),
        (["--step", "0"], "--step"),
    ] {
        let arguments = [&["--destroy-data"], &wrong[..]].concat();
        discarded(device.path(), &arguments).fails_with(2, &[words]);
    }
    assert_eq!(bytes(device.path(), 16), [[1; 2]; 16]);
}

#[test]
fn what_is_mounted_is_refused_even_with_force_and_data_without_it() {
    let _turn = beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let fs = LoopFs::new(Fs::Ext4, "discard", 512, On::Tmpfs);
    std::fs::write(fs.path().join("precious"), "precious").unwrap();
    let forced = ["--destroy-data", "--force"];
    discarded(fs.device().path(), &forced).fails_with(2, &["is mounted at", "nothing was touched"]);
    assert_eq!(
        std::fs::read(fs.path().join("precious")).unwrap(),
        b"precious"
    );
    let device = LoopDevice::new(64, On::Tmpfs);
    must("mkfs.ext4", &["-q", "-F", device.node()]);
    discarded(device.path(), &["--destroy-data"])
        .fails_with(2, &["holds data: ext2/3/4", "--force"]);
    let upper = device.over();
    discarded(device.path(), &forced).fails_with(2, &["is in use"]);
    drop(upper);
    discarded(device.path(), &forced).succeeds();
    assert!(device.allocated() < MIB, "{}", device.allocated());
    discarded(Path::new("/etc/passwd"), &["--destroy-data"]).fails_with(2, &["not a block device"]);
}

/// Interrupted, it prints a command that goes on, and that command does the rest.
#[test]
fn interrupted_it_says_how_to_go_on() {
    let _turn = beside();
    if lacks(NEEDS) {
        return;
    }
    let lab = OwnLab::new();
    let device = lab.up("slow", &["--profile", "vertex-2", "--size", "512M"]);
    fill(&device, 64);
    let slowly = [
        "--destroy-data",
        "--length",
        "64M",
        "--step",
        "1M",
        "--slowdown",
        "2%",
    ];
    let mut running = start(lab.in_here(blkdiscard(&device, &slowly)));
    running.until("the first step", || bytes(&device, 1)[0] == [0; 2]);
    running.signal(Signal::INT);
    let done = running.wait();
    done.fails_with(
        130,
        &["interrupted at byte", "go on with: trimbench blkdiscard"],
    );
    let line = done
        .stderr
        .lines()
        .find(|line| line.contains("go on with: "))
        .unwrap();
    let words: Vec<&str> = line
        .split("trimbench blkdiscard ")
        .last()
        .unwrap()
        .split(' ')
        .collect();
    let slow = words.iter().position(|word| word.starts_with("--slowdown"));
    let mut words: Vec<&str> = words[..words.len() - 1].to_vec();
    words[slow.unwrap()] = "--slowdown=100%";
    let at: u64 = words[1].strip_prefix("--offset=").unwrap().parse().unwrap();
    assert!((MIB..64 * MIB).contains(&at), "{at}");
    run(lab.in_here(blkdiscard(&device, &words))).succeeds();
    assert_eq!(bytes(&device, 64), [[0; 2]; 64]);
}

/// A goal is refused when the drive was tried. The message names the data that the tries discarded.
#[test]
fn a_goal_that_is_refused_names_what_is_gone() {
    let _turn = beside();
    if lacks(NEEDS) {
        return;
    }
    let lab = OwnLab::new();
    let device = lab.up("wait", &["--profile", "vertex-2", "--size", "512M"]);
    fill(&device, 64);
    let words = ["--destroy-data", "--length", "64M", "--max-latency", "2ms"];
    let done = run(lab.in_here(blkdiscard(&device, &words)));
    done.fails_with(1, &["can't be held", "before it are discarded"]);
    let (_, at) = done.stderr.split_once("--offset=").unwrap();
    let at: u64 = at.trim().parse().unwrap();
    let gone = bytes(&device, 64).iter().filter(|mib| mib[0] == 0).count() as u64;
    assert!((1..64).contains(&gone), "{gone}");
    assert_eq!(at.div_ceil(MIB), gone, "{}", done.text());
}
