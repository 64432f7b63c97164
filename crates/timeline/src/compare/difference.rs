//! Whether a figure differs between two groups of runs: the bootstrap over repeats.
//!
//! Runs are drawn with replacement, and of each drawn run one of its own
//! resamplings (hierarchical). Two corrections make the spread of the group's
//! mean what it should be for the few repeats there are:
//!
//! - runs drawn from `n` scatter less than runs do, by (n − 1)/n (Hesterberg 2015,
//!   "What teachers should know about the bootstrap"), so they are spread apart;
//! - that the runs' figures scatter from interval to interval is in their own
//!   scatter already; it is added only as far as they scatter less than that.
//!
//! With repeats the interval is the difference ± t × the spread, t of Student's
//! distribution with Welch's degrees of freedom: two or three runs can't show
//! their own tails. With one run of each it is the middle 95 % of the
//! resamplings, and says nothing about how the next run would come out.

use super::comparison::{Basis, Change, ChangeFinding, Doubt, Side};
use super::replicate::{Noise, SEEDS, Told};
use crate::judge::stats::{RESAMPLES, Random, middle_95};

/// Closer than this share of the reference is `same`; a loss of as much is what
/// a verdict of `none` would have seen.
const CLOSE: f64 = 0.1;

/// One group's figure.
pub(super) struct Sided<'a> {
    /// Of the runs that tell it.
    told: Vec<&'a Told>,
    mean: f64,
    /// The runs' standard deviation; `None` of a single one.
    scatter: Option<f64>,
    /// Mean variance within the runs.
    within: f64,
}

/// A group's figure, as it is told.
pub(super) fn side(runs: &[Option<Told>]) -> Side {
    let told: Vec<&Told> = runs.iter().flatten().collect();
    Side {
        value: Sided::of(runs).map(|sided| sided.mean),
        runs: runs
            .iter()
            .map(|run| run.as_ref().map(|t| t.value))
            .collect(),
        is_lower_bound: told.iter().any(|t| t.is_lower_bound),
    }
}

