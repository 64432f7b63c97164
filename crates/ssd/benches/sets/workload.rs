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

/// Half of the operations are frees. Then an allocation of what was freed some time before and
/// another free take turns.
pub(crate) fn mixed(place: Where, operations: usize) -> Vec<Step> {
    let rng = &mut Rng::with_seed(2);
    let mut freed: Vec<Range<u64>> = Vec::with_capacity(operations);
    let step = |at| {
        if at > operations / 2 && at % 2 == 1 {
            let chosen = rng.usize(..freed.len());
            return Step::Remove(freed.swap_remove(chosen));
        }
        freed.push(anywhere(rng, place));
        Step::Insert(freed[freed.len() - 1].clone())
    };
    (0..operations).map(step).collect()
}
