//! The progress that a person sees while space is freed, from the first second on.

use std::time::Duration;

use reclaim::Progress;
use record::units::{bytes, latency_us, seconds};

/// No estimate of the time left before this: it would rest on no rate.
const ESTIMATED: Duration = Duration::from_secs(3);

/// Ends a line of progress: what is not discarded yet, how long other I/O waits, and how long the
/// bytes that are left take at a rate.
pub(crate) fn line(
    mut parts: Vec<String>,
    progress: &Progress,
    left: Option<u64>,
    per_s: f64,
    elapsed: Duration,
) -> String {
    if progress.debt_bytes > 0 {
        parts.push(format!("{} to discard", bytes(progress.debt_bytes)));
    }
    if let Some(added) = progress.added_latency {
        let added = latency_us(added.as_secs_f64() * 1e6);
        parts.push(format!("other I/O waits {added} longer"));
    }
    let left = left.filter(|&left| left > 0 && per_s >= 1.0 && elapsed >= ESTIMATED);
    parts.extend(left.map(|left| format!("{} left", seconds(left as f64 / per_s))));
    parts.join(", ")
}
