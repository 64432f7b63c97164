//! A log purge: the oldest files go, a few at once, at intervals.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::progress::Progress;
use super::victim::{Victim, total_bytes};
use super::{Method, spawn};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static METHOD: Method = Method {
    name: "purge",
    about: "unlink the oldest files, a few at once and at intervals, as a log purge does",
    continuous: false,
};

/// `victims` come oldest first.
pub(super) fn start(
    victims: Vec<Victim>,
    at_once: NonZeroU32,
    every: Duration,
    clock: Clock,
) -> Result<Arc<Progress>, LoadError> {
    let progress = Progress::new(clock, 1, total_bytes(&victims), victims.len() as u64);
    spawn(&progress, move |progress, call| {
        for batch in victims.chunks(at_once.get() as usize) {
            let began = Instant::now();
            for victim in batch {
                if progress.stopping() {
                    return;
                }
                match call.make(victim.bytes, || std::fs::remove_file(&victim.path)) {
                    Ok(()) => progress.file_done(),
                    Err(error) => progress.fail(&victim.path, "unlink it", &error),
                }
            }
            let last = std::ptr::eq(batch.as_ptr_range().end, victims.as_ptr_range().end);
            if !last {
                // A purge that took longer than that is followed by the next at once.
                progress.pause(every.saturating_sub(began.elapsed()));
            }
        }
    })?;
    Ok(progress)
}
