//! How file systems are made and mounted, with and without discards.

use std::path::{Path, PathBuf};

use linux::SysRoot;
use record::DiscardSetting::{self, Async, Off, On};

use crate::FileSystem;

/// A file system that trimbench can make.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// F2FS.
    F2fs,
    /// bcachefs.
    Bcachefs,
    /// exFAT.
    Exfat,
}

/// A way to mount a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mounting {
    /// A short name, e.g. `discard`.
    pub name: &'static str,
    /// Options as `mount -o` takes them.
    pub options: &'static str,
    /// Whether the file system discards freed space by itself: `On` with the commit that frees it,
    /// `Async` later.
    pub setting: DiscardSetting,
    /// Whether most people mount it so or wonder whether to. Others are tried on demand.
    pub usual: bool,
}

impl Mounting {
    /// Whether freed space is discarded without anybody's asking, at once or later.
    pub fn discards(&self) -> bool {
        self.setting != DiscardSetting::Off
    }

    /// Whether discards come in the background, long after the commit.
    pub fn is_late(&self) -> bool {
        self.setting == DiscardSetting::Async
    }
}

const fn mounting(name: &'static str, options: &'static str, setting: DiscardSetting) -> Mounting {
    Mounting {
        name,
        options,
        setting,
        usual: true,
    }
}

/// ext4 zeroes its inode tables in the background after mkfs, beside whatever is measured:
/// `noinit_itable` leaves that out.
const EXT4: [Mounting; 3] = [
    mounting("discard", "discard,noinit_itable", On),
    mounting("nodiscard", "nodiscard,noinit_itable", Off),
    Mounting {
        usual: false,
        ..mounting("writeback", "discard,data=writeback,noinit_itable", On)
    },
];
const BTRFS: [Mounting; 3] = [
    mounting("sync", "discard=sync", On),
    mounting("async", "discard=async", Async),
    mounting("off", "nodiscard", Off),
];
/// f2fs issues what it has queued when it is idle.
const F2FS: [Mounting; 2] = [
    mounting("discard", "discard", Async),
    mounting("nodiscard", "nodiscard", Off),
];
const PLAIN: [Mounting; 2] = [
    mounting("discard", "discard", On),
    mounting("nodiscard", "nodiscard", Off),
];

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 6] = [
        Kind::Ext4,
        Kind::Xfs,
        Kind::Btrfs,
        Kind::F2fs,
        Kind::Bcachefs,
        Kind::Exfat,
    ];

    /// Its name as `mount -t` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ext4 => "ext4",
            Kind::Xfs => "xfs",
            Kind::Btrfs => "btrfs",
            Kind::F2fs => "f2fs",
            Kind::Bcachefs => "bcachefs",
            Kind::Exfat => "exfat",
        }
    }

    /// The rules by which it discards.
    pub fn rules(self) -> FileSystem {
        FileSystem::of(self.name())
    }

    /// The ways to mount it.
    pub fn mountings(self) -> &'static [Mounting] {
        match self {
            Kind::Ext4 => &EXT4,
            Kind::Btrfs => &BTRFS,
            Kind::F2fs => &F2FS,
            _ => &PLAIN,
        }
    }

    /// The command that makes it on a device, with or without discarding the device first. `None`:
    /// its mkfs can't (exFAT's never discards). All other settings are mkfs's defaults.
    pub fn mkfs(self, discard: bool) -> Option<Vec<&'static str>> {
        let words: (&[&str], &[&str]) = match (self, discard) {
            (Kind::Ext4, true) => (&["mkfs.ext4", "-q", "-F"], &["-E", "discard"]),
            (Kind::Ext4, false) => (&["mkfs.ext4", "-q", "-F"], &["-E", "nodiscard"]),
            (Kind::Xfs, true) => (&["mkfs.xfs", "-q", "-f"], &[]),
            (Kind::Xfs, false) => (&["mkfs.xfs", "-q", "-f"], &["-K"]),
            (Kind::Btrfs, true) => (&["mkfs.btrfs", "-q", "-f"], &[]),
            (Kind::Btrfs, false) => (&["mkfs.btrfs", "-q", "-f"], &["-K"]),
            (Kind::F2fs, true) => (&["mkfs.f2fs", "-q", "-f"], &["-t", "1"]),
            (Kind::F2fs, false) => (&["mkfs.f2fs", "-q", "-f"], &["-t", "0"]),
            (Kind::Bcachefs, true) => (&["mkfs.bcachefs", "-q", "-f"], &["--discard"]),
            (Kind::Bcachefs, false) => (&["mkfs.bcachefs", "-q", "-f"], &[]),
            (Kind::Exfat, false) => (&["mkfs.exfat", "-q"], &[]),
            (Kind::Exfat, true) => return None,
        };
        Some([words.0, words.1].concat())
    }

    /// Options with which its mkfs spreads data and metadata over all devices that it is given, as
    /// RAID 0. `None`: it has one device.
    pub fn striped(self) -> Option<&'static [&'static str]> {
        match self {
            Kind::Btrfs => Some(&["-d", "raid0", "-m", "raid0"]),
            _ => None,
        }
    }

    /// Whether this machine can make and mount it.
    ///
    /// # Errors
    /// The reason, with what to install.
    pub fn available(self) -> Result<(), String> {
        let name = self.name();
        let mkfs = self.mkfs(false).unwrap_or_default();
        let program = mkfs.first().copied().unwrap_or_default();
        if program_path(program).is_none() {
            return Err(format!("there is no {program}; install it"));
        }
        if in_kernel(&SysRoot::host(), name, &linux::host::describe().kernel) {
            return Ok(());
        }
        Err(format!(
            "this kernel has no {name}: neither /proc/filesystems nor its modules list it"
        ))
    }
}

