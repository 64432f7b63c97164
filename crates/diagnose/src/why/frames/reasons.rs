//! Why the kernel sends a discard, by its stack.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::{Table, first, table};

/// The reason for which the kernel sends a discard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Swap: pages that are free again, or `swapon --discard`.
    Swap,
    /// `FITRIM`: fstrim or a program like it.
    Trim,
    /// `BLKDISCARD` and its kin: blkdiscard, mkfs, lvremove.
    Device,
    /// btrfs' background discards (`discard=async`).
    BtrfsAsync,
    /// btrfs' commit (`discard=sync`), which waits for them.
    BtrfsCommit,
    /// ext4, in a worker after the journal's commit.
    ExtCommit,
    /// ext4 without a journal, within the call that frees.
    ExtCall,
    /// XFS, after a checkpoint of its log.
    XfsLog,
    /// F2FS' discard thread.
    F2fs,
    /// FAT, within the call that frees.
    Fat,
    /// A loop device, whose discard made a hole in its file.
    Loop,
    /// A layer of the device mapper or of md, for what lies above.
    Layer,
    /// No stack showed it.
    Unknown,
}

/// Reasons by function.
pub(super) static REASONS: LazyLock<Table<Reason>> =
    LazyLock::new(|| table(include_str!("reasons.txt")));

/// Why a discard was sent with this stack, the innermost function first.
pub fn reason<'a>(stack: impl IntoIterator<Item = &'a str>) -> Reason {
    first(&REASONS, stack).unwrap_or(Reason::Unknown)
}

impl Reason {
    /// The reason in a word or two.
    pub fn word(self) -> &'static str {
        match self {
            Reason::Swap => "swap",
            Reason::Trim => "FITRIM",
            Reason::Device => "BLKDISCARD",
            Reason::BtrfsAsync => "btrfs async",
            Reason::BtrfsCommit => "btrfs commit",
            Reason::ExtCommit => "ext4 commit",
            Reason::ExtCall => "ext4 in call",
            Reason::XfsLog => "XFS log",
            Reason::F2fs => "F2FS",
            Reason::Fat => "FAT in call",
            Reason::Loop => "loop device",
            Reason::Layer => "device layer",
            Reason::Unknown => "-",
        }
    }

    /// The sender and the moment, in a few words. `program`: the sender's name.
    pub fn words(self, program: &str) -> String {
        match self {
            Reason::Swap => "swap".to_owned(),
            Reason::Trim => format!("{program} (FITRIM)"),
            Reason::Device => format!("{program} (BLKDISCARD)"),
            Reason::BtrfsAsync => "btrfs in the background (discard=async)".to_owned(),
            Reason::BtrfsCommit => "btrfs within its commit (discard=sync)".to_owned(),
            Reason::ExtCommit => "ext4 after its journal's commit (discard)".to_owned(),
            Reason::ExtCall => format!("ext4 within a call of {program} (discard, no journal)"),
            Reason::XfsLog => "XFS after a log checkpoint (discard)".to_owned(),
            Reason::F2fs => "F2FS in the background (discard)".to_owned(),
            Reason::Fat => format!("FAT within a call of {program} (discard)"),
            Reason::Loop => "a loop device, for a discard above it".to_owned(),
            Reason::Layer => "a device layer, for a discard above it".to_owned(),
            Reason::Unknown => program.to_owned(),
        }
    }
}
