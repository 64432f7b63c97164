//! Loop devices and mounts that go away with the test.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

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

/// Runs a program and returns what it printed. A device may seem busy for a
/// moment: a process that another test just forked holds whatever this process
/// had open, until it runs its program.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let mut turns = 0;
    loop {
        let output = Command::new(program).args(arguments).output().unwrap();
        if output.status.success() {
            return String::from_utf8_lossy(&output.stdout).trim().to_owned();
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let busy = said.contains("in use") || said.contains("busy");
        assert!(busy && turns < 50, "{program} {arguments:?}: {said}");
        turns += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The first sector of a disk with one partition, from 1 MiB on.
pub(crate) fn partition_table(sectors: u32) -> [u8; 512] {
    let mut sector = [0u8; 512];
    sector[446 + 4] = 0x83; // Linux
    sector[446 + 8..446 + 12].copy_from_slice(&2048u32.to_le_bytes());
    sector[446 + 12..446 + 16].copy_from_slice(&sectors.to_le_bytes());
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
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
        LoopDevice::starting_with(&[], mib, options)
    }

    /// One whose first bytes are these.
    pub(crate) fn starting_with(bytes: &[u8], mib: u64, options: &[&str]) -> LoopDevice {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let image = directory.path().join("image");
        let mut file = std::fs::File::create(&image).unwrap();
        file.write_all(bytes).unwrap();
        file.set_len(mib << 20).unwrap();
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

    /// The same, mounted as by default, after something is done to its first device.
    pub(crate) fn again(&self, change: impl FnOnce(&str)) {
        let at = self.path().to_str().unwrap();
        run("umount", &[at]);
        change(self.devices[0].path());
        run("mount", &[self.devices[0].path(), at]);
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
            std::thread::sleep(Duration::from_millis(100));
        }
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
