//! The end of a run that takes too long, or that the user stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks at the clock and at the request to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Ends a run when the user stops it, or when the time is up.
pub(super) struct Timer {
    /// Raised when the run is to end.
    pub(super) stop: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Timer {
    pub(super) fn start(asked: Arc<AtomicBool>, deadline: Instant) -> Timer {
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::new(AtomicBool::new(false));
        let (its_stop, its_over) = (Arc::clone(&stop), Arc::clone(&over));
        let watch = move || {
            while !its_over.load(Ordering::Relaxed) {
                if asked.load(Ordering::Relaxed) || Instant::now() >= deadline {
                    its_stop.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(LOOK);
            }
        };
        Timer {
            stop,
            over,
            thread: Some(std::thread::spawn(watch)),
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
