//! Loop devices and mounts that go away with the test.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Whether a test can run here. Where it must (`CI` is set), not being able to is a failure.
pub(crate) fn can(programs: &[&str]) -> bool {
    let missing: Vec<&str> = programs
        .iter()
        .copied()
        .filter(|program| {
            !["/usr/sbin", "/sbin", "/usr/bin", "/bin"]
                .iter()
                .any(|place| Path::new(place).join(program).exists())
        })
        .collect();
    let reason = if !rustix::process::geteuid().is_root() {
        "it needs root".to_owned()
    } else if !Path::new("/dev/shm").is_dir() {
        "it needs /dev/shm".to_owned()
    } else if !missing.is_empty() {
        format!("it needs {}", missing.join(", "))
    } else {
        return true;
    };
    assert!(std::env::var_os("CI").is_none(), "cannot run: {reason}");
    eprintln!("skipped: {reason}");
    false
}

/// Runs a program and returns what it printed.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A loop device over a file in memory.
pub(crate) struct LoopDevice {
    pub(crate) device: PathBuf,
    _directory: TempDir,
}

impl LoopDevice {
    pub(crate) fn new(mib: u64) -> LoopDevice {
        LoopDevice::with(mib, &[])
    }

    pub(crate) fn with(mib: u64, options: &[&str]) -> LoopDevice {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let image = directory.path().join("image");
        std::fs::File::create(&image)
            .unwrap()
            .set_len(mib << 20)
            .unwrap();
        LoopDevice {
            device: attach(&image, options),
            _directory: directory,
        }
    }

    pub(crate) fn path(&self) -> &str {
        self.device.to_str().unwrap()
    }

    pub(crate) fn name(&self) -> &str {
        self.device.file_name().unwrap().to_str().unwrap()
    }
}

pub(crate) fn attach(over: &Path, options: &[&str]) -> PathBuf {
    let mut arguments = vec!["-f", "--show"];
    arguments.extend(options);
    arguments.push(over.to_str().unwrap());
    PathBuf::from(run("losetup", &arguments))
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.device).status();
    }
}

/// A file system on loop devices, mounted.
pub(crate) struct Mounted {
    point: TempDir,
    pub(crate) devices: Vec<LoopDevice>,
}

impl Mounted {
    pub(crate) fn new(fs: &str, options: &str) -> Mounted {
        Mounted::on(vec![LoopDevice::new(512)], fs, options)
    }

    pub(crate) fn on(devices: Vec<LoopDevice>, fs: &str, options: &str) -> Mounted {
        let force = if fs == "ext4" { "-F" } else { "-f" };
        let mut arguments = vec!["-q", force];
        arguments.extend(devices.iter().map(LoopDevice::path));
        run(&format!("mkfs.{fs}"), &arguments);
        let point = tempfile::tempdir_in("/dev/shm").unwrap();
        let at = point.path().to_str().unwrap();
        run("mount", &["-t", fs, "-o", options, devices[0].path(), at]);
        Mounted { point, devices }
    }

    pub(crate) fn path(&self) -> &Path {
        self.point.path()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A watcher may hold the mount for a moment.
        for _ in 0..50 {
            let done = Command::new("umount").arg(self.path()).output();
            if done.is_ok_and(|output| output.status.success()) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
