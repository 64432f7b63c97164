//! Which file system it is, and where it may be cut into windows.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use linux::SysRoot;
use linux::trim::{chunks, uuid, written};

use crate::file_system::FileSystem;
use crate::target::Description;

/// Where a file system may be cut into windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// ext2 to ext4: in whole block groups, which it then remembers as trimmed.
    Groups {
        /// Bytes of a group.
        group: u64,
        /// Where group 0 begins, in bytes: one block where blocks have 1 KiB.
        first: u64,
    },
    /// XFS: allocation groups, and pieces of them.
    Allocation {
        /// Bytes of an allocation group.
        group: u64,
    },
    /// btrfs: its chunks, in its logical address space, each whole.
    /// Whatever the range, all that belongs to no chunk is trimmed, too.
    Chunks(Vec<Range<u64>>),
    /// Anywhere.
    Anywhere,
    /// Nowhere: it must be trimmed in one call.
    Whole,
}

/// The facts about a file system that trimming in windows needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trimmed {
    /// Its UUID, as `blkid` writes it.
    pub uuid: Option<String>,
    /// Where it may be cut.
    pub layout: Layout,
    /// Where its address space ends, in bytes, as far as it is known.
    pub end: u64,
}

impl Trimmed {
    /// Of the mounted file system that was described; `directory` is one of its own.
    pub fn of(sys: &SysRoot, directory: &File, found: &Description) -> Trimmed {
        let fs = FileSystem::named(&found.target);
        let top = found.devices.iter().find(|device| device.level == 0);
        let size = top.map_or(found.target.size_bytes, |top| top.size_bytes);
        let read = top.and_then(|top| {
            let path = PathBuf::from("/dev").join(top.name.replace('!', "/"));
            Superblock::read(&File::open(sys.path(path)).ok()?).ok()
        });
        // The device itself may be out of reach, in a container.
        let uuid = uuid(directory).or_else(|| read.as_ref().and_then(|read| read.uuid(fs)));
        let layout = match fs {
            _ if fs.queues_trims(found.target.discard) => Some(Layout::Whole),
            FileSystem::Ext | FileSystem::Ext3 => match &read {
                Some(read) => read.ext4(),
                None => usual_groups(directory),
            },
            FileSystem::Xfs => read.as_ref().and_then(Superblock::xfs),
            FileSystem::Btrfs => match chunks(directory) {
                Ok(chunks) if !chunks.is_empty() => Some(Layout::Chunks(chunks)),
                _ => Some(Layout::Whole),
            },
            FileSystem::F2fs | FileSystem::Fat | FileSystem::Ntfs => Some(Layout::Anywhere),
            _ => Some(Layout::Whole),
        };
        let layout = layout.unwrap_or(Layout::Whole);
        let end = match &layout {
            Layout::Chunks(chunks) => chunks.last().map_or(size, |last| last.end),
            _ => size,
        };
        Trimmed { uuid, layout, end }
    }
}

/// As mkfs makes them: a group's bitmap is one block.
fn usual_groups(directory: &File) -> Option<Layout> {
    let block = rustix::fs::fstatvfs(directory).ok()?.f_frsize;
    (1024..=1 << 16).contains(&block).then(|| Layout::Groups {
        group: block * block * 8,
        first: if block == 1024 { block } else { 0 },
    })
}

/// The first bytes of a device.
struct Superblock(Vec<u8>);

/// Up to the end of btrfs's superblock, which is the last.
const BYTES: usize = 0x11000;
const BTRFS: usize = 0x10000;

impl Superblock {
    fn read(device: &File) -> io::Result<Superblock> {
        let mut bytes = vec![0; BYTES];
        device.read_exact_at(&mut bytes, 0)?;
        Ok(Superblock(bytes))
    }

