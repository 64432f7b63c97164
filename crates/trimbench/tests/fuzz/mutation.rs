//! Inputs that nobody thought of: samples with seeded random changes, for parsers that must not
//! panic whatever they read.

use fastrand::Rng;

/// Bytes and words that parsers treat in their own way.
const TELLING: [&[u8]; 22] = [
    b"\0",
    b"\xff",
    b" ",
    b"\n",
    b"\t",
    b":",
    b",",
    b"=",
    b"\\",
    b"\\040",
    b"\\0",
    b"%",
    b"/",
    b"..",
    b"*",
    b"-",
    b"#",
    b"[",
    b"0",
    b"-1",
    b"18446744073709551616",
    b"\xf0\x9f\x98\x80",
];

/// Makes changed inputs, the same ones from the same seed.
#[derive(Debug)]
pub(crate) struct Mutations {
    random: Rng,
}

impl Mutations {
    /// A generator of this seed.
    pub(crate) fn new(seed: u64) -> Mutations {
        Mutations {
            random: Rng::with_seed(seed),
        }
    }

    /// A sample with one to eight changes. Parts of the other samples may be put into it. At most
    /// 64 KiB long.
    pub(crate) fn next(&mut self, samples: &[&[u8]]) -> Vec<u8> {
        let mut input = samples[self.random.usize(..samples.len())].to_vec();
        for _ in 0..self.random.usize(1..=8) {
            self.change(&mut input, samples);
        }
        input.truncate(64 << 10);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, samples: &[&[u8]]) {
        let random = &mut self.random;
        let at = random.usize(..=input.len());
        let end = (at + random.usize(..=input.len() / 2)).min(input.len());
        match random.u8(..8) {
            0 => input.truncate(at),
            1 => drop(input.drain(at..end)),
            2 => {
                let copy = input[at..end].to_vec();
                input.splice(at..at, copy);
            }
            3 if at < input.len() => input[at] ^= 1 << random.u8(..8),
            4 if at < input.len() => input[at] = random.u8(..),
            5 => {
                let other = samples[random.usize(..samples.len())];
                let from = random.usize(..=other.len());
                input.splice(at..end, other[from..].iter().copied());
            }
            6 => input.extend((0..random.usize(..64)).map(|_| random.u8(..))),
            _ => {
                let word = TELLING[random.usize(..TELLING.len())];
                input.splice(at..end.min(at + word.len()), word.iter().copied());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_changes() {
        let samples: [&[u8]; 2] = [b"a line of text\n", b""];
        let all = |seed| {
            let mut mutations = Mutations::new(seed);
            (0..200)
                .map(|_| mutations.next(&samples))
                .collect::<Vec<_>>()
        };
        assert_eq!(all(7), all(7));
        assert_ne!(all(7), all(8));
        let changed = all(7)
            .iter()
            .filter(|one| !samples.contains(&one.as_slice()))
            .count();
        assert!(changed > 150, "{changed}");
    }
}
