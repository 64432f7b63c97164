//! Where the operations go. Pure.

record::kinds! {
    /// The order in which blocks are visited.
    pub enum PatternKind["order"] {
        /// any block, each as likely
        Random = "random",
        /// one after the other
        Sequential = "sequential",
    }
}

/// Byte offsets of blocks in a region, without end.
#[derive(Debug, Clone)]
pub struct Pattern {
    start: u64,
    block_bytes: u64,
    blocks: u64,
    state: State,
}

#[derive(Debug, Clone)]
enum State {
    /// Marsaglia's xorshift64 (2003): three shifts, period 2^64 - 1.
    Random(u64),
    Sequential(u64),
}

impl Pattern {
    /// Whole blocks of `block_bytes` from `start` on, within `len` bytes.
    /// `None` when not one fits.
    pub fn new(
        kind: PatternKind,
        start: u64,
        len: u64,
        block_bytes: u64,
        seed: u64,
    ) -> Option<Pattern> {
        let blocks = len.checked_div(block_bytes).filter(|&blocks| blocks > 0)?;
        let state = match kind {
            // Seeds like 1, 2, 3 must not begin alike, and 0 is a fixed point.
            PatternKind::Random => State::Random(scramble(seed).max(1)),
            PatternKind::Sequential => State::Sequential(0),
        };
        Some(Pattern {
            start,
            block_bytes,
            blocks,
            state,
        })
    }

    /// The next block's offset: a multiply-shift instead of a division.
    #[inline]
    pub fn next_offset(&mut self) -> u64 {
        let block = match &mut self.state {
            State::Random(x) => {
                *x ^= *x << 13;
                *x ^= *x >> 7;
                *x ^= *x << 17;
                ((u128::from(*x) * u128::from(self.blocks)) >> 64) as u64
            }
            State::Sequential(next) => {
                let block = *next;
                *next = if block + 1 == self.blocks {
                    0
                } else {
                    block + 1
                };
                block
            }
        };
        self.start + block * self.block_bytes
    }

    /// Begins a sequential pattern at this share (0 to 1) of the region, so
    /// that several threads don't read the same blocks.
    #[must_use]
    pub fn starting_at(mut self, share: f64) -> Pattern {
        if let State::Sequential(next) = &mut self.state {
            *next = ((self.blocks as f64 * share) as u64).min(self.blocks - 1);
        }
        self
    }
}

/// Numbers that stand at the begin of written blocks, so that no two are alike.
#[derive(Debug)]
pub(crate) struct Stamp(u64);

impl Stamp {
    pub(crate) fn new(seed: u64) -> Stamp {
        Stamp(seed)
    }

    #[inline]
    pub(crate) fn put(&mut self, block: &mut [u8]) {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let len = block.len().min(8);
        block[..len].copy_from_slice(&self.0.to_ne_bytes()[..len]);
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) fn scramble(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn sequential_goes_around() {
        let mut p = Pattern::new(PatternKind::Sequential, 8192, 3 * 4096 + 100, 4096, 0)
            .expect("three blocks");
        let offsets: Vec<u64> = (0..5).map(|_| p.next_offset()).collect();
        assert_eq!(offsets, [8192, 12288, 16384, 8192, 12288]);
    }

    #[test]
    fn random_covers_every_block_about_equally() {
        let blocks = 64;
        let mut p =
            Pattern::new(PatternKind::Random, 0, blocks * 4096, 4096, 3).expect("64 blocks");
        let mut hits = vec![0u32; blocks as usize];
        let n = 64_000;
        for _ in 0..n {
            hits[(p.next_offset() / 4096) as usize] += 1;
        }
        let expected = f64::from(n) / blocks as f64;
        let chi2: f64 = hits
            .iter()
            .map(|&h| (f64::from(h) - expected).powi(2) / expected)
            .sum();
        // 63 degrees of freedom: 99.99 % lie below 117. The seed is fixed.
        assert!(chi2 < 117.0, "chi² {chi2}");
    }

    #[test]
    fn neighbouring_seeds_differ() {
        let first = |seed| {
            Pattern::new(PatternKind::Random, 0, 1 << 40, 4096, seed)
                .expect("fits")
                .next_offset()
        };
        assert_ne!(first(0), first(1));
        assert_eq!(first(5), first(5));
    }

    #[test]
    fn a_region_smaller_than_a_block_has_no_pattern() {
        assert!(Pattern::new(PatternKind::Random, 0, 4095, 4096, 0).is_none());
        assert!(Pattern::new(PatternKind::Random, 0, 4096, 0, 0).is_none());
    }

    proptest! {
        #[test]
        fn offsets_are_aligned_and_inside(
            random in any::<bool>(), start_blocks in 0..1000u64, len in 4096..1u64 << 45, seed: u64,
        ) {
            let kind = if random { PatternKind::Random } else { PatternKind::Sequential };
            let start = start_blocks * 4096;
            let mut p = Pattern::new(kind, start, len, 4096, seed).expect("a block fits");
            for _ in 0..50 {
                let offset = p.next_offset();
                prop_assert_eq!(offset % 4096, 0);
                prop_assert!(offset >= start && offset + 4096 <= start + len);
            }
        }
    }
}