/// A program in `PATH`, or where only root's `PATH` leads.
pub fn program_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/sbin"])
        .map(|directory| Path::new(directory).join(name))
        .find(|file| file.is_file())
}

/// Whether a kernel of this release has a file system, built in or as a module.
fn in_kernel(sys: &SysRoot, name: &str, release: &str) -> bool {
    let registered = sys.text("/proc/filesystems").unwrap_or_default();
    if registered
        .lines()
        .any(|line| line.split_whitespace().next_back() == Some(name))
    {
        return true;
    }
    let modules = sys.text(format!("/lib/modules/{release}/modules.dep"));
    modules.is_ok_and(|text| {
        let files = text.lines().filter_map(|line| line.split(':').next());
        let mut names = files.filter_map(|file| file.rsplit('/').next());
        names.any(|file| file.split('.').next() == Some(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_rules_and_ways_to_mount_it() {
        for kind in Kind::ALL {
            assert!(kind.mkfs(false).is_some(), "{kind:?}");
            assert!(
                kind.mountings().iter().any(|way| !way.discards()),
                "{kind:?}"
            );
            for way in kind.mountings() {
                assert!(way.options.contains("discard"), "{kind:?}");
            }
        }
        assert_eq!(Kind::Exfat.mkfs(true), None);
        assert!(Kind::Btrfs.striped().is_some() && Kind::Ext4.striped().is_none());
        assert_eq!(Kind::Btrfs.rules(), FileSystem::Btrfs);
        assert_ne!(Kind::Xfs.mkfs(true), Kind::Xfs.mkfs(false));
    }

    #[test]
    fn a_kernel_has_what_is_registered_or_a_module() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/filesystems", "nodev\ttmpfs\n\text4\n");
        write(
            "lib/modules/6.1/modules.dep",
            "kernel/fs/f2fs/f2fs.ko.xz: kernel/lib/lz4.ko.xz\nkernel/fs/xfs/xfs.ko:\n",
        );
        let sys = SysRoot::at(root.path());
        for name in ["ext4", "f2fs", "xfs"] {
            assert!(in_kernel(&sys, name, "6.1"), "{name}");
        }
        assert!(!in_kernel(&sys, "btrfs", "6.1"));
        assert!(!in_kernel(&sys, "f2fs", "6.2"));
    }
}
