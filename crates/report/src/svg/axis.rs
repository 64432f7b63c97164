//! Axes, strokes and colours of charts.

/// Okabe and Ito's colours, which colour-blind people tell apart. A page's dark theme replaces them.
pub(crate) const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

/// Dashes beside them, for prints without colours, in px.
const DASHES: [&[f64]; 4] = [&[], &[8.0, 4.0], &[2.0, 3.0], &[10.0, 3.0, 2.0, 3.0]];

/// A range of values along an axis.
#[derive(Debug, Clone, Copy)]
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) log: bool,
}

impl Axis {
    /// From 0 to somewhat above the highest value.
    pub(super) fn from_zero(values: impl Iterator<Item = f64>) -> Axis {
        let high = values.filter(|v| v.is_finite()).fold(0.0, f64::max);
        Axis::between(0.0, if high > 0.0 { 1.2 * high } else { 1.0 })
    }

    /// From one end to the other.
    pub(super) fn between(low: f64, high: f64) -> Axis {
        let log = false;
        Axis { low, high, log }
    }

    /// Around all values above 0, logarithmic.
    pub(super) fn log_around(values: impl Iterator<Item = f64>) -> Axis {
        let positive = values.filter(|v| v.is_finite() && *v > 0.0);
        let (low, high) = positive.fold((f64::MAX, 0.0), |(low, high): (f64, f64), v| {
            (low.min(v), high.max(v))
        });
        Axis {
            low: low / 1.2,
            high: high * 1.2,
            log: true,
        }
    }

    /// Itself, or where a broken record gives no range, one that can be drawn.
    pub(super) fn sound(self) -> Axis {
        let Axis { low, high, log } = self;
        // The length can overflow where both ends don't.
        if low < high && (high - low).is_finite() && (!log || low > 0.0) {
            return self;
        }
        let (low, high) = if log { (1.0, 10.0) } else { (0.0, 1.0) };
        Axis { low, high, log }
    }

    /// Where a value is: 0 at the low end, 1 at the high one.
    pub(super) fn share(&self, value: f64) -> f64 {
        if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

/// How a line looks; widths and dashes in px.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stroke {
    pub(super) colour: &'static str,
    pub(super) width: f64,
    pub(super) dash: &'static [f64],
}

impl Stroke {
    pub(super) const fn new(colour: &'static str, width: f64, dash: &'static [f64]) -> Stroke {
        Stroke {
            colour,
            width,
            dash,
        }
    }

    /// The colour and dash of the n-th line.
    pub(super) fn nth(n: usize, width: f64) -> Stroke {
        Stroke::new(COLOURS[n % COLOURS.len()], width, DASHES[n % DASHES.len()])
    }

    /// Its attributes where a px has so many units.
    pub(super) fn attributes(&self, per_px: f64) -> String {
        let mut text = format!(
            "stroke=\"{}\" stroke-width=\"{}\"",
            self.colour,
            self.width * per_px
        );
        if !self.dash.is_empty() {
            let dash = self.dash.iter().map(|px| (px * per_px).to_string());
            text += &format!(
                " stroke-dasharray=\"{}\"",
                dash.collect::<Vec<_>>().join(" ")
            );
        }
        text
    }
}
