//! The fixtures do what the end-to-end tests trust them to do.

#![allow(clippy::unwrap_used, unreachable_pub)] // helpers fail for the test, and are seen by it alone

mod common;

use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

use common::disturb::{Freezer, Throttle};
use common::gate::{self, LOOP_EXT4, Need, lacks};
use common::loop_fs::{Fs, LoopDevice, LoopFs, On, SMALL};
use common::run::{run, start};
use common::sweep;

const MIB: u64 = 1 << 20;

fn fill(fs: &LoopFs, name: &str, mib: u64) {
    let mut file = fs::File::create(fs.path().join(name)).unwrap();
    let block = vec![0xa5; MIB as usize];
    for _ in 0..mib {
        file.write_all(&block).unwrap();
    }
    file.sync_all().unwrap();
}

#[test]
fn a_discard_on_a_loop_in_memory_frees_memory() {
    let _turn = gate::beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    for (mode, frees) in [("discard", true), ("nodiscard", false)] {
        let fs = LoopFs::new(Fs::Ext4, mode, SMALL, On::Tmpfs);
        fill(&fs, "data", 64);
        let before = fs.device().allocated();
        assert!(before >= 64 * MIB);
        fs::remove_file(fs.path().join("data")).unwrap();
        let directory = fs::File::open(fs.path()).unwrap();
        // ext4 discards after the commit, from a worker; and a child that another test is just
        // starting may have the file open for a moment, so that it goes with a later commit.
        let freed = (0..100).any(|_| {
            rustix::fs::syncfs(&directory).unwrap();
            std::thread::sleep(Duration::from_millis(if frees { 50 } else { 5 }));
            fs.device().allocated() < before - 60 * MIB
        });
        drop(directory);
        assert_eq!(freed, frees, "{mode}");
    }
}

#[test]
fn every_file_system_is_made_mounted_and_gone_afterwards() {
    let _turn = gate::beside();
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("mkfs.xfs"), Need::Tool("mkfs.btrfs")]) {
        return;
    }
    for (fs, name) in [(Fs::Ext4, "ext4"), (Fs::Xfs, "xfs"), (Fs::Btrfs, "btrfs")] {
        for on in [On::Tmpfs, On::Disk] {
            let made = LoopFs::new(fs, "nodiscard", SMALL, on);
            let (mount, device) = (made.path().to_owned(), made.device().path().to_owned());
            let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
            let line = format!("{} {} {name} ", device.display(), mount.display());
            assert!(mounts.contains(&line), "{line}");
            assert!(made.names().is_empty());
            drop(made);
            assert!(!mount.exists());
            assert!(!sweep::is_mounted(&mount));
        }
    }
}

#[test]
fn a_frozen_file_system_holds_writes_and_thaws() {
    let _turn = gate::beside();
    if lacks(LOOP_EXT4) || lacks(&[Need::Tool("fsfreeze")]) {
        return;
    }
    let fs = LoopFs::small();
    let freezer = Freezer::freeze(&fs);
    let mut touch = Command::new("touch");
    touch.arg(fs.path().join("file"));
    let mut writer = start(touch);
    std::thread::sleep(Duration::from_millis(100));
    assert!(!writer.is_over());
    assert!(freezer.thaw().start >= Duration::from_millis(100));
    writer.wait().succeeds();
}

#[test]
fn leftovers_of_the_dead_are_swept_and_those_of_the_living_are_not() {
    let _turn = gate::beside();
    if lacks(LOOP_EXT4) {
        return;
    }
    let mut over = Command::new("true").spawn().unwrap();
    over.wait().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let dead = format!("trimbench-test-{}-0.img", over.id());
    let living = format!("trimbench-test-{}-999.img", std::process::id());
    for name in [&*dead, &*living, "somebody-elses.img"] {
        fs::write(directory.path().join(name), "").unwrap();
    }
    sweep::sweep_place(directory.path());
    assert_eq!(
        common::loop_fs::names(directory.path()),
        ["somebody-elses.img", &*living]
    );
}

#[test]
fn a_throttle_slows_what_runs_inside() {
    let _turn = gate::beside();
    if lacks(LOOP_EXT4) || lacks(&[Need::File(Throttle::NEEDS)]) {
        return;
    }
    let device = LoopDevice::new(64, On::Tmpfs);
    let throttle = Throttle::new(device.path(), 8 * MIB);
    let mut read = Command::new("dd");
    read.arg(format!("if={}", device.path().display())).args([
        "of=/dev/null",
        "bs=1M",
        "count=8",
        "iflag=direct",
    ]);
    let started = std::time::Instant::now();
    run(throttle.inside(&read)).succeeds();
    assert!(started.elapsed() > Duration::from_millis(500));
}
