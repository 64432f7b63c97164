//! `unlink` of each file, several at a time: what `rm` does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use super::progress::Progress;
use super::spawn;
use super::spec::{Files, How, Way, at_least_one};
use crate::clock::Clock;
use crate::error::LoadError;

pub(super) static HOW: How = How {
    name: "unlink",
    about: "unlink the files",
    keys: &["parallel"],
    of: |asked, _| {
        let parallel = asked.parallel();
        Ok(Unlink { parallel }.into())
    },
    spares_names: true,
    ..How::FILES
};

/// `unlink` of each file, several at a time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unlink {
    /// Calls in flight at once.
    pub parallel: u32,
}

impl Way for Unlink {
    fn check(&self, _: &Files) -> Result<(), LoadError> {
        at_least_one(self.parallel.into())
    }

    fn start(self, files: Files, clock: Clock) -> Result<Arc<Progress>, LoadError> {
        let victims = files.victims()?;
        let threads = (self.parallel as usize).min(victims.len());
        let progress = Progress::of(clock, threads, &victims);
        let next = AtomicUsize::new(0);
        spawn(progress, move |progress, call| {
            while !progress.stopping() {
                let Some(victim) = victims.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    return;
                };
                call.unlink(&victim.path, victim.bytes);
            }
        })
    }
}
