//! S = a + b·L through cells, robustly, and how sure it is.
//!
//! A cell is a sum: n discards of B MiB together take a·n + b·B. Both costs come from least squares
//! on that, weighed by the inverse of the time's variance (each discard's scatter is a share of its
//! time). Huber's weights keep a few disturbed cells from counting. Neither cost is below 0. The
//! confidence comes from the bootstrap: some hundred repeats, with cells drawn at random from each
//! record. That is too narrow where cells are few, so it is widened as Student's t is wider than
//! the normal distribution.

use judge::compare::student_95;

use super::cells::Cell;
use super::figure::{Estimate, median};
use crate::rng::Rng;

/// How often everything is computed again.
pub(super) const RESAMPLES: usize = 400;

/// Residuals beyond this many deviations count less (Huber, 1964: 95 %
/// efficient where nothing is wrong).
const HUBER: f64 = 1.345;

/// How much single discards are taken to scatter, as a share of their time, where nothing
/// tells.
const SCATTER: f64 = 0.05;

/// 95 % of the normal distribution lie within so many deviations.
const NORMAL_95: f64 = 1.96;

/// A line.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Line {
    /// Cost of a discard, in microseconds.
    pub(super) a_us: f64,
    /// Cost of a MiB, in microseconds.
    pub(super) b_us: f64,
}

impl Line {
    /// The time of a discard of a size, in microseconds.
    pub(super) fn at(&self, mib: f64) -> f64 {
        self.a_us + self.b_us * mib
    }

    /// Through cells.
    pub(super) fn through(cells: &[Cell]) -> Line {
        Line::robust(cells, |sums| sums.line())
    }

    /// The time of a discard, where all have about the same size.
    pub(super) fn level(cells: &[Cell]) -> f64 {
        Line::robust(cells, |sums| sums.only_a()).a_us
    }

    fn robust(cells: &[Cell], solve: impl Fn(&Sums) -> Line) -> Line {
        let all = cells
            .iter()
            .fold((0.0, 0.0), |(n, us), c| (n + c.discards, us + c.us));
        let mut line = Line {
            a_us: all.1 / f64::max(all.0, 1.0),
            b_us: 0.0,
        };
        let mut trust = vec![1.0; cells.len()];
        for _ in 0..8 {
            line = solve(&Sums::of(cells, &line, &trust));
            let residuals: Vec<f64> = cells.iter().map(|c| line.residual(c)).collect();
            let scale = 1.4826 * median(residuals.iter().map(|r| r.abs()));
            // Cells on a line have no scatter to compare with.
            let scale = scale.max(1e-3);
            for (trust, residual) in trust.iter_mut().zip(&residuals) {
                let far = residual.abs() / scale;
                *trust = if far > HUBER { HUBER / far } else { 1.0 };
            }
        }
        line
    }

    /// How far a cell is off, in deviations of its own (up to one factor for all).
    fn residual(&self, cell: &Cell) -> f64 {
        let expected = self.a_us * cell.discards + self.b_us * cell.mib;
        (cell.us - expected) * weight(cell, self).sqrt()
    }
}

/// The inverse of the variance of a cell's time, up to one factor for all cells.
fn weight(cell: &Cell, line: &Line) -> f64 {
    // Each discard's scatter, and what the kernel rounds off.
    let each = SCATTER * line.at(cell.mib / cell.discards);
    1.0 / (cell.discards * each * each + cell.off_us * cell.off_us / 6.0 + 1e-6)
}

/// The sums of the normal equations.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    nn: f64,
    nb: f64,
    bb: f64,
    nt: f64,
    bt: f64,
}

impl Sums {
    fn of(cells: &[Cell], about: &Line, trust: &[f64]) -> Sums {
        let mut sums = Sums::default();
        for (cell, trust) in cells.iter().zip(trust) {
            let w = weight(cell, about) * trust;
            sums.nn += w * cell.discards * cell.discards;
            sums.nb += w * cell.discards * cell.mib;
            sums.bb += w * cell.mib * cell.mib;
            sums.nt += w * cell.discards * cell.us;
            sums.bt += w * cell.mib * cell.us;
        }
        sums
    }

    fn only_a(&self) -> Line {
        Line {
            a_us: self.nt / f64::max(self.nn, f64::MIN_POSITIVE),
            b_us: 0.0,
        }
    }

    fn only_b(&self) -> Line {
        Line {
            a_us: 0.0,
            b_us: self.bt / f64::max(self.bb, f64::MIN_POSITIVE),
        }
    }

    fn line(&self) -> Line {
        let Sums { nn, nb, bb, nt, bt } = *self;
        let determinant = nn * bb - nb * nb;
        // One size only: every line through that point is as good.
        if determinant <= 1e-9 * nn * bb {
            return self.only_a();
        }
        let line = Line {
            a_us: (nt * bb - bt * nb) / determinant,
            b_us: (bt * nn - nt * nb) / determinant,
        };
        match (line.a_us >= 0.0, line.b_us >= 0.0) {
            (true, true) => line,
            (false, _) => self.only_b(),
            (true, false) => self.only_a(),
        }
    }
}

