//! `trimbench rm` on simulated drives: a power failure half way, and where its canary reads.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::common::disturb::Throttle;
use crate::common::gate::{Need, beside, lacks};
use crate::common::loop_fs::{must, names, unmount};
use crate::common::run::start;
use crate::lab_drive::{NEEDS, OwnLab};
use crate::rm_place::{MIB, SLOW, half_way, removed, rm, seen, written};

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A drive with a file system, mounted: the laboratory, its name and the device.
fn drive(options: &str) -> (OwnLab, String, PathBuf) {
    let lab = OwnLab::new();
    let name = text(Path::new(lab.dir().file_name().unwrap()));
    let mount = text(&lab.mount());
    let options: Vec<&str> = options.split(' ').collect();
    let device = lab.up(&name, &[&options[..], &["--mount", &mount]].concat());
    (lab, name, device)
}

/// Power goes when names have just vanished, and when half of the space is free.
fn power_fails(fs: &str, check: &[&str]) {
    let kind =
        format!("--profile ideal --size 512M --set volatile-cache=true --fs {fs} -o discard");
    let (lab, name, device) = drive(&kind);
    let (mount, device) = (lab.mount(), text(&device));
    let power = |word: &str| {
        lab.lab(&["fault", &name, "power", word]).succeeds();
    };
    fs::create_dir(mount.join("outside")).unwrap();
    written(&mount.join("outside/precious"), 2);
    for early in [true, false] {
        fs::create_dir_all(mount.join("t/d")).unwrap();
        written(&mount.join("t/big"), 32);
        for number in 0..20 {
            fs::write(mount.join(format!("t/d/{number}")), [1; 10_000]).unwrap();
        }
        must("sync", &["-f", &text(&mount)]);
        let slowly = rm(&mount, &[&["-r", "t"], &SLOW[..]].concat());
        let mut running = start(lab.in_here(slowly));
        match early {
            true => running.until("out of sight", || !mount.join("t").exists()),
            false => running.until("a piece on the disk", || half_way(&mount)),
        }
        power("off");
        running.wait().fails_with(1, &["cannot ", "--resume"]);
        unmount(&text(&mount));
        power("on");
        must("mount", &["-o", "discard", &device, &text(&mount)]);
        // The trash was on the disk before a name was taken away; this may not have been.
        let found = seen(&mount);
        assert!(found.contains(&"trash".to_owned()), "{fs}: {found:?}");
        removed(&mount, &["--resume", "--slowdown", "100%"]).succeeds();
        if early && mount.join("t").exists() {
            let big = fs::metadata(mount.join("t/big")).unwrap().len();
            let whole = (big as usize, names(&mount.join("t/d")).len());
            assert_eq!(whole, (32 * MIB, 20), "{fs}");
            removed(&mount, &["-r", "t", "--slowdown", "100%"]).succeeds();
        }
        assert_eq!(seen(&mount), ["outside"], "{fs}");
        let precious = fs::read(mount.join("outside/precious")).unwrap();
        assert!(precious.len() == 2 * MIB && precious.iter().all(|&byte| byte == 1));
    }
    unmount(&text(&mount));
    must(check[0], &[&check[1..], &[&device]].concat());
}

#[test]
fn power_fails_on_ext4() {
    let _turn = beside();
    if !lacks(NEEDS) {
        power_fails("ext4", &["e2fsck", "-fn"]);
    }
}

#[test]
fn power_fails_on_xfs() {
    let _turn = beside();
    if !lacks(NEEDS) {
        power_fails("xfs", &["xfs_repair", "-n"]);
    }
}

/// The trash's own blocks are freed by a commit that comes seconds later by itself.
#[test]
fn on_a_slow_drive_the_last_discard_comes_before_the_end() {
    let _turn = beside();
    if lacks(NEEDS) {
        return;
    }
    let (lab, _, device) = drive("--profile vertex-2 --size 512M --fs ext4 -o discard");
    let mount = lab.mount();
    written(&mount.join("big"), 32);
    must("sync", &["-f", &text(&mount)]);
    let stat = Path::new("/sys/block").join(device.file_name().unwrap());
    let discards = || {
        let text = fs::read_to_string(stat.join("stat")).unwrap();
        let discards = text.split_whitespace().nth(11).unwrap();
        discards.parse::<u64>().unwrap()
    };
    let before = discards();
    removed(&mount, &["big", "--slowdown", "50%"]).succeeds();
    // One that is under way is counted when it is done.
    std::thread::sleep(Duration::from_millis(500));
    let ended = discards();
    assert!(ended > before);
    // By itself ext4 commits every five seconds.
    std::thread::sleep(Duration::from_secs(7));
    assert_eq!(discards(), ended);
    assert_eq!(seen(&mount), Vec::<String>::new());
}

/// Reads of the discards' own group would wait in the loop driver, whatever the drive says.
#[test]
fn the_canary_reads_in_the_drives_own_group() {
    let _turn = beside();
    if lacks(NEEDS) || lacks(&[Need::File(Throttle::NEEDS)]) {
        return;
    }
    let (lab, name, _) = drive("--profile vertex-2 --size 512M --fs ext4 -o discard");
    let mount = lab.mount();
    written(&mount.join("big"), 32);
    // Each discard takes 50 ms, and may take a hundredth of the time.
    let mut running = start(lab.in_here(rm(&mount, &["big", "--slowdown", "1%"])));
    let process = PathBuf::from(format!("/proc/{}", running.pid().as_raw_nonzero()));
    let is_inside = |of: &Path| {
        let text = fs::read_to_string(of.join("cgroup")).unwrap_or_default();
        text.lines()
            .any(|line| line.contains("blkio") && line.contains(&name))
    };
    let threads = || -> Vec<bool> {
        let tasks = fs::read_dir(process.join("task")).into_iter().flatten();
        tasks
            .flatten()
            .map(|task| is_inside(&task.path()))
            .collect()
    };
    // Whoever frees stays outside, or the canary would wait behind those discards.
    running.until("the canary inside, the others outside", || {
        let inside = threads();
        inside.contains(&true) && inside.contains(&false) && !is_inside(&process)
    });
    running.signal(Signal::INT);
    running.wait().fails_with(130, &["interrupted", "--resume"]);
    assert_eq!(seen(&mount), ["trash"]);
}
