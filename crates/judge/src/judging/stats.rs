//! Medians, means and slopes: the judge's and the comparisons'.

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
}
