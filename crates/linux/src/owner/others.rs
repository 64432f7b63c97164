//! Other processes that work in directories of ours now: their locks tell.

use std::fs;
use std::path::PathBuf;

use crate::SysRoot;
use crate::mounts::DeviceNumber;
use crate::sysroot::value;

use super::names::PREFIX;

/// Another process with a directory of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// The process.
    pub pid: u32,
    /// The directory, as the kernel names it.
    pub path: PathBuf,
    /// The number of its file system.
    pub device: DeviceNumber,
}

/// Lists the processes that hold a lock and have a directory of ours open. This process and its
/// ancestors are left out, and so are processes of others unless root asks.
pub fn others(sys: &SysRoot) -> Vec<Other> {
    let own = ancestors(sys, std::process::id());
    let text = sys.text("/proc/locks").unwrap_or_default();
    let mut found: Vec<Other> = Vec::new();
    for (pid, device) in text.lines().filter_map(holder) {
        if own.contains(&pid) || found.iter().any(|other| other.pid == pid) {
            continue;
        }
        if let Some(path) = directory(sys, pid) {
            found.push(Other { pid, path, device });
        }
    }
    found
}

/// The process that holds a lock of `flock`, and the file system of the locked file. One that waits
/// for a lock has an arrow in its line.
fn holder(line: &str) -> Option<(u32, DeviceNumber)> {
    let mut words = line.split_whitespace().skip(1);
    let (kind, _, _) = (words.next()?, words.next()?, words.next()?);
    let pid = words.next()?.parse().ok()?;
    let mut place = words.next()?.split(':');
    let mut number = || u32::from_str_radix(place.next()?, 16).ok();
    let (major, minor) = (number()?, number()?);
    (kind == "FLOCK").then_some((pid, DeviceNumber { major, minor }))
}

/// The first directory of ours that a process has open.
fn directory(sys: &SysRoot, pid: u32) -> Option<PathBuf> {
    let open = fs::read_dir(sys.path(format!("/proc/{pid}/fd"))).ok()?;
    let links = open
        .flatten()
        .filter_map(|one| fs::read_link(one.path()).ok());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(PREFIX))
    };
    links.into_iter().find(is_ours)
}

/// A process with its parents.
fn ancestors(sys: &SysRoot, pid: u32) -> Vec<u32> {
    let parent = |pid: &u32| {
        let text = sys.text(format!("/proc/{pid}/status")).ok()?;
        let parent = value(&text, "PPid:")?.parse().ok();
        parent.filter(|parent| *parent > 0)
    };
    std::iter::successors(Some(pid), parent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_holders_of_flock_count() {
        let device = DeviceNumber {
            major: 254,
            minor: 17,
        };
        let held = "3: FLOCK  ADVISORY  WRITE 812 fe:11:10453505 0 EOF";
        assert_eq!(holder(held), Some((812, device)));
        for line in [
            "1: -> FLOCK  ADVISORY  WRITE 20405 fe:00:9980328 0 EOF",
            "2: POSIX  ADVISORY  WRITE 20405 fe:00:9980328 0 EOF",
            "",
        ] {
            assert_eq!(holder(line), None, "{line}");
        }
    }
}
