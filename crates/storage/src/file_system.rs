//! Each file system's way with discards.

use std::path::Path;

use linux::SysRoot;
use linux::mounts::Mount;
use record::units::names;
use record::{DiscardSetting, DiscardsAtMost, Target};
use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A file system, as far as it treats discards in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileSystem {
    /// ext2 as ext4's code mounts it, and ext4; either may have no journal.
    Ext,
    /// ext3, which always has a journal.
    Ext3,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// F2FS.
    F2fs,
    /// FAT and exFAT.
    Fat,
    /// NTFS as ntfs3 mounts it.
    Ntfs,
    /// Others that take `discard` as ext4 does: JFS, NILFS2, GFS2, OCFS2.
    Plain,
    /// One that keeps its files in memory.
    Memory,
    /// An overlay: files written to it are on its upper file system.
    Overlay,
    /// Any other.
    Other,
}

/// The event after which a file system discards the space that was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// None: the call that frees the space sends its discards.
    Within,
    /// A commit of the journal. `fsync` of the file forces it.
    File,
    /// A commit of the whole file system. `syncfs` forces it.
    Whole,
}

/// How much of a free extent `FITRIM` discards if its range holds a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrimReach {
    /// That part.
    Part,
    /// From the range's beginning, or the extent's, to the extent's end.
    End,
    /// All of it.
    Whole,
}

impl FileSystem {
    /// The file system of a type as `/proc/self/mountinfo` has it.
    pub fn of(kind: &str) -> FileSystem {
        match kind {
            "ext2" | "ext4" => FileSystem::Ext,
            "ext3" => FileSystem::Ext3,
            "xfs" => FileSystem::Xfs,
            "btrfs" => FileSystem::Btrfs,
            "f2fs" => FileSystem::F2fs,
            "vfat" | "exfat" => FileSystem::Fat,
            "ntfs3" => FileSystem::Ntfs,
            "jfs" | "nilfs2" | "gfs2" | "ocfs2" => FileSystem::Plain,
            "tmpfs" | "ramfs" | "devtmpfs" | "hugetlbfs" => FileSystem::Memory,
            "overlay" => FileSystem::Overlay,
            _ => FileSystem::Other,
        }
    }

    /// The file system that a mount shows.
    pub fn mounted(mount: &Mount) -> FileSystem {
        FileSystem::of(&mount.fs)
    }

    /// The file system that a record or a description names.
    pub fn named(target: &Target) -> FileSystem {
        FileSystem::of(target.fs.as_deref().unwrap_or(""))
    }

    /// ext2, ext3 or ext4.
    pub fn is_ext(self) -> bool {
        matches!(self, FileSystem::Ext | FileSystem::Ext3)
    }

    /// Whether a mount with these options sends discards when space is freed. Whether a
    /// device below takes them is another question.
    pub fn discard_setting(self, mount: &Mount) -> DiscardSetting {
        use DiscardSetting::{Async, Off, On, Unknown, Unsupported};
        match (self, mount.super_option("discard")) {
            (FileSystem::Memory, _) => Unsupported,
            // A bare `discard` is `discard=sync`. `discard=async`, the default since Linux
            // 6.2, is listed when a device below takes discards.
            (FileSystem::Btrfs, Some("async")) => Async,
            // f2fs queues them and issues them when it is idle.
            (FileSystem::F2fs, Some(_)) => Async,
            (_, Some(_)) => On,
            // Its options don't list what it does.
            (FileSystem::Overlay | FileSystem::Other, None) => Unknown,
            (_, None) => Off,
        }
    }

