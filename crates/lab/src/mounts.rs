//! Mounts and unmounts devices, and lists mounts and their users.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use linux::SysRoot;
use linux::mounts::{Mount, list};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::error::LabError;

const BETWEEN: Duration = Duration::from_millis(20);
const CONNECTIONS: &str = "/sys/fs/fuse/connections";

fn all() -> Vec<Mount> {
    list(&SysRoot::host()).unwrap_or_default()
}

/// Where a loop device and its partitions are mounted, the newest mount first.
pub(crate) fn of(device: &Path) -> Vec<PathBuf> {
    let device = device.to_string_lossy();
    let mounts = all().into_iter().rev();
    mounts
        .filter(|mount| is_on(&mount.source, &device))
        .map(|mount| mount.mount_point)
        .collect()
}

/// Whether a mount's source is a loop device, e.g. `/dev/loop3`, or a partition of it, `/dev/loop3p1`.
fn is_on(source: &str, device: &str) -> bool {
    match source.strip_prefix(device) {
        Some("") => true,
        Some(rest) => rest
            .strip_prefix('p')
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())),
        None => false,
    }
}

/// Whether something is mounted there.
pub(crate) fn is_mounted(on: &Path) -> bool {
    all().iter().any(|mount| mount.mount_point == on)
}

/// Waits until `come` returns true, at most for `at_most`. Returns whether it did.
pub(crate) fn wait_until(at_most: Duration, mut come: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    loop {
        if come() {
            return true;
        }
        if began.elapsed() >= at_most {
            return false;
        }
        sleep(BETWEEN);
    }
}

/// Unmounts a file system, waiting a moment for those who are about to leave it.
pub(crate) fn unmount_patiently(on: &Path, at_most: Duration) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match unmount(on, UnmountFlags::NOFOLLOW) {
            Err(Errno::BUSY) if began.elapsed() < at_most => sleep(BETWEEN),
            // Somebody else was faster.
            Err(Errno::INVAL | Errno::NOENT) => return Ok(()),
            outcome => return Ok(outcome?),
        }
    }
}

/// Takes a mount out of sight; it ends with its last user.
pub(crate) fn unmount_lazily(on: &Path) {
    // Whether it worked is seen from what is still mounted.
    let _ = unmount(on, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH);
}

/// Ends a FUSE connection whose server doesn't: every request fails at once.
pub(crate) fn abort_fuse(on: &Path) {
    let mounts = all().into_iter().rev();
    let mut fuse = mounts.filter(|mount| mount.mount_point == on && mount.fs.starts_with("fuse"));
    let Some(mount_there) = fuse.next() else {
        return;
    };
    let connection = Path::new(CONNECTIONS).join(mount_there.device.minor.to_string());
    let mut mounted = false;
    if !is_mounted(Path::new(CONNECTIONS)) {
        mounted = mount("none", CONNECTIONS, "fusectl", MountFlags::empty(), None).is_ok();
    }
    // Gone if its server was killed.
    let _ = fs::write(connection.join("abort"), "1");
    if mounted {
        let _ = unmount(CONNECTIONS, UnmountFlags::NOFOLLOW);
    }
}

/// Returns the users of a mount, e.g. `fio (4711)`, for a message.
pub(crate) fn users(on: &Path) -> Vec<String> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| {
            let pid = entry.file_name().to_string_lossy().parse().ok()?;
            uses(&entry.path(), on).then(|| user(pid)).flatten()
        })
        .collect()
}

/// Returns the name of a process for a message; `None` if it has ended.
pub(crate) fn user(pid: u32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(format!("{} ({pid})", name.trim()))
}

/// Whether a process has something below a directory open, or mapped, or is there.
fn uses(process: &Path, on: &Path) -> bool {
    let files = fs::read_dir(process.join("fd"));
    let mut links = files
        .into_iter()
        .flatten()
        .flatten()
        .map(|fd| fd.path())
        .chain(["cwd", "root", "exe"].map(|link| process.join(link)));
    if links.any(|link| fs::read_link(link).is_ok_and(|to| to.starts_with(on))) {
        return true;
    }
    let maps = fs::read(process.join("maps")).unwrap_or_default();
    String::from_utf8_lossy(&maps).lines().any(|line| {
        let path = line.find('/').map(|at| Path::new(&line[at..]));
        path.is_some_and(|path| path.starts_with(on))
    })
}

/// Runs a program of the system that makes or mounts something.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<(), LabError> {
    let failed = |output: String| LabError::Program {
        program: format!("{program} {}", arguments.join(" ")),
        output,
    };
    let ended = Command::new(program)
        .args(arguments)
        // Its messages are read, in English.
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(format!("{error}; is it installed?")))?;
    if ended.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&ended.stderr);
    // mkfs.xfs says what is wrong and then all that it can do.
    let output = output.split("\nUsage:").next().unwrap_or_default();
    let output = output.trim().to_owned();
    Err(failed(if output.is_empty() {
        ended.status.to_string()
    } else {
        output
    }))
}

#[cfg(test)]
mod tests {
    use super::is_on;

    #[test]
    fn a_partition_lies_on_its_device_and_another_device_does_not() {
        for source in ["/dev/loop3", "/dev/loop3p1", "/dev/loop3p12"] {
            assert!(is_on(source, "/dev/loop3"), "{source}");
        }
        for source in [
            "/dev/loop30",
            "/dev/loop31p1",
            "/dev/loop3p",
            "/dev/loop3px",
            "/dev/sda",
        ] {
            assert!(!is_on(source, "/dev/loop3"), "{source}");
        }
    }
}
