//! Values that are words: each with its name and what it means, for the
//! parser, for errors and for the command line's help.

use std::sync::LazyLock;

use crate::plan::{Control, End, Engine, Pattern};

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

/// The name of a value; each has one.
fn name_of<T: PartialEq>(words: &[Word<T>], value: T) -> &'static str {
    let word = words.iter().find(|word| word.value == value);
    word.map_or("unknown", |word| word.name)
}

/// Words from a table with a row for each: its name, its value, and its meaning.
macro_rules! words {
    ($($name:literal $value:expr, $about:literal;)+) => {
        &[$(word($name, $value, $about)),+]
    };
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
        name_of(&OPS, self)
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
        name_of(HOWS, self)
    }
}

/// Everything an actor can do.
pub static OPS: LazyLock<Vec<Word<ActorOp>>> = LazyLock::new(|| {
    let blocks: &[Word<ActorOp>] = words! {
        "read" ActorOp::Read, "reads blocks of the foreground's file";
        "write" ActorOp::Write, "overwrites blocks of it";
        "append" ActorOp::Append, "writes a file of its own from its start, and over it again when it is full";
        "mixed" ActorOp::Mixed, "reads and overwrites blocks of the foreground's file";
    };
    let tasks = load::task::KINDS
        .iter()
        .map(|kind| word(kind.name, ActorOp::Task(kind.name), kind.about));
    blocks.iter().copied().chain(tasks).collect()
});

/// Every way to delete.
pub static HOWS: &[Word<How>] = words! {
    "unlink" How::Unlink, "unlink the files";
    "truncate" How::Truncate, "truncate them from the tail in steps, then unlink (what slowrm does)";
    "punch" How::Punch, "punch holes from the head or the tail in steps, then unlink (a journal that frees its head)";
    "fstrim" How::Fstrim, "delete before the run, and trim the whole file system in it (root only)";
    "swap" How::Swap, "rename a replacement over each, then unlink the old one (an online schema change)";
    "purge" How::Purge, "unlink the oldest few at intervals (logs)";
    "lsm" How::Lsm, "write and drop files as an LSM tree's compactions do, for a time";
    "spill" How::Spill, "create, write and unlink temporary files again and again, for a time";
    "event" How::Event, "delete nothing of the test's: watch what the command of --event does";
    "none" How::None, "delete nothing: only measure the foreground";
};

/// Every engine.
pub static ENGINES: &[Word<Engine>] = words! {
    "auto" Engine::Auto, "io_uring, or libaio, or sync, the first that is allowed (reported)";
    "io_uring" Engine::IoUring, "io_uring";
    "libaio" Engine::Libaio, "Linux's older asynchronous I/O";
    "sync" Engine::Sync, "blocking calls, a thread per operation in flight";
    "mmap" Engine::Mmap, "writers overwrite a mapped file, and the kernel writes the pages back";
    "mmap-sync" Engine::MmapSync, "the same, and each thread calls msync after 32 blocks";
    "null" Engine::Null, "io_uring no-ops: measures trimbench itself";
};

/// Orders of blocks.
pub static PATTERNS: &[Word<Pattern>] = words! {
    "random" Pattern::Random, "any block, each as likely";
    "sequential" Pattern::Sequential, "one after the other";
};

/// When an open loop's operations arrive; true for Poisson.
pub static ARRIVALS: &[Word<bool>] = words! {
    "constant" false, "evenly spaced";
    "poisson" true, "as a Poisson process";
};

/// The deletion of a control, if there is one.
pub static CONTROLS: &[Word<Option<Control>>] = words! {
    "off" None, "no control";
    "second-name" Some(Control::SecondName), "a second name of each file is unlinked first, which frees nothing";
    "remount" Some(Control::Nodiscard), "the file system is remounted nodiscard for the same deletion, and back";
};

/// The behaviour of a run beside devices whose counters are off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counters {
    /// It is refused.
    Needed,
    /// It switches them on, and off again.
    Enable,
    /// It goes on without.
    Blind,
}

/// Every behaviour beside devices whose counters are off.
pub static COUNTERS: &[Word<Counters>] = words! {
    "needed" Counters::Needed, "refuse to run";
    "enable" Counters::Enable, "switch their counters on for the run, and off again however it ends (root only)";
    "blind" Counters::Blind, "run although it stays unknown whether discards came";
};

/// Ends of a file.
pub static ENDS: &[Word<End>] = words! {
    "head" End::Head, "from the first byte on";
    "tail" End::Tail, "from the last byte back";
};

/// The words that a key takes, each with its meaning; empty for a key that takes others.
pub fn of_key(path: &str) -> Vec<(&'static str, &'static str)> {
    fn all<T>(words: &[Word<T>]) -> Vec<(&'static str, &'static str)> {
        words.iter().map(|word| (word.name, word.about)).collect()
    }
    match path {
        "actor.op" => all(&OPS),
        "actor.pattern" => all(PATTERNS),
        "actor.arrival" => all(ARRIVALS),
        "deletion.how" => all(HOWS),
        "deletion.from" => all(ENDS),
        "engine" => all(ENGINES),
        "control" => all(CONTROLS),
        "counters" => all(COUNTERS),
        _ => Vec::new(),
    }
}