    fn bytes<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        if let Some(found) = self.0.get(at..at + N) {
            bytes.copy_from_slice(found);
        }
        bytes
    }

    fn le32(&self, at: usize) -> u64 {
        u64::from(u32::from_le_bytes(self.bytes(at)))
    }

    fn be32(&self, at: usize) -> u64 {
        u64::from(u32::from_be_bytes(self.bytes(at)))
    }

    /// By the formats' own definitions (`fs/ext4/ext4.h`, `fs/xfs/libxfs/xfs_format.h`,
    /// `include/uapi/linux/btrfs_tree.h`, `include/linux/f2fs_fs.h`).
    fn uuid(&self, fs: FileSystem) -> Option<String> {
        let at = match fs {
            FileSystem::Ext | FileSystem::Ext3 if self.bytes(1024 + 0x38) == [0x53, 0xef] => {
                1024 + 0x68
            }
            FileSystem::Xfs if self.bytes(0) == *b"XFSB" => 32,
            FileSystem::Btrfs if self.bytes(BTRFS + 0x40) == *b"_BHRfS_M" => BTRFS + 0x20,
            FileSystem::F2fs if self.le32(1024) == 0xf2f5_2010 => 1024 + 108,
            FileSystem::Fat if self.bytes(510) == [0x55, 0xaa] => {
                let at = if self.bytes(82) == *b"FAT32" { 67 } else { 39 };
                let id = self.le32(at);
                return Some(format!("{:04X}-{:04X}", id >> 16, id & 0xffff));
            }
            _ => return None,
        };
        written(&self.bytes(at))
    }

    fn ext4(&self) -> Option<Layout> {
        if self.bytes(1024 + 0x38) != [0x53, 0xef] {
            return None;
        }
        let block = 1024u64.checked_shl(self.le32(1024 + 0x18) as u32)?;
        let group = self.le32(1024 + 0x20).checked_mul(block)?;
        (group > 0 && block <= 1 << 16).then_some(Layout::Groups {
            group,
            first: self.le32(1024 + 0x14) * block,
        })
    }

    fn xfs(&self) -> Option<Layout> {
        if self.bytes(0) != *b"XFSB" {
            return None;
        }
        let group = self.be32(84).checked_mul(self.be32(4))?;
        (group > 0).then_some(Layout::Allocation { group })
    }
}

#[cfg(test)]
mod tests {
    use record::{DiscardSetting, Target};

    use super::*;

    #[test]
    fn layouts_of_those_without_a_superblock_that_can_be_read() {
        let root = tempfile::tempdir().unwrap();
        let directory = File::open(root.path()).unwrap();
        let layout = |fs: &str, discard| {
            let found = Description {
                target: Target {
                    fs: Some(fs.to_owned()),
                    discard,
                    ..Target::default()
                },
                devices: Vec::new(),
                mount: None,
                warnings: Vec::new(),
                counting_warnings: Vec::new(),
            };
            Trimmed::of(&SysRoot::at(root.path()), &directory, &found).layout
        };
        for fs in ["ext2", "ext3", "ext4"] {
            let found = layout(fs, DiscardSetting::Off);
            assert!(matches!(found, Layout::Groups { .. }), "{fs}: {found:?}");
        }
        assert_eq!(layout("f2fs", DiscardSetting::Off), Layout::Anywhere);
        for discard in [DiscardSetting::On, DiscardSetting::Async] {
            assert_eq!(layout("f2fs", discard), Layout::Whole);
            assert_eq!(layout("vfat", discard), Layout::Anywhere);
        }
    }

    fn with(parts: &[(usize, &[u8])]) -> Superblock {
        let mut bytes = vec![0; BYTES];
        for (at, part) in parts {
            bytes[*at..at + part.len()].copy_from_slice(part);
        }
        Superblock(bytes)
    }

    #[test]
    fn superblocks_of_each_kind() {
        let uuid: Vec<u8> = (0..16).collect();
        let text = Some("00010203-0405-0607-0809-0a0b0c0d0e0f".to_owned());
        let ext4 = with(&[
            (1024 + 0x38, &[0x53, 0xef]),
            (1024 + 0x18, &2u32.to_le_bytes()),
            (1024 + 0x20, &32768u32.to_le_bytes()),
            (1024 + 0x68, &uuid),
        ]);
        assert_eq!(ext4.uuid(FileSystem::of("ext4")), text);
        assert_eq!(ext4.uuid(FileSystem::of("ext2")), text);
        let expected = Layout::Groups {
            group: 128 << 20,
            first: 0,
        };
        assert_eq!(ext4.ext4(), Some(expected));
        let xfs = with(&[
            (0, b"XFSB"),
            (4, &4096u32.to_be_bytes()),
            (32, &uuid),
            (84, &262_144u32.to_be_bytes()),
        ]);
        assert_eq!(xfs.uuid(FileSystem::of("xfs")), text);
        assert_eq!(xfs.xfs(), Some(Layout::Allocation { group: 1 << 30 }));
        let btrfs = with(&[(BTRFS + 0x40, b"_BHRfS_M"), (BTRFS + 0x20, &uuid)]);
        assert_eq!(btrfs.uuid(FileSystem::of("btrfs")), text);
        let blank = with(&[]);
        assert_eq!(
            (blank.uuid(FileSystem::of("ext4")), blank.ext4()),
            (None, None)
        );
        assert_eq!(
            (blank.uuid(FileSystem::of("zfs")), blank.xfs()),
            (None, None)
        );
    }
}
