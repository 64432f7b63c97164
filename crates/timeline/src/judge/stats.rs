//! Medians, slopes and bootstrap intervals: the judge's and the comparisons'.

/// The median; `None` of nothing. NaNs must have been left out.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    // Seven digits are more than any figure here has, and a long record has many values.
    let mut sorted: Vec<f32> = values.into_iter().map(|v| v as f32).collect();
    if sorted.is_empty() {
        return None;
    }
    let half = sorted.len() / 2;
    let even = sorted.len().is_multiple_of(2);
    let (below, &mut upper, _) = sorted.select_nth_unstable_by(half, f32::total_cmp);
    let lower = below
        .iter()
        .copied()
        .max_by(f32::total_cmp)
        .filter(|_| even);
    Some((f64::from(upper) + f64::from(lower.unwrap_or(upper))) / 2.0)
}

/// The sum; an absurd file's bytes stop at 2^64 − 1.
pub(super) fn total(values: impl IntoIterator<Item = u64>) -> u64 {
    values.into_iter().fold(0, u64::saturating_add)
}

/// The arithmetic mean; `None` of nothing.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// How steady a stretch is: how much a least-squares line through evenly spaced values changes over
/// their whole length, as a share of their mean. Infinite when the mean is 0.
pub fn drift(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let Some(mean) = mean(values).filter(|&m| m > 0.0) else {
        return f64::INFINITY;
    };
    if values.len() < 2 {
        return 0.0;
    }
    let middle = (n - 1.0) / 2.0;
    let (mut xy, mut xx) = (0.0, 0.0);
    for (i, value) in values.iter().enumerate() {
        let x = i as f64 - middle;
        xy += x * (value - mean);
        xx += x * x;
    }
    (xy / xx * n / mean).abs()
}

/// How often the bootstrap resamples.
pub(crate) const RESAMPLES: usize = 1000;

/// A loss, as a share of the baseline, with its 95 % bootstrap interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Loss {
    /// 1 − mean while discarding ÷ mean of the baseline: the throughput it costs.
    /// (Means, because the median of twenty scattered values scatters a quarter more.)
    pub(super) share: f64,
    /// Lower end of the interval.
    pub(super) low: f64,
    /// Upper end.
    pub(super) high: f64,
}

impl Loss {
    /// The smallest loss that would have been told from noise.
    pub(super) fn detectable(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// Most values that are resampled.
pub(crate) const MOST: usize = 300;

/// Fewer values than this don't tell their own spread; the baseline's is taken.
const ENOUGH: usize = 5;

/// The loss of `active` rates against `baseline` rates. Always the same for
/// the same figures: the resampling has a fixed seed.
pub(super) fn loss(baseline: &[f32], active: &[f32]) -> Option<Loss> {
    let all = |values: &[f32]| {
        let sum = values.iter().fold(0.0, |sum, &v| sum + f64::from(v));
        (!values.is_empty()).then(|| sum / values.len() as f64)
    };
    let base = all(baseline).filter(|&b| b > 0.0)?;
    let now = all(active)?;
    let (baseline, active) = (&thinned(baseline)[..], &thinned(active)[..]);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut resampled =
        |of: &[f64], n: usize| (0..n).fold(0.0, |sum, _| sum + random.pick(of)) / n as f64;
    let mut losses: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let then = resampled(baseline, baseline.len());
            let now = if active.len() < ENOUGH {
                // Scatter of the baseline around its own mean, laid on theirs.
                now + resampled(baseline, active.len()) - base
            } else {
                resampled(active, active.len())
            };
            if then > 0.0 { 1.0 - now / then } else { 0.0 }
        })
        .collect();
    let (low, high) = middle_95(&mut losses)?;
    Some(Loss {
        share: 1.0 - now / base,
        low,
        high,
    })
}

/// The bounds of the middle 95 %, each as far from its end; `None` of nothing.
pub(crate) fn middle_95(values: &mut [f64]) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let cut = values.len() / 40;
    Some((*values.get(cut)?, *values.get(values.len() - 1 - cut)?))
}

/// At most [`MOST`] of the values, evenly spread: more would only narrow an
/// interval that is narrow already, and take minutes to resample.
fn thinned(values: &[f32]) -> Vec<f64> {
    let n = values.len().min(MOST);
    (0..n)
        .map(|i| f64::from(values[i * values.len() / n]))
        .collect()
}

/// SplitMix64: small, good enough to resample with, and the same everywhere.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of `0..n`; `n` is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// One of these, of which there are some.
    pub(crate) fn pick<'a>(&mut self, from: &'a [f64]) -> &'a f64 {
        &from[self.below(from.len())]
    }

    /// Between 0 and 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_drift() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert!(drift(&[100.0; 10]) < 1e-9);
        let falling: Vec<f64> = (0..10).map(|i| 104.5 - f64::from(i)).collect();
        assert!((drift(&falling) - 0.1).abs() < 1e-9, "{}", drift(&falling));
        assert_eq!(drift(&[0.0; 5]), f64::INFINITY);
    }

    #[test]
    fn a_loss_is_told_from_noise() {
        let noisy = |mean: f32| -> Vec<f32> {
            (0..20)
                .map(|i| mean * (1.0 + 0.05 * (i % 5 - 2) as f32 / 2.0))
                .collect()
        };
        let same = loss(&noisy(100.0), &noisy(100.0)).unwrap();
        assert!(same.low <= 0.0 && same.high >= 0.0, "{same:?}");
        assert!(same.detectable() < 0.1);
        let lower = loss(&noisy(100.0), &noisy(80.0)).unwrap();
        assert!(
            (lower.share - 0.2).abs() < 1e-5 && lower.low > 0.1,
            "{lower:?}"
        );
        assert_eq!(
            loss(&noisy(100.0), &noisy(80.0)),
            loss(&noisy(100.0), &noisy(80.0))
        );
        // One value in wild noise says nothing.
        let wild: Vec<f32> = (0..20)
            .map(|i| if i % 2 == 0 { 50.0 } else { 150.0 })
            .collect();
        assert!(loss(&wild, &[80.0]).unwrap().low < 0.0);
        assert_eq!(loss(&[], &[1.0]), None);
        assert_eq!(loss(&[1.0], &[]), None);
        assert_eq!(loss(&[0.0], &[1.0]), None);
    }
}
