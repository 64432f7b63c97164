//! The remains, and the repairs, when a process is killed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use linux::SysRoot;
use linux::files::Caching;
use linux::limit::LimitGuard;
use linux::mounts::Mount;
use linux::owner::{Name, Swept, WorkDir, sweep};
use storage::remount::DiscardGuard;

use crate::loops::{can, made};
use crate::remounts::CASES;

const PATH: &str = "TRIMBENCH_TEST_PATH";

/// Runs one of the `child_…` functions below in a process of its own, until
/// it says that it is ready.
fn start(function: &str, path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture"])
        .arg(format!("killed::{function}"))
        .env(PATH, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let ready = lines
        .map_while(Result::ok)
        .any(|line| line.contains("ready"));
    assert!(ready, "the child process failed");
    child
}

/// Where a child is to work; `None` when all ignored tests are run by hand.
fn given() -> Option<PathBuf> {
    std::env::var_os(PATH).map(PathBuf::from)
}

/// Says so and waits to be killed.
fn ready() {
    println!("\nready");
    std::thread::sleep(Duration::from_secs(120));
}

#[test]
#[ignore = "a part of other tests, run in a process of its own"]
fn child_holds_nodiscard() {
    let Some(path) = given() else { return };
    let _guard = DiscardGuard::off(&Mount::of(path).unwrap()).unwrap();
    ready();
}

#[test]
#[ignore = "a part of other tests, run in a process of its own"]
fn child_changes_a_limit() {
    let Some(device) = given() else { return };
    let name = device.file_name().unwrap().to_str().unwrap();
    let guard = LimitGuard::take(&SysRoot::host(), name).unwrap();
    println!("\nready");
    for bytes in (20..24).cycle().map(|shift| 1u64 << shift) {
        guard.set(bytes).unwrap();
    }
}

#[test]
#[ignore = "a part of other tests, run in a process of its own"]
fn child_fills_a_directory() {
    let Some(path) = given() else { return };
    let work = WorkDir::create(path).unwrap();
    for name in [Name::Victim(1), Name::Foreground] {
        work.create_file(name, Caching::Buffered)
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
    }
    work.link(Name::Victim(1), Name::Second(1)).unwrap();
    ready();
}

#[test]
#[ignore = "a part of other tests, run in a process of its own"]
fn child_claims_and_removes() {
    let Some(path) = given() else { return };
    println!("\nready");
    loop {
        let work = WorkDir::create(&path).unwrap();
        for name in [Name::Victim(1), Name::Victim(2), Name::Foreground] {
            work.create_file(name, Caching::Buffered).unwrap();
        }
        work.link(Name::Victim(1), Name::Second(1)).unwrap();
        std::fs::remove_file(work.path_of(Name::Victim(1))).unwrap();
    }
}

#[test]
#[ignore = "a part of other tests, run in a process of its own"]
fn child_switches_off_and_on() {
    let Some(path) = given() else { return };
    let mount = Mount::of(path).unwrap();
    println!("\nready");
    loop {
        DiscardGuard::off(&mount).unwrap().restore().unwrap();
    }
}

/// How often to kill: a sample, or what a soak asks for.
fn kills(sample: u32) -> u32 {
    std::env::var("TRIMBENCH_SOAK_KILLS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(sample)
}

/// Kills a child at a moment that differs from turn to turn.
fn kill_after(mut child: Child, turn: u32) {
    std::thread::sleep(Duration::from_micros(u64::from(turn) * 7919 % 20_011));
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
}

#[test]
fn killed_at_any_moment_it_leaves_nothing_that_stays() {
    for place in [std::env::temp_dir(), PathBuf::from("/dev/shm")] {
        if !place.is_dir() {
            continue;
        }
        let parent = tempfile::tempdir_in(place).unwrap();
        for turn in 0..kills(20) {
            kill_after(start("child_claims_and_removes", parent.path()), turn);
            let swept = sweep(parent.path()).unwrap();
            let left = std::fs::read_dir(parent.path()).unwrap().count();
            assert_eq!(left, 0, "turn {turn}: {swept:?}");
        }
    }
}

#[test]
fn killed_at_any_moment_discards_come_back() {
    if !can(&["losetup", "mount", "mkfs.ext4", "mkfs.btrfs"]) {
        return;
    }
    for (fs, options) in [("ext4", "discard"), ("btrfs", "discard=async")] {
        let mounted = made(fs, options);
        let before = Mount::of(mounted.path()).unwrap();
        for turn in 0..kills(10) {
            kill_after(start("child_switches_off_and_on", mounted.path()), turn);
            // The watcher holds the lock until all is as it was.
            let root = std::fs::File::open(mounted.path()).unwrap();
            rustix::fs::flock(&root, rustix::fs::FlockOperation::LockExclusive).unwrap();
            assert_eq!(
                Mount::of(mounted.path()).unwrap(),
                before,
                "{fs} turn {turn}"
            );
        }
    }
}

#[test]
fn discards_come_back_when_the_holder_is_killed() {
    if !can(&["losetup", "mount", "mkfs.ext4", "mkfs.btrfs"]) {
        return;
    }
    for (fs, options) in CASES {
        let mounted = made(fs, options);
        let before = Mount::of(mounted.path()).unwrap();
        let mut child = start("child_holds_nodiscard", mounted.path());
        assert_eq!(
            Mount::of(mounted.path()).unwrap().super_option("discard"),
            None
        );
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        let give_up = Instant::now() + Duration::from_secs(30);
        while Mount::of(mounted.path()).unwrap() != before && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(Mount::of(mounted.path()).unwrap(), before, "{fs} {options}");
    }
}

#[test]
fn a_devices_limit_comes_back_when_the_holder_is_killed() {
    if !can(&["losetup", "mount", "mkfs.ext4"]) {
        return;
    }
    let mounted = made("ext4", "discard");
    let name = mounted.device().name();
    let file = format!("/sys/block/{name}/queue/discard_max_bytes");
    let now = || std::fs::read_to_string(&file).unwrap();
    // A fresh loop device has a limit that is no multiple of its granularity, and that the
    // kernel doesn't take back.
    std::fs::write(&file, "1073741824").unwrap();
    let before = now();
    for turn in 0..kills(10) {
        kill_after(start("child_changes_a_limit", Path::new(name)), turn);
        // Takes it only when the watcher has let go.
        let guard = LimitGuard::take(&SysRoot::host(), name).unwrap();
        assert_eq!(now(), before, "turn {turn}");
        guard.restore().unwrap();
    }
}

#[test]
fn signals_to_the_whole_group_spare_the_watcher() {
    if !can(&["losetup", "mount", "mkfs.ext4"]) {
        return;
    }
    use std::os::unix::process::CommandExt;
    let mounted = made("ext4", "discard");
    let before = Mount::of(mounted.path()).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "--nocapture",
            "killed::child_holds_nodiscard",
        ])
        .env(PATH, mounted.path())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(
        lines
            .map_while(Result::ok)
            .any(|line| line.contains("ready"))
    );
    let group = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
    child.wait().unwrap();
    let give_up = Instant::now() + Duration::from_secs(30);
    while Mount::of(mounted.path()).unwrap() != before && Instant::now() < give_up {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(Mount::of(mounted.path()).unwrap(), before);
}

#[test]
fn the_directory_of_a_killed_process_is_removed() {
    let parent = tempfile::tempdir().unwrap();
    let mut child = start("child_fills_a_directory", parent.path());
    assert!(
        matches!(&sweep(parent.path()).unwrap()[..], [Swept::InUse { pid, .. }] if *pid == Some(child.id()))
    );
    child.kill().unwrap(); // SIGKILL
    child.wait().unwrap();
    assert!(
        matches!(&sweep(parent.path()).unwrap()[..], [Swept::Removed { pid, .. }] if *pid == Some(child.id()))
    );
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}