/// The result of `figure` on the cells, with the confidence of the bootstrap. Each record's cells
/// are drawn from by themselves, so that none of the sizes of a ladder is missing; and each time is
/// off by what the kernel rounds. A cell that is its record's only one tells nothing of its
/// scatter, so some is assumed. Where the records miss their common line, something disturbed whole
/// records, so each is off by as much.
pub(super) fn bootstrap<const N: usize>(
    records: &[&[Cell]],
    figure: impl Fn(&[Cell]) -> [f64; N],
) -> [Estimate; N] {
    let values = figure(&records.concat());
    let mut rng = Rng::new(1);
    let mut samples = vec![Vec::with_capacity(RESAMPLES); N];
    let mut drawn = Vec::new();
    let missed = missed(records);
    for _ in 0..RESAMPLES {
        drawn.clear();
        for cells in records {
            let disturbed = 1.0 + missed * rng.bell();
            for _ in 0..cells.len() {
                let mut cell = cells[rng.below(cells.len() as u64) as usize];
                // The difference of two roundings.
                let mut off = cell.off_us * (rng.unit() - rng.unit());
                if cells.len() == 1 {
                    off += SCATTER * cell.us / cell.discards.max(1.0).sqrt() * rng.bell();
                }
                cell.us = ((cell.us + off) * disturbed).max(0.0);
                drawn.push(cell);
            }
        }
        for (samples, value) in samples.iter_mut().zip(figure(&drawn)) {
            samples.push(value);
        }
    }
    let mut samples = samples.into_iter();
    let wider = few(records);
    values.map(|value| Estimate::of(value, samples.next().unwrap_or_default()).widened(wider))
}

/// By which share of their times the records miss the line through all of them: one standard
/// deviation, less what their cells' scatter and the kernel's rounding explain. It is 0 where any
/// line would pass through them.
fn missed(records: &[&[Cell]]) -> f64 {
    let line = Line::through(&records.concat());
    let of_record = |cells: &[Cell]| {
        let sum = |of: &dyn Fn(&Cell) -> f64| cells.iter().map(of).sum::<f64>();
        let expected = line.a_us * sum(&|cell| cell.discards) + line.b_us * sum(&|cell| cell.mib);
        let took = Line::level(cells) * sum(&|cell| cell.discards);
        let explained = sum(&|cell| 1.0 / weight(cell, &line)) / (expected * expected);
        (took > 0.0 && expected > 0.0).then(|| (took / expected - 1.0).powi(2) - explained)
    };
    let squares: Vec<f64> = records
        .iter()
        .filter_map(|cells| of_record(cells))
        .collect();
    match squares.len() {
        0..=2 => 0.0,
        all => (squares.iter().sum::<f64>() / (all - 2) as f64)
            .max(0.0)
            .sqrt(),
    }
}

