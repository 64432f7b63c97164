//! A figure over several rounds.

use serde::Serialize;

/// The median of a figure over several rounds, and its range.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The smallest value.
    pub low: f64,
    /// The median: of an even count the mean of the middle two.
    pub median: f64,
    /// The largest value.
    pub high: f64,
    /// How many values there are.
    #[serde(skip)]
    pub count: usize,
}

impl Spread {
    /// Of values in any order; `None` without any.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut all: Vec<f64> = values.into_iter().filter(|v| !v.is_nan()).collect();
        all.sort_unstable_by(f64::total_cmp);
        Some(Spread {
            low: *all.first()?,
            high: *all.last()?,
            count: all.len(),
            median: record::units::median(all)?,
        })
    }

    /// Half of the range.
    pub fn half_range(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_median_and_the_range() {
        let of = |all: &[f64]| Spread::of(all.iter().copied());
        let three = of(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((three.median, three.low, three.high), (2.0, 1.0, 3.0));
        assert_eq!(of(&[4.0, 1.0]).unwrap().median, 2.5);
        assert_eq!(of(&[4.0, f64::NAN]).unwrap().half_range(), 0.0);
        assert_eq!(of(&[]), None);
    }

    proptest! {
        #[test]
        fn a_median_lies_between_the_ends(values in prop::collection::vec(-1e6f64..1e6, 1..9)) {
            let spread = Spread::of(values.iter().copied()).unwrap();
            prop_assert!(spread.low <= spread.median && spread.median <= spread.high);
            prop_assert_eq!(spread.count, values.len());
        }
    }
}
