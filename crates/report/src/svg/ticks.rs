//! Where an axis has its ticks, and what stands beside them.

use crate::charts::Unit;
use crate::html::tables;

/// Round values between two, about so many: multiples of 1, 2 or 5 times a
/// power of ten, or for sizes in binary units powers of two.
pub(super) fn linear(low: f64, high: f64, about: usize, binary: bool) -> Vec<f64> {
    let rough = (high - low) / about.max(1) as f64;
    if !(rough.is_finite() && rough > 0.0) {
        return Vec::new();
    }
    let step = if binary {
        2_f64.powf(rough.log2().ceil()).max(1.0)
    } else {
        let ten = 10_f64.powf(rough.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0];
        let fits = steps.iter().find(|&&step| step * ten >= rough * 0.999);
        ten * fits.copied().unwrap_or(10.0)
    };
    let first = (low / step).ceil();
    (0..=2 * about + 2)
        .map(|i| (first + i as f64) * step)
        .take_while(|&v| v <= high * 1.000_001)
        .collect()
}

/// Powers of ten between two; where those are few, also twice and five times them.
pub(super) fn logarithmic(low: f64, high: f64) -> Vec<f64> {
    let all = |steps: &[f64]| -> Vec<f64> {
        let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
        decades
            .flat_map(|ten| steps.iter().map(move |step| step * 10_f64.powi(ten)))
            .filter(|&v| v >= low * 0.999 && v <= high * 1.001)
            .collect()
    };
    if !(low > 0.0 && high.is_finite()) {
        return Vec::new();
    }
    let tens = all(&[1.0]);
    if tens.len() >= 3 {
        tens
    } else {
        all(&[1.0, 2.0, 5.0])
    }
}

/// A tick's label: its figure without digits that only fill.
pub(super) fn label(unit: Unit, value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if unit == Unit::Count {
        return format!("{value}");
    }
    let text = tables::shown(unit, value);
    text.replace(".0 ", " ").replace(".0/", "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        assert_eq!(linear(0.0, 98_000.0, 5, false), [0.0, 2e4, 4e4, 6e4, 8e4]);
        assert_eq!(linear(61.4, 136.4, 5, false), [80.0, 100.0, 120.0]);
        assert_eq!(linear(0.0, 3.4e9, 4, true).len(), 4);
        assert!(linear(0.0, f64::INFINITY, 5, false).is_empty());
        assert!(linear(1.0, 1.0, 5, false).is_empty());
        assert_eq!(logarithmic(80.0, 12_000.0), [100.0, 1e3, 1e4]);
        assert_eq!(logarithmic(90.0, 600.0), [100.0, 200.0, 500.0]);
        assert!(logarithmic(0.0, 5.0).is_empty());
    }

    #[test]
    fn labels_have_no_idle_digits() {
        assert_eq!(label(Unit::Us, 1000.0), "1 ms");
        assert_eq!(label(Unit::PerSecond, 5.0), "5/s");
        assert_eq!(label(Unit::Bytes, 1073741824.0), "1 GiB");
        assert_eq!(label(Unit::BytesPerSecond, 0.0), "0");
    }
}
