//! The meaning of kernel stacks: where a thread waits, and why the kernel sends a discard.
//!
//! Each table (`frames/*.txt`) lists functions of the kernel, read in Linux 5.10 to 6.18. A stack belongs to the
//! first row with a function that it holds. The rows go from the special to the general, because
//! every wait ends in the same few functions.

use std::collections::HashMap;
use std::sync::LazyLock;

use linux::subvolume::accounts_quotas;
use record::waits::Cause;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};

/// The place in the kernel where a thread waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// In a discard that it sent itself.
    OwnDiscard,
    /// A frozen file system.
    Frozen,
    /// A flush of the drive's cache.
    Flush,
    /// Space of XFS that was freed and is still being discarded.
    ExtentBusy,
    /// A request queue that takes no more, or is throttled.
    Queue,
    /// Too many dirty pages: the kernel slows writers down.
    Throttled,
    /// The journal's commit (jbd2).
    Journal,
    /// A force of XFS's log.
    LogForce,
    /// btrfs' accounting of quotas.
    Quotas,
    /// btrfs' cleaner, which frees deleted snapshots and subvolumes.
    Cleaner,
    /// A commit of btrfs or a checkpoint of F2FS.
    Commit,
    /// Pages that are being written.
    Writeback,
    /// A read or a write of its own.
    Io,
    /// Completions of io_uring or libaio, and nothing shows whether any operation is in flight.
    Completions,
    /// A server that answers for a file system (FUSE, NFS).
    Server,
    /// A worker of the kernel.
    Worker,
    /// A lock that another thread holds.
    Lock,
    /// Something else: another process, the network, a timer.
    Sleep,
    /// Nowhere: it runs or waits for a processor.
    Running,
}

/// Kernel functions, each with the number of its row and the row's word.
type Table<T> = HashMap<&'static str, (usize, T)>;

/// Places by function.
static PLACES: LazyLock<Table<Place>> = LazyLock::new(|| table(include_str!("frames/places.txt")));

/// Reads a table: each row is a word with a colon and functions.
fn table<T: Copy + Deserialize<'static>>(text: &'static str) -> Table<T> {
    let (mut found, mut row) = (HashMap::new(), None);
    for (number, word) in text.split_whitespace().enumerate() {
        if let Some(name) = word.strip_suffix(':') {
            let name: StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
            row = T::deserialize(name).ok().map(|word| (number, word));
        } else if let Some(row) = row {
            found.entry(word).or_insert(row);
        }
    }
    found
}

/// The word of the first row that has a function of a stack.
fn first<'a, T: Copy>(table: &Table<T>, stack: impl IntoIterator<Item = &'a str>) -> Option<T> {
    let found = stack.into_iter().filter_map(|frame| table.get(base(frame)));
    found.min_by_key(|one| one.0).map(|one| one.1)
}

/// Where a thread waits whose stack, the innermost function first, is this.
pub fn place<'a>(stack: impl IntoIterator<Item = &'a str> + Clone) -> Place {
    // BLKDISCARD has no function of its own in some kernels (6.18); BLKZEROOUT has.
    let mut frames = stack.clone().into_iter();
    if frames.next() == Some("submit_bio_wait") && frames.next() == Some("blkdev_common_ioctl") {
        return Place::OwnDiscard;
    }
    let mut frames = stack.clone().into_iter();
    match first(&PLACES, stack) {
        // Other users of these locks: control groups and the like.
        Some(Place::Frozen) if frames.any(|frame| frame.starts_with("cgroup_")) => Place::Lock,
        found => found.unwrap_or(Place::Sleep),
    }
}

/// Functions in which a thread is blocked (`D`) and waits for something else than storage: the
/// kernel's own grace periods and pauses, and the freezer of processes. Since Linux 6.1 it leaves
/// some in the sleep in which it meets them (`TASK_FREEZABLE`).
const ELSEWHERE: [&str; 10] = [
    "__wait_rcu_gp",
    "synchronize_rcu_normal",
    "synchronize_rcu_expedited",
    "__synchronize_srcu",
    "msleep",
    "__refrigerator",
    "futex_do_wait",
    "futex_wait_queue",
    "do_nanosleep",
    "hrtimer_nanosleep",
];

/// Whether a blocked thread with this stack, the innermost function first, waits for something
/// else than storage.
pub(super) fn is_elsewhere<'a>(stack: impl IntoIterator<Item = &'a str>) -> bool {
    let mut frames = stack.into_iter();
    frames.any(|frame| ELSEWHERE.contains(&base(frame)))
}

