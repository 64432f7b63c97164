//! A laboratory of a test's own, with a drive in it; gone when the test is over.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::common::gate::Need;
use crate::common::run::{Done, run, trimbench};

/// The needs of drives with file systems.
pub const NEEDS: &[Need] = &[
    Need::Root,
    Need::File("/dev/fuse"),
    Need::File("/dev/loop-control"),
    Need::Tool("mkfs.ext4"),
    Need::Tool("mkfs.xfs"),
    Need::Tool("mkfs.btrfs"),
    Need::Tool("dd"),
];

const DIR: &str = "TRIMBENCH_LAB_DIR";
/// Short, for sockets lie below it.
const PREFIX: &str = "/tmp/tb-e2elab-";

/// A laboratory.
pub struct OwnLab {
    dir: PathBuf,
}

impl OwnLab {
    pub fn new() -> Self {
        sweep();
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = PathBuf::from(format!("{PREFIX}{}-{number}", std::process::id()));
        OwnLab { dir }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A place to mount a drive on, which `lab up` makes.
    pub fn mount(&self) -> PathBuf {
        let mut name = self.dir.clone().into_os_string();
        name.push("-mnt");
        name.into()
    }

    /// Lets a command look for drives here.
    pub fn in_here(&self, mut command: Command) -> Command {
        command.env(DIR, &self.dir);
        command
    }

    /// `trimbench lab …`, to its end.
    pub fn lab(&self, arguments: &[&str]) -> Done {
        let mut command = trimbench();
        command.arg("lab").args(arguments);
        run(self.in_here(command))
    }

    /// `lab up`, which must succeed; the device.
    #[track_caller]
    pub fn up(&self, name: &str, options: &[&str]) -> PathBuf {
        let done = self.lab(&[&["up", name], options].concat());
        let device = PathBuf::from(done.succeeds().stdout.trim());
        assert!(device.starts_with("/dev"), "{}", done.text());
        device
    }

    /// `lab stats --json`.
    #[track_caller]
    pub fn stats(&self, name: &str) -> Value {
        let done = self.lab(&["stats", name, "--json"]);
        let all: Value = serde_json::from_str(&done.succeeds().stdout).unwrap();
        all["stats"].clone()
    }

    // Effect of --json: a_drive_can_be_faster
    /// `lab list --json`.
    #[track_caller]
    pub fn list(&self) -> Vec<Value> {
        let done = self.lab(&["list", "--json"]);
        serde_json::from_str(&done.succeeds().stdout).unwrap()
    }
}

impl Drop for OwnLab {
    fn drop(&mut self) {
        clear(&self.dir);
    }
}

fn clear(dir: &Path) {
    let mut command = trimbench();
    command
        .env(DIR, dir)
        .args(["lab", "down", "--all", "--force"]);
    let _ = command.output();
    // Empty, unless something could not be taken down; then it tells where.
    let _ = fs::remove_dir(dir);
}

/// Takes down what killed test runs left.
fn sweep() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for entry in fs::read_dir("/tmp").into_iter().flatten().flatten() {
            let path = entry.path();
            let text = path.to_string_lossy();
            let pid = text.strip_prefix(PREFIX).and_then(|r| r.split('-').next());
            if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
                clear(&path);
            }
        }
    });
}

/// Reads or writes a block, past the page cache or as the options say.
pub fn dd(arguments: &[&str]) -> bool {
    let mut command = Command::new("dd");
    command.args(["bs=4k", "count=1"]).args(arguments);
    command.output().unwrap().status.success()
}
