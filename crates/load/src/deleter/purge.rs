//! A log purge: the oldest files go, a few at once, at intervals.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::progress::Progress;
use super::spawn;
use super::spec::{Files, How, Way, at_least_one, seconds};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static HOW: How = How {
    name: "purge",
    about: "unlink the oldest few at intervals (logs)",
    keys: &["at-once", "every"],
    of: |asked, _| {
        let (at_once, every) = (asked.at_once(), asked.every());
        Ok(Purge { at_once, every }.into())
    },
    spares_names: true,
    ..How::FILES
};

/// A log's purge: the oldest files, which come first, a few at a time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Purge {
    /// Files at a time.
    pub at_once: u32,
    /// From the beginning of a purge to that of the next.
    #[serde(serialize_with = "seconds", rename = "every_s")]
    pub every: Duration,
}

impl Way for Purge {
    fn check(&self, _: &Files) -> Result<(), LoadError> {
        at_least_one(self.at_once.into())
    }

    fn start(self, files: Files, clock: Clock) -> Result<Arc<Progress>, LoadError> {
        let victims = files.victims()?;
        let progress = Progress::of(clock, 1, &victims);
        spawn(progress, move |progress, call| {
            for batch in victims.chunks(self.at_once as usize) {
                let began = Instant::now();
                for victim in batch {
                    if progress.stopping() {
                        return;
                    }
                    call.unlink(&victim.path, victim.bytes);
                }
                let last = std::ptr::eq(batch.as_ptr_range().end, victims.as_ptr_range().end);
                if !last {
                    // A purge that took longer than that is followed by the next at once.
                    progress.pause(self.every.saturating_sub(began.elapsed()));
                }
            }
        })
    }
}
