//! The waits of a protected control group.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use linux::pressure::Pressure;

/// The time between two looks. The kernel adds up all processors' counters for each.
const EVERY: Duration = Duration::from_millis(50);

/// A control group whose waits for I/O the goal limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protected {
    /// The name by which it was given.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
}

/// Looks from time to time how long the tasks of a control group have waited for I/O.
#[derive(Debug)]
pub(super) struct Group {
    of: Protected,
    at: Option<Instant>,
    waited: Option<Duration>,
}

impl Group {
    pub(super) fn new(of: Protected) -> Group {
        Group {
            of,
            at: None,
            waited: None,
        }
    }

    /// Returns the name by which it was given.
    pub(super) fn name(&self) -> &str {
        &self.of.name
    }

    /// Returns how long they have waited; `None` if the group is gone.
    pub(super) fn waited(&mut self) -> Option<Duration> {
        if self.at.is_none_or(|at| at.elapsed() >= EVERY) {
            self.at = Some(Instant::now());
            let found = Pressure::of_group(&self.of.directory).ok();
            self.waited = found.map(|found| Duration::from_micros(found.some_us));
        }
        self.waited
    }
}
