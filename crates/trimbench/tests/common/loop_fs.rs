//! A file system of the test's own, on a loop device, gone when the test is over.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::sweep;

/// A file system to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fs {
    Ext4,
    Xfs,
    Btrfs,
}

/// Where the image lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// In memory: fast, and a discard frees memory for real.
    Tmpfs,
    /// On whatever disk holds the temporary directory.
    Disk,
}

/// Enough for mkfs.xfs, and for a run, which keeps 1 GiB free. In MiB; sparse.
pub const SMALL: u64 = 2048;

/// A sparse image and the loop device over it.
#[derive(Debug)]
pub struct LoopDevice {
    image: PathBuf,
    device: PathBuf,
}

impl LoopDevice {
    /// A device of `mib` MiB that reads as zeroes.
    pub fn new(mib: u64, on: On) -> Self {
        Self::at("-f", mib, on)
    }

    /// The same, by its name, or the first that is free (`-f`).
    fn at(which: &str, mib: u64, on: On) -> Self {
        sweep::sweep();
        let place = match on {
            On::Tmpfs => PathBuf::from("/dev/shm"),
            On::Disk => sweep::disk_dir(),
        };
        let image = place.join(format!("{}.img", sweep::own_name()));
        File::create(&image).unwrap().set_len(mib << 20).unwrap();
        // From here on Drop removes the image, even if losetup fails.
        let mut new = Self {
            image,
            device: PathBuf::new(),
        };
        let device = must("losetup", &["--show", which, &new.image.to_string_lossy()]);
        new.device = device.trim().into();
        new.lift_limit();
        new
    }

    /// A limit of discards, and counters that are off, outlive whoever had the device's number
    /// before, such as a drive of the laboratory that a test killed.
    fn lift_limit(&self) {
        fs::write(self.queue("iostats"), "1").unwrap();
        let number = |file| {
            let text = fs::read_to_string(self.queue(file)).unwrap();
            text.trim().parse::<u64>().unwrap()
        };
        let most = number("discard_max_hw_bytes") / 4096 * 4096;
        if number("discard_max_bytes") < most {
            fs::write(self.queue("discard_max_bytes"), most.to_string()).unwrap();
        }
    }

    /// A second loop device, over this one, which it keeps in use.
    pub fn over(&self) -> Upper<'_> {
        let device = must("losetup", &["-f", "--show", &self.device.to_string_lossy()]);
        Upper {
            device: device.trim().to_owned(),
            _lower: self,
        }
    }

    /// The block device, as `/dev/loop3`.
    pub fn path(&self) -> &Path {
        &self.device
    }

    /// Makes it so many MiB large, as a volume that grows.
    pub fn resize(&self, mib: u64) {
        let image = fs::OpenOptions::new().write(true).open(&self.image);
        image.unwrap().set_len(mib << 20).unwrap();
        must("losetup", &["-c", &self.device.to_string_lossy()]);
    }

    /// Memory or disk space the image takes now, in bytes: less after a discard.
    pub fn allocated(&self) -> u64 {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(&self.image).unwrap().blocks() * 512
    }

    /// A file of the device's queue, as `discard_max_bytes`.
    pub fn queue(&self, file: &str) -> PathBuf {
        let name = self.device.file_name().unwrap();
        Path::new("/sys/block").join(name).join("queue").join(file)
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        sweep::clear(&self.image);
    }
}

/// A loop device over a loop device.
pub struct Upper<'a> {
    device: String,
    _lower: &'a LoopDevice,
}

impl Drop for Upper<'_> {
    fn drop(&mut self) {
        sweep::quietly("losetup", &["-d", &self.device]);
    }
}

/// A mounted file system on a loop device.
#[derive(Debug)]
pub struct LoopFs {
    mount: PathBuf,
    // After `mount`: Drop of the fields runs once ours has unmounted.
    loop_device: LoopDevice,
    /// The other leg of a mirror.
    second: Option<LoopDevice>,
}

impl LoopFs {
    /// Makes a file system of `mib` MiB and mounts it with `options` (as `mount -o`).
    pub fn new(fs: Fs, options: &str, mib: u64, on: On) -> Self {
        Self::over(LoopDevice::new(mib, on), fs, options)
    }

    /// The same in memory, on the loop device of this name.
    pub fn on(device: &Path, fs: Fs, options: &str, mib: u64) -> Self {
        let device = LoopDevice::at(&device.to_string_lossy(), mib, On::Tmpfs);
        Self::over(device, fs, options)
    }

