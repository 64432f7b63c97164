//! The operations on the sets.

use std::ops::Range;

use fastrand::Rng;

/// Blocks of the volume: 10 TiB of 4 KiB.
pub(crate) const VOLUME: u64 = (10 << 40) / 4096;
/// Blocks of an operation: 32 KiB.
const LENGTH: u64 = 8;

/// Where operations go.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Where {
    /// Nine in ten to a tenth of the volume.
    Skewed,
    /// Anywhere.
    Uniform,
}

/// Steps of a workload.
pub(crate) enum Step {
    Insert(Range<u64>),
    Remove(Range<u64>),
}

fn anywhere(rng: &mut Rng, place: Where) -> Range<u64> {
    let hot = matches!(place, Where::Skewed) && rng.u8(..10) > 0;
    let volume = if hot { VOLUME / 10 } else { VOLUME };
    let start = rng.u64(..volume / LENGTH) * LENGTH;
    start..start + LENGTH
}

/// Frees at random places.
pub(crate) fn random(place: Where, operations: usize) -> Vec<Step> {
    let rng = &mut Rng::with_seed(1);
    let step = || Step::Insert(anywhere(rng, place));
    std::iter::repeat_with(step).take(operations).collect()
}

/// Frees one after the other, with a gap now and then, as a large file goes.
pub(crate) fn sequential(operations: usize) -> Vec<Step> {
    let start = |at: usize| (at as u64 + at as u64 / 32) * LENGTH % VOLUME;
    let step = |at| Step::Insert(start(at)..start(at) + LENGTH);
    (0..operations).map(step).collect()
}

/// Frees and allocations in turn.
pub(crate) fn mixed(place: Where, operations: usize) -> Vec<Step> {
    let rng = &mut Rng::with_seed(2);
    let step = |at| match at % 2 {
        0 => Step::Insert(anywhere(rng, place)),
        _ => Step::Remove(anywhere(rng, place)),
    };
    (0..operations).map(step).collect()
}
