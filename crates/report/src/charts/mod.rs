//! What is drawn, thinned to what an eye or a browser can take: the same points
//! for the HTML report and for the SVGs.

mod cost;
mod curves;
mod heat;
mod spans;
mod time;

pub(crate) use cost::{Cost, cost};
pub(crate) use curves::{Curve, Curves, curves, points, response, shares};
pub(crate) use heat::{Heat, heat};
pub(crate) use spans::{Kind, Moment, Spans, spans};
pub(crate) use time::{Chart, Line, Unit, over_time};

/// A figure with six significant digits: more were not measured, and would be
/// most of a report's bytes.
pub(crate) fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // Powers of ten below 1 are not exact, so they are divided by, not multiplied with.
    let digits = 5 - value.abs().log10().floor() as i32;
    let scale = 10_f64.powi(digits.abs());
    let rounded = if digits >= 0 {
        (value * scale).round() / scale
    } else {
        (value / scale).round() * scale
    };
    if rounded.is_finite() { rounded } else { value }
}

/// A moment to the microsecond.
pub(crate) fn moment(at_s: f64) -> f64 {
    let rounded = (at_s * 1e6).round() / 1e6;
    if rounded.is_finite() { rounded } else { at_s }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_six_digits() {
        assert_eq!(short(123_456_789.0), 123_457_000.0);
        assert_eq!(short(0.001_234_567_8), 0.001_234_57);
        assert_eq!(short(-5.0), -5.0);
        assert_eq!(short(1e300), 1e300);
        assert_eq!(short(1e-320), 1e-320);
        assert!(short(f64::NAN).is_nan());
        assert_eq!(moment(61.400_000_4), 61.4);
    }
}