/// How much too narrow the bootstrap's interval is because of few cells. With one for each
/// size it is made of what is assumed, and as wide as that.
fn few(records: &[&[Cell]]) -> f64 {
    let all: usize = records.iter().map(|cells| cells.len()).sum();
    let strata = records.iter().filter(|cells| !cells.is_empty()).count();
    match all - strata {
        0 => 1.0,
        free => {
            let free = free as f64;
            student_95(free) / NORMAL_95 * (all as f64 / free).sqrt()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::rng::Rng;

    fn cell(discards: f64, mib_each: f64, us_each: f64) -> Cell {
        Cell {
            discards,
            mib: discards * mib_each,
            us: discards * us_each,
            off_us: 0.0,
            queued: false,
        }
    }

    proptest! {
        #[test]
        fn what_lies_on_a_line_gives_the_line(a in 0.0..1e5_f64, b in 0.0..1e3_f64,
                                              counts in prop::collection::vec(1_u32..1000, 2..9)) {
            prop_assume!(a + b > 1.0);
            let cells: Vec<Cell> = counts.iter().enumerate()
                .map(|(i, &n)| {
                    let mib = f64::from(1 << i);
                    cell(n.into(), mib, a + b * mib)
                })
                .collect();
            let line = Line::through(&cells);
            let tolerance = 1e-4 * (a + b);
            prop_assert!((line.a_us - a).abs() <= tolerance, "{line:?}");
            prop_assert!((line.b_us - b).abs() <= tolerance, "{line:?}");
        }

        #[test]
        fn no_cost_is_below_0(cells in prop::collection::vec((1.0..1e3_f64, 0.01..4e3_f64, 0.0..1e6_f64), 0..9)) {
            let cells: Vec<Cell> = cells.into_iter().map(|(n, mib, us)| cell(n, mib, us)).collect();
            let line = Line::through(&cells);
            prop_assert!(line.a_us >= 0.0 && line.b_us >= 0.0, "{line:?}");
            prop_assert!(line.a_us.is_finite() && line.b_us.is_finite(), "{line:?}");
        }
    }

    #[test]
    fn one_cell_is_not_sure() {
        let queued = Cell {
            queued: true,
            ..cell(16.0, 128.0, 1000.0)
        };
        let [level] = bootstrap(&[&[queued]], |cells| [Line::level(cells)]);
        let (below, above) = (level.value - level.low, level.high - level.value);
        // 5 % of each: of 16 a quarter of that, twice.
        assert!((15.0..40.0).contains(&below), "{level:?}");
        assert!((15.0..40.0).contains(&above), "{level:?}");
    }

    #[test]
    fn a_cell_in_which_something_else_happened_hardly_counts() {
        let mut cells: Vec<Cell> = (0..20)
            .map(|i| {
                cell(
                    50.0,
                    f64::from(1 + i * 6),
                    1000.0 + 8.0 * f64::from(1 + i * 6),
                )
            })
            .collect();
        cells[3].us *= 10.0;
        let line = Line::through(&cells);
        assert!((line.a_us / 1000.0 - 1.0).abs() < 0.05, "{line:?}");
        assert!((line.b_us / 8.0 - 1.0).abs() < 0.05, "{line:?}");
    }

    #[test]
    fn a_machine_that_was_busy_now_and_then_hardly_counts() {
        let mut rng = Rng::new(5);
        let busy = |i: usize| if i.is_multiple_of(4) { 400.0 } else { 0.0 };
        let cells: Vec<Cell> = (0..24)
            .map(|i| cell(1.0, 128.0, 1561.0 * (1.0 + 0.02 * rng.bell()) + busy(i)))
            .collect();
        let level = Line::level(&cells);
        assert!((level / 1561.0 - 1.0).abs() < 0.03, "{level}");
    }

    /// Something slowed two steps of a ladder down as a whole.
    #[test]
    fn a_line_that_misses_its_steps_is_not_sure() {
        let ladder = |disturbed: [f64; 5]| {
            let mut rng = Rng::new(3);
            let steps = [1.0, 4.0, 16.0, 64.0, 128.0].into_iter().zip(disturbed);
            let steps: Vec<Vec<Cell>> = steps
                .map(|(mib, times)| {
                    let us = (2000.0 + 15.0 * mib) * times;
                    let scattered = |rng: &mut Rng| us * (1.0 + 0.01 * rng.bell());
                    (0..12)
                        .map(|_| cell(8.0, mib, scattered(&mut rng)))
                        .collect()
                })
                .collect();
            let records: Vec<&[Cell]> = steps.iter().map(Vec::as_slice).collect();
            let [a, b] = bootstrap(&records, |cells| {
                let line = Line::through(cells);
                [line.a_us, line.b_us]
            });
            (a, b)
        };
        let (a, b) = ladder([1.0; 5]);
        assert!(a.half_width() < 0.03 * a.value, "{a:?}");
        assert!(b.half_width() < 0.05 * b.value, "{b:?}");
        let (a, b) = ladder([1.0, 1.09, 1.18, 1.0, 1.0]);
        assert!(a.low <= 2000.0 && 2000.0 <= a.high, "{a:?}");
        assert!(b.low <= 15.0 && 15.0 <= b.high, "{b:?}");
    }

    #[test]
    fn an_interval_of_few_cells_holds_the_truth_as_often_as_it_says() {
        let mut rng = Rng::new(9);
        let mut held = 0;
        for _ in 0..200 {
            let cells: Vec<Cell> = (0..5)
                .map(|_| cell(1.0, 128.0, 1500.0 * (1.0 + 0.05 * rng.bell())))
                .collect();
            let [level] = bootstrap(&[&cells], |cells| [Line::level(cells)]);
            held += usize::from((level.low..=level.high).contains(&1500.0));
        }
        assert!(held >= 180, "{held} of 200");
    }

    #[test]
    fn confidence_narrows_with_the_cells() {
        let mut rng = Rng::new(3);
        let mut noisy = |n: usize| -> Vec<Cell> {
            let mut one = || cell(10.0, 64.0, 1500.0 * (1.0 + 0.1 * rng.bell()));
            (0..n).map(|_| one()).collect()
        };
        let (few, many) = (noisy(8), noisy(200));
        let mean = |cells: &[Cell]| [Line::through(cells).a_us];
        let [few] = bootstrap(&[&few], mean);
        let [many] = bootstrap(&[&many], mean);
        assert!(many.half_width() < 0.5 * few.half_width());
        assert!(many.low < 1500.0 && 1500.0 < many.high, "{many:?}");
    }
}
