//! How far the mean or median of one run's intervals could be from its expectation.
//!
//! Neighbouring intervals resemble each other, because a drive works in the background
//! for seconds. The model is an AR(1) process: each interval keeps the share ρ of the
//! last one's deviation. From ρ and the number of intervals follow exactly
//!
//! - the variance of their mean as a multiple of the variance seen among them, which
//!   is too small: neighbours move together,
//! - how many degrees of freedom that variance has (Satterthwaite 1946),
//! - how many independent intervals would tell as much.
//!
//! ρ is estimated at lag 1, corrected for the bias of few values (Kendall 1954), and
//! taken higher by [`UNSURE`] standard errors. Fewer than [`ESTIMABLE`] intervals don't
//! tell ρ: then it is taken to be [`ASSUMED`].

use crate::judging::stats::{mean, median};

/// Fewer intervals than this don't tell how much neighbours resemble each other.
const ESTIMABLE: usize = 8;

/// The autocorrelation of intervals that are too few to tell it, and the most that is
/// assumed beyond the estimate.
const ASSUMED: f64 = 0.92;

/// The autocorrelation is taken this many standard errors above its estimate, so that
/// equal runs are rarely called different (measured: docs/figures/compare.md).
const UNSURE: f64 = 1.5;

/// More intervals than this are joined to this many: neighbours in a native record are
/// 100 ms apart, and what a drive does in the background lasts for seconds.
const MOST: usize = 60;

/// From this many values on the spread of a median leaves out values further than
/// [`OUTLYING`] robust standard deviations: an edge of a stall is no noise.
const ROBUST: usize = 8;

/// Four standard deviations, as a multiple of the median absolute deviation.
const OUTLYING: f64 = 4.0 * 1.4826;

/// How uncertain a figure is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    /// Variance, in the figure's unit squared.
    pub(crate) variance: f64,
    /// Degrees of freedom of that variance; infinite where it is known.
    pub(crate) degrees: f64,
    /// How many independent intervals it rests on, at least 1; infinite where on none.
    pub(crate) independent: f64,
}

impl Spread {
    /// The spread of a figure that doesn't scatter.
    pub(crate) const NONE: Spread = Spread {
        variance: 0.0,
        degrees: f64::INFINITY,
        independent: f64::INFINITY,
    };

    /// Returns the spread of a mean of intervals in order of time; `None` of fewer than two.
    pub(crate) fn of_mean(values: &[f64]) -> Option<Spread> {
        let values = joined(values, values.len());
        let model = Model::of(&values, &values)?;
        Some(model.spread(&values, model.of_mean))
    }

    /// Returns the spread of a median of intervals in order of time; `None` of fewer than two. The
    /// resemblance of neighbours comes from `more` intervals of that kind, if those are more.
    pub(crate) fn of_median(values: &[f64], more: &[f64]) -> Option<Spread> {
        let own = without_outliers(joined(values, values.len()));
        let more = without_outliers(joined(more, values.len()));
        let model = Model::of(&own, &more)?;
        Some(model.spread(&own, model.of_median))
    }

    /// Returns the spread of one more interval like these, with `more` as for a median; `None` of
    /// fewer than two.
    pub(crate) fn of_another(values: &[f64], more: &[f64]) -> Option<Spread> {
        let model = Model::of(values, more)?;
        Some(model.spread(values, 1.0))
    }

    /// Returns the spread of a length in seconds that begins and ends somewhere within an interval:
    /// the variance of the difference of two uniform deviates.
    pub(crate) fn of_ends(interval_s: f64) -> Spread {
        Spread {
            variance: interval_s * interval_s / 6.0,
            ..Spread::NONE
        }
    }

    /// Returns the spread of a multiple of the figure.
    pub(crate) fn times(self, factor: f64) -> Spread {
        Spread {
            variance: self.variance * factor * factor,
            ..self
        }
    }

    /// Returns the spread of the sum of two figures that are independent.
    pub(crate) fn and(self, other: Spread) -> Spread {
        let variance = self.variance + other.variance;
        // Welch and Satterthwaite. Nothing is added by what doesn't scatter.
        let below = [self, other].map(|s| s.variance * s.variance / s.degrees);
        let below = below[0] + below[1];
        Spread {
            variance,
            degrees: if below > 0.0 {
                variance * variance / below
            } else {
                f64::INFINITY
            },
            independent: self.independent.min(other.independent),
        }
    }
}

/// A model of so many intervals with AR(1) noise.
#[derive(Debug, Clone, Copy)]
struct Model {
    /// Expected variance among the intervals, as a share of the process's own.
    seen: f64,
    /// Degrees of freedom of the variance among them.
    degrees: f64,
    /// Variance of their mean, as a share of the process's.
    of_mean: f64,
    /// Variance of their median, as such a share, for many of them.
    of_median: f64,
}

impl Model {
    fn of(values: &[f64], more: &[f64]) -> Option<Model> {
        let longer = if more.len() > values.len() {
            more
        } else {
            values
        };
        (values.len() >= 2).then(|| Model::new(values.len(), autocorrelation(longer)))
    }

