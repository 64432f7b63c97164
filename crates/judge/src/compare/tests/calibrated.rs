//! How often noise alone is called a difference, and how small a change is found.
//!
//! Pairs of runs are made up whose truth is known. `make test` tries a few of each
//! kind, `make soak` a thousand, and prints the tables of docs/figures/compare.md.

use super::make::{MADE, Made};
use crate::JudgeOptions;
use crate::compare::difference::{Sided, change};
use crate::compare::replicate::{Estimate, of_actor, of_run};
use crate::compare::{ChangeFinding, Figure};
use crate::judging::samples::sample;
use testkit::Rng;
use testkit::gate::{only_in_soak, soak};

/// Figures that noise moves.
const NOISY: [Figure; 9] = [
    Figure::BaselineRate,
    Figure::DeleteRate,
    Figure::OpsRatio,
    Figure::Depth,
    Figure::Stall,
    Figure::Longest,
    Figure::Lost,
    Figure::TrimRate,
    Figure::Await,
];

/// These figures of a run.
fn told(made: &Made, seed: u64, of: &[Figure]) -> Vec<Option<Estimate>> {
    // Where discards lie against the intervals is chance.
    let lag_s = made.lag_s + Rng::new(seed).unit() * made.interval_s;
    let record = Made { lag_s, ..*made }.seed(seed).record();
    let run = sample(&record, &JudgeOptions::default());
    let each = of.iter().map(|&figure| {
        let seen = &run.verdict.foreground[0];
        of_run(&run, figure).or_else(|| of_actor(&run, seen, &run.actors[0], figure))
    });
    each.collect()
}

fn differs(before: &[Option<Estimate>], after: &[Option<Estimate>]) -> bool {
    let (before, after) = (Sided::of(before), Sided::of(after));
    change("after", before.as_ref(), after.as_ref()).finding == ChangeFinding::Differs
}

/// Shares of so many trials, of so many runs each, in which a figure was called different.
fn called_different(
    trials: u64,
    runs: u64,
    before: &Made,
    after: &Made,
    of: &[Figure],
) -> Vec<f64> {
    let mut counts = vec![0_u32; of.len()];
    for trial in 0..trials {
        let group = |made: &Made, first: u64| -> Vec<Vec<Option<Estimate>>> {
            (0..runs).map(|run| told(made, first + run, of)).collect()
        };
        let (before, after) = (
            group(before, 1 + 2 * runs * trial),
            group(after, 1 + 2 * runs * trial + runs),
        );
        for (i, count) in counts.iter_mut().enumerate() {
            let figure = |runs: &[Vec<Option<Estimate>>]| -> Vec<Option<Estimate>> {
                runs.iter().map(|run| run[i].clone()).collect()
            };
            *count += u32::from(differs(&figure(&before), &figure(&after)));
        }
    }
    let shares = counts.iter().map(|&n| f64::from(n) / trials as f64);
    shares.collect()
}

/// A log of iostat's: intervals of a second, no phases, so many before and while discarding.
fn log(intervals: usize, together: f64, within: f64, left: f64) -> Made {
    Made {
        interval_s: 1.0,
        baseline_s: intervals as f64,
        lag_s: 0.0,
        stall_s: intervals as f64,
        within,
        together,
        left,
        phases: false,
        ..MADE
    }
}

/// The most that a figure of equal runs may be called different, in so many trials: 7 %,
/// and three standard deviations of chance.
fn most(trials: u64) -> f64 {
    0.07 + 3.0 * (0.07 * 0.93 / trials as f64).sqrt()
}

#[test]
fn two_equal_runs_are_rarely_called_different() {
    let trials = if soak() { 1000 } else { 25 };
    let (lengths, noises): (&[usize], &[f64]) = match soak() {
        true => (&[3, 5, 8, 10, 20, 60], &[0.02, 0.05, 0.2]),
        false => (&[4, 20], &[0.05, 0.2]),
    };
    let mut worst = vec![0.0_f64; NOISY.len()];
    for &intervals in lengths {
        for &within in noises {
            for together in [0.0, 0.5, 0.8, 0.9] {
                for left in [0.1, 0.5, 0.8] {
                    let made = log(intervals, together, within, left);
                    let shares = called_different(trials, 1, &made, &made, &NOISY);
                    let told: Vec<String> = shares
                        .iter()
                        .map(|s| format!("{:5.1}", 100.0 * s))
                        .collect();
                    println!(
                        "{intervals:2} at {within:.2}, {together:.1}, {left:.1} left:{}",
                        told.join("")
                    );
                    worst
                        .iter_mut()
                        .zip(&shares)
                        .for_each(|(w, s)| *w = w.max(*s));
                }
            }
        }
    }
    println!("worst of {NOISY:?}: {worst:?}");
    assert!(
        worst.iter().all(|&share| share <= most(trials)),
        "{worst:?}"
    );
}