    /// When it sends discards with this setting, in words. `journal`: it has one.
    pub fn when(self, setting: DiscardSetting, journal: bool) -> &'static str {
        use DiscardSetting::{Async, Off, On, Unknown, Unsupported};
        match (setting, self) {
            (On, FileSystem::Ext) if !journal => {
                "within the call that deletes, for it has no journal"
            }
            (On, FileSystem::Ext | FileSystem::Ext3) => {
                "after each commit of the journal, one at a time"
            }
            (On, FileSystem::Xfs) => "after each log checkpoint: an fsync, or up to 30 s",
            (On, FileSystem::Btrfs) => "within each commit, which waits for them",
            (On, FileSystem::Fat) => "within the call that deletes, which waits for them",
            (On, _) => "with the commit that frees the space",
            (Async, FileSystem::Btrfs) => "in the background, 120 s after the deletion",
            (Async, _) => "in the background, when it is idle",
            (Off, _) => "sends none: mounted without discard",
            (Unsupported, _) => "sends none: its files are in memory",
            (Unknown, _) => "unknown from its options",
        }
    }

    /// Whether the kernel can trim its free space (`FITRIM`) or have it send discards.
    pub fn can_trim(self) -> bool {
        !matches!(
            self,
            FileSystem::Memory | FileSystem::Overlay | FileSystem::Other
        )
    }

    /// The value that `discard` has by default where it is switched on by a remount.
    pub(crate) fn default_discard(self) -> Option<&'static str> {
        // Linux ≥ 6.2.
        (self == FileSystem::Btrfs).then_some("async")
    }

    /// Whether a remount keeps the options that it doesn't name (Linux 6.12). Others take
    /// their defaults for them.
    pub(crate) fn keeps_options(self) -> bool {
        self.is_ext() || matches!(self, FileSystem::Xfs | FileSystem::Btrfs)
    }

    /// Whether a remount switches discards. XFS takes the option at mount time alone:
    /// `mount -o remount,nodiscard` exits with 0 and changes nothing (tried on Linux 6.18).
    pub fn remount_switches_discard(self) -> bool {
        self != FileSystem::Xfs
    }

    /// When the discards of freed space are sent, where they aren't sent in the background.
    /// `journal`: it has one.
    pub fn commit(self, journal: bool) -> Commit {
        match self {
            // Without a journal ext4 discards in the call itself (Linux 6.12,
            // fs/ext4/mballoc.c, `ext4_free_blocks`).
            FileSystem::Ext if !journal => Commit::Within,
            FileSystem::Ext | FileSystem::Ext3 | FileSystem::Xfs => Commit::File,
            FileSystem::Fat => Commit::Within,
            _ => Commit::Whole,
        }
    }

    /// Its name, and when it sends the discards of a deletion that is over; `None` of one that has
    /// sent them by then, or is not known to.
    pub fn sends_later(self) -> Option<(&'static str, &'static str)> {
        Some(match self {
            FileSystem::Ext | FileSystem::Ext3 => (
                "ext4",
                "after its journal's next commit, usually within 5 s",
            ),
            FileSystem::Xfs => ("XFS", "after its log's next checkpoint, within 30 s"),
            FileSystem::Btrfs => (
                "btrfs",
                "after its next commit, within 30 s, or in the background two minutes later",
            ),
            _ => return None,
        })
    }

    /// Whether the one on a device has a journal, for [`FileSystem::commit`] and
    /// [`FileSystem::when`]. Only ext4 can be without, and its file `journal_task` says so.
    pub fn has_journal(sys: &SysRoot, device: &str) -> bool {
        let directory = linux::sysroot::directory_name(device);
        let task = sys.line(format!("/sys/fs/ext4/{directory}/journal_task"));
        task.as_deref() != Some("<none>")
    }

    /// Bytes of a block group that one bitmap describes: a bitmap is one block. `None`: the
    /// file system has no such groups.
    pub fn bitmap_group_bytes(self, block_bytes: u64) -> Option<u64> {
        self.is_ext()
            .then(|| block_bytes.saturating_mul(block_bytes).saturating_mul(8))
    }

    /// The largest discard that it sends in one piece, in bytes, where a limit is known.
    pub fn largest_discard_bytes(self, block_bytes: u64, setting: DiscardSetting) -> Option<u64> {
        match self {
            FileSystem::Btrfs if setting == DiscardSetting::Async => Some(64 * MIB),
            // It cuts at 1 GiB (Linux 6.12, BTRFS_MAX_DISCARD_CHUNK_SIZE in fs/btrfs).
            FileSystem::Btrfs => Some(GIB),
            _ => self.bitmap_group_bytes(block_bytes),
        }
    }

    /// Whether the space of an unlinked file is freed after the call, in the background. A
    /// worker of XFS inactivates its inode (since Linux 5.14).
    pub fn frees_in_background(self) -> bool {
        self == FileSystem::Xfs
    }

    /// Whether it discards space a second time. btrfs discards a block group that has become
    /// empty whole, whatever was discarded in it: with the commit after the one that woke
    /// its cleaner thread.
    pub fn discards_twice(self) -> bool {
        self == FileSystem::Btrfs
    }

    /// The longest written extent that can't be freed in parts, in bytes; 0: any can.
    pub fn indivisible_bytes(self) -> u64 {
        match self {
            // BTRFS_MAX_EXTENT_SIZE.
            FileSystem::Btrfs => 128 * MIB,
            _ => 0,
        }
    }

    /// Whether space that was allocated and never written is freed without a discard.
    pub fn skips_unwritten(self) -> bool {
        self == FileSystem::Xfs
    }

    /// Whether the call or the commit that frees space waits for its discards, so that the
    /// next deletion begins after them.
    pub fn waits_for_discards(self) -> bool {
        self.is_ext() || self == FileSystem::Btrfs
    }

    /// Whether `FITRIM` returns how much it discarded. XFS returns the length of the range
    /// (Linux 6.12, `xfs_ioc_trim`).
    pub fn reports_trimmed_bytes(self) -> bool {
        self != FileSystem::Xfs
    }

    /// How much of a free extent `FITRIM` discards if its range holds a part of it.
    ///
    /// ext4 goes on to the extent's end in the block group since commit 68da4c44b994 ("fix
    /// inconsistent between segment fstrim and full fstrim") of Linux 6.8. Stable kernels from 4.19
    /// on took it, too, so no version shows that a kernel is without it. XFS discards the extent
    /// whole before Linux 6.10 (commit b0ffe661fab4, which cuts it).
    pub fn trim_reach(self, kernel: (u32, u32)) -> TrimReach {
        match self {
            FileSystem::Ext | FileSystem::Ext3 => TrimReach::End,
            FileSystem::Xfs if kernel < (6, 10) => TrimReach::Whole,
            _ => TrimReach::Part,
        }
    }

    /// Whether the discard of a freed extent goes on to the end of the free space behind it, which was
    /// discarded before. `journal`: it has one ([`FileSystem::has_journal`]). ext4 with a journal is
    /// known to since Linux 6.8, by the same commit as its [`FileSystem::trim_reach`].
    pub fn discards_again(self, kernel: (u32, u32), journal: bool) -> bool {
        self == FileSystem::Ext && journal && kernel >= (6, 8)
    }

    /// Whether `FITRIM` only queues what is free on a mount with `discard`, for the file
    /// system to send when it is idle (Linux 6.12, `f2fs_trim_fs`).
    pub fn queues_trims(self, setting: DiscardSetting) -> bool {
        self == FileSystem::F2fs && matches!(setting, DiscardSetting::On | DiscardSetting::Async)
    }

    /// The prefix of its own functions' names in the kernel, as stacks show them. `None`
    /// where that isn't one of its own.
    pub fn function_prefix(self) -> Option<&'static str> {
        Some(match self {
            FileSystem::Ext | FileSystem::Ext3 => "ext4_",
            FileSystem::Xfs => "xfs_",
            FileSystem::Btrfs => "btrfs_",
            FileSystem::F2fs => "f2fs_",
            FileSystem::Fat => "fat_",
            FileSystem::Ntfs => "ntfs_",
            _ => return None,
        })
    }

    /// Whether its files lie on block devices. Those of an overlay are another file system's.
    /// `read_only`: it is mounted so, as images of unknown file systems are.
    pub fn is_on_devices(self, read_only: bool) -> bool {
        match self {
            FileSystem::Ext
            | FileSystem::Ext3
            | FileSystem::Xfs
            | FileSystem::Btrfs
            | FileSystem::F2fs
            | FileSystem::Fat
            | FileSystem::Ntfs
            | FileSystem::Plain => true,
            FileSystem::Memory | FileSystem::Overlay => false,
            FileSystem::Other => !read_only,
        }
    }

    /// Whether its extents' addresses are its own, which its chunk tree maps to those of its
    /// devices. FIEMAP gives a file system's own addresses.
    pub fn maps_addresses(self) -> bool {
        match self {
            FileSystem::Btrfs => true,
            FileSystem::Ext
            | FileSystem::Ext3
            | FileSystem::Xfs
            | FileSystem::F2fs
            | FileSystem::Fat
            | FileSystem::Ntfs
            | FileSystem::Plain
            | FileSystem::Memory
            | FileSystem::Overlay
            | FileSystem::Other => false,
        }
    }

    /// The most that it discards for what is freed. `None`: not known.
    pub fn discards_at_most(self) -> Option<DiscardsAtMost> {
        let most = |per_byte, more_bytes| DiscardsAtMost {
            per_byte,
            more_bytes,
        };
        Some(match self {
            // It goes on to the next block in use, within a block group (Linux 6.12,
            // fs/ext4/mballoc.c, `ext4_try_to_trim_range`).
            FileSystem::Ext | FileSystem::Ext3 => most(2.0, 128 * MIB),
            // Freed extents alone (fs/xfs/xfs_discard.c), and blocks of its own trees.
            FileSystem::Xfs => most(1.02, 64 * MIB),
            // Block groups that have become empty are discarded once more, whole.
            FileSystem::Btrfs => most(2.0, 2 * GIB),
            _ => return None,
        })
    }

    /// Returns how to make the mount of `source` at `mount_point` send discards, as a command
    /// where there is one.
    ///
    /// XFS takes the option at mount time alone: `mount -o remount,discard` exits with 0 and
    /// changes nothing (tried on Linux 6.18). So do file systems that nobody has tried here.
    pub fn discard_on(self, source: &str, mount_point: &Path) -> String {
        let (source, at) = (names::shown(source), names::shown(mount_point));
        match self {
            FileSystem::Ext | FileSystem::Ext3 | FileSystem::F2fs => {
                format!("mount -o remount,discard {at}")
            }
            // Without `=sync` it may be discard=async, which sends them minutes later.
            FileSystem::Btrfs => format!("mount -o remount,discard=sync {at}"),
            _ if mount_point == Path::new("/") => {
                "add rootflags=discard to the kernel's command line and reboot".to_owned()
            }
            _ => {
                format!("umount {at} && mount -o discard {source} {at}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_one_that_the_file_system_obeys() {
        let hint = |kind, at| FileSystem::of(kind).discard_on("/dev/sda1", Path::new(at));
        assert_eq!(hint("ext4", "/data"), "mount -o remount,discard /data");
        assert_eq!(hint("btrfs", "/d"), "mount -o remount,discard=sync /d");
        assert_eq!(
            hint("xfs", "/data"),
            "umount /data && mount -o discard /dev/sda1 /data"
        );
        assert!(hint("xfs", "/").contains("rootflags=discard"));
        assert!(hint("vfat", "/boot").starts_with("umount /boot"));
    }

    #[test]
    fn a_trim_reaches_as_far_as_the_kernels_rules_say() {
        let reach = |fs, kernel| FileSystem::of(fs).trim_reach(kernel);
        // Stable kernels changed the rule within a version.
        for kernel in [(4, 19), (6, 6), (6, 18)] {
            assert_eq!(reach("ext4", kernel), TrimReach::End);
            assert_eq!(reach("ext3", kernel), TrimReach::End);
            assert_eq!(reach("btrfs", kernel), TrimReach::Part);
        }
        assert_eq!(reach("xfs", (6, 9)), TrimReach::Whole);
        assert_eq!(reach("xfs", (6, 10)), TrimReach::Part);
    }

    fn of(fs: &str, options: &str) -> DiscardSetting {
        let line = format!("1 1 8:1 / /mnt rw,relatime - {fs} /dev/sda1 {options}\n");
        let mount = &linux::mounts::parse(line.as_bytes())[0];
        FileSystem::mounted(mount).discard_setting(mount)
    }

    #[test]
    fn discards_are_on_as_the_kernels_options_show() {
        use DiscardSetting::{Async, Off, On, Unknown, Unsupported};
        assert_eq!(of("ext4", "rw,discard,errors=remount-ro"), On);
        assert_eq!(of("ext4", "rw,nodiscard"), Off);
        assert_eq!(of("ext4", "rw"), Off);
        assert_eq!(of("ext2", "rw,discard"), On);
        assert_eq!(of("xfs", "rw,attr2,discard,inode64"), On);
        assert_eq!(of("btrfs", "rw,ssd,discard=async,subvol=/"), Async);
        assert_eq!(of("btrfs", "rw,ssd,discard"), On);
        assert_eq!(of("btrfs", "rw,ssd,discard=sync"), On);
        assert_eq!(of("btrfs", "rw,ssd"), Off);
        assert_eq!(of("f2fs", "rw,discard,discard_unit=block"), Async);
        assert_eq!(of("f2fs", "rw,nodiscard,discard_unit=block"), Off);
        assert_eq!(of("tmpfs", "rw,size=1k"), Unsupported);
        assert_eq!(of("nfs4", "rw"), Unknown);
        assert_eq!(of("zfs", "rw,xattr"), Unknown);
    }
}
