//! Data that no drive and no file system can compress or has seen before.

/// A buffer with random content.
#[derive(Debug)]
pub(super) struct Data {
    random: fastrand::Rng,
    bytes: Box<[u8]>,
}

impl Data {
    /// So many bytes of it; each seed gives other content.
    pub(super) fn new(len: usize, seed: u64) -> Data {
        let mut data = Data {
            random: fastrand::Rng::with_seed(seed),
            bytes: vec![0; len].into_boxed_slice(),
        };
        data.renew();
        data
    }

    /// The content until it is renewed.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Other content, all of it: where only a part changed, a file system that compresses several
    /// blocks together would gain by the rest. Takes about a microsecond for 8 KiB, so do it
    /// outside of the timed part.
    pub(super) fn renew(&mut self) {
        self.random.fill(&mut self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_stretches_are_alike() {
        let mut seen = std::collections::HashSet::new();
        for seed in 0..4 {
            let mut data = Data::new(4096, seed);
            for _ in 0..8 {
                for stretch in data.bytes().chunks(16) {
                    assert!(seen.insert(stretch.to_vec()), "seed {seed}");
                }
                data.renew();
            }
        }
    }
}
