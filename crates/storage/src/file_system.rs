//! What each file system does about discards.

use std::path::Path;

use record::DiscardsAtMost;
use units::names;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A file system, as far as it treats discards in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// ext2, ext3 and ext4.
    Ext,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// F2FS.
    F2fs,
    /// Any other.
    Other,
}

impl FileSystem {
    /// The file system of a type as `/proc/self/mountinfo` has it.
    pub fn of(kind: &str) -> FileSystem {
        match kind {
            "ext2" | "ext3" | "ext4" => FileSystem::Ext,
            "xfs" => FileSystem::Xfs,
            "btrfs" => FileSystem::Btrfs,
            "f2fs" => FileSystem::F2fs,
            _ => FileSystem::Other,
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
            FileSystem::Ext => most(2.0, 128 * MIB),
            // Freed extents alone (fs/xfs/xfs_discard.c), and blocks of its own trees.
            FileSystem::Xfs => most(1.02, 64 * MIB),
            // Block groups that have become empty are discarded once more, whole.
            FileSystem::Btrfs => most(2.0, 2 * GIB),
            FileSystem::F2fs | FileSystem::Other => return None,
        })
    }

    /// What to do to have the mount of `source` at `mount_point` send discards, as a command
    /// where there is one.
    ///
    /// XFS takes the option at mount time alone: `mount -o remount,discard` exits with 0 and
    /// changes nothing (tried on Linux 6.18). So do file systems that nobody has tried here.
    pub fn discard_on(self, source: &str, mount_point: &Path) -> String {
        let (source, at) = (names::shown(source), names::shown(mount_point));
        match self {
            FileSystem::Ext | FileSystem::F2fs => format!("mount -o remount,discard {at}"),
            // Without `=sync` it may be discard=async, which sends them minutes later.
            FileSystem::Btrfs => format!("mount -o remount,discard=sync {at}"),
            FileSystem::Xfs | FileSystem::Other if mount_point == Path::new("/") => {
                "add rootflags=discard to the kernel's command line and reboot".to_owned()
            }
            FileSystem::Xfs | FileSystem::Other => {
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
}
