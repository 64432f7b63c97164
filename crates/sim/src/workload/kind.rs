//! The workloads by name.

record::kinds! {
    /// A kind of workload.
    pub enum WorkloadKind["workload"] {
        /// One file of `size` is removed.
        DropFile = "drop-file",
        /// `files` files, `size` in all, are removed.
        DropMany = "drop-many",
        /// The volume is discarded in steps of 2 GiB, as mkfs does.
        Mkfs = "mkfs",
        /// An LSM tree of `size`: 8 files of 64 MiB merged, again and again.
        Lsm = "lsm",
        /// Log files of 64 MiB; of `size`, the oldest half is removed.
        LogPurge = "log-purge",
        /// A temporary file of `size` is written and removed.
        Spill = "spill",
        /// `files` small files, `size` in all; one is replaced, again and again.
        Churn = "churn",
    }
}

impl WorkloadKind {
    /// Whether it writes and removes all the time, until `length` is over.
    pub fn is_continuous(self) -> bool {
        !matches!(
            self,
            WorkloadKind::DropFile | WorkloadKind::DropMany | WorkloadKind::Mkfs
        )
    }
}
