//! Whether a figure differs between two groups of runs.
//!
//! Repeats tell it best: their means scatter as the runs do, or as the intervals within
//! them make them, if that is more. A single run is as uncertain as its own intervals
//! make it, or as the repeats of the other group scatter.
//!
//! Of two figures above 0 the ratio is looked at, on the log scale: no interval of a
//! ratio reaches below −100 %. A figure that scatters by more than [`NEAR_NOTHING`] of itself
//! may as well be 0, so there the difference counts. The interval is Student's t wide: few runs
//! or intervals can't show their own tails. Repeats of both groups are taken to scatter alike,
//! as they do where nothing differs, so their degrees of freedom add up; all else has Welch's.

use super::comparison::{Basis, Change, ChangeFinding, Doubt, Side};
use super::replicate::{Estimate, Noise};
use super::spread::Spread;

/// Closer than this share of the reference is `same`; a loss of as much is what
/// a verdict of `none` would have seen.
const CLOSE: f64 = 0.1;

/// The logarithm of a mean that scatters by more than this share of itself is skewed.
const NEAR_NOTHING: f64 = 0.25;

/// One run tells little with fewer independent intervals than this.
const ENOUGH: f64 = 8.0;

/// No interval reaches further than this power of e.
const WIDEST: f64 = 20.0;

/// One group's figure.
pub(super) struct Sided<'a> {
    /// Of the runs that tell it.
    estimates: Vec<&'a Estimate>,
    mean: f64,
    /// The runs' variance; `None` of a single one.
    between: Option<f64>,
    /// Mean variance within the runs.
    within: f64,
}

/// Returns a group's figure as the comparison shows it.
pub(super) fn side(runs: &[Option<Estimate>]) -> Side {
    let estimates: Vec<&Estimate> = runs.iter().flatten().collect();
    Side {
        value: Sided::of(runs).map(|sided| sided.mean),
        runs: runs
            .iter()
            .map(|run| run.as_ref().map(|t| t.value))
            .collect(),
        is_lower_bound: estimates.iter().any(|t| t.is_lower_bound),
    }
}