/// Functions of btrfs in which a thread waits for what its cleaner keeps while it frees a deleted
/// subvolume: the transaction, a lock of a tree, or space for metadata.
const KEPT_BY_CLEANER: [&str; 9] = [
    "wait_current_trans",
    "btrfs_commit_transaction",
    "btrfs_wait_for_commit",
    "btrfs_tree_lock_nested",
    "btrfs_tree_read_lock_nested",
    "__btrfs_tree_lock",
    "__btrfs_tree_read_lock",
    "__reserve_bytes",
    "__reserve_metadata_bytes",
];

/// Whether a thread with this stack waits for what btrfs' cleaner keeps while it is at work.
pub(super) fn may_wait_for_cleaner<'a>(stack: impl IntoIterator<Item = &'a str>) -> bool {
    let mut frames = stack.into_iter();
    frames.any(|frame| KEPT_BY_CLEANER.contains(&base(frame)))
}

/// Returns the work of a cleaner of btrfs with this stack on a deleted subvolume: it frees it, or accounts
/// its quotas. `None`: neither.
pub(super) fn cleans<'a>(stack: impl IntoIterator<Item = &'a str> + Clone) -> Option<Place> {
    let mut frames = stack.clone().into_iter();
    let is_freeing = frames.any(|frame| base(frame) == "btrfs_drop_snapshot");
    is_freeing.then(|| match accounts_quotas(stack) {
        true => Place::Quotas,
        false => Place::Cleaner,
    })
}

/// A function's name without the compiler's suffixes: `__mutex_lock.constprop.0`.
fn base(frame: &str) -> &str {
    frame.split('.').next().unwrap_or(frame)
}

impl Place {
    /// Whether a device that serves discards may keep a thread here waiting.
    pub fn is_behind_a_device(self) -> bool {
        !matches!(
            self,
            Place::OwnDiscard | Place::Frozen | Place::Sleep | Place::Running
        )
    }

    /// The cause of a wait here, where no discard in flight keeps the thread waiting.
    pub fn cause(self) -> Cause {
        match self {
            Place::OwnDiscard => Cause::InDiscards,
            Place::Frozen => Cause::Frozen,
            Place::Flush => Cause::Flush,
            Place::Journal | Place::LogForce | Place::Commit | Place::ExtentBusy => Cause::Commit,
            Place::Quotas | Place::Cleaner => Cause::Commit,
            Place::Writeback | Place::Throttled => Cause::Writeback,
            Place::Io | Place::Completions | Place::Queue => Cause::Io,
            Place::Lock | Place::Worker => Cause::Lock,
            Place::Server => Cause::Server,
            Place::Running => Cause::Cpu,
            Place::Sleep => Cause::Sleep,
        }
    }

    /// The place in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Place::OwnDiscard => "its own discards",
            Place::Frozen => "a frozen file system",
            Place::Flush => "a flush of the drive's cache",
            Place::ExtentBusy => "space still being discarded",
            Place::Queue => "a full request queue",
            Place::Throttled => "dirty pages",
            Place::Journal => "the journal's commit",
            Place::LogForce => "a log force",
            Place::Quotas => "btrfs' accounting of quotas",
            Place::Cleaner => "btrfs-cleaner",
            Place::Commit => "the file system's commit",
            Place::Writeback => "writeback",
            Place::Io => "its own I/O",
            Place::Completions => "completions, if any I/O is in flight",
            Place::Server => "a file system's server",
            Place::Worker => "a worker of the kernel",
            Place::Lock => "a lock",
            Place::Sleep => "something else than storage",
            Place::Running => "a processor",
        }
    }
}

// Why the kernel sends a discard, by its stack.

record::kinds! {
    /// The reason for which the kernel sends a discard.
    #[derive(PartialOrd, Ord)]
    pub enum Reason["reason"] {
        /// Swap: pages that are free again, or `swapon --discard`.
        Swap = "swap",
        /// `FITRIM`: fstrim or a program like it.
        Trim = "trim",
        /// `BLKDISCARD` and its kin: blkdiscard, mkfs, lvremove.
        Device = "device",
        /// btrfs' background discards (`discard=async`).
        BtrfsAsync = "btrfs-async",
        /// btrfs' commit (`discard=sync`), which waits for them.
        BtrfsCommit = "btrfs-commit",
        /// ext4, in a worker after the journal's commit.
        ExtCommit = "ext-commit",
        /// ext4 without a journal, within the call that frees.
        ExtCall = "ext-call",
        /// XFS, after a checkpoint of its log.
        XfsLog = "xfs-log",
        /// F2FS' discard thread.
        F2fs = "f2fs",
        /// FAT, within the call that frees.
        Fat = "fat",
        /// A loop device, whose discard made a hole in its file.
        Loop = "loop",
        /// A layer of the device mapper or of md, for what lies above.
        Layer = "layer",
        /// No stack showed it.
        Unknown = "unknown",
    }
}

