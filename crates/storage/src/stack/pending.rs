//! Discards that a file system has queued and not sent yet.

use linux::SysRoot;
use serde::Serialize;

use crate::FileSystem;
use crate::devices::btrfs_uuid;

/// Pending discards, as the file system reports them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pending {
    /// Bytes; `None` where only commands are counted.
    pub bytes: Option<u64>,
    /// Commands; `None` where only bytes are counted.
    pub commands: Option<u64>,
    /// The file that has the figure.
    pub file: String,
}

impl FileSystem {
    /// Whether it reports discards that it has not sent yet.
    pub fn queues_discards(self) -> bool {
        matches!(self, FileSystem::Btrfs | FileSystem::F2fs)
    }
}

impl Pending {
    /// Those of a mounted file system whose first device has this kernel name; `None` where the
    /// file system doesn't report them.
    pub fn of(sys: &SysRoot, rules: FileSystem, device: &str) -> Option<Pending> {
        match rules {
            FileSystem::Btrfs => btrfs(sys, device),
            FileSystem::F2fs => {
                let file = format!("/sys/fs/f2fs/{device}/pending_discard");
                let commands = Some(number(sys, &file)?);
                Some(Pending {
                    bytes: None,
                    commands,
                    file,
                })
            }
            _ => None,
        }
    }

    /// The same figure now; `None` if the file system is gone.
    pub fn now(&self, sys: &SysRoot) -> Option<Pending> {
        let figure = number(sys, &self.file)?;
        Some(Pending {
            bytes: self.bytes.map(|_| figure),
            commands: self.commands.map(|_| figure),
            file: self.file.clone(),
        })
    }
}

fn btrfs(sys: &SysRoot, device: &str) -> Option<Pending> {
    let uuid = btrfs_uuid(sys, device)?;
    let file = format!("/sys/fs/btrfs/{uuid}/discard/discardable_bytes");
    let bytes = Some(number(sys, &file)?);
    Some(Pending {
        bytes,
        commands: None,
        file,
    })
}

fn number(sys: &SysRoot, file: &str) -> Option<u64> {
    sys.text(file).ok()?.trim().parse().ok()
}