impl<'a> Sided<'a> {
    /// Returns the figure of a group; `None` if no run has it.
    pub(super) fn of(runs: &'a [Option<Estimate>]) -> Option<Sided<'a>> {
        let estimates: Vec<&Estimate> = runs.iter().flatten().collect();
        let n = estimates.len() as f64;
        if estimates.is_empty() {
            return None;
        }
        let mean = estimates.iter().map(|t| t.value).sum::<f64>() / n;
        let squares = estimates
            .iter()
            .map(|t| (t.value - mean).powi(2))
            .sum::<f64>();
        let within = estimates.iter().map(|t| t.noise.variance()).sum::<f64>();
        Some(Sided {
            mean,
            between: (estimates.len() > 1).then(|| squares / (n - 1.0)),
            within: within / n,
            estimates,
        })
    }

    fn is_bound(&self) -> bool {
        self.estimates.iter().any(|t| t.is_lower_bound)
    }

    /// How uncertain the mean is; `None` where nothing tells. A single run scatters as
    /// much as the runs of the `other` group do.
    fn spread(&self, other: &Sided<'_>) -> Option<Spread> {
        let n = self.estimates.len() as f64;
        let (between, degrees) = match (self.between, other.between) {
            (Some(between), _) => (between, n - 1.0),
            (None, Some(between)) => (between, other.estimates.len() as f64 - 1.0),
            (None, None) => {
                return match self.estimates[0].noise {
                    Noise::Counted => Some(Spread::NONE),
                    Noise::Once => None,
                    Noise::Within(spread) => Some(spread),
                };
            }
        };
        Some(Spread {
            variance: between.max(self.within) / n,
            degrees,
            ..Spread::NONE
        })
    }
}

/// How `other` differs from `reference`; `None` stands for a group that doesn't tell.
pub(super) fn change(
    group: &str,
    reference: Option<&Sided<'_>>,
    other: Option<&Sided<'_>>,
) -> Change {
    let mut change = Change {
        group: group.to_owned(),
        absolute: None,
        absolute_low: None,
        absolute_high: None,
        relative: None,
        relative_low: None,
        relative_high: None,
        finding: ChangeFinding::CannotTell,
        within: None,
        why: Some(Doubt::NotMeasured),
        basis: Basis::None,
    };
    let (Some(reference), Some(other)) = (reference, other) else {
        return change;
    };
    let difference = other.mean - reference.mean;
    let relative = |d: f64| Some(d / reference.mean.abs()).filter(|_| reference.mean != 0.0);
    change.absolute = Some(difference);
    change.relative = relative(difference);
    let (Some(first), Some(second)) = (reference.spread(other), other.spread(reference)) else {
        change.why = Some(Doubt::MeasuredOnce);
        return change;
    };
    let (low, high) = interval([reference, other], [first, second]);
    change.basis = basis(reference, other);
    let (more, less) = (
        difference > 0.0 && low > 0.0,
        difference < 0.0 && high < 0.0,
    );
    let bound = match (reference.is_bound(), other.is_bound()) {
        (false, false) => false,
        // What is at least so much can be more, but not less.
        (false, true) => !more,
        (true, false) => !less,
        (true, true) => true,
    };
    // How far beyond a bound a value lies is unknown.
    let low_end = Some(low).filter(|_| bound || !reference.is_bound());
    let high_end = Some(high).filter(|_| bound || !other.is_bound());
    (change.absolute_low, change.absolute_high) = (low_end, high_end);
    // Nothing is less than none at all.
    change.relative_low = low_end.and_then(relative).map(|low| low.max(-1.0));
    change.relative_high = high_end.and_then(relative);
    let reach = low.abs().max(high.abs());
    let close = relative(reach).filter(|&reach| reach <= CLOSE);
    let close = close.or((reach == 0.0).then_some(0.0));
    let few = first.independent.min(second.independent) < ENOUGH;
    (change.finding, change.why, change.within) = if bound {
        (ChangeFinding::CannotTell, Some(Doubt::LowerBound), None)
    } else if more || less {
        (ChangeFinding::Differs, None, None)
    } else if close.is_some() {
        (ChangeFinding::Same, None, close)
    } else if few {
        (ChangeFinding::CannotTell, Some(Doubt::TooFew), None)
    } else {
        (ChangeFinding::CannotTell, Some(Doubt::TooNoisy), None)
    };
    change
}

/// The 95 % interval of the second group's difference from the first.
fn interval(groups: [&Sided<'_>; 2], spreads: [Spread; 2]) -> (f64, f64) {
    let means = groups.map(|group| group.mean);
    let shares = [0, 1].map(|i| spreads[i].times(1.0 / means[i]));
    let is_sure = |i: usize| means[i] > 0.0 && shares[i].variance.sqrt() <= NEAR_NOTHING;
    if is_sure(0) && is_sure(1) {
        let half = half(together(groups, shares)).min(WIDEST);
        let ratio = means[1] / means[0];
        let at = |moved: f64| means[0] * (ratio * moved.exp() - 1.0);
        (at(-half), at(half))
    } else {
        let half = half(together(groups, spreads));
        (means[1] - means[0] - half, means[1] - means[0] + half)
    }
}

/// The spread of a difference of groups that spread so: of repeats, their pooled variance.
fn together(groups: [&Sided<'_>; 2], [first, second]: [Spread; 2]) -> Spread {
    let both = first.and(second);
    let [n, m] = groups.map(|group| group.estimates.len() as f64);
    if groups.iter().any(|group| group.between.is_none()) {
        return both;
    }
    let degrees = n + m - 2.0;
    let squares = (n - 1.0) * n * first.variance + (m - 1.0) * m * second.variance;
    Spread {
        variance: squares / degrees * (1.0 / n + 1.0 / m),
        degrees,
        ..both
    }
}

/// Half the length of the 95 % interval.
pub(crate) fn half(spread: Spread) -> f64 {
    student_95(spread.degrees) * spread.variance.sqrt()
}

fn basis(reference: &Sided<'_>, other: &Sided<'_>) -> Basis {
    let counted = |side: &Sided<'_>| matches!(side.estimates[0].noise, Noise::Counted);
    match (reference.between, other.between) {
        (Some(_), Some(_)) => Basis::Repeats,
        (None, None) if counted(reference) && counted(other) => Basis::Counted,
        (None, None) => Basis::Intervals,
        _ => Basis::RepeatsOfOne,
    }
}

/// Student's t that 95 % lie within, by degrees of freedom: a table, and between
/// its entries a line over their reciprocals.
pub fn student_95(degrees: f64) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    const NORMAL: f64 = 1.960;
    let last = TABLE.len();
    let degrees = degrees.max(1.0);
    let below = degrees.floor();
    if below >= last as f64 {
        return NORMAL + (TABLE[last - 1] - NORMAL) * last as f64 / degrees;
    }
    let (low, high) = (
        TABLE[below as usize - 1],
        TABLE[(below as usize).min(last - 1)],
    );
    let at = (1.0 / below - 1.0 / degrees) / (1.0 / below - 1.0 / (below + 1.0));
    low + (high - low) * at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn students_t() {
        assert_eq!(student_95(1.0), 12.706);
        assert_eq!(student_95(0.1), 12.706);
        assert!((student_95(2.5) - 3.558).abs() < 0.1, "{}", student_95(2.5));
        assert!((student_95(10.0) - 2.228).abs() < 1e-9);
        assert!((student_95(60.0) - 2.000).abs() < 0.002);
        assert!((student_95(1e9) - 1.96).abs() < 1e-3);
    }
}
