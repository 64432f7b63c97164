//! Learns the cost of discards here by their size: pure.

/// Sizes from 4 KiB up, each class twice the one before.
const CLASSES: usize = 22;
const SMALLEST: u64 = 4096;

/// A discard takes at most this many times as long as one of the next known smaller class, because
/// each has a part that doesn't grow.
const STEEPEST: u64 = 4;

/// The weight of a new figure in the mean.
const WEIGHT: f64 = 0.3;

/// Mean seconds of a discard for each class of sizes.
#[derive(Debug, Clone, Default)]
pub(super) struct Costs([Option<f64>; CLASSES]);

fn class(bytes: f64) -> usize {
    let log = (bytes / SMALLEST as f64).max(1.0).log2();
    (log as usize).min(CLASSES - 1)
}

impl Costs {
    /// Learns from `discards` discards of `bytes` bytes together that took `seconds`.
    pub(super) fn learn(&mut self, discards: u64, bytes: u64, seconds: f64) {
        if discards == 0 {
            return;
        }
        let mean = &mut self.0[class(bytes as f64 / discards as f64)];
        let one = seconds / discards as f64;
        *mean = Some(mean.map_or(one, |known| known + WEIGHT * (one - known)));
    }

    /// Returns how long `discards` discards of `bytes` bytes together take, in seconds. A known
    /// larger class bounds it; without one, a known smaller class does, because the time grows no
    /// faster than the size. `None` if no class is known.
    pub(super) fn predict(&self, discards: u64, bytes: u64) -> Option<f64> {
        if discards == 0 {
            return Some(0.0);
        }
        let own = class(bytes as f64 / discards as f64);
        if let Some(larger) = self.0[own..].iter().flatten().next() {
            return Some(larger * discards as f64);
        }
        let known = self.0[..own].iter().rposition(Option::is_some)?;
        let times = (1u64 << (own - known)).min(STEEPEST);
        Some(self.0[known]? * times as f64 * discards as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_size() {
        let mut costs = Costs::default();
        assert_eq!(costs.predict(5, 5 << 20), None);
        assert_eq!(costs.predict(0, 0), Some(0.0));
        costs.learn(0, 0, 1.0);
        costs.learn(1, 128 << 20, 0.002);
        assert_eq!(
            costs.predict(100, 400 << 10),
            Some(0.2),
            "bounded by larger ones"
        );
        costs.learn(100, 400 << 10, 0.1);
        assert_eq!(costs.predict(100, 400 << 10), Some(0.1));
        assert_eq!(costs.predict(2, 256 << 20), Some(0.004), "known");
        assert_eq!(costs.predict(1, 256 << 20), Some(0.004));
        assert_eq!(costs.predict(1, 4 << 30), Some(0.008));
    }
}
