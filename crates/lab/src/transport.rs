//! The way from the kernel to a drive's server.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How the kernel's requests reach a drive's server, and the answers the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "over")]
pub enum Transport {
    /// Through queues of io_uring, one for each processor (Linux 6.14).
    #[serde(rename = "io_uring")]
    IoUring,
    /// By reads and writes of `/dev/fuse`.
    #[serde(rename = "/dev/fuse")]
    DevFuse {
        /// The reason that there are no queues.
        because: String,
    },
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transport::IoUring => f.write_str("FUSE over io_uring"),
            Transport::DevFuse { because } => write!(f, "FUSE over /dev/fuse, because {because}"),
        }
    }
}