/// Reasons by function.
static REASONS: LazyLock<Table<Reason>> =
    LazyLock::new(|| table(include_str!("frames/reasons.txt")));

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
    pub fn of(self, program: &str) -> String {
        match self {
            Reason::Swap => "swap".to_owned(),
            Reason::Trim => format!("{program} (FITRIM)"),
            Reason::Device => format!("{program} (BLKDISCARD)"),
            Reason::BtrfsAsync => "btrfs in the background (discard=async)".to_owned(),
            Reason::BtrfsCommit => format!("btrfs within a commit of {program} (discard=sync)"),
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    /// The stack of the 2013 text.
    const SECOND_SYNC: [&str; 8] = [
        "blkdev_issue_discard",
        "btrfs_discard_extent.isra.48",
        "btrfs_finish_extent_commit",
        "btrfs_commit_transaction",
        "btrfs_sync_fs",
        "sync_fs_one_sb",
        "iterate_supers",
        "sys_sync",
    ];

    #[test]
    fn every_row_of_the_tables_has_a_word_that_is_known() {
        let rows = |text: &str| text.split(':').count() - 1;
        let places: HashSet<usize> = PLACES.values().map(|one| one.0).collect();
        assert_eq!(places.len(), rows(include_str!("frames/places.txt")));
        let reasons: HashSet<usize> = REASONS.values().map(|one| one.0).collect();
        assert_eq!(reasons.len(), rows(include_str!("frames/reasons.txt")));
    }

    #[test]
    fn the_stack_of_2013_is_a_discard_of_its_own_commit() {
        assert_eq!(place(SECOND_SYNC), Place::OwnDiscard);
        assert_eq!(reason(SECOND_SYNC), Reason::BtrfsCommit);
    }

    #[test]
    fn stacks_of_linux_6_18_are_placed() {
        let cases: &[(&[&str], Place)] = &[
            (
                &["jbd2_log_wait_commit", "ext4_sync_file", "do_fsync"],
                Place::Journal,
            ),
            (
                &["xlog_wait_on_iclog", "xfs_log_force_seq", "xfs_file_fsync"],
                Place::LogForce,
            ),
            (
                &["xfs_extent_busy_flush", "xfs_alloc_ag_vextent"],
                Place::ExtentBusy,
            ),
            (
                &["io_schedule", "blk_mq_get_tag", "submit_bio_wait"],
                Place::Queue,
            ),
            (
                &["submit_bio_wait", "blkdev_issue_flush", "ext4_sync_file"],
                Place::Flush,
            ),
            (
                &["folio_wait_bit_common", "folio_wait_writeback", "do_fsync"],
                Place::Writeback,
            ),
            (
                &["folio_wait_bit_common", "filemap_read", "vfs_read"],
                Place::Io,
            ),
            (
                &["io_cqring_wait", "__do_sys_io_uring_enter"],
                Place::Completions,
            ),
            (&["read_events", "do_io_getevents"], Place::Completions),
            (&["rwsem_down_write_slowpath", "do_unlinkat"], Place::Lock),
            (
                &["percpu_rwsem_wait", "__percpu_down_read", "vfs_write"],
                Place::Frozen,
            ),
            (&["percpu_rwsem_wait", "cgroup_attach_lock"], Place::Lock),
            (&["request_wait_answer", "fuse_readdir"], Place::Server),
            (
                &["submit_bio_wait", "blkdev_common_ioctl", "blkdev_ioctl"],
                Place::OwnDiscard,
            ),
            (&["futex_wait_queue", "do_futex"], Place::Sleep),
            (
                &[
                    "io_schedule",
                    "read_extent_buffer_pages",
                    "btrfs_find_all_roots",
                    "btrfs_qgroup_account_extents",
                    "btrfs_commit_transaction",
                    "btrfs_sync_file",
                ],
                Place::Quotas,
            ),
            (
                &[
                    "btrfs_tree_read_lock",
                    "walk_down_tree",
                    "btrfs_drop_snapshot",
                ],
                Place::Cleaner,
            ),
            (&[], Place::Sleep),
        ];
        for (stack, expected) in cases {
            assert_eq!(place(stack.iter().copied()), *expected, "{stack:?}");
        }
    }

    /// Cleaners of Linux 6.18, 4.4 (hhoffstaette/kernel-patches#7) and 4.19 (the commit 0568e82dbe25,
    /// "btrfs: run delayed items before dropping the snapshot").
    #[test]
    fn a_cleaner_frees_accounts_or_does_something_else() {
        let cases: [(&[&str], Option<Place>); 6] = [
            (
                &[
                    "find_parent_nodes",
                    "btrfs_find_all_roots_safe",
                    "btrfs_qgroup_trace_extent_post",
                    "add_delayed_ref",
                    "do_walk_down",
                    "walk_down_tree",
                    "btrfs_drop_snapshot",
                    "btrfs_clean_one_deleted_snapshot",
                    "cleaner_kthread",
                ],
                Some(Place::Quotas),
            ),
            (
                &[
                    "btrfs_finish_extent_commit",
                    "btrfs_commit_transaction",
                    "btrfs_qgroup_cleanup_dropped_subvolume",
                    "btrfs_drop_snapshot",
                    "btrfs_clean_one_deleted_snapshot",
                    "cleaner_kthread",
                ],
                Some(Place::Cleaner),
            ),
            (
                &[
                    "blk_mq_get_tag",
                    "read_extent_buffer_pages_nowait",
                    "walk_down_tree",
                    "btrfs_drop_snapshot",
                    "btrfs_clean_one_deleted_snapshot",
                    "cleaner_kthread",
                ],
                Some(Place::Cleaner),
            ),
            (
                &[
                    "__btrfs_run_delayed_refs",
                    "btrfs_run_delayed_refs",
                    "btrfs_commit_transaction",
                    "btrfs_drop_snapshot",
                    "btrfs_clean_one_deleted_snapshot",
                    "cleaner_kthread",
                ],
                Some(Place::Cleaner),
            ),
            (
                &["down_write", "btrfs_delete_unused_bgs", "cleaner_kthread"],
                None,
            ),
            (&["cleaner_kthread", "kthread"], None),
        ];
        for (stack, expected) in cases {
            assert_eq!(cleans(stack.iter().copied()), expected, "{stack:?}");
        }
    }

    #[test]
    fn a_frozen_process_waits_for_something_else_than_storage() {
        for stack in [
            &["__refrigerator", "get_signal"][..],
            &["futex_do_wait", "__futex_wait", "futex_wait"],
            &["hrtimer_nanosleep", "common_nsleep"],
        ] {
            assert_eq!(place(stack.iter().copied()), Place::Sleep, "{stack:?}");
            assert!(is_elsewhere(stack.iter().copied()), "{stack:?}");
        }
        assert!(!is_elsewhere(["io_schedule", "do_fsync"]));
    }

    /// Of Linux 6.18, and of 5.4 (canonical/lxd#9558).
    #[test]
    fn who_needs_the_transaction_may_wait_for_a_cleaner_and_who_writes_a_log_does_not() {
        let cases: [(&[&str], Place, bool); 6] = [
            (
                &["wait_current_trans", "start_transaction", "btrfs_create"],
                Place::Commit,
                true,
            ),
            (
                &["wait_for_commit", "btrfs_commit_transaction"],
                Place::Commit,
                true,
            ),
            (
                &["btrfs_tree_read_lock_nested", "btrfs_search_slot"],
                Place::Lock,
                true,
            ),
            (
                &["__reserve_bytes", "start_transaction"],
                Place::Commit,
                true,
            ),
            (
                &["folio_wait_bit", "write_all_supers", "btrfs_sync_log"],
                Place::Commit,
                false,
            ),
            (&["folio_wait_bit_common", "filemap_read"], Place::Io, false),
        ];
        for (stack, where_, expected) in cases {
            assert_eq!(place(stack.iter().copied()), where_, "{stack:?}");
            let may = may_wait_for_cleaner(stack.iter().copied());
            assert_eq!(may, expected, "{stack:?}");
        }
    }

    #[test]
    fn reasons_are_told_by_the_sender() {
        let cases: &[(&[&str], Reason)] = &[
            (
                &[
                    "blkdev_issue_discard",
                    "ext4_free_blocks",
                    "ext4_evict_inode",
                ],
                Reason::ExtCall,
            ),
            (
                &[
                    "blkdev_issue_discard",
                    "ext4_trim_extent",
                    "ext4_discard_work",
                    "process_one_work",
                ],
                Reason::ExtCommit,
            ),
            (
                &["blkdev_issue_discard", "ext4_trim_fs", "ext4_ioctl"],
                Reason::Trim,
            ),
            (
                &["xfs_discard_extents", "xlog_cil_committed"],
                Reason::XfsLog,
            ),
            (
                &["xfs_discard_extents", "xfs_trim_extents", "xfs_ioc_trim"],
                Reason::Trim,
            ),
            (&["btrfs_issue_discard", "btrfs_trim_fs"], Reason::Trim),
            (
                &["btrfs_issue_discard", "btrfs_discard_workfn"],
                Reason::BtrfsAsync,
            ),
            (
                &["blk_ioctl_discard", "blkdev_common_ioctl"],
                Reason::Device,
            ),
            (
                &[
                    "blkdev_issue_discard",
                    "ext4_free_blocks",
                    "loop_process_work",
                ],
                Reason::Loop,
            ),
            (&["something"], Reason::Unknown),
        ];
        for (stack, expected) in cases {
            assert_eq!(reason(stack.iter().copied()), *expected, "{stack:?}");
        }
    }
}
