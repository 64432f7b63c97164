//! The cost that trimbench adds to each I/O on this machine: a clock reading, and recording.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::meter::Meter;

/// Costs of one I/O, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overhead {
    /// Where [`Clock`] reads the time: `tsc` or `clock_gettime`.
    pub source: &'static str,
    /// One reading of [`Clock`].
    pub clock_ns: f64,
    /// One reading of the kernel's clock through the C library.
    pub kernel_clock_ns: f64,
    /// Recording an operation: its beginning, its end and its latency.
    pub record_ns: f64,
}

/// Runs of each measurement; the fastest counts, since an interruption only adds.
const RUNS: u32 = 5;
/// Repetitions in a run.
const TIMES: u32 = 200_000;

/// Measures the costs on this thread, in about a tenth of a second.
pub fn measure(clock: &Clock) -> Overhead {
    let meter = Meter::new(1, 1, 4096, false);
    let lane = &meter.lanes()[0];
    let now = clock.now();
    Overhead {
        source: clock.source(),
        clock_ns: fastest(|_| {
            black_box(clock.now());
        }),
        kernel_clock_ns: fastest(|_| {
            black_box(Instant::now());
        }),
        record_ns: fastest(|i| {
            let slot = &lane.slots[0];
            slot.begin(black_box(now), black_box(now));
            slot.end();
            // Not always the same counter.
            lane.response
                .add(black_box(50_000 + u64::from(i % 4096)), 1);
        }),
    }
}

fn fastest(mut once: impl FnMut(u32)) -> f64 {
    let runs = (0..RUNS).map(|_| {
        let began = Instant::now();
        (0..TIMES).for_each(&mut once);
        began.elapsed()
    });
    let best = runs.min().unwrap_or(Duration::ZERO);
    best.as_nanos() as f64 / f64::from(TIMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cost_is_there() {
        let overhead = measure(&Clock::start());
        let costs = [
            overhead.clock_ns,
            overhead.kernel_clock_ns,
            overhead.record_ns,
        ];
        assert!(costs.iter().all(|&ns| ns > 0.0), "{overhead:?}");
    }
}
