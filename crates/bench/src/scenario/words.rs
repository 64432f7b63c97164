//! Values that are words: each with its name and what it means, for the
//! parser, for errors and for the command line's help.

use std::sync::LazyLock;

use crate::plan::{End, Engine, Pattern};

/// A value that has a name.
#[derive(Debug, Clone, Copy)]
pub struct Word<T> {
    /// As it is written.
    pub name: &'static str,
    /// Its meaning, in a line.
    pub about: &'static str,
    /// The value.
    pub value: T,
}

const fn word<T: Copy>(name: &'static str, value: T, about: &'static str) -> Word<T> {
    Word { name, about, value }
}

/// The operation of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActorOp {
    /// Reads blocks of the shared file.
    Read,
    /// Overwrites blocks of it.
    Write,
    /// Appends blocks to a file of its own.
    Append,
    /// Reads and overwrites blocks of the shared file.
    Mixed,
    /// A chain of system calls: one of [`load::task::KINDS`], by name.
    Task(&'static str),
}

impl ActorOp {
    /// Its name.
    pub fn name(self) -> &'static str {
        OPS.iter()
            .find(|word| word.value == self)
            .map_or("read", |word| word.name)
    }
}

/// How data are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// unlink(2).
    Unlink,
    /// Truncation from the tail in steps.
    Truncate,
    /// Holes, from the head or the tail.
    Punch,
    /// Deleted beforehand; FITRIM is what is measured.
    Fstrim,
    /// A table's replacement is renamed in, the old one unlinked.
    Swap,
    /// The oldest of many files, some at a time.
    Purge,
    /// An LSM tree's compactions.
    Lsm,
    /// Temporary files, made and unlinked again and again.
    Spill,
    /// A deletion by another program, which is only watched.
    Event,
    /// Nothing is deleted.
    None,
}

impl How {
    /// Its name.
    pub fn name(self) -> &'static str {
        HOWS.iter()
            .find(|word| word.value == self)
            .map_or("none", |word| word.name)
    }
}

/// Everything an actor can do.
pub static OPS: LazyLock<Vec<Word<ActorOp>>> = LazyLock::new(|| {
    let blocks = [
        word(
            "read",
            ActorOp::Read,
            "reads blocks of the foreground's file",
        ),
        word("write", ActorOp::Write, "overwrites blocks of it"),
        word(
            "append",
            ActorOp::Append,
            "writes a file of its own from its start, and over it again when it is full",
        ),
        word(
            "mixed",
            ActorOp::Mixed,
            "reads and overwrites blocks of the foreground's file",
        ),
    ];
    let tasks = load::task::KINDS
        .iter()
        .map(|kind| word(kind.name, ActorOp::Task(kind.name), kind.about));
    blocks.into_iter().chain(tasks).collect()
});

/// Every way to delete.
pub static HOWS: &[Word<How>] = &[
    word("unlink", How::Unlink, "unlink the files"),
    word(
        "truncate",
        How::Truncate,
        "truncate them from the tail in steps, then unlink (what slowrm does)",
    ),
    word(
        "punch",
        How::Punch,
        "punch holes from the head or the tail in steps, then unlink (a journal that frees its head)",
    ),
    word(
        "fstrim",
        How::Fstrim,
        "delete before the run, and trim the whole file system in it (root only)",
    ),
    word(
        "swap",
        How::Swap,
        "rename a replacement over each, then unlink the old one (an online schema change)",
    ),
    word(
        "purge",
        How::Purge,
        "unlink the oldest few at intervals (logs)",
    ),
    word(
        "lsm",
        How::Lsm,
        "write and drop files as an LSM tree's compactions do, for a time",
    ),
    word(
        "spill",
        How::Spill,
        "create, write and unlink temporary files again and again, for a time",
    ),
    word(
        "event",
        How::Event,
        "delete nothing of the test's: watch what the command of --event does",
    ),
    word(
        "none",
        How::None,
        "delete nothing: only measure the foreground",
    ),
];

/// Every engine.
pub static ENGINES: &[Word<Engine>] = &[
    word(
        "auto",
        Engine::Auto,
        "io_uring, or libaio, or sync, the first that is allowed (reported)",
    ),
    word("io_uring", Engine::IoUring, "io_uring"),
    word("libaio", Engine::Libaio, "Linux's older asynchronous I/O"),
    word(
        "sync",
        Engine::Sync,
        "blocking calls, a thread per operation in flight",
    ),
    word(
        "mmap",
        Engine::Mmap,
        "writers overwrite a mapped file, and the kernel writes the pages back",
    ),
    word(
        "mmap-sync",
        Engine::MmapSync,
        "the same, and each thread calls msync after 32 blocks",
    ),
    word(
        "null",
        Engine::Null,
        "io_uring no-ops: measures trimbench itself",
    ),
];

/// Orders of blocks.
pub static PATTERNS: &[Word<Pattern>] = &[
    word("random", Pattern::Random, "any block, each as likely"),
    word("sequential", Pattern::Sequential, "one after the other"),
];

/// When an open loop's operations arrive; true for Poisson.
pub static ARRIVALS: &[Word<bool>] = &[
    word("constant", false, "evenly spaced"),
    word("poisson", true, "as a Poisson process"),
];

/// Ends of a file.
pub static ENDS: &[Word<End>] = &[
    word("head", End::Head, "from the first byte on"),
    word("tail", End::Tail, "from the last byte back"),
];
