//! The end of a run that takes too long, or that the user stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Time between two looks at the clock and at the request to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Ends a run when the user stops it, or when the time is up.
pub(super) struct Timer {
    /// Raised when the run is to end.
    pub(super) stop: Arc<AtomicBool>,
    /// Dropped with the timer, which ends its thread.
    _run: Sender<()>,
}

impl Timer {
    pub(super) fn start(asked: Arc<AtomicBool>, deadline: Instant) -> Timer {
        let stop = Arc::new(AtomicBool::new(false));
        let raised = Arc::clone(&stop);
        let (run, over) = mpsc::channel();
        std::thread::spawn(move || {
            while over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if asked.load(Ordering::Relaxed) || Instant::now() >= deadline {
                    raised.store(true, Ordering::Relaxed);
                }
            }
        });
        Timer { stop, _run: run }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_when_the_user_stops_it_or_the_time_is_up() {
        let (asked, far) = (Arc::new(AtomicBool::new(false)), Duration::from_secs(3600));
        let timer = Timer::start(Arc::clone(&asked), Instant::now() + far);
        assert!(!timer.stop.load(Ordering::Relaxed));
        asked.store(true, Ordering::Relaxed);
        let late = Timer::start(Arc::default(), Instant::now());
        for stop in [&timer.stop, &late.stop] {
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
