//! The way from the kernel to a simulated drive: FUSE over io_uring, or over `/dev/fuse`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::disturb::without_io_uring;
use crate::common::gate::{Need, alone, beside, lacks};
use crate::common::run::{Done, Running, run, start, trimbench};
use crate::lab_drive::{NEEDS, OwnLab, dd};

/// Off by default; on while a drive mounts its file.
const SWITCH: &str = "/sys/module/fuse/parameters/enable_uring";
/// The value to put back.
const NOTE: &str = "/run/trimbench/fuse-io-uring";
const SMALL: [&str; 4] = ["--profile", "ideal", "--size", "64M"];

fn has_queues() -> bool {
    Path::new(SWITCH).exists()
}

fn switch() -> String {
    fs::read_to_string(SWITCH).unwrap().trim().to_owned()
}

/// Asserts that all who show a drive's transport agree; the reason for `/dev/fuse`, or `None`.
#[track_caller]
fn transport(lab: &OwnLab, name: &str, up: &Done) -> Option<String> {
    let transport = lab.stats(name)["transport"].clone();
    let because = transport["because"].as_str();
    let text = match because {
        None => "FUSE over io_uring".to_owned(),
        Some(because) => format!("FUSE over /dev/fuse, because {because}"),
    };
    assert!(up.succeeds().stderr.contains(&text), "{}", up.text());
    let shown = lab.lab(&["stats", name]);
    let line = format!("requests   through {text}\n");
    assert!(shown.stdout.contains(&line), "{}", shown.text());
    let over = if because.is_none() {
        "io_uring"
    } else {
        "/dev/fuse"
    };
    assert_eq!(transport["over"], over);
    because.map(str::to_owned)
}

fn works(up: &Done) {
    let device = up.stdout.trim();
    assert!(dd(&[
        "if=/dev/zero",
        &format!("of={device}"),
        "oflag=direct"
    ]));
    assert!(dd(&[
        &format!("if={device}"),
        "of=/dev/null",
        "iflag=direct"
    ]));
}

#[test]
fn requests_come_over_io_uring_unless_the_kernel_or_the_user_refuses_it() {
    if lacks(NEEDS) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let done = lab.lab(&[&["up", "new"], &SMALL[..]].concat());
    match transport(&lab, "new", &done) {
        None => assert!(has_queues()),
        Some(because) => assert!(!has_queues() && because.contains("Linux 6.14"), "{because}"),
    }
    works(&done);
    let done = lab.lab(&[&["up", "old", "--set", "io-uring=false"], &SMALL[..]].concat());
    let because = transport(&lab, "old", &done).unwrap();
    assert_eq!(because, "io-uring=false was given");
    works(&done);
}

