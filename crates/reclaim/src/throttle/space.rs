//! How full the file system is: a full disk relaxes the goal.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use pace::Space;

/// The time between two looks at the file system.
const EVERY: Duration = Duration::from_millis(250);

/// Looks at a file system's free space from time to time.
#[derive(Debug, Clone, Default)]
pub(super) struct SpaceWatch {
    /// Freeing gives the file system space.
    pub(super) matters: bool,
    /// The free space when it was last looked at.
    pub(super) last: Option<Space>,
    at: Option<Instant>,
}

impl SpaceWatch {
    /// Begins. `matters`: what is freed gives the file system space; otherwise nothing is looked
    /// at.
    pub(super) fn new(matters: bool) -> SpaceWatch {
        SpaceWatch {
            matters,
            ..SpaceWatch::default()
        }
    }

    /// Looks at the file system of an open directory if it is time.
    pub(super) fn look(&mut self, on: impl AsFd) {
        if !self.matters || self.at.is_some_and(|at| at.elapsed() < EVERY) {
            return;
        }
        self.at = Some(Instant::now());
        self.last = rustix::fs::fstatvfs(on).ok().map(|stat| Space {
            free: stat.f_bavail.saturating_mul(stat.f_frsize),
            size: stat.f_blocks.saturating_mul(stat.f_frsize),
        });
    }
}
