//! Specifications of deletions: every way that production deletes.
//!
//! A new way is a file beside this one, a variant here with its parameters,
//! and its line in [`METHODS`].

use std::ffi::OsString;
use std::fs::File;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::progress::Progress;
use super::victim::Victim;
use super::{
    command, discard, event, fstrim, lsm, punch, purge, spill, swap, truncate, unlink, workshop,
};
use crate::clock::Clock;
use crate::error::LoadError;

/// A way of deleting, as a help text lists it.
#[derive(Debug, PartialEq, Eq)]
pub struct Method {
    /// Its name: lower-case letters.
    pub name: &'static str,
    /// The method's effect, in one line.
    pub about: &'static str,
    /// Whether it creates and drops until its time is over, instead of
    /// deleting files that are there.
    pub continuous: bool,
}

/// Every way of deleting.
pub static METHODS: &[&Method] = &[
    &unlink::METHOD,
    &truncate::METHOD,
    &punch::METHOD,
    &swap::METHOD,
    &purge::METHOD,
    &lsm::METHOD,
    &spill::METHOD,
    &fstrim::METHOD,
    &discard::METHOD,
    &command::METHOD,
    &event::METHOD,
];

/// The files to delete, and how.
#[derive(Debug, Clone)]
pub enum DeletionSpec {
    /// `unlink` of each file, several at a time.
    Unlink {
        /// The files.
        paths: Vec<PathBuf>,
        /// Threads that take files from the list.
        parallel: NonZeroU32,
    },
    /// slowrm's way: cut each file from its tail in chunks, then unlink it.
    Truncate {
        /// The files, one after the other.
        paths: Vec<PathBuf>,
        /// Bytes per `ftruncate`.
        chunk_bytes: NonZeroU64,
        /// Pause after each chunk.
        sleep: Duration,
        /// Whether each chunk is followed by `fsync`.
        fsync: bool,
    },
    /// Punch holes into each file until it is empty, then unlink it.
    Punch {
        /// The files, one after the other.
        paths: Vec<PathBuf>,
        /// Where it begins.
        from: End,
        /// Bytes per `fallocate`; a multiple of 4096, since a part of a block
        /// can't be freed.
        chunk_bytes: NonZeroU64,
        /// Pause after each chunk.
        sleep: Duration,
    },
    /// The end of an online schema change: rename each table aside, rename its
    /// replacement in, `fsync` the directory, then unlink the old table.
    Swap {
        /// Each table and its replacement, on the same file system. The old
        /// table's name is its own with `.old` behind it meanwhile.
        pairs: Vec<(PathBuf, PathBuf)>,
    },
    /// A log purge: the oldest files go, a few at once, at intervals.
    Purge {
        /// The files, oldest first.
        paths: Vec<PathBuf>,
        /// Files per purge.
        at_once: NonZeroU32,
        /// From the beginning of a purge to that of the next.
        every: Duration,
    },
    /// An LSM tree's flushes and compactions. Continuous.
    ///
    /// After `run_for` its live files stay, as a database's would: dropping
    /// the whole tree at once is no part of compaction. When it is stopped
    /// before, it removes them.
    Lsm {
        /// Where its files are made; they are named `NUMBER.sst`.
        dir: PathBuf,
        /// Levels, 2 to 7. The one with the new files, level 0, is among them.
        levels: u32,
        /// Bytes per file; a multiple of 4096.
        file_bytes: u64,
        /// Bytes written per second, flushes and compactions together.
        rate_bytes_per_s: u64,
        /// Its files never take more than this, the outputs of a compaction
        /// that is under way included; at least `8 + levels` files.
        space_bytes: u64,
        /// How long it goes on.
        run_for: Duration,
        /// Seed of the data.
        seed: u64,
    },
    /// Temporary files of sorts and joins: create, write, unlink, again and
    /// again. Continuous.
    Spill {
        /// Where its files are made; they are named `spill-THREAD-NUMBER`.
        dir: PathBuf,
        /// Bytes per file.
        file_bytes: u64,
        /// Threads, each with a file of its own.
        parallel: NonZeroU32,
        /// Pause after each unlink.
        pause: Duration,
        /// How long it goes on.
        run_for: Duration,
        /// Seed of the data.
        seed: u64,
    },
    /// `FITRIM` of a whole file system, in one call as fstrim(8) does it.
    ///
    /// It frees no space that wasn't free, but discards all of it at the device. Bytes are counted
    /// when the call returns. A stop can't interrupt it: the deletion is abandoned then, and the
    /// kernel gives up when the process ends.
    Fstrim {
        /// Any directory of the file system.
        dir: PathBuf,
    },
    /// `BLKDISCARD` on a raw device, in steps.
    Discard {
        /// The device, opened for writing.
        device: Arc<File>,
        /// Its path, for messages.
        path: PathBuf,
        /// First byte; a multiple of 512.
        start: u64,
        /// Bytes; a multiple of 512.
        len: u64,
        /// Bytes per call; a multiple of 512.
        step_bytes: NonZeroU64,
    },
    /// An outside program, run without a shell in a process group of its own.
    Command {
        /// Program and arguments; an argument `{}` is replaced by each path in
        /// turn, one run per path; without one, all paths are appended and it runs once.
        argv: Vec<OsString>,
        /// The files.
        paths: Vec<PathBuf>,
    },
    /// A deletion by another program. The freed amount is the growth of the file system's free
    /// space, whatever causes it.
    Event {
        /// The begin and the end of the event.
        occasion: Occasion,
        /// Any directory of the file system.
        dir: PathBuf,
    },
}