    fn new(n: usize, rho: f64) -> Model {
        let count = n as f64;
        // Correlations of intervals so far apart, and how many pairs there are.
        let apart: Vec<f64> = std::iter::successors(Some(1.0), |c| Some(c * rho))
            .take(n)
            .collect();
        let pairs = |k: usize| (n - k) as f64 * if k == 0 { 1.0 } else { 2.0 };
        let sum = |of: fn(f64) -> f64| -> f64 { (0..n).map(|k| pairs(k) * of(apart[k])).sum() };
        let (ones, squares) = (sum(|c| c), sum(|c| c * c));
        // Traces of the centred correlation matrix and of its square.
        let rows = (0..n).map(|i| (0..n).map(|j| apart[i.abs_diff(j)]).sum::<f64>());
        let rows: f64 = rows.map(|row| row * row).sum();
        let trace = count - ones / count;
        let of_square = squares - 2.0 * rows / count + (ones / count).powi(2);
        Model {
            seen: trace / (count - 1.0),
            degrees: trace * trace / of_square,
            of_mean: ones / (count * count),
            // Signs of normal deviates with correlation c have the correlation asin(c) · 2/π;
            // π/2 is how much more the median of many scatters than their mean.
            of_median: sum(f64::asin) / (count * count),
        }
    }

    fn spread(&self, values: &[f64], of: f64) -> Spread {
        let about = mean(values).unwrap_or(0.0);
        let squares: f64 = values.iter().map(|v| (v - about).powi(2)).sum();
        Spread {
            variance: squares / (values.len() as f64 - 1.0) / self.seen * of,
            degrees: self.degrees,
            independent: 1.0 / self.of_mean,
        }
    }
}

/// How much neighbours resemble each other at least as much as they do, 0 to 1.
fn autocorrelation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let about = mean(values).unwrap_or(0.0);
    let squares: f64 = values.iter().map(|v| (v - about).powi(2)).sum();
    if values.len() < ESTIMABLE || squares <= 0.0 {
        return ASSUMED;
    }
    let products: f64 = values
        .windows(2)
        .map(|w| (w[0] - about) * (w[1] - about))
        .sum();
    let estimated = (n * products / squares + 1.0) / (n - 3.0);
    let error = ((1.0 - estimated * estimated).max(0.05) / n).sqrt();
    // So many intervals can tell that they are about two independent ones, not fewer.
    let most = (1.0 - 2.0 / n).max(ASSUMED);
    let assumed = (estimated + UNSURE * error).min(ASSUMED);
    assumed.max(estimated.min(most)).max(0.0)
}

/// Neighbours are joined as many at a time as make at most [`MOST`] of `count` values.
fn joined(values: &[f64], count: usize) -> Vec<f64> {
    let together = count.div_ceil(MOST).max(1);
    values.chunks(together).filter_map(mean).collect()
}

/// The same values, those far from the median brought nearer.
fn without_outliers(values: Vec<f64>) -> Vec<f64> {
    if values.len() < ROBUST {
        return values;
    }
    let middle = median(values.iter().copied()).unwrap_or(0.0);
    let typical = median(values.iter().map(|v| (v - middle).abs())).unwrap_or(0.0);
    let reach = OUTLYING * typical;
    if reach <= 0.0 {
        return values;
    }
    let near = values.into_iter();
    near.map(|v| v.clamp(middle - reach, middle + reach))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_intervals_have_the_textbooks_figures() {
        let model = Model::new(10, 0.0);
        assert!((model.seen - 1.0).abs() < 1e-12);
        assert!((model.degrees - 9.0).abs() < 1e-9);
        assert!((model.of_mean - 0.1).abs() < 1e-12);
        let median = std::f64::consts::FRAC_PI_2 / 10.0;
        assert!((model.of_median - median).abs() < 1e-12);
    }

    #[test]
    fn intervals_that_move_together_are_few() {
        // 60 intervals at 0.9: 60 · (1 − 0.9) / (1 + 0.9), and a little more for the ends.
        let model = Model::new(60, 0.9);
        assert!(
            (1.0 / model.of_mean - 3.75).abs() < 0.01,
            "{}",
            model.of_mean
        );
        assert!(model.seen < 0.75 && model.degrees < 12.0, "{model:?}");
    }

    #[test]
    fn an_edge_of_a_stall_hardly_widens_a_median() {
        let cells = |edge: f64| -> Vec<f64> {
            let mut cells: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i * 7 % 5)).collect();
            cells.push(edge);
            cells
        };
        let variance = |edge| Spread::of_median(&cells(edge), &[]).unwrap().variance;
        assert!(variance(900.0) < 4.0 * variance(104.0));
    }

    #[test]
    fn spreads_add_up_as_welch_says() {
        let one = Spread {
            variance: 2.0,
            degrees: 3.0,
            independent: 4.0,
        };
        let both = one.and(one);
        assert_eq!((both.variance, both.degrees), (4.0, 6.0));
        assert_eq!(one.and(Spread::NONE), one);
        assert_eq!(Spread::NONE.and(Spread::NONE), Spread::NONE);
        assert_eq!(one.times(3.0).variance, 18.0);
        assert_eq!(Spread::of_mean(&[1.0]), None);
    }
}
