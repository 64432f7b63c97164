//! Which tests can run here, and which must run alone.

use std::fs::{self, File};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// Something a test can't do without.
pub enum Need {
    /// Effective user 0: mounting, loop devices, freezing.
    Root,
    /// A program in PATH.
    Tool(&'static str),
    /// A file of /proc or /sys, or a device node.
    File(&'static str),
}

/// A file system on a loop device.
pub const LOOP_EXT4: &[Need] = &[
    Need::Root,
    Need::File("/dev/loop-control"),
    Need::Tool("mkfs.ext4"),
];

/// Whether the machine lacks something. Prints what; where CI is set it fails instead, so that
/// no test is skipped there unseen.
#[must_use]
pub fn lacks(needs: &[Need]) -> bool {
    let missing: Vec<String> = needs.iter().filter_map(missing).collect();
    if missing.is_empty() {
        return false;
    }
    let missing = missing.join(", ");
    assert!(
        std::env::var_os("CI").is_none(),
        "this test needs {missing}, and CI is set: it may not be skipped"
    );
    eprintln!("skipped: needs {missing}");
    true
}

fn missing(need: &Need) -> Option<String> {
    match need {
        Need::Root => (!rustix::process::geteuid().is_root()).then(|| "root".to_owned()),
        Need::Tool(name) => (!in_path(name)).then(|| format!("the program {name}")),
        Need::File(path) => (!Path::new(path).exists()).then(|| (*path).to_owned()),
    }
}

fn in_path(name: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/sbin"])
        .any(|directory| Path::new(directory).join(name).exists())
}

/// Held by a test while it runs. Cargo runs tests side by side; figures want the machine alone.
pub struct Turn {
    _lock: File,
}

/// Waits until no other test runs, and keeps them out: for tests that look at figures.
pub fn alone() -> Turn {
    turn(FlockOperation::LockExclusive)
}

/// Runs beside others, but not beside one that is [`alone`].
pub fn beside() -> Turn {
    turn(FlockOperation::LockShared)
}

fn turn(operation: FlockOperation) -> Turn {
    let path = std::env::temp_dir().join("trimbench-tests.lock");
    let lock = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    flock(&lock, operation).unwrap();
    Turn { _lock: lock }
}

/// Whether the long counts are asked for (`make soak`).
pub fn soak() -> bool {
    std::env::var_os("TRIMBENCH_SOAK").is_some()
}

/// `few` in `make test`, `many` in `make soak`.
pub fn times(few: usize, many: usize) -> usize {
    if soak() { many } else { few }
}
