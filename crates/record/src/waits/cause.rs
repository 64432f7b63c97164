//! The causes of waits.

use serde::{Deserialize, Serialize};

/// The cause of a thread's wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// Discards that it sends itself.
    InDiscards,
    /// A device that serves discards.
    BehindDiscards,
    /// A frozen file system.
    Frozen,
    /// A device that completes nothing.
    Hung,
    /// A flush of the drive's cache.
    Flush,
    /// A commit of the file system, without discards.
    Commit,
    /// Writeback of dirty pages.
    Writeback,
    /// Reads or writes of its own, without discards.
    Io,
    /// A lock.
    Lock,
    /// A server of a file system.
    Server,
    /// A processor, or it runs.
    Cpu,
    /// Something else than storage.
    Sleep,
}

impl Cause {
    /// All of them, in the order in which they are preferred where several threads of a process
    /// wait at once.
    pub const ALL: [Cause; 12] = [
        Cause::InDiscards,
        Cause::BehindDiscards,
        Cause::Frozen,
        Cause::Hung,
        Cause::Flush,
        Cause::Commit,
        Cause::Writeback,
        Cause::Io,
        Cause::Lock,
        Cause::Server,
        Cause::Cpu,
        Cause::Sleep,
    ];

    /// Whether discards are to blame.
    pub fn is_discards(self) -> bool {
        matches!(self, Cause::InDiscards | Cause::BehindDiscards)
    }

    /// Whether the thread is blocked on storage or a lock.
    pub fn is_blocked(self) -> bool {
        !matches!(self, Cause::Cpu | Cause::Sleep)
    }

    /// The cause in a word or two.
    pub fn word(self) -> &'static str {
        match self {
            Cause::InDiscards => "own discards",
            Cause::BehindDiscards => "behind discards",
            Cause::Frozen => "frozen",
            Cause::Hung => "hung device",
            Cause::Flush => "flush",
            Cause::Commit => "commit",
            Cause::Writeback => "writeback",
            Cause::Io => "own I/O",
            Cause::Lock => "lock",
            Cause::Server => "server",
            Cause::Cpu => "processor",
            Cause::Sleep => "sleep",
        }
    }

    /// The cause in a few words that follow "for".
    pub fn words(self) -> &'static str {
        match self {
            Cause::InDiscards => "its own discards",
            Cause::BehindDiscards => "a drive busy with discards",
            Cause::Frozen => "a frozen file system",
            Cause::Hung => "a device that completes nothing",
            Cause::Flush => "flushes of the drive's cache",
            Cause::Commit => "commits of the file system",
            Cause::Writeback => "writeback of dirty pages",
            Cause::Io => "its own reads and writes",
            Cause::Lock => "locks",
            Cause::Server => "a file system's server",
            Cause::Cpu => "a processor, or ran on one",
            Cause::Sleep => "something else than storage",
        }
    }
}