#[test]
fn a_process_that_may_not_use_io_uring_serves_over_dev_fuse() {
    if lacks(NEEDS) || lacks(&[Need::Tool("python3")]) {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    let mut command = trimbench();
    command.args(["lab", "up", "forbidden"]).args(SMALL);
    let done = run(lab.in_here(without_io_uring(&command)));
    let because = transport(&lab, "forbidden", &done).unwrap();
    let expected = if has_queues() {
        "queues can't be made"
    } else {
        "Linux 6.14"
    };
    assert!(because.contains(expected), "{because}");
    works(&done);
}

#[test]
fn a_machine_that_lets_nobody_turn_the_switch_serves_over_dev_fuse() {
    if lacks(NEEDS) || lacks(&[Need::Tool("unshare")]) || !has_queues() {
        return;
    }
    let _turn = beside();
    let lab = OwnLab::new();
    // As in a container, where /sys is read-only.
    let script = r#"
        mount --bind $1 $1 && mount -o remount,bind,ro $1 || exit 9
        value=$(cat $1)
        $0 lab up ro --profile ideal --size 64M || exit 8
        $0 lab stats ro --json
        $0 lab down ro"#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "slave", "sh", "-c", script]);
    command.arg(env!("CARGO_BIN_EXE_trimbench")).arg(SWITCH);
    let done = run(lab.in_here(command));
    let (_device, stats) = done.succeeds().stdout.split_once('\n').unwrap();
    let stats: Value = serde_json::from_str(stats).unwrap();
    let because = stats["stats"]["transport"]["because"]
        .as_str()
        .unwrap_or_default();
    assert!(because.contains(SWITCH), "{}", done.text());
    assert!(
        done.stderr.contains("Read-only file system"),
        "{}",
        done.text()
    );
    // It left no note behind that a later command would stumble over.
    lab.lab(&["list"]).succeeds();
}

/// The processes of a drive that is being made, in the moment that the switch is on.
struct Caught {
    maker: Running,
    dir: PathBuf,
}

impl Caught {
    /// Makes drives until the server of one stands still in that moment.
    fn new(lab: &OwnLab) -> Caught {
        let dir = lab.dir().join("caught");
        for _ in 0..200 {
            let mut command = trimbench();
            command.args(["lab", "up", "caught"]).args(SMALL);
            let mut caught = Caught {
                maker: start(lab.in_here(command)),
                dir: dir.clone(),
            };
            while !caught.maker.is_over() {
                // Looks more often than it asks whether the maker has ended.
                if (0..1000).any(|_| switch() == "Y") && caught.stands_still_with_it_on() {
                    return caught;
                }
            }
            caught.maker.wait().succeeds();
            lab.lab(&["down", "caught"]).succeeds();
        }
        panic!("no server of 200 could be stopped while the switch was on");
    }

    fn stands_still_with_it_on(&self) -> bool {
        let server = self.pid("server");
        kill_process(server, Signal::STOP).unwrap();
        while !state(server).contains('T') {
            std::thread::yield_now();
        }
        let on = switch() == "Y" && fs::read_to_string(NOTE).unwrap() == "N";
        if !on {
            kill_process(server, Signal::CONT).unwrap();
        }
        on
    }

    fn pid(&self, file: &str) -> Pid {
        loop {
            let text = fs::read_to_string(self.dir.join(file)).unwrap_or_default();
            if let Ok(number) = text.trim().parse() {
                return Pid::from_raw(number).unwrap();
            }
        }
    }

    /// Kills all of them. The guardian goes first, for it would put the switch back.
    fn kill(self) {
        for pid in [self.pid("guardian"), self.pid("server"), self.maker.pid()] {
            kill_process(pid, Signal::KILL).unwrap();
            while !matches!(&*state(pid), "" | "Z") {
                std::thread::yield_now();
            }
        }
        self.maker.wait();
    }
}

/// The state of a process, e.g. `T`; empty if there is none.
fn state(pid: Pid) -> String {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let stat = stat.unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("", |(_, rest)| &rest[..1]);
    state.to_owned()
}

#[test]
fn the_switch_is_put_back_after_its_drive_was_killed() {
    if lacks(NEEDS) || !has_queues() {
        return;
    }
    // The switch is the whole machine's.
    let _turn = alone();
    if switch() == "Y" {
        return; // The administrator wants it so, and nobody turns it.
    }
    let lab = OwnLab::new();
    let next: [&[&str]; 3] = [
        &["list"],
        &["up", "next", "--profile", "ideal", "--size", "64M"],
        &["down", "--all"],
    ];
    for command in next {
        let caught = Caught::new(&lab);
        // Its server lives, and needs it.
        lab.lab(&["list"]).succeeds();
        assert_eq!(switch(), "Y");
        caught.kill();
        assert_eq!(switch(), "Y", "nobody has put it back yet");
        lab.lab(command).succeeds();
        assert_eq!(switch(), "N", "{command:?}");
        assert_eq!(fs::read_to_string(NOTE).unwrap(), "");
        lab.lab(&["down", "--all"]).succeeds();
        assert_eq!(json!(lab.list()), json!([]));
    }
    // The guardian alone is enough.
    let caught = Caught::new(&lab);
    kill_process(caught.pid("server"), Signal::KILL).unwrap();
    caught.maker.wait().fails_with(1, &["caught"]);
    assert_eq!(switch(), "N");
}