/// The begin and the end of an event: those of a command, or a person's marks.
#[derive(Debug, Clone)]
pub enum Occasion {
    /// An outside program and its arguments, run without a shell in a process group
    /// of its own. The event is over when it has ended.
    Program(Vec<OsString>),
    /// A person: the event goes on until the deletion is stopped.
    Stopped,
}

units::words! {
    /// One end of a file: a log or a queue forgets its beginning, and a table shrinks at its end.
    pub enum End {
        /// from the first byte on
        Head = "head",
        /// from the last byte back
        Tail = "tail",
    }
}

impl DeletionSpec {
    /// Which way of deleting it is.
    pub fn method(&self) -> &'static Method {
        match self {
            DeletionSpec::Unlink { .. } => &unlink::METHOD,
            DeletionSpec::Truncate { .. } => &truncate::METHOD,
            DeletionSpec::Punch { .. } => &punch::METHOD,
            DeletionSpec::Swap { .. } => &swap::METHOD,
            DeletionSpec::Purge { .. } => &purge::METHOD,
            DeletionSpec::Lsm { .. } => &lsm::METHOD,
            DeletionSpec::Spill { .. } => &spill::METHOD,
            DeletionSpec::Fstrim { .. } => &fstrim::METHOD,
            DeletionSpec::Discard { .. } => &discard::METHOD,
            DeletionSpec::Command { .. } => &command::METHOD,
            DeletionSpec::Event { .. } => &event::METHOD,
        }
    }

    /// Whether it creates and drops until its time is over. How much it frees
    /// isn't known before: its [`DeletionProgress::total_bytes`] is 0.
    ///
    /// [`DeletionProgress::total_bytes`]: super::DeletionProgress::total_bytes
    pub fn is_continuous(&self) -> bool {
        self.method().continuous
    }

    /// Whether it can be done as far as its figures tell, without a look at
    /// any file. [`Deletion::start`] asks the same; a plan may want to know earlier.
    ///
    /// # Errors
    /// [`LoadError::Spec`], with what to give instead.
    ///
    /// [`Deletion::start`]: super::Deletion::start
    pub fn check(&self) -> Result<(), LoadError> {
        match self {
            DeletionSpec::Punch { chunk_bytes, .. } => punch::check(chunk_bytes.get()),
            &DeletionSpec::Lsm {
                levels,
                file_bytes,
                rate_bytes_per_s,
                space_bytes,
                run_for,
                ..
            } => {
                workshop::check(file_bytes, run_for)?;
                lsm::check(levels, file_bytes, rate_bytes_per_s, space_bytes)
            }
            DeletionSpec::Spill {
                file_bytes,
                run_for,
                ..
            } => workshop::check(*file_bytes, *run_for),
            &DeletionSpec::Discard {
                start,
                len,
                step_bytes,
                ..
            } => discard::check(start, len, step_bytes.get()),
            DeletionSpec::Unlink { .. }
            | DeletionSpec::Truncate { .. }
            | DeletionSpec::Swap { .. }
            | DeletionSpec::Purge { .. }
            | DeletionSpec::Fstrim { .. }
            | DeletionSpec::Command { .. }
            | DeletionSpec::Event { .. } => Ok(()),
        }
    }

    /// Begins it, in threads of its own. It has been checked.
    pub(super) fn begin(self, clock: Clock) -> Result<Arc<Progress>, LoadError> {
        let look_at_all = Victim::look_at_all;
        match self {
            DeletionSpec::Unlink { paths, parallel } => {
                unlink::start(look_at_all(paths)?, parallel, clock)
            }
            DeletionSpec::Truncate {
                paths,
                chunk_bytes,
                sleep,
                fsync,
            } => {
                let way = truncate::Way {
                    chunk_bytes,
                    sleep,
                    fsync,
                };
                truncate::start(look_at_all(paths)?, way, clock)
            }
            DeletionSpec::Punch {
                paths,
                from,
                chunk_bytes,
                sleep,
            } => {
                let way = punch::Way {
                    from,
                    chunk_bytes,
                    sleep,
                };
                punch::start(look_at_all(paths)?, way, clock)
            }
            DeletionSpec::Swap { pairs } => swap::start(pairs, clock),
            DeletionSpec::Purge {
                paths,
                at_once,
                every,
            } => purge::start(look_at_all(paths)?, at_once, every, clock),
            DeletionSpec::Lsm {
                dir,
                levels,
                file_bytes,
                rate_bytes_per_s,
                space_bytes,
                run_for,
                seed,
            } => {
                let way = lsm::Way {
                    dir,
                    levels,
                    file_bytes,
                    rate_bytes_per_s,
                    space_bytes,
                    run_for,
                    seed,
                };
                lsm::start(way, clock)
            }
            DeletionSpec::Spill {
                dir,
                file_bytes,
                parallel,
                pause,
                run_for,
                seed,
            } => {
                let way = spill::Way {
                    dir,
                    file_bytes,
                    parallel,
                    pause,
                    run_for,
                    seed,
                };
                spill::start(way, clock)
            }
            DeletionSpec::Fstrim { dir } => fstrim::start(dir, clock),
            DeletionSpec::Discard {
                device,
                path,
                start,
                len,
                step_bytes,
            } => {
                let range = discard::Range {
                    device,
                    path,
                    start,
                    len,
                    step_bytes,
                };
                discard::start(range, clock)
            }
            DeletionSpec::Command { argv, paths } => {
                command::start(argv, look_at_all(paths)?, clock)
            }
            DeletionSpec::Event { occasion, dir } => event::start(occasion, dir, clock),
        }
    }
}
