//! After a crash nothing stays: no mount, no loop device, no process.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::common::gate::{alone, beside, lacks, times};
use crate::common::run::{start, trimbench};
use crate::common::sweep;
use crate::lab_drive::{NEEDS, OwnLab};

/// Waits until the kernel knows nothing more of a laboratory's drives.
#[track_caller]
fn assert_nothing_left(lab: &OwnLab, servers: &[i32], connection: Option<&str>) {
    let began = Instant::now();
    loop {
        let left = left(lab, servers, connection);
        if left.is_empty() {
            break;
        }
        assert!(began.elapsed().as_secs() < 60, "{left:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(lab.list().is_empty());
}

/// The traces of the drives that are left.
fn left(lab: &OwnLab, servers: &[i32], connection: Option<&str>) -> Vec<String> {
    let dir = lab.dir().to_str().unwrap();
    let mut left = Vec::new();
    // The mount point begins with the laboratory's path, too.
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    if mounts.contains(dir) {
        left.push(mounts.clone());
    }
    if lab.mount().exists() {
        left.push("the mount point".to_owned());
    }
    for entry in fs::read_dir("/sys/block").unwrap().flatten() {
        let file = fs::read_to_string(entry.path().join("loop/backing_file"));
        let file = file.unwrap_or_default();
        if file.contains(dir) {
            left.push(format!("{}: {file}", entry.path().display()));
        }
    }
    for pid in servers {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains(dir) {
            left.push(format!("{pid} runs: {line}"));
        }
    }
    if let Some(device) = connection {
        // The number may belong to another file system by now; then that is mounted.
        let minor = device.split(':').nth(1).unwrap();
        let there = Path::new("/sys/fs/fuse/connections").join(minor).exists();
        if there && !mounts.contains(&format!(" {device} ")) {
            left.push(format!("the connection {device}"));
        }
    }
    left
}

fn servers(lab: &OwnLab) -> Vec<i32> {
    let drives = lab.list();
    drives
        .iter()
        .map(|drive| drive["server"].as_i64().unwrap() as i32)
        .collect()
}

#[test]
fn nothing_is_left_of_a_drive_whose_server_was_killed_under_load() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let mount = lab.mount();
    let options = "--profile 870-evo --size 3G --fs ext4 -o discard --mount";
    let options: Vec<&str> = options.split(' ').chain(mount.to_str()).collect();
    lab.up("loaded", &options);
    lab.up("idle", &["--profile", "ideal", "--size", "64M"]);
    let servers = servers(&lab);
    assert_eq!(servers.len(), 2);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let fuse = lab.dir().join("loaded/fuse");
    let line = mounts
        .lines()
        .find(|line| line.contains(fuse.to_str().unwrap()));
    let connection = line.unwrap().split(' ').nth(2).unwrap().to_owned();

    // Writes until it fails.
    let mut command = trimbench();
    command.args(["lab", "exec", "loaded", "--", "sh", "-c"]);
    command.arg(
        "while dd if=/dev/urandom of=$0/file bs=1M count=64 oflag=direct conv=fsync 2>/dev/null; \
         do rm $0/file; done",
    );
    command.arg(&mount);
    let mut load = start(lab.in_here(command));
    let written = || lab.stats("loaded")["kinds"][1]["bytes"].as_u64().unwrap();
    load.until("the load runs", || written() > 100 << 20);
    let drives = lab.list();
    let loaded = drives
        .iter()
        .find(|drive| drive["name"] == "loaded")
        .unwrap();
    let server = Pid::from_raw(loaded["server"].as_i64().unwrap() as i32).unwrap();
    kill_process(server, Signal::KILL).unwrap();
    // By itself, and the other drive stays.
    becomes_nothing(&lab, "loaded");
    assert_eq!(lab.list().len(), 1);
    let down = lab.lab(&["down", "--all"]);
    let proof = "no mount, loop device, process, cgroup or socket is left";
    assert!(down.succeeds().stdout.contains(proof), "{}", down.text());
    assert_nothing_left(&lab, &servers, Some(&connection));
    load.wait();
}

#[test]
fn everything_there_is_can_be_taken_down_at_once() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    lab.up("one", &["--profile", "ideal", "--size", "16M"]);
    lab.up("two", &["--profile", "ideal", "--size", "16M"]);
    let servers = servers(&lab);
    lab.lab(&["down", "--all"]).succeeds();
    assert_nothing_left(&lab, &servers, None);
    // Nothing to do is no error.
    lab.lab(&["down", "--all"]).succeeds();
}

