//! The workloads by name.

/// A kind of workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WorkloadKind {
    /// One large file is removed.
    DropFile,
    /// Many files are removed.
    DropMany,
    /// The whole volume is discarded.
    Mkfs,
    /// Files are merged into new ones, and the old ones removed.
    Lsm,
    /// Log files are written one after the other, and old ones removed together.
    LogPurge,
    /// A temporary file is written and removed, again and again.
    Spill,
    /// Small files come and go.
    Churn,
}

impl WorkloadKind {
    /// All of them.
    pub const ALL: [WorkloadKind; 7] = [
        WorkloadKind::DropFile,
        WorkloadKind::DropMany,
        WorkloadKind::Mkfs,
        WorkloadKind::Lsm,
        WorkloadKind::LogPurge,
        WorkloadKind::Spill,
        WorkloadKind::Churn,
    ];

    /// Its name in options and files.
    pub fn name(self) -> &'static str {
        match self {
            WorkloadKind::DropFile => "drop-file",
            WorkloadKind::DropMany => "drop-many",
            WorkloadKind::Mkfs => "mkfs",
            WorkloadKind::Lsm => "lsm",
            WorkloadKind::LogPurge => "log-purge",
            WorkloadKind::Spill => "spill",
            WorkloadKind::Churn => "churn",
        }
    }

    /// A description in a line.
    pub fn about(self) -> &'static str {
        match self {
            WorkloadKind::DropFile => "one file of `size` is removed",
            WorkloadKind::DropMany => "`files` files, `size` in all, are removed",
            WorkloadKind::Mkfs => "the volume is discarded in steps of 2 GiB, as mkfs does",
            WorkloadKind::Lsm => "an LSM tree of `size`: 8 files of 64 MiB merged, again and again",
            WorkloadKind::LogPurge => "log files of 64 MiB; of `size`, the oldest half is removed",
            WorkloadKind::Spill => "a temporary file of `size` is written and removed",
            WorkloadKind::Churn => {
                "`files` small files, `size` in all; one is replaced, again and again"
            }
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<WorkloadKind> {
        WorkloadKind::ALL.into_iter().find(|k| k.name() == name)
    }

    /// Whether it writes and removes all the time, until `length` is over.
    pub fn is_continuous(self) -> bool {
        !matches!(
            self,
            WorkloadKind::DropFile | WorkloadKind::DropMany | WorkloadKind::Mkfs
        )
    }
}
