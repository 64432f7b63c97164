//! Clears away what killed test runs left behind: mounts, loop devices, images.
//!
//! Everything the fixtures make carries the name `trimbench-test-PID-N`; what belongs to a process
//! that is gone is removed, and nothing else.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};

const PREFIX: &str = "trimbench-test-";

/// A name nobody else uses, by which a later sweep knows whose it is.
pub fn own_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{PREFIX}{}-{number}", std::process::id())
}

/// Where images and mount points are made.
pub fn places() -> [PathBuf; 2] {
    [PathBuf::from("/dev/shm"), disk_dir()]
}

/// A directory that is on a disk, unless TMPDIR says otherwise.
pub fn disk_dir() -> PathBuf {
    // /tmp is a tmpfs on many machines; /var/tmp is not, by definition.
    std::env::var_os("TMPDIR").map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

/// Sweeps once in the life of this process. Fails, each time, while a dead drive of the laboratory
/// stays that would make mkfs.btrfs fail.
pub fn sweep() {
    static DEAD: OnceLock<Result<(), String>> = OnceLock::new();
    let gone = DEAD.get_or_init(take_down_dead_drives);
    assert!(gone.is_ok(), "{}", gone.as_ref().unwrap_err());
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        sweep_loops();
        for place in places() {
            sweep_place(&place);
        }
    });
}

/// A laboratory takes its dead drives down by itself, and a test that kills one looks on.
const PATIENCE: Duration = Duration::from_secs(3);

/// Waits until no loop device of the machine lies on a drive whose server is gone; a laboratory
/// whose guardians were killed, too, is called to take its own down. The reason where one stays.
pub fn take_down_dead_drives() -> Result<(), String> {
    let mut said = String::new();
    for drive in dead_drives_after(PATIENCE) {
        // The binary lies beside the tests, if somebody built it.
        let test = std::env::current_exe().unwrap();
        let built = test.parent().and_then(Path::parent).unwrap_or(&test);
        let mut list = Command::new(built.join("trimbench"));
        let laboratory = drive.parent().unwrap_or(Path::new("/"));
        list.env("TRIMBENCH_LAB_DIR", laboratory);
        said += &match list.args(["lab", "list"]).output() {
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(error) => error.to_string(),
        };
    }
    match dead_drives_after(PATIENCE).first() {
        None => Ok(()),
        Some(drive) => Err(format!(
            "the server of {} is gone, and mkfs.btrfs fails for everybody while there is a loop \
             device over it; `TRIMBENCH_LAB_DIR={} trimbench lab list` said: {said}",
            drive.display(),
            drive.parent().unwrap_or(Path::new("/")).display()
        )),
    }
}

/// The directories of dead drives that stay for so long.
fn dead_drives_after(patience: Duration) -> Vec<PathBuf> {
    let began = Instant::now();
    loop {
        let dead = dead_drives();
        if dead.is_empty() || began.elapsed() > patience {
            return dead;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Loop devices lie on LABORATORY/NAME/fuse/disk, and beside it is a file that the server locks.
fn dead_drives() -> Vec<PathBuf> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    devices
        .filter_map(|device| {
            let file = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
            let drive = file.trim_end().strip_suffix("/fuse/disk")?;
            Some(PathBuf::from(drive))
        })
        .filter(|drive| is_dead(drive))
        .collect()
}

/// Whether the server of the drive in this directory is gone, and its lock with it.
pub fn is_dead(drive: &Path) -> bool {
    let server = File::open(drive.join("server"));
    server.is_ok_and(|file| flock(file, FlockOperation::NonBlockingLockShared).is_ok())
}

/// Detaches loop devices over images whose test is gone, also where the image is gone already,
/// and before them loop devices that lie over such a loop device.
fn sweep_loops() {
    let mut abandoned_loops = Vec::new();
    let mut others = Vec::new();
    for entry in fs::read_dir("/sys/block").into_iter().flatten().flatten() {
        let Ok(text) = fs::read_to_string(entry.path().join("loop/backing_file")) else {
            continue;
        };
        let device = format!("/dev/{}", entry.file_name().to_string_lossy());
        let image = PathBuf::from(text.trim().trim_end_matches(" (deleted)"));
        let name = image.file_name().unwrap_or_default().to_string_lossy();
        if abandoned(&name) {
            abandoned_loops.push(device);
        } else {
            others.push((device, image.clone()));
        }
    }
    for (device, image) in others {
        if abandoned_loops
            .iter()
            .any(|below| Path::new(below) == image)
        {
            quietly("losetup", &["-d", &device]);
        }
    }
    for device in abandoned_loops {
        quietly("losetup", &["-d", &device]);
    }
}

/// Removes from a directory what belonged to a process that is gone.
pub fn sweep_place(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if abandoned(&entry.file_name().to_string_lossy()) {
            clear(&entry.path());
        }
    }
}

fn abandoned(name: &str) -> bool {
    name.strip_prefix(PREFIX)
        .and_then(|rest| rest.split('-').next())
        .is_some_and(|pid| !pid.is_empty() && !Path::new("/proc").join(pid).exists())
}

/// Unmounts and removes a mount point, or detaches and removes an image.
pub fn clear(path: &Path) {
    if path.is_dir() {
        // Someone may have frozen it.
        quietly("fsfreeze", &["-u", &path.to_string_lossy()]);
        while is_mounted(path) && quietly("umount", &["-l", &path.to_string_lossy()]) {}
        // Not remove_dir_all: should the unmount have failed, nothing on it is lost.
        let _ = fs::remove_dir(path);
    } else {
        for device in loop_devices(path) {
            quietly("losetup", &["-d", &device]);
        }
        let _ = fs::remove_file(path);
    }
}

/// Whether something is mounted there.
pub fn is_mounted(path: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts
        .lines()
        .any(|line| line.split(' ').nth(1) == Some(&*path.to_string_lossy()))
}

fn loop_devices(image: &Path) -> Vec<String> {
    let output = Command::new("losetup")
        .args(["-n", "-O", "NAME", "-j"])
        .arg(image)
        .output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&text)
        .split_whitespace()
        .map(str::to_owned)
        .collect()
}

/// Runs a command whose failure is no matter; tells whether it succeeded.
pub fn quietly(program: &str, arguments: &[&str]) -> bool {
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
