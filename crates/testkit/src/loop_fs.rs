//! A file system of the test's own on a loop device. Both are removed when the test is over.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::gate::{self, Need};
pub use crate::loop_device::{LoopDevice, On, SMALL, Upper};
use crate::sweep;

/// A file system to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fs {
    /// ext4 with its journal.
    Ext4,
    /// ext4 without a journal.
    Ext4NoJournal,
    /// XFS.
    Xfs,
    /// btrfs on one device; [`LoopFs::mirror`] takes two.
    Btrfs,
}

impl Fs {
    /// Returns the kind that `mount -t` calls so; ext4 has a journal.
    ///
    /// # Panics
    /// For another name.
    pub fn named(name: &str) -> Fs {
        match name {
            "ext4" => Fs::Ext4,
            "xfs" => Fs::Xfs,
            "btrfs" => Fs::Btrfs,
            _ => panic!("testkit makes no {name}"),
        }
    }

    /// Returns what making it needs, for [`gate::lacks`].
    pub fn needs(self) -> &'static [Need] {
        match self {
            Fs::Ext4 | Fs::Ext4NoJournal => gate::LOOP_EXT4,
            Fs::Xfs => gate::LOOP_XFS,
            Fs::Btrfs => gate::LOOP_BTRFS,
        }
    }

    /// Makes it on these devices: btrfs takes several, the others the first.
    pub fn make(self, devices: &[&str]) {
        // Without lazy initialization, whose writes would run beside the test.
        let ext4 = [
            "-q",
            "-F",
            "-m",
            "0",
            "-E",
            "lazy_itable_init=0,lazy_journal_init=0",
        ];
        let first = &devices[..1];
        match self {
            Fs::Ext4 => must("mkfs.ext4", &[&ext4, first].concat()),
            Fs::Ext4NoJournal => {
                let arguments = [&ext4, &["-O", "^has_journal"][..], first].concat();
                must("mkfs.ext4", &arguments)
            }
            Fs::Xfs => must("mkfs.xfs", &[&["-q", "-f"], first].concat()),
            Fs::Btrfs => mkfs_btrfs(devices),
        };
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

    /// Makes it in memory, on the loop device of this name.
    pub fn on(device: &Path, fs: Fs, options: &str, mib: u64) -> Self {
        Self::over(LoopDevice::at(device, mib), fs, options)
    }

    fn over(loop_device: LoopDevice, fs: Fs, options: &str) -> Self {
        fs.make(&[&loop_device.path().to_string_lossy()]);
        Self::mounted(loop_device, None, options)
    }

    /// Makes one in memory, or prints what the machine lacks for it (and fails where `CI` is set).
    pub fn or_skip(fs: Fs, options: &str, mib: u64) -> Option<Self> {
        (!gate::lacks(fs.needs())).then(|| Self::new(fs, options, mib, On::Tmpfs))
    }

    /// Makes a btrfs in memory that keeps everything on two loop devices of `mib` MiB each.
    pub fn mirror(options: &str, mib: u64) -> Self {
        Self::two_legs(&["-d", "raid1", "-m", "raid1"], options, mib)
    }

    /// Makes a btrfs in memory over two loop devices of `mib` MiB each, by mkfs's defaults.
    pub fn pair(options: &str, mib: u64) -> Self {
        Self::two_legs(&[], options, mib)
    }

    fn two_legs(mkfs: &[&str], options: &str, mib: u64) -> Self {
        let legs = [(); 2].map(|()| LoopDevice::new(mib, On::Tmpfs));
        let names = legs.each_ref().map(|leg| leg.path().to_string_lossy());
        mkfs_btrfs(&[mkfs, &[&names[0], &names[1]]].concat());
        let [first, second] = legs;
        Self::mounted(first, Some(second), options)
    }

    fn mounted(loop_device: LoopDevice, second: Option<LoopDevice>, options: &str) -> Self {
        let mount = sweep::disk_dir().join(sweep::own_name());
        std::fs::create_dir(&mount).unwrap();
        let new = Self {
            mount,
            loop_device,
            second,
        };
        new.mount_with(options);
        new
    }

    fn mount_with(&self, options: &str) {
        let device = self.loop_device.path().to_string_lossy();
        let options = if options.is_empty() { "rw" } else { options };
        patiently(
            "mount",
            &["-o", options, &device, &self.mount.to_string_lossy()],
        );
    }

    /// Unmounts it, does something to its first device, and mounts it with the defaults.
    pub fn while_unmounted(&self, change: impl FnOnce(&str)) {
        unmount(&self.mount.to_string_lossy());
        change(&self.loop_device.path().to_string_lossy());
        self.mount_with("");
    }

    /// Makes ext4 with online discard in memory, as most tests need it.
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

/// Runs mkfs.btrfs until it works: it looks at every loop device of the machine, and fails while
/// one of another test lies on a FUSE server that is gone.
fn mkfs_btrfs(more: &[&str]) -> String {
    let arguments = [&["-q", "-f"], more].concat();
    for _ in 0..100 {
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
        // Its loop device goes a moment later.
        thread::sleep(Duration::from_millis(100));
    }
    must("mkfs.btrfs", &arguments)
}

/// Unmounts, and tries again while the mount is busy: the kernel closes what a killed process had
/// open through io_uring a moment later.
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

/// Runs a command that must succeed in the end, and returns its output without spaces around it.
/// While a device is busy it is tried again: a process that another test just forked holds
/// whatever this one had open until it runs its program.
pub fn patiently(program: &str, arguments: &[&str]) -> String {
    for _ in 0..50 {
        let output = Command::new(program)
            .args(arguments)
            .output()
            .unwrap_or_else(|error| panic!("{program}: {error}"));
        if output.status.success() {
            return String::from_utf8_lossy(&output.stdout).trim().to_owned();
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let busy = said.contains("in use") || said.contains("busy");
        assert!(busy, "{program} {}: {said}", arguments.join(" "));
        thread::sleep(Duration::from_millis(100));
    }
    must(program, arguments).trim().to_owned()
}
