//! The threads of tasks, and the stopwatch that their parts are timed with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::lanes;
use super::shared::Shared;
use super::spec::ActorSpec;
use crate::error::LoadError;
use crate::pattern::scramble;
use crate::task::TaskSpec;

/// Starts a thread for each chain in flight.
pub(super) fn start(
    spec: &ActorSpec,
    task: &TaskSpec,
    shared: &Arc<Shared>,
    stop: &AtomicBool,
) -> Result<Vec<String>, LoadError> {
    let tasks = (0..spec.arrival.depth()).map(|lane| {
        if stop.load(Ordering::Relaxed) {
            return Err(LoadError::Stopped);
        }
        let seed = scramble(spec.seed).wrapping_add(u64::from(lane));
        (task.kind.start)(task, lane, seed, stop)
    });
    let tasks = tasks.collect::<Result<Vec<_>, LoadError>>()?;
    lanes::start(spec, shared, tasks)?;
    Ok(Vec::new())
}
