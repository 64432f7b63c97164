//! The charts, thinned to as many points as an eye or a browser can take. The HTML
//! report and the SVGs have the same points.

mod cost;
mod curves;
mod heat;
mod spans;
mod time;
mod waits;

pub(crate) use cost::{Cost, cost};
pub(crate) use curves::{Curve, Curves, curves, points, response, shares};
pub(crate) use heat::{Heat, heat};
pub(crate) use spans::{Kind, Moment, Spans, spans};
pub(crate) use time::{Chart, Line, Unit, far_below_the_most, over_time};

/// A figure with six significant digits: more were not measured, and would be
/// most of a report's bytes.
pub(crate) fn short(value: f64) -> f64 {
    // By way of text: powers of ten are not exact, and how inexact depends on the compiler.
    format!("{value:.5e}").parse().unwrap_or(value)
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
        assert_eq!(short(0.0), 0.0);
        assert!(short(f64::NAN).is_nan() && short(f64::INFINITY).is_infinite());
        assert_eq!(moment(61.400_000_4), 61.4);
    }
}
