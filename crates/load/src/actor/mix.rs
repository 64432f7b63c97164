//! Which series the next operation on blocks belongs to.

use super::blocks::{Blocks, Op};
use crate::pattern::scramble;

/// Draws reads and writes by their ratio, from a generator of its own. Two
/// instructions where there is nothing to draw.
#[derive(Debug)]
pub(super) struct Mix {
    rng: fastrand::Rng,
    /// Draws below it are reads.
    reads_below: u64,
}

/// Draws are 32 bits.
const ALL: u64 = 1 << 32;

/// The kind of an operation, once it is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

impl Mix {
    pub(super) fn new(blocks: &Blocks, seed: u64) -> Mix {
        let reads_below = match blocks.op {
            Op::Read | Op::Nop => ALL,
            Op::Write | Op::Append => 0,
            Op::Mixed { read_percent } => ALL * u64::from(read_percent) / 100,
        };
        Mix {
            // Not the generator of the offsets: which blocks are read must not
            // depend on where they lie.
            rng: fastrand::Rng::with_seed(scramble(!seed)),
            reads_below,
        }
    }

    /// The next one.
    #[inline]
    pub(super) fn draw(&mut self) -> Direction {
        let reads = match self.reads_below {
            0 => false,
            ALL => true,
            below => u64::from(self.rng.u32(..)) < below,
        };
        if reads {
            Direction::Read
        } else {
            Direction::Write
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mix(op: Op, seed: u64) -> Mix {
        Mix::new(
            &Blocks {
                op,
                ..Blocks::READS
            },
            seed,
        )
    }

    fn reads(op: Op, seed: u64, n: u32) -> u32 {
        let mut mix = mix(op, seed);
        (0..n)
            .map(|_| u32::from(mix.draw() == Direction::Read))
            .sum()
    }

    #[test]
    fn what_is_no_mix_has_nothing_to_draw() {
        for (op, expected) in [(Op::Read, 1_000), (Op::Write, 0), (Op::Append, 0)] {
            assert_eq!(reads(op, 1, 1_000), expected);
        }
    }

    #[test]
    fn one_seed_one_order() {
        let run = |seed| {
            let mut mix = mix(Op::Mixed { read_percent: 50 }, seed);
            (0..100).map(|_| mix.draw()).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    proptest! {
        #[test]
        fn the_ratio_holds_within_binomial_noise(read_percent in 1..=99u8, seed: u64) {
            let n = 20_000;
            let p = f64::from(read_percent) / 100.0;
            let expected = f64::from(n) * p;
            let deviation = (expected * (1.0 - p)).sqrt();
            let seen = f64::from(reads(Op::Mixed { read_percent }, seed, n));
            // Six standard deviations: one in a thousand million.
            prop_assert!((seen - expected).abs() <= 6.0 * deviation, "{seen} of {expected}");
        }

        #[test]
        fn draws_in_a_row_are_independent(seed: u64) {
            // Of 20,000 pairs at one half, a quarter are two reads.
            let mut mix = mix(Op::Mixed { read_percent: 50 }, seed);
            let n = 20_000;
            let pairs = (0..n).filter(|_| {
                let both = [mix.draw(), mix.draw()];
                both == [Direction::Read; 2]
            });
            let seen = pairs.count() as f64;
            let expected = f64::from(n) / 4.0;
            prop_assert!((seen - expected).abs() <= 6.0 * (expected * 0.75).sqrt());
        }
    }
}
