//! How old debt was when it was trimmed.

use std::collections::BTreeMap;

/// Classes of ages for each doubling: each is wrong by at most 5 %.
const CLASSES: f64 = 8.0;

/// The ages of trimmed bytes: eight classes for each doubling of the milliseconds.
#[derive(Debug, Default)]
pub(super) struct Ages {
    bytes: BTreeMap<u32, u64>,
}

impl Ages {
    /// Learns that this many bytes were trimmed at this age, in milliseconds.
    pub(super) fn add(&mut self, bytes: u64, age_ms: u64) {
        let class = ((age_ms.max(1) as f64).log2() * CLASSES).round() as u32;
        *self.bytes.entry(class).or_default() += bytes;
    }

    /// The age that this share of the bytes had at most, in seconds.
    pub(super) fn at_most(&self, share: f64) -> Option<f64> {
        let all: u64 = self.bytes.values().sum();
        let mut sum = 0;
        self.bytes.iter().find_map(|(&class, bytes)| {
            sum += bytes;
            (sum as f64 >= all as f64 * share).then(|| (f64::from(class) / CLASSES).exp2() / 1e3)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_count_by_bytes() {
        let mut ages = Ages::default();
        assert_eq!(ages.at_most(0.5), None);
        ages.add(90 << 20, 2_000);
        ages.add(10 << 20, 60_000);
        let of = |share| ages.at_most(share).unwrap();
        assert!((1.9..2.1).contains(&of(0.5)), "{}", of(0.5));
        assert!((57.0..63.0).contains(&of(0.99)), "{}", of(0.99));
    }
}
