//! A fitted figure: known with its confidence, bounded, or unknown with a word why.

/// A value with the interval that holds it with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// The interval's lower end; at most the value.
    pub low: f64,
    /// Its upper end; at least the value.
    pub high: f64,
}

impl Estimate {
    /// A value, and what came out when it was computed again from resampled
    /// data: the interval leaves out 2.5 % of them at either end.
    pub(super) fn of(value: f64, mut samples: Vec<f64>) -> Estimate {
        samples.retain(|s| s.is_finite());
        samples.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let last = samples.len().saturating_sub(1) as f64;
            samples.get((share * last).round() as usize).copied()
        };
        Estimate {
            value,
            low: at(0.025).map_or(value, |low| low.min(value)),
            high: at(0.975).map_or(value, |high| high.max(value)),
        }
    }

    /// The same with an interval so many times as wide, but not below 0.
    pub(super) fn widened(self, times: f64) -> Estimate {
        let Estimate { value, low, high } = self;
        Estimate {
            value,
            low: (value - (value - low) * times).max(low.min(0.0)),
            high: value + (high - value) * times,
        }
    }

    /// Half of the interval's width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// A figure, as far as the records tell it.
#[derive(Debug, Clone, PartialEq)]
pub enum Figure {
    /// It is known.
    Known(Estimate),
    /// It is at most this.
    AtMost {
        /// The bound.
        bound: f64,
        /// Why no more is known.
        why: String,
    },
    /// It is unknown.
    Unknown {
        /// Why.
        why: String,
    },
}

impl Figure {
    /// The value, where it is known.
    pub fn value(&self) -> Option<f64> {
        self.estimate().map(|estimate| estimate.value)
    }

    /// The value and its confidence, where it is known.
    pub fn estimate(&self) -> Option<Estimate> {
        match self {
            Figure::Known(estimate) => Some(*estimate),
            Figure::AtMost { .. } | Figure::Unknown { .. } => None,
        }
    }

    /// The value, or else the bound.
    pub fn at_most(&self) -> Option<f64> {
        match self {
            Figure::Known(estimate) => Some(estimate.value),
            Figure::AtMost { bound, .. } => Some(*bound),
            Figure::Unknown { .. } => None,
        }
    }

    /// Why it isn't known, where it isn't.
    pub fn why(&self) -> Option<&str> {
        match self {
            Figure::Known(_) => None,
            Figure::AtMost { why, .. } | Figure::Unknown { why } => Some(why),
        }
    }

    pub(super) fn unknown(why: impl Into<String>) -> Figure {
        Figure::Unknown { why: why.into() }
    }

    pub(super) fn at_most_for(bound: f64, why: impl Into<String>) -> Figure {
        let why = why.into();
        Figure::AtMost { bound, why }
    }
}

/// The median; 0 of nothing.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    record::units::median(values).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_its_value_and_most_samples() {
        let samples = (0..=1000).map(f64::from).collect();
        let it = Estimate::of(500.0, samples);
        assert_eq!((it.low, it.high, it.half_width()), (25.0, 975.0, 475.0));
        let outside = Estimate::of(-1.0, vec![f64::NAN, 2.0]);
        assert_eq!((outside.low, outside.high), (-1.0, 2.0));
        let alone = Estimate::of(3.0, vec![]);
        assert_eq!((alone.low, alone.high), (3.0, 3.0));
        let wide = it.widened(2.0);
        assert_eq!((wide.value, wide.low, wide.high), (500.0, 0.0, 1450.0));
    }
}
