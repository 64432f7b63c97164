//! The causes of waits.

crate::kinds! {
    /// The cause of a thread's wait, in the order in which they are preferred where several threads
    /// of a process wait at once.
    #[derive(PartialOrd, Ord)]
    pub enum Cause["cause"] {
        /// its own discards
        InDiscards = "in-discards",
        /// a drive busy with discards
        BehindDiscards = "behind-discards",
        /// a frozen file system
        Frozen = "frozen",
        /// a device that completes nothing
        Hung = "hung",
        /// flushes of the drive's cache
        Flush = "flush",
        /// commits of the file system
        Commit = "commit",
        /// writeback of dirty pages
        Writeback = "writeback",
        /// its own reads and writes
        Io = "io",
        /// locks
        Lock = "lock",
        /// a file system's server
        Server = "server",
        /// a processor, or ran on one
        Cpu = "cpu",
        /// something else than storage
        Sleep = "sleep",
    }
}

impl Cause {
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
            Cause::Hung => "hung device",
            Cause::Io => "own I/O",
            Cause::Cpu => "processor",
            cause => cause.name(),
        }
    }
}
