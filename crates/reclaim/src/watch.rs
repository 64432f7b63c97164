//! Progress for the caller, who can stop a deletion.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::ReclaimError;

/// The progress of a deletion.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Bytes to be freed in all, by allocated blocks; 0 where it isn't known.
    pub total_bytes: u64,
    /// Bytes freed so far.
    pub freed_bytes: u64,
    /// Names removed so far.
    pub names: u64,
    /// Bytes freed whose discards are pending.
    pub debt_bytes: u64,
    /// The controller's estimate of how much longer other I/O waits than before.
    pub added_latency: Option<Duration>,
    /// The file system ran low on free space, so that the goal was lifted.
    pub urgent: bool,
}

/// Receives the progress of a deletion, and decides whether it continues.
pub trait Watch {
    /// Called at least ten times a second. `Break` ends the deletion with
    /// [`ReclaimError::Interrupted`](crate::ReclaimError::Interrupted).
    fn tick(&mut self, progress: &Progress) -> ControlFlow<()>;
}

/// Passes the progress on to `watch`.
///
/// # Errors
/// [`ReclaimError::Interrupted`] if `watch` ends the deletion.
pub(crate) fn tick(watch: &mut dyn Watch, progress: &Progress) -> Result<(), ReclaimError> {
    match watch.tick(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(ReclaimError::Interrupted),
    }
}

/// Calls a [`Watch`] at regular times, however long or short the caller's steps are.
#[derive(Debug, Default)]
pub(crate) struct Beat {
    last: Option<Instant>,
}

/// The time between two calls. It is half of what [`Watch::tick`] promises, because a step takes
/// time as well.
const EVERY: Duration = Duration::from_millis(50);

impl Beat {
    /// Calls `watch` if it is time. The caller calls this before each step.
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`] if `watch` ends the deletion.
    pub(crate) fn tick(
        &mut self,
        watch: &mut dyn Watch,
        progress: &Progress,
    ) -> Result<(), ReclaimError> {
        if self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return Ok(());
        }
        self.last = Some(Instant::now());
        tick(watch, progress)
    }
}

/// Ignores the progress and never stops a deletion.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn tick(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
