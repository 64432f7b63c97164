//! Measures `BlockSet` beside other sets of ranges, and beside the queues of a 2008 text.
//!
//! Run by `make bench-extents`. The sets take turns, round after round, so that a drift of the
//! machine meets all of them. Medians, with the range beside them.

mod queues;
mod sets;
mod workload;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// Counts what the sets allocate.
#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes in use.
fn allocated() -> usize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated - stats.bytes_deallocated
}

fn main() {
    // `cargo test` runs benches, too, with this argument missing.
    let full = std::env::args().any(|word| word == "--bench");
    let rounds = if full { 5 } else { 1 };
    let operations = if full { 1_000_000 } else { 2_000 };
    println!("A volume of 10 TiB in 4 KiB blocks; operations of 32 KiB; ns per operation.\n");
    sets::compare(workload::Where::Skewed, operations, rounds);
    sets::compare(workload::Where::Uniform, operations * 5, rounds.min(3));
    queues::compare(operations / 10, rounds);
}

/// The median of some figures, and their range.
fn median(mut figures: Vec<f64>) -> (f64, f64, f64) {
    figures.sort_by(f64::total_cmp);
    let last = figures.len() - 1;
    (figures[last / 2], figures[0], figures[last])
}
