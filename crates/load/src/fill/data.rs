//! Data that nothing below can make smaller: neither compression nor deduplication.

use crate::pattern::scramble;

/// Overwrites the buffer with the data that belongs at byte `at` of the stream
/// with this seed. Two buffers are alike only if both numbers are.
///
/// Gigabytes per second on one core: no device of today waits for it.
pub(crate) fn incompressible(seed: u64, at: u64, buffer: &mut [u8]) {
    // One is mixed before the other is added, and the sum once more: neither
    // exchanging the two nor moving both by the same amount gives the same data.
    let seed = scramble(scramble(seed).wrapping_add(at));
    fastrand::Rng::with_seed(seed).fill(buffer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_and_place_has_data_of_its_own() {
        let places = [0, 1, 2, 1 << 20, 2 << 20, 1 << 40];
        let mut seen = std::collections::HashSet::new();
        for seed in places {
            for at in places {
                let mut data = [0; 16];
                incompressible(seed, at, &mut data);
                assert!(seen.insert(data), "seed {seed}, byte {at}");
            }
        }
    }
}
