//! Freeing space beside the foreground: the deletion under test.
//!
//! Most ways delete files that are there and are done with the last of them.
//! The continuous ones ([`Method::is_continuous`]) make what they drop,
//! until their time is over.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Clock, Nanos};
use crate::error::LoadError;
use crate::workers::Workers;

mod asked;
mod command;
mod discard;
mod emptied;
mod event;
mod fstrim;
mod lsm;
mod progress;
mod punch;
mod purge;
mod space;
mod spec;
mod spill;
mod swap;
mod truncate;
mod unlink;
mod victim;
mod workshop;

pub use asked::AskedDeletion;
use progress::{Call, Progress};
pub use punch::End;
pub use space::FreeSpace;
pub use spec::*;

/// How far a deletion is; may be asked for at any time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DeletionProgress {
    /// When the first call began.
    pub began_at: Option<Nanos>,
    /// When the last call returned; `None` until all is done.
    pub returned_at: Option<Nanos>,
    /// Bytes to be freed in all, by allocated blocks (raw device: by length);
    /// 0 where that isn't known: of a continuous deletion, and of `FITRIM`.
    pub total_bytes: u64,
    /// Bytes handed over to be freed so far. Counted when a call begins;
    /// for an outside program or an event, when its effect is seen; for `FITRIM`,
    /// when it returns.
    pub freed_bytes: u64,
    /// Bytes that a continuous deletion has written so far; 0 of the others.
    pub written_bytes: u64,
    /// Files to be deleted in all; 0 on a raw device, and where it isn't known.
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
    /// The exit of an outside program, and the end of its output.
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

impl CommandOutcome {
    /// How it failed, with the last that it printed; `None` if it succeeded.
    pub fn failure(&self) -> Option<String> {
        if self.code == Some(0) {
            return None;
        }
        let how = crate::child::ended(self.code, self.signal);
        Some(match self.tail.trim() {
            "" => how,
            tail => format!("{how} with: {tail}"),
        })
    }
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
        spec.method.check(&spec.files)?;
        let progress = spec.method.start(spec.files, clock)?;
        Ok(Deletion { progress })
    }

    /// How far it is. Never waits.
    pub fn progress(&self) -> DeletionProgress {
        self.progress.read()
    }

    /// The threads and programs that delete.
    pub fn workers(&self) -> &Workers {
        self.progress.workers()
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

/// A spec that can't be done, in words that say what to give instead.
fn refuse(what: impl Into<String>) -> LoadError {
    LoadError::Spec {
        actor: "deletion".into(),
        what: what.into(),
    }
}

/// Starts the threads that delete, one for each slot of the progress. It is over when they are.
fn spawn(
    progress: Arc<Progress>,
    work: impl Fn(&Progress, Call<'_>) + Send + Sync + 'static,
) -> Result<Arc<Progress>, LoadError> {
    // Held until all are started, so that the first doesn't end the deletion alone.
    let all_started = progress.hold();
    let work = Arc::new(work);
    for _ in 0..progress.slots() {
        let work = work.clone();
        let started = spawn_beside(&progress, move |progress, call| {
            progress.workers().join();
            work(progress, call);
        });
        if let Err(error) = started {
            // Those that were started have nobody else to tell them.
            progress.stop();
            return Err(error);
        }
    }
    // What it has open is closed when the deletion is over.
    drop(work);
    drop(all_started);
    Ok(progress)
}

/// Starts a thread that deletes nothing itself: it waits for a program, or watches it.
fn spawn_beside(
    progress: &Arc<Progress>,
    work: impl FnOnce(&Progress, Call<'_>) + Send + 'static,
) -> Result<(), LoadError> {
    let running = progress.enter();
    let thread = std::thread::Builder::new().name("deleter".into());
    let spawned = thread.spawn(move || {
        let progress = running.progress();
        work(progress, progress.call(running.slot()));
    });
    let started = spawned.map(drop);
    started.map_err(LoadError::system("start a thread"))
}

#[cfg(test)]
mod tests;
