//! Clears away what killed test runs left behind: mounts, loop devices, images.
//!
//! Everything the fixtures make carries the name `trimbench-e2e-PID-N`; what belongs to a process
//! that is gone is removed, and nothing else.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "trimbench-e2e-";

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

/// Sweeps once in the life of this process.
pub fn sweep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        sweep_loops();
        for place in places() {
            sweep_place(&place);
        }
    });
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
