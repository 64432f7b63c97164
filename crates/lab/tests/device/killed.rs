//! Whatever is killed, nothing stays.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use lab::{Down, Fs, Lab, LabError};
use rustix::process::{Pid, Signal, kill_process};

use crate::common::{Bench, NAME, cannot, launcher};

struct Left {
    disk: String,
    mount: PathBuf,
    server: i32,
    dir: PathBuf,
}

impl Left {
    fn of(bench: &Bench) -> Left {
        let device = bench.device().file_name().unwrap().to_owned();
        let backing = Path::new("/sys/block")
            .join(device)
            .join("loop/backing_file");
        let disk = fs::read_to_string(backing).unwrap().trim().to_owned();
        Left {
            dir: Path::new(&disk)
                .parent()
                .unwrap()
                .parent()
                .unwrap()
                .to_owned(),
            disk,
            mount: bench.info.mounts.first().cloned().unwrap_or_default(),
            server: bench.info.server.unwrap(),
        }
    }

    /// Waits until the laboratory takes the drive down by itself; fails after [`PATIENCE`].
    fn becomes_nothing(&self) {
        let began = Instant::now();
        while self.dir.exists() {
            let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            assert!(began.elapsed() < PATIENCE, "nobody takes it down: {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.assert_nothing();
    }

    fn pid(&self, file: &str) -> Pid {
        loop {
            let text = fs::read_to_string(self.dir.join(file)).unwrap();
            // Empty while another takes it.
            if let Ok(number) = text.trim().parse() {
                return Pid::from_raw(number).unwrap();
            }
        }
    }

    /// At one moment: a guardian that stands still does nothing in between.
    fn kill_server_and_guardian(&self) {
        let (server, guardian) = (self.pid("server"), self.pid("guardian"));
        kill_process(guardian, Signal::STOP).unwrap();
        kill_process(server, Signal::KILL).unwrap();
        kill_process(guardian, Signal::KILL).unwrap();
        let began = Instant::now();
        // Its threads end one by one; the last drops the lock.
        let locked = || {
            Lab::at(self.dir.parent().unwrap())
                .info(NAME)
                .unwrap()
                .server
        };
        while [server, guardian].into_iter().any(runs) || locked().is_some() {
            assert!(began.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn assert_not_mounted(&self) {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&*self.dir.to_string_lossy()), "{mounts}");
        // Another test's mount point may begin with this one's name.
        let mount = format!(" {} ", self.mount.display());
        assert!(!mounts.contains(&mount), "{mounts}");
    }

    fn assert_nothing(&self) {
        self.assert_not_mounted();
        assert!(!self.mount.exists());
        for entry in fs::read_dir("/sys/block").unwrap().flatten() {
            let backing = fs::read_to_string(entry.path().join("loop/backing_file"));
            assert_ne!(backing.unwrap_or_default().trim(), self.disk);
        }
        // Its locks go a moment before itself.
        let server = Pid::from_raw(self.server).unwrap();
        let began = Instant::now();
        while runs(server) {
            assert!(began.elapsed() < PATIENCE, "the server runs");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!self.dir.exists());
    }
}

/// Whatever is to happen by itself happens within milliseconds, unless the
/// machine is very busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whether a process is more than a zombie.
fn runs(pid: Pid) -> bool {
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    state.is_ok_and(|s| !s.contains(") Z "))
}

fn with_ext4() -> Bench {
    let mount = Bench::mount_point();
    Bench::new("samsung-870-evo-2tb", &[], 512, |spec| {
        spec.fs = Some(Fs::Ext4);
        spec.mount = Some(mount);
        spec.options = "discard".to_owned();
    })
}

#[test]
fn btrfs_is_made_while_another_drive_dies() {
    if cannot(&["mkfs.ext4", "mkfs.btrfs"]) {
        return;
    }
    let dying = with_ext4();
    let left = Left::of(&dying);
    // It stays dead for as long as its guardian stands still.
    let guardian = left.pid("guardian");
    kill_process(guardian, Signal::STOP).unwrap();
    kill_process(left.pid("server"), Signal::KILL).unwrap();
    let maker = std::thread::spawn(|| {
        drop(Bench::new("ideal", &[], 256, |spec| {
            spec.fs = Some(Fs::Btrfs)
        }));
    });
    std::thread::sleep(Duration::from_millis(500));
    assert!(!maker.is_finished(), "mkfs.btrfs minded no dead drive");
    kill_process(guardian, Signal::CONT).unwrap();
    maker.join().unwrap();
    left.becomes_nothing();
}

#[test]
fn down_leaves_nothing() {
    if cannot(&["mkfs.ext4"]) {
        return;
    }
    let bench = with_ext4();
    let left = Left::of(&bench);
    fs::write(bench.mount().join("file"), vec![7; 1 << 20]).unwrap();
    assert_eq!(bench.lab.list().unwrap(), std::slice::from_ref(&bench.info));
    assert_eq!(
        bench.lab.of_device(bench.device()).unwrap(),
        Some(bench.info.clone())
    );
    bench.lab.down(NAME, Down::UnlessUsed).unwrap();
    left.assert_nothing();
    assert!(bench.lab.list().unwrap().is_empty());
    let error = bench.lab.down(NAME, Down::UnlessUsed).unwrap_err();
    assert!(matches!(error, LabError::NoSuch { .. }), "{error}");
}

#[test]
fn a_drive_in_use_stays_unless_forced() {
    if cannot(&["mkfs.ext4"]) {
        return;
    }
    let bench = with_ext4();
    let left = Left::of(&bench);
    let held = fs::File::create(bench.mount().join("held")).unwrap();
    let error = bench.lab.down(NAME, Down::UnlessUsed).unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains(&format!("({})", std::process::id())),
        "{said}"
    );
    assert!(bench.mount().join("held").exists(), "it still works");
    drop(held);
    bench.lab.down(NAME, Down::ByForce).unwrap();
    left.assert_nothing();
}

#[test]
fn nothing_stays_after_the_server_was_killed_under_load() {
    if cannot(&["mkfs.ext4", "fio"]) {
        return;
    }
    let bench = with_ext4();
    let left = Left::of(&bench);
    let mut load = Command::new("fio")
        .args([
            "--name=load",
            "--rw=randrw",
            "--bs=4k",
            "--iodepth=8",
            "--ioengine=libaio",
            "--direct=1",
            "--size=64M",
            "--fsync=32",
            "--time_based",
            "--runtime=120",
        ])
        .arg(format!("--directory={}", bench.mount().display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let began = Instant::now();
    let read = || bench.lab.stats(NAME).unwrap().kinds[0].commands;
    while read() < 500 {
        assert!(began.elapsed() < Duration::from_secs(60), "no load");
        std::thread::sleep(Duration::from_millis(50));
    }
    let server = Pid::from_raw(left.server).unwrap();
    kill_process(server, Signal::KILL).unwrap();
    left.becomes_nothing();
    bench.lab.down_all(Down::UnlessUsed).unwrap();
    // Every I/O fails now, so fio ends by itself.
    load.wait().unwrap();
}

#[test]
fn a_guardian_that_is_killed_is_replaced() {
    if cannot(&["mkfs.ext4"]) {
        return;
    }
    let bench = with_ext4();
    let left = Left::of(&bench);
    let first = left.pid("guardian");
    kill_process(first, Signal::KILL).unwrap();
    let began = Instant::now();
    while left.pid("guardian") == first {
        assert!(began.elapsed() < PATIENCE, "no other guardian");
        std::thread::sleep(Duration::from_millis(20));
    }
    fs::write(bench.mount().join("file"), "it still works").unwrap();
    kill_process(left.pid("server"), Signal::KILL).unwrap();
    left.becomes_nothing();
    assert!(!runs(first));
}

#[test]
fn when_both_are_killed_the_drive_is_dead_and_swept() {
    if cannot(&["mkfs.ext4"]) {
        return;
    }
    let bench = with_ext4();
    let left = Left::of(&bench);
    assert!(bench.lab.sweep().unwrap().is_empty(), "it works");
    left.kill_server_and_guardian();
    let remains = bench.lab.remains().join("; ");
    for part in ["a mount on", "the loop device", "the directory"] {
        assert!(remains.contains(part), "{part} missing: {remains}");
    }
    let swept = bench.lab.sweep().unwrap();
    assert_eq!(swept.len(), 1);
    assert!(swept[0].name == NAME && swept[0].was_made);
    swept[0].outcome.as_ref().unwrap();
    left.assert_nothing();
    assert_eq!(bench.lab.remains(), Vec::<String>::new());
}

#[test]
fn what_is_made_or_hangs_is_not_swept() {
    if cannot(&["mkfs.ext4"]) {
        return;
    }
    let bench = with_ext4();
    let left = Left::of(&bench);
    // One that is being made: no server yet, but somebody has its hold.
    let other = left.dir.parent().unwrap().join("b");
    fs::create_dir(&other).unwrap();
    let hold = fs::File::create(other.join("hold")).unwrap();
    rustix::fs::flock(&hold, rustix::fs::FlockOperation::LockExclusive).unwrap();
    // And one that hangs.
    kill_process(left.pid("server"), Signal::STOP).unwrap();
    assert!(bench.lab.sweep().unwrap().is_empty());
    assert!(other.exists() && left.dir.exists());
    kill_process(left.pid("server"), Signal::CONT).unwrap();
    assert!(fs::write(bench.mount().join("file"), "it still works").is_ok());
    // Its maker is killed.
    drop(hold);
    let swept = bench.lab.sweep().unwrap();
    assert!(swept.len() == 1 && swept[0].name == "b" && !swept[0].was_made);
    assert!(!other.exists());
}

#[test]
fn what_is_held_open_is_out_of_sight_and_goes_with_its_holder() {
    if cannot(&["mkfs.ext4", "sleep"]) {
        return;
    }
    let bench = with_ext4();
    let left = Left::of(&bench);
    let file = fs::File::create(bench.mount().join("held")).unwrap();
    let mut holder = Command::new("sleep")
        .arg("600")
        .stdin(file)
        .spawn()
        .unwrap();
    kill_process(left.pid("server"), Signal::KILL).unwrap();
    let began = Instant::now();
    let error = loop {
        match bench.lab.down(NAME, Down::UnlessUsed) {
            Err(error @ LabError::Left { .. }) => break error.to_string(),
            other => assert!(began.elapsed() < PATIENCE, "{other:?}"),
        }
    };
    let who = format!("sleep ({})", holder.id());
    assert!(error.contains(&who), "{error}");
    // Nobody stumbles over it, and it is known to be there.
    left.assert_not_mounted();
    assert_eq!(bench.lab.info(NAME).unwrap().device, bench.info.device);
    holder.kill().unwrap();
    holder.wait().unwrap();
    left.becomes_nothing();
}

#[test]
fn a_server_that_stands_still_is_taken_down() {
    if cannot(&["mkfs.ext4"]) {
        return;
    }
    let bench = with_ext4();
    let left = Left::of(&bench);
    let server = Pid::from_raw(left.server).unwrap();
    kill_process(server, Signal::STOP).unwrap();
    bench.lab.down(NAME, Down::ByForce).unwrap();
    left.assert_nothing();
}

#[test]
fn what_can_not_be_made_leaves_nothing() {
    if cannot(&["mkfs.ext4"]) {
        return;
    }
    let bench = Bench::new("ideal", &[], 64, |_| {});
    let spec = bench.info.spec.clone();
    let error = bench.lab.up(&spec, &launcher()).unwrap_err();
    assert!(matches!(error, LabError::Exists { .. }), "{error}");

    let root = PathBuf::from(format!("/tmp/tb-lab-{}-x", std::process::id()));
    let lab = Lab::at(&root);
    let mut bad = spec.clone();
    bad.store = Some("/proc/store".into());
    let error = lab.up(&bad, &launcher()).unwrap_err();
    assert!(error.to_string().contains("/proc/store"), "{error}");
    assert!(lab.list().unwrap().is_empty() && fs::remove_dir(&root).is_ok());
}
