//! Freeing space beside the foreground: the deletion under test.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::num::{NonZeroU32, NonZeroU64};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, Nanos};
use crate::error::LoadError;

mod command;
mod discard;
mod progress;
mod truncate;
mod unlink;

use progress::{Call, Progress};

/// What to delete, and how.
#[derive(Debug, Clone)]
pub enum DeletionSpec {
    /// `unlink` of each file, several at a time.
    Unlink {
        /// The files.
        paths: Vec<PathBuf>,
        /// Threads that take files from the list.
        parallel: NonZeroU32,
    },
    /// What slowrm does: cut each file from its tail in chunks, then unlink it.
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
    /// An outside program, run without a shell in a process group of its own.
    Command {
        /// Program and arguments; an argument `{}` is replaced by each path in
        /// turn, one run per path; without one, all paths are appended and it runs once.
        argv: Vec<OsString>,
        /// The files.
        paths: Vec<PathBuf>,
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
}

/// How far a deletion is; may be asked for at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeletionProgress {
    /// When the first call began.
    pub began_at: Option<Nanos>,
    /// When the last call returned; `None` until all is done.
    pub returned_at: Option<Nanos>,
    /// Bytes to be freed in all, by allocated blocks (raw device: by length).
    pub total_bytes: u64,
    /// Bytes handed over to be freed so far. Counted when a call begins;
    /// for an outside program, when its effect is seen.
    pub freed_bytes: u64,
    /// Files to be deleted in all; 0 on a raw device.
    pub files_total: u64,
    /// Files gone so far.
    pub files_done: u64,
    /// Calls that failed.
    pub errors: u64,
    /// When the oldest call that hasn't returned began; its age shows a block.
    pub in_call_since: Option<Nanos>,
}

/// How a deletion ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletionOutcome {
    /// The last progress.
    pub progress: DeletionProgress,
    /// The first failed call, in words.
    pub first_error: Option<String>,
    /// Of an outside program: how it ended, and the end of what it said.
    pub command: Option<CommandOutcome>,
    /// Whether it was given up: a call never returned.
    pub abandoned: bool,
}

/// How an outside program ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandOutcome {
    /// Exit code of the first run that failed, else 0; `None` when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The last few KiB of its output and error output.
    pub tail: String,
}

/// A deletion under way, in threads of its own. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Deletion {
    progress: Arc<Progress>,
}

impl Deletion {
    /// Reads the files' allocated sizes, then begins.
    ///
    /// A file's space is only freed when nobody holds it open and its last
    /// name goes: a name beside which others stay counts as 0 bytes.
    ///
    /// # Errors
    /// [`LoadError::File`] when a path can't be looked at, [`LoadError::Spec`]
    /// when there is nothing to delete, [`LoadError::System`].
    /// Failures of the deletion itself are counted in its progress.
    pub fn start(spec: DeletionSpec, clock: Clock) -> Result<Deletion, LoadError> {
        let progress = match spec {
            DeletionSpec::Unlink { paths, parallel } => {
                unlink::start(Victim::look_at_all(paths)?, parallel, clock)?
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
                truncate::start(Victim::look_at_all(paths)?, way, clock)?
            }
            DeletionSpec::Command { argv, paths } => {
                command::start(argv, Victim::look_at_all(paths)?, clock)?
            }
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
                discard::start(range, clock)?
            }
        };
        Ok(Deletion { progress })
    }

    /// How far it is. Never waits.
    pub fn progress(&self) -> DeletionProgress {
        self.progress.read()
    }

    /// Whether all of it has returned.
    pub fn is_done(&self) -> bool {
        self.progress.is_done()
    }

    /// Tells it to begin no further call, and ends an outside program (SIGTERM,
    /// then SIGKILL after two seconds). Returns at once.
    pub fn stop(&self) {
        self.progress.stop();
    }

    /// Waits until it is done, at most `grace`, and says how it ended. Doesn't
    /// stop it before that; threads still blocked then are abandoned.
    pub fn finish(self, grace: Duration) -> DeletionOutcome {
        let done = self.progress.wait(grace);
        self.progress.outcome(!done)
    }
}

impl Drop for Deletion {
    fn drop(&mut self) {
        self.progress.stop();
    }
}

/// A file to be deleted, and what that frees.
#[derive(Debug)]
struct Victim {
    path: PathBuf,
    /// Allocated bytes that go with this name.
    bytes: u64,
}

/// `st_blocks` counts in these, whatever the file system's block size (stat(2)).
const STAT_BLOCK: u64 = 512;

impl Victim {
    fn look_at_all(paths: Vec<PathBuf>) -> Result<Vec<Victim>, LoadError> {
        if paths.is_empty() {
            return Err(LoadError::Spec {
                actor: "deletion".into(),
                what: "there is no file to delete".into(),
            });
        }
        // Names seen per inode: its space goes with the last of them.
        let mut names: HashMap<(u64, u64), u64> = HashMap::new();
        let look = |path: PathBuf| {
            let stat = path.symlink_metadata().map_err(|source| LoadError::File {
                path: path.clone(),
                what: "look at it",
                source,
            })?;
            let seen = names.entry((stat.dev(), stat.ino())).or_default();
            *seen += 1;
            let last_name = *seen >= stat.nlink() || stat.is_dir();
            let bytes = if last_name {
                stat.blocks() * STAT_BLOCK
            } else {
                0
            };
            Ok(Victim { path, bytes })
        };
        paths.into_iter().map(look).collect()
    }
}

/// Starts one of the deleter's threads, which counts as running until it ends.
fn spawn(
    progress: &Arc<Progress>,
    work: impl FnOnce(&Progress, Call<'_>) + Send + 'static,
) -> Result<(), LoadError> {
    let running = progress.enter();
    let spawned = std::thread::Builder::new()
        .name("deleter".into())
        .spawn(move || {
            let progress = running.progress();
            work(progress, progress.call(running.slot()));
        });
    spawned.map(drop).map_err(|source| LoadError::System {
        what: "start a thread",
        source,
    })
}

#[cfg(test)]
mod tests;
