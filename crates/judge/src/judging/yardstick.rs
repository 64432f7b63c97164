//! How slow the foreground gets without discards, in stretches as long as the
//! discards': the yardstick for what it was with them.
//!
//! The scatter of single intervals says little: a drive, a neighbour or a cloud is
//! slow for seconds at a time. So the undisturbed cells are laid end to end, and a
//! window as long as all cells with discards slides over them. A loss counts if it is
//!
//! - a third more than the worst of these windows lost (of many windows: one in forty), and
//! - more than Student's prediction interval of one more window allows, with as many
//!   degrees of freedom as windows fit side by side.
//!
//! The bursts of a continuous deleter alternate with its other work. So their windows are as long
//! as one burst. The mean of as many windows scatters less than one, by the root of their number.
//!
//! A stall counts if it lost more than twice as much in low cells as the worst window.

use super::grid::Grid;
use super::low::Lows;
use crate::compare::student_95;

/// The most undisturbed cells that are used: over an hour at 100 ms.
const MOST_CELLS: usize = 50_000;

/// The least number of windows side by side. Windows are made shorter for that. Short ones scatter
/// more, so that a finding is as safe as with long ones.
const SIDE_BY_SIDE: usize = 3;
/// Of so many windows one may be worse.
const ONE_IN: usize = 40;
/// A loss is so many times that of the worst window.
const LOSS_MARGIN: f64 = 4.0 / 3.0;
/// A stall has lost so many times what the worst window did.
const STALL_MARGIN: f64 = 2.0;

/// The loss in stretches without discards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Yardstick {
    /// Loss, as a share of the baseline, that such a stretch reaches by itself, 0 to 1.
    pub(super) loss: f64,
    /// Share of such a stretch that it loses in low cells, 0 to 1.
    low_lost: f64,
    /// Whether that is so because of few operations, not because they scatter.
    pub(super) few: bool,
    /// Standard deviation of single cells, as a share of the baseline.
    pub(super) scatter: f64,
}

impl Yardstick {
    /// Computes it from these undisturbed cells, in order. The discards take `count` cells, in
    /// `bursts` that alternate with other work. `usual` is the baseline's mean rate. `None` where
    /// the cells are too few.
    pub(super) fn of(
        grid: &Grid,
        lows: &Lows,
        undisturbed: &[usize],
        (count, bursts): (usize, usize),
        usual: f64,
    ) -> Option<Yardstick> {
        // Around the deletion: more of them tell no more, and take memory.
        let beyond = undisturbed.len().saturating_sub(MOST_CELLS);
        let undisturbed = &undisturbed[beyond / 2..undisturbed.len() - beyond.div_ceil(2)];
        if undisturbed.len() < SIDE_BY_SIDE {
            return None;
        }
        let seconds = |i: usize| grid.seconds(i);
        let windows = |count: usize, of: &dyn Fn(usize) -> f64| -> Vec<f64> {
            let width = count.min(undisturbed.len() / SIDE_BY_SIDE).max(1);
            let lengths = sums(undisturbed, width, seconds);
            let sums = sums(undisturbed, width, |i| of(i) * seconds(i));
            sums.iter().zip(lengths).map(|(sum, s)| sum / s).collect()
        };
        let rates = windows(count / bursts, &|i| grid.rate(i));
        let losses = rates.iter().map(|rate| 1.0 - rate / usual).collect();
        let spread = Spread::of(losses, undisturbed.len());
        let counted = 1.0 / (usual * count as f64 * grid.cell_s);
        let few = counted > spread.variance / bursts as f64;
        let mut low_lost = windows(count, &|i| lows.lost(i));
        low_lost.sort_by(|a, b| b.total_cmp(a));
        Some(Yardstick {
            loss: spread.highest(bursts, counted),
            low_lost: low_lost[low_lost.len() / ONE_IN],
            few,
            scatter: scatter(undisturbed.iter().map(|&i| grid.rate(i) / usual)),
        })
    }

    /// Returns whether a stall that lost so many seconds, while discards took `active_s`, is more
    /// than a stretch without discards shows.
    pub(super) fn is_exceeded(&self, lost_s: f64, active_s: f64) -> bool {
        lost_s > STALL_MARGIN * self.low_lost * active_s
    }
}

/// How windows lie, each of which shares all but one of its cells with the next.
struct Spread {
    /// Their losses as shares of the baseline, the worst first.
    losses: Vec<f64>,
    mean: f64,
    variance: f64,
    /// How many windows fit side by side.
    side_by_side: f64,
}

impl Spread {
    fn of(mut losses: Vec<f64>, cells: usize) -> Spread {
        let count = losses.len() as f64;
        let width = (cells + 1 - losses.len()) as f64;
        let side_by_side = cells as f64 / width;
        let mean = losses.iter().sum::<f64>() / count;
        let squares: f64 = losses.iter().map(|x| (x - mean) * (x - mean)).sum();
        losses.sort_by(|a, b| b.total_cmp(a));
        Spread {
            losses,
            mean,
            // Few windows scatter less around their own mean than around the truth.
            variance: squares / count * side_by_side / (side_by_side - 1.0).max(1.0),
            side_by_side,
        }
    }

    /// The most that so many more of them may lose in the mean; `counted` is the variance of
    /// their operations' number.
    fn highest(&self, more: usize, counted: f64) -> f64 {
        let variance = (self.variance / more as f64).max(counted);
        let of_mean = self.variance / self.side_by_side;
        let student = student_95((self.side_by_side - 1.0).max(1.0));
        let predicted = self.mean.max(0.0) + student * (variance + of_mean).sqrt();
        if more > 1 {
            return predicted;
        }
        predicted.max(LOSS_MARGIN * self.losses[self.losses.len() / ONE_IN])
    }
}

/// The standard deviation.
fn scatter(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (squares / count).sqrt()
}

/// The sums over each window of so many cells.
pub(super) fn sums(cells: &[usize], width: usize, of: impl Fn(usize) -> f64) -> Vec<f64> {
    let mut sum = 0.0;
    let mut all = Vec::with_capacity(cells.len() + 1);
    all.push(0.0);
    for &i in cells {
        sum += of(i);
        all.push(sum);
    }
    (width..all.len())
        .map(|i| all[i] - all[i - width])
        .collect()
}