/// Makes a drive `dead` and kills its server, with the guardian that would take it down.
fn dead_drive(lab: &OwnLab) -> Pid {
    lab.up("dead", &["--profile", "ideal", "--size", "16M"]);
    let number = |file: &str| -> Pid {
        let text = fs::read_to_string(lab.dir().join("dead").join(file)).unwrap();
        Pid::from_raw(text.trim().parse().unwrap()).unwrap()
    };
    let (server, guardian) = (number("server"), number("guardian"));
    kill_process(guardian, Signal::STOP).unwrap();
    kill_process(server, Signal::KILL).unwrap();
    kill_process(guardian, Signal::KILL).unwrap();
    server
}

/// While a dead drive is there, mkfs.btrfs fails, whatever it is to format.
#[test]
fn before_tests_make_file_systems_dead_drives_go_and_others_stay() {
    if lacks(NEEDS) {
        return;
    }
    // Alone: it looks at the whole machine, and others' tests have dead drives on purpose.
    let _turn = alone();
    let (lab, other) = (OwnLab::new(), OwnLab::new());
    other.up("alive", &["--profile", "ideal", "--size", "16M"]);
    let server = dead_drive(&lab);
    // A killed process takes a moment to go: its connection breaks before its lock does.
    while !sweep::is_dead(&lab.dir().join("dead")) {
        std::thread::sleep(Duration::from_millis(5));
    }
    sweep::take_down_dead_drives().unwrap();
    assert_nothing_left(&lab, &[server.as_raw_nonzero().get()], None);
    assert_eq!(other.list().len(), 1);
}

#[test]
fn the_next_command_takes_down_what_has_no_guardian_either() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let server = dead_drive(&lab);
    let done = || {
        let stats = lab.lab(&["stats", "dead"]);
        // Until the kernel has dropped the dead server's lock.
        (stats.code() == Some(2)).then_some(stats)
    };
    let stats = loop {
        match done() {
            Some(stats) => break stats,
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    stats.fails_with(2, &["`dead` was dead", "is down now", "no drive `dead`"]);
    assert_nothing_left(&lab, &[server.as_raw_nonzero().get()], None);
}

#[test]
fn nothing_is_left_of_a_drive_whose_maker_is_killed_at_any_moment() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let mount = lab.mount();
    let options = "up half --profile ideal --size 512M --fs ext4 -o discard --mount";
    let mut made = 0;
    for round in 0..times(16, 400) {
        let mut command = trimbench();
        command.arg("lab").args(options.split(' ')).arg(&mount);
        let making = start(lab.in_here(command));
        // From before there is a directory until after it is mounted.
        let wait = Duration::from_millis((round as u64 * 7) % 80);
        std::thread::sleep(wait);
        making.signal(Signal::KILL);
        // A killed process goes on until it is seen to be dead.
        making.wait();
        let was_made = lab.dir().join("half/made").exists();
        if was_made {
            made += 1;
            lab.lab(&["down", "half"]).succeeds();
        }
        // What was made before there was a guardian is found by the next command.
        lab.list();
        becomes_nothing(&lab, "half");
        assert_nothing_left(&lab, &[], None);
    }
    eprintln!("{made} were made before the kill");
}

/// Waits for what nobody calls for: a drive that goes by itself.
#[track_caller]
fn becomes_nothing(lab: &OwnLab, name: &str) {
    let began = Instant::now();
    while lab.dir().join(name).exists() {
        assert!(began.elapsed().as_secs() < 60, "{name} stays");
        std::thread::sleep(Duration::from_millis(20));
    }
}
