//! Events by which file systems tell that a process frees space.

use linux::mounts::DeviceNumber;
use serde::{Deserialize, Serialize};

use crate::FileSystem;

/// The identity of a mounted file system, as its events and the kernel's list of mounts give it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Identity {
    /// The number of its device: a partition or a volume, not the whole drive.
    Device(DeviceNumber),
    /// The UUID of a btrfs, which may lie on several devices.
    Uuid(String),
}

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Freed {
    /// The file system; `None` where the event does not name it.
    pub file_system: Option<Identity>,
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
    // Each extent that a deletion or a truncation cuts off. Inodes that memory pressure takes away
    // have none.
    DeletionEvent {
        system: "btrfs",
        name: "btrfs_truncate_show_fi_regular",
        filter: "disk_bytenr > 0",
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
                file_system: device(fields),
                files: 0,
                bytes: after(fields, "count ")?.saturating_mul(EXT_BLOCK_BYTES),
            },
            "btrfs_truncate_show_fi_regular" => Freed {
                file_system: uuid(fields),
                // Each file has one extent at its beginning.
                files: u64::from(after(fields, "range=[")? == 0),
                bytes: after(fields, "num_bytes=")?,
            },
            _ => Freed {
                file_system: device(fields),
                files: 1,
                bytes: 0,
            },
        })
    }
}

/// `dev 254,0 …` or `dev 7:0 …`.
fn device(fields: &str) -> Option<Identity> {
    let number = fields.strip_prefix("dev ")?.split(' ').next()?;
    DeviceNumber::parse(&number.replace(',', ":")).map(Identity::Device)
}

/// `5f3c…-…: root=5(FS_TREE) …`.
fn uuid(fields: &str) -> Option<Identity> {
    let uuid = fields.split_once(": ")?.0;
    (uuid.len() == 36).then(|| Identity::Uuid(uuid.to_ascii_lowercase()))
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
        let read =
            |name: &str, fields: &str| DeletionEvent::named(name).unwrap().freed(fields).unwrap();
        let freed = read(
            "ext4_free_blocks",
            "dev 254,0 ino 12 mode 0100644 block 34816 count 30720 flags 1ST_CLUSTER",
        );
        let on = |text| DeviceNumber::parse(text).map(Identity::Device);
        assert_eq!(freed.file_system, on("254:0"));
        assert_eq!((freed.files, freed.bytes), (0, 30720 * 4096));
        let freed = read("xfs_remove", "dev 7:0 dp ino 0x80 name big");
        assert_eq!((freed.file_system, freed.files), (on("7:0"), 1));
        let extent = |range: &str| {
            let fields = format!(
                "3B0a5a2e-9a1b-4a0c-8f5e-0123456789ab: root=5(FS_TREE) inode=257 size=8388608 \
                 disk_isize=8388608 file extent range=[{range}] (num_bytes=1048576 \
                 ram_bytes=1048576 disk_bytenr=2172649472 disk_num_bytes=1048576 \
                 extent_offset=0 type=REG compression=0"
            );
            read("btrfs_truncate_show_fi_regular", &fields)
        };
        let (first, later) = (extent("0 1048576"), extent("1048576 2097152"));
        let uuid = "3b0a5a2e-9a1b-4a0c-8f5e-0123456789ab".to_owned();
        assert_eq!(first.file_system, Some(Identity::Uuid(uuid)));
        assert_eq!((first.files, first.bytes), (1, 1 << 20));
        assert_eq!((later.files, later.bytes), (0, 1 << 20));
        assert!(DeletionEvent::named("block_rq_issue").is_none());
        assert_eq!(EVENTS[3].file_system(), FileSystem::Btrfs);
    }
}
