//! The options of a throttle.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// The file that the canary reads.
#[derive(Debug, Clone, Default)]
pub enum CanaryFile {
    /// A file of 1 MiB without a name, made on the file system.
    #[default]
    Made,
    /// This file, open for direct reads, with at least 4 KiB of written data.
    Given(Arc<File>),
    /// There is no canary.
    Without,
}

/// The options of a throttle.
#[derive(Debug, Clone, Default)]
pub struct ThrottleOptions {
    /// The canary's file.
    pub canary: CanaryFile,
    /// The canary's reads each second; `None`: forty.
    pub reads_per_s: Option<f64>,
    /// A blkio cgroup of version 1 in which the canary reads: that of the
    /// foreground of a simulated drive, whose reads don't wait in the loop
    /// driver behind discards.
    pub canary_group: Option<PathBuf>,
    /// No commit is forced after a piece: discards come when the file system
    /// likes. Only for policies that don't wait for them.
    pub skip_commits: bool,
}