#[test]
fn repeats_that_are_equal_are_rarely_called_different() {
    let trials = if soak() { 1000 } else { 25 };
    let mut worst = vec![0.0_f64; NOISY.len()];
    for runs in [2, 4] {
        for together in [0.0, 0.9] {
            for between in [0.0, 0.03, 0.1] {
                let made = Made {
                    between,
                    ..log(10, together, 0.05, 0.1)
                };
                let shares = called_different(trials, runs, &made, &made, &NOISY);
                println!("{runs} runs, {between} apart, {together:.1}: {shares:?}");
                worst
                    .iter_mut()
                    .zip(&shares)
                    .for_each(|(w, s)| *w = w.max(*s));
            }
        }
    }
    assert!(
        worst.iter().all(|&share| share <= most(trials)),
        "{worst:?}"
    );
}

/// How often a change is found, and how often that is asked for.
#[test]
fn changes_that_matter_are_found() {
    let trials = if soak() { 1000 } else { 30 };
    let stall = |left: f64, within: f64| log(10, 0.0, within, left);
    let run = |rate: f64, stall_s: f64| Made {
        rate: rate * MADE.rate,
        stall_s,
        between: 0.03,
        ..MADE
    };
    let cases = [
        (
            "left in stall 0.1 against 0.2 over 10 s, one run each at 2 %",
            1,
            stall(0.1, 0.02),
            stall(0.2, 0.02),
            Figure::Depth,
        ),
        (
            "the same at 5 %",
            1,
            stall(0.1, 0.05),
            stall(0.2, 0.05),
            Figure::Depth,
        ),
        (
            "10 % off the base, four runs each at 3 %",
            4,
            run(1.0, 4.0),
            run(0.9, 4.0),
            Figure::BaselineRate,
        ),
        (
            "a stall of 4 against 6 s, four runs each",
            4,
            run(1.0, 4.0),
            run(1.0, 6.0),
            Figure::Stall,
        ),
    ];
    for (name, runs, before, after, figure) in cases {
        let share = called_different(trials, runs, &before, &after, &[figure])[0];
        println!("{name}: {:.1} %", 100.0 * share);
        let wanted = if figure == Figure::Stall { 0.95 } else { 0.9 };
        let chance = 3.0 * (wanted * (1.0 - wanted) / trials as f64).sqrt();
        assert!(share >= wanted - chance, "{name}: {share}");
    }
}

/// By how much a rate must change to be found in nine of ten pairs, printed for docs/figures/compare.md.
#[test]
fn how_small_a_change_one_run_each_sees() {
    if !only_in_soak() {
        return;
    }
    for intervals in [5, 10, 20, 60] {
        for within in [0.02, 0.05, 0.2] {
            for together in [0.0, 0.8] {
                let before = log(intervals, together, within, 0.1);
                let seen = |of: Figure, after: &dyn Fn(f64) -> Made| {
                    let factors = [1.03, 1.05, 1.1, 1.2, 1.3, 1.5, 2.0, 3.0, 5.0, 8.0];
                    let found = factors.iter().find(|&&factor| {
                        called_different(200, 1, &before, &after(factor), &[of])[0] >= 0.9
                    });
                    found.map_or("–".to_owned(), |f| format!("+{:.0} %", 100.0 * (f - 1.0)))
                };
                let rate = seen(Figure::BaselineRate, &|f| Made {
                    rate: f * before.rate,
                    ..before
                });
                let depth = seen(Figure::Depth, &|f| Made {
                    left: f * before.left,
                    ..before
                });
                println!(
                    "{intervals} intervals at {within}, {together}: rate {rate}, left {depth}"
                );
            }
        }
    }
}
