//! How somebody looks on, and stops it.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use crate::ReclaimError;

/// How far a deletion is.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Bytes to be freed in all, by allocated blocks; 0 where it isn't known.
    pub total_bytes: u64,
    /// Bytes freed so far.
    pub freed_bytes: u64,
    /// Names removed so far.
    pub names: u64,
    /// Bytes freed and still to be discarded.
    pub debt_bytes: u64,
    /// What others wait longer than before, as the controller sees it.
    pub added_latency: Option<Duration>,
    /// Reclaimer space ran low, so that what others may feel was lifted.
    pub urgent: bool,
}

/// Is told how far it is, and says whether to go on.
pub trait Watch {
    /// Called at least ten times a second. `Break` ends the deletion with
    /// [`ReclaimError::Interrupted`](crate::ReclaimError::Interrupted).
    fn tick(&mut self, progress: &Progress) -> ControlFlow<()>;
}

/// Tells how far it is.
///
/// # Errors
/// If it is to end.
pub(crate) fn tick(watch: &mut dyn Watch, progress: &Progress) -> Result<(), ReclaimError> {
    match watch.tick(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(ReclaimError::Interrupted),
    }
}

/// Tells it whenever it is time, however long a step takes and however short.
#[derive(Debug, Default)]
pub(crate) struct Beat {
    last: Option<Instant>,
}

/// Twice as often as [`Watch::tick`] promises: a step takes time, too.
const EVERY: Duration = Duration::from_millis(50);

impl Beat {
    /// To be called before each step.
    ///
    /// # Errors
    /// If it is to end.
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

/// Looks at nothing and never stops it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unwatched;

impl Watch for Unwatched {
    fn tick(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
