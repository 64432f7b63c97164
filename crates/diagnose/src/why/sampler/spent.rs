//! The time that a turn has taken.

use std::time::{Duration, Instant};

/// Time on a processor: on a busy machine far more passes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spent {
    began: Instant,
    before: Duration,
}

impl Spent {
    /// Begins to count.
    pub(super) fn begin() -> Spent {
        Spent {
            began: Instant::now(),
            before: Spent::now(),
        }
    }

    fn now() -> Duration {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(used.tv_sec.max(0) as u64, used.tv_nsec.max(0) as u32)
    }

    /// Returns the time that this thread has used since.
    pub(super) fn spent(self) -> Duration {
        Spent::now().saturating_sub(self.before)
    }

    /// Whether a budget is used up; or ten times as much has passed, so that no turn is very long.
    pub(super) fn is_over(self, budget: Duration) -> bool {
        self.spent() > budget || self.began.elapsed() > budget * 10
    }
}