impl<'a> Sided<'a> {
    /// `None` if no run tells the figure.
    pub(super) fn of(runs: &'a [Option<Told>]) -> Option<Sided<'a>> {
        let told: Vec<&Told> = runs.iter().flatten().collect();
        let n = told.len() as f64;
        if told.is_empty() {
            return None;
        }
        let mean = told.iter().map(|t| t.value).sum::<f64>() / n;
        let squares = told.iter().map(|t| (t.value - mean).powi(2)).sum::<f64>();
        let within = told.iter().map(|t| match &t.noise {
            Noise::Counted | Noise::Once => 0.0,
            Noise::Deviations(streams) => variance(streams.iter().flatten().copied()),
        });
        Some(Sided {
            mean,
            scatter: (told.len() > 1).then(|| (squares / (n - 1.0)).sqrt()),
            within: within.sum::<f64>() / n,
            told,
        })
    }

    fn is_bound(&self) -> bool {
        self.told.iter().any(|t| t.is_lower_bound)
    }

    /// What the group's mean could have been: one of the two streams.
    fn means(&self, stream: usize, borrowed: Option<f64>) -> Vec<f64> {
        let mut random = Random(SEEDS[stream].rotate_left(17));
        let n = self.told.len();
        let between = self.scatter.or(borrowed);
        // As far as the runs scatter less than their intervals make them.
        let share = match between {
            Some(between) if self.within > 0.0 => {
                (1.0 - between * between / self.within).max(0.0).sqrt()
            }
            Some(_) => 0.0,
            None => 1.0,
        };
        let apart = match n {
            1 => 0.0,
            _ => (n as f64 / (n as f64 - 1.0)).sqrt(),
        };
        (0..RESAMPLES)
            .map(|_| {
                let drawn = (0..n).map(|_| {
                    let told = self.told[random.below(n)];
                    let within = match &told.noise {
                        Noise::Counted | Noise::Once => 0.0,
                        Noise::Deviations(streams) => *random.pick(&streams[stream]),
                    };
                    apart * (told.value - self.mean) + share * within
                });
                let moved = drawn.sum::<f64>() / n as f64;
                let lent = borrowed.map_or(0.0, |scatter| scatter * normal(&mut random));
                self.mean + moved + lent
            })
            .collect()
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
    let Some((low, high, basis)) = interval(reference, other, difference) else {
        change.why = Some(Doubt::MeasuredOnce);
        return change;
    };
    change.absolute_low = Some(low);
    change.absolute_high = Some(high);
    change.relative_low = relative(low);
    change.relative_high = relative(high);
    change.basis = basis;
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
    let reach = low.abs().max(high.abs());
    let close = relative(reach).filter(|&reach| reach <= CLOSE);
    let close = close.or((reach == 0.0).then_some(0.0));
    (change.finding, change.why, change.within) = if bound {
        (ChangeFinding::CannotTell, Some(Doubt::LowerBound), None)
    } else if more || less {
        (ChangeFinding::Differs, None, None)
    } else if close.is_some() {
        (ChangeFinding::Same, None, close)
    } else {
        (ChangeFinding::CannotTell, Some(Doubt::TooNoisy), None)
    };
    change
}

/// The difference's 95 % interval, and what it was made from; `None` where nothing tells it.
fn interval(
    reference: &Sided<'_>,
    other: &Sided<'_>,
    difference: f64,
) -> Option<(f64, f64, Basis)> {
    let sides = [reference, other];
    let (basis, degrees) = match (reference.scatter, other.scatter) {
        (None, None) => {
            let all = || sides.iter().flat_map(|side| &side.told);
            if all().any(|t| matches!(t.noise, Noise::Once)) {
                return None;
            }
            let sampled = all().any(|t| matches!(t.noise, Noise::Deviations(_)));
            let basis = if sampled {
                Basis::Intervals
            } else {
                Basis::Counted
            };
            (basis, None)
        }
        (Some(_), Some(_)) => (Basis::Repeats, None),
        (Some(_), None) => (Basis::RepeatsOfOne, Some(reference.told.len() as f64 - 1.0)),
        (None, Some(_)) => (Basis::RepeatsOfOne, Some(other.told.len() as f64 - 1.0)),
    };
    let lent = |side: &Sided<'_>, by: &Sided<'_>| match side.scatter {
        Some(_) => None,
        None => by.scatter,
    };
    let streams =
        |side: &Sided<'_>, by: &Sided<'_>| [0, 1].map(|stream| side.means(stream, lent(side, by)));
    let [first, second] = [streams(reference, other), streams(other, reference)];
    // Each stream of one against the other of the other, both ways round: so the
    // interval of two groups swapped is the same with its sign turned.
    let pairs = [(&second[1], &first[0]), (&second[0], &first[1])];
    let mut differences: Vec<f64> = pairs
        .iter()
        .flat_map(|(other, reference)| other.iter().zip(*reference).map(|(o, r)| o - r))
        .collect();
    if matches!(basis, Basis::Intervals | Basis::Counted) {
        let (low, high) = middle_95(&mut differences)?;
        return Some((low, high, basis));
    }
    let spread = |streams: &[Vec<f64>; 2]| variance(streams.iter().flatten().copied());
    let variances = [spread(&first), spread(&second)];
    let half = student_95(degrees.unwrap_or_else(|| welch(&sides, variances)))
        * (variances[0] + variances[1]).sqrt();
    Some((difference - half, difference + half, basis))
}

/// Welch's (1947) degrees of freedom of a difference of two means.
fn welch(sides: &[&Sided<'_>; 2], variances: [f64; 2]) -> f64 {
    let parts = sides.iter().zip(variances);
    let below: f64 = parts
        .map(|(side, variance)| variance * variance / (side.told.len() as f64 - 1.0).max(1.0))
        .sum();
    let above = (variances[0] + variances[1]).powi(2);
    if below > 0.0 { above / below } else { 1.0 }
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

fn variance(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let (mut n, mut sum) = (0.0, 0.0);
    for value in values.clone() {
        n += 1.0;
        sum += value;
    }
    let mean = sum / f64::max(n, 1.0);
    values.map(|v| (v - mean).powi(2)).sum::<f64>() / f64::max(n, 1.0)
}

/// A standard normal deviate (Box and Muller 1958).
fn normal(random: &mut Random) -> f64 {
    let (u, v) = (random.unit(), random.unit());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
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
