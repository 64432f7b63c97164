//! Events by which file systems tell that a process frees space.

use linux::mounts::DeviceNumber;

use crate::FileSystem;

/// A tracepoint that a process reaches when it deletes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeletionEvent {
    /// Its system, as tracefs has it.
    pub system: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The filter that leaves out what is no deletion.
    pub filter: &'static str,
}

/// Space that a process freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freed {
    /// The file system's device; `None` where the event doesn't tell.
    pub device: Option<DeviceNumber>,
    /// Files that it took away or cut short, as far as an event tells one.
    pub files: u64,
    /// Bytes that it freed, as far as the event tells.
    pub bytes: u64,
}

/// All of them (formats as in Linux 6.18).
pub const EVENTS: [DeletionEvent; 4] = [
    // Each extent that is freed, whatever freed it. Only ext4's own code has it.
    DeletionEvent {
        system: "ext4",
        name: "ext4_free_blocks",
        filter: "count >= 16",
    },
    DeletionEvent {
        system: "ext4",
        name: "ext4_unlink_enter",
        filter: "",
    },
    // The name alone: a worker frees the space.
    DeletionEvent {
        system: "xfs",
        name: "xfs_remove",
        filter: "",
    },
    // Also when memory is short, but then by kswapd.
    DeletionEvent {
        system: "btrfs",
        name: "btrfs_inode_evict",
        filter: "blocks > 0",
    },
];

/// Bytes of a block of ext4 as nearly everybody makes it. The event does not tell.
const EXT_BLOCK_BYTES: u64 = 4096;

impl DeletionEvent {
    /// The event of this name.
    pub fn named(name: &str) -> Option<&'static DeletionEvent> {
        EVENTS.iter().find(|event| event.name == name)
    }

    /// The file system whose event it is.
    pub fn file_system(&self) -> FileSystem {
        FileSystem::of(self.system)
    }

    /// Reads an event's fields, as its format prints them.
    pub fn freed(&self, fields: &str) -> Option<Freed> {
        Some(match self.name {
            "ext4_free_blocks" => Freed {
                device: device(fields),
                files: 0,
                bytes: after(fields, "count ")?.saturating_mul(EXT_BLOCK_BYTES),
            },
            "btrfs_inode_evict" => Freed {
                device: None,
                files: 1,
                bytes: after(fields, "blocks=")?.saturating_mul(512),
            },
            _ => Freed {
                device: device(fields),
                files: 1,
                bytes: 0,
            },
        })
    }
}

/// `dev 254,0 …` or `dev 7:0 …`.
fn device(fields: &str) -> Option<DeviceNumber> {
    let number = fields.strip_prefix("dev ")?.split(' ').next()?;
    DeviceNumber::parse(&number.replace(',', ":"))
}

fn after(fields: &str, key: &str) -> Option<u64> {
    let text = fields.split_once(key)?.1;
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_linux_6_18_are_read() {
        let read = |name, fields| DeletionEvent::named(name).unwrap().freed(fields).unwrap();
        let freed = read(
            "ext4_free_blocks",
            "dev 254,0 ino 12 mode 0100644 block 34816 count 30720 flags 1ST_CLUSTER",
        );
        assert_eq!(freed.device, DeviceNumber::parse("254:0"));
        assert_eq!((freed.files, freed.bytes), (0, 30720 * 4096));
        let freed = read("xfs_remove", "dev 7:0 dp ino 0x80 name big");
        assert_eq!((freed.device, freed.files), (DeviceNumber::parse("7:0"), 1));
        let freed = read(
            "btrfs_inode_evict",
            "00-11: root=5(FS_TREE) gen=8 ino=257 blocks=2048 disk_i_size=1048576 last_trans=8",
        );
        assert_eq!((freed.device, freed.bytes), (None, 1 << 20));
        assert!(DeletionEvent::named("block_rq_issue").is_none());
        assert_eq!(EVENTS[3].file_system(), FileSystem::Btrfs);
    }
}