    fn over(loop_device: LoopDevice, fs: Fs, options: &str) -> Self {
        let device = loop_device.path().to_string_lossy().into_owned();
        match fs {
            // No lazy initialization: its writes would run beside the test.
            Fs::Ext4 => must(
                "mkfs.ext4",
                &[
                    "-q",
                    "-F",
                    "-m",
                    "0",
                    "-E",
                    "lazy_itable_init=0,lazy_journal_init=0",
                    &device,
                ],
            ),
            Fs::Xfs => must("mkfs.xfs", &["-q", "-f", &device]),
            Fs::Btrfs => mkfs_btrfs(&[&device]),
        };
        Self::mounted(loop_device, None, options)
    }

    /// A btrfs in memory that keeps everything on two loop devices of `mib` MiB each.
    pub fn mirror(options: &str, mib: u64) -> Self {
        let legs = [(); 2].map(|()| LoopDevice::new(mib, On::Tmpfs));
        let names = legs.each_ref().map(|leg| leg.path().to_string_lossy());
        mkfs_btrfs(&["-d", "raid1", "-m", "raid1", &names[0], &names[1]]);
        let [first, second] = legs;
        Self::mounted(first, Some(second), options)
    }

    fn mounted(loop_device: LoopDevice, second: Option<LoopDevice>, options: &str) -> Self {
        let device = loop_device.path().to_string_lossy().into_owned();
        let mount = sweep::disk_dir().join(sweep::own_name());
        std::fs::create_dir(&mount).unwrap();
        let new = Self {
            mount,
            loop_device,
            second,
        };
        let options = if options.is_empty() { "rw" } else { options };
        must(
            "mount",
            &["-o", options, &device, &new.mount.to_string_lossy()],
        );
        new
    }

    /// ext4 with online discard, in memory: what most tests need.
    pub fn small() -> Self {
        Self::new(Fs::Ext4, "discard", SMALL, On::Tmpfs)
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        &self.mount
    }

    /// The device it is mounted from.
    pub fn device(&self) -> &LoopDevice {
        &self.loop_device
    }

    /// All devices that it is on.
    pub fn devices(&self) -> impl Iterator<Item = &LoopDevice> {
        std::iter::once(&self.loop_device).chain(&self.second)
    }

    /// `mount -o remount,OPTIONS`.
    pub fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        must("mount", &["-o", &options, &self.mount.to_string_lossy()]);
    }

    /// The options it is mounted with now.
    pub fn options(&self) -> String {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let here = self.mount.to_string_lossy();
        let line = mounts
            .lines()
            .find(|line| line.split(' ').nth(1) == Some(&*here));
        line.unwrap().split(' ').nth(3).unwrap().to_owned()
    }

    /// Names in its root directory, sorted, without what mkfs put there.
    pub fn names(&self) -> Vec<String> {
        names(&self.mount)
    }

    /// Free space, in bytes.
    pub fn free(&self) -> u64 {
        let space = rustix::fs::statvfs(&self.mount).unwrap();
        space.f_bavail * space.f_frsize
    }
}

impl Drop for LoopFs {
    fn drop(&mut self) {
        sweep::clear(&self.mount);
    }
}

/// Names in a directory, sorted, without `lost+found`.
pub fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name != "lost+found")
        .collect();
    names.sort();
    names
}

/// It looks at every loop device of the machine, and fails while one of another test lies on a
/// FUSE server that is gone.
fn mkfs_btrfs(more: &[&str]) -> String {
    let arguments = [&["-q", "-f"], more].concat();
    for _ in 0..20 {
        let output = Command::new("mkfs.btrfs")
            .args(&arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return said.into_owned();
        }
        if !said.contains("cannot check mount status") {
            break;
        }
        let gone = sweep::take_down_dead_drives();
        assert!(gone.is_ok(), "{}", gone.unwrap_err());
    }
    must("mkfs.btrfs", &arguments)
}

/// Unmounts. What a killed process had open through io_uring the kernel closes a moment
/// later, so that it is tried again while the mount is busy.
pub fn unmount(mount: &str) {
    for _ in 0..100 {
        let output = Command::new("umount").arg(mount).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() {
            return;
        }
        assert!(said.contains("busy"), "umount {mount}: {said}");
        thread::sleep(Duration::from_millis(100));
    }
    panic!("{mount} is busy for ten seconds");
}

/// Runs a command that must succeed, and gives its output.
pub fn must(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(
        output.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}
