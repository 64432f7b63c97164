//! Why the kernel sends a discard, by its stack.

use serde::{Deserialize, Serialize};

use super::base;

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

/// Functions that tell a reason, the special before the general.
const REASONS: &[(Reason, &[&str])] = &[
    (
        Reason::Swap,
        &[
            "__do_sys_swapon",
            "discard_swap_cluster",
            "swap_do_scheduled_discard",
            "discard_swap",
            "swap_discard_work",
        ],
    ),
    (
        Reason::Loop,
        &[
            "lo_fallocate",
            "loop_process_work",
            "loop_workfn",
            "loop_rootcg_workfn",
        ],
    ),
    (
        Reason::Trim,
        &[
            "ext4_trim_fs",
            "xfs_ioc_trim",
            "xfs_trim_perag_extents",
            "xfs_trim_extents",
            "btrfs_trim_fs",
            "btrfs_trim_block_group",
            "btrfs_ioctl_fitrim",
            "fat_trim_fs",
            "f2fs_trim_fs",
        ],
    ),
    (
        Reason::Device,
        &[
            "blk_ioctl_discard",
            "blkdev_fallocate",
            "blkdev_common_ioctl",
            "blkdev_uring_cmd",
            "blkdev_cmd_discard",
            "blkdev_ioctl",
        ],
    ),
    (Reason::BtrfsAsync, &["btrfs_discard_workfn"]),
    (
        Reason::BtrfsCommit,
        &[
            "btrfs_finish_extent_commit",
            "btrfs_discard_extent",
            "btrfs_issue_discard",
            "btrfs_delete_unused_bgs",
        ],
    ),
    (
        Reason::ExtCommit,
        &[
            "ext4_discard_work",
            "ext4_process_freed_data",
            "jbd2_journal_commit_transaction",
        ],
    ),
    (
        Reason::ExtCall,
        &["ext4_free_blocks", "ext4_issue_discard", "ext4_mb_clear_bb"],
    ),
    (
        Reason::XfsLog,
        &[
            "xlog_cil_committed",
            "xlog_cil_process_committed",
            "xfs_discard_extents",
            "xfs_discard_endio_work",
        ],
    ),
    (
        Reason::F2fs,
        &[
            "issue_discard_thread",
            "__submit_discard_cmd",
            "f2fs_issue_discard",
        ],
    ),
    (Reason::Fat, &["fat_free_clusters", "fat_free"]),
    (
        Reason::Layer,
        &[
            "dm_submit_bio",
            "process_deferred_bios",
            "md_submit_bio",
            "raid5d",
            "dm_wq_work",
        ],
    ),
];

/// Why a discard was sent with this stack, the innermost function first.
pub fn reason<'a>(stack: impl IntoIterator<Item = &'a str> + Clone) -> Reason {
    let found = REASONS.iter().find(|(_, functions)| {
        stack
            .clone()
            .into_iter()
            .any(|frame| functions.contains(&base(frame)))
    });
    found.map_or(Reason::Unknown, |(reason, _)| *reason)
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
