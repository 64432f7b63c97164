//! The marks with which a person begins and ends an event: Enter, or SIGUSR1.

use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use signal_hook::consts::SIGUSR1;
use signal_hook::iterator::Signals;

/// A counter that every mark raises by one, from now on.
///
/// # Errors
/// When SIGUSR1 can't be watched for, or no thread can be started.
pub(crate) fn counter() -> io::Result<Arc<AtomicU32>> {
    let marks = Arc::new(AtomicU32::new(0));
    let mut signals = Signals::new([SIGUSR1])?;
    let by_signal = Arc::clone(&marks);
    let thread = |name: &str| std::thread::Builder::new().name(name.to_owned());
    thread("marks:signal").spawn(move || {
        for _ in &mut signals {
            by_signal.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    let by_key = Arc::clone(&marks);
    thread("marks:enter").spawn(move || {
        // Its end (no input, as in a cron job) is no mark.
        for _ in io::stdin().lock().lines().map_while(Result::ok) {
            by_key.fetch_add(1, Ordering::Relaxed);
        }
    })?;
    Ok(marks)
}
