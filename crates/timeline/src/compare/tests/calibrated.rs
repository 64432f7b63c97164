//! What noise alone is called, and whether a known difference is found.

use super::make::{MADE, Made};
use crate::JudgeOptions;
use crate::compare::difference::{Sided, change};
use crate::compare::replicate::{Noise, Told, of_actor, of_run};
use crate::compare::{ChangeFinding, Figure};
use crate::judge::samples::sample;
use crate::judge::stats::Random;

/// These figures of a run.
fn told(made: &Made, seed: u64, of: &[Figure]) -> Vec<Option<Told>> {
    let record = made.clone().seed(seed).record();
    let run = sample(&record, &JudgeOptions::default());
    let each = of.iter().map(|&figure| {
        let seen = &run.verdict.foreground[0];
        of_run(&run, figure).or_else(|| of_actor(&run, seen, &run.actors[0], figure))
    });
    each.collect()
}

fn differs(before: &[Option<Told>], after: &[Option<Told>]) -> bool {
    let (before, after) = (Sided::of(before), Sided::of(after));
    change("after", before.as_ref(), after.as_ref()).finding == ChangeFinding::Differs
}

/// Shares of so many trials, of one run each, in which a figure was called different.
fn called_different(trials: u64, before: &Made, after: &Made, of: &[Figure]) -> Vec<f64> {
    let mut counts = vec![0_u32; of.len()];
    for trial in 0..trials {
        let before = told(before, 1 + 2 * trial, of);
        let after = told(after, 2 + 2 * trial, of);
        for (i, (before, after)) in before.into_iter().zip(after).enumerate() {
            counts[i] += u32::from(differs(&[before], &[after]));
        }
    }
    let shares = counts.iter().map(|&n| f64::from(n) / trials as f64);
    let shares: Vec<f64> = shares.collect();
    println!("{of:?} {shares:?}");
    shares
}

#[test]
fn noise_within_runs_is_called_a_difference_in_about_one_of_twenty() {
    let of = [
        Figure::BaselineRate,
        Figure::DeleteRate,
        Figure::OpsRatio,
        Figure::TrimRate,
    ];
    let shares = called_different(100, &MADE, &MADE, &of);
    // Three standard deviations of a count of 5 are 7.
    for (figure, share) in of.iter().zip(&shares) {
        assert!(*share <= 0.12, "{figure:?} {share}");
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((0.02..=0.09).contains(&mean), "{mean}");
}

#[test]
fn runs_that_differ_from_each_other_make_one_run_each_say_too_much() {
    let made = Made {
        between: 0.1,
        ..MADE
    };
    let shares = called_different(10, &made, &made, &[Figure::BaselineRate]);
    assert!(shares[0] > 0.5, "{shares:?}");
}

#[test]
fn a_difference_of_a_fifth_is_found() {
    let slower = Made {
        rate: 0.8 * MADE.rate,
        stall_s: 1.2 * MADE.stall_s,
        ..MADE
    };
    let of = [Figure::BaselineRate, Figure::Stall, Figure::Lost];
    let shares = called_different(10, &MADE, &slower, &of);
    assert!(shares.iter().all(|&share| share > 0.99), "{shares:?}");
}

/// A figure around 100 that scatters within its run and from run to run.
fn noisy(random: &mut Random, within: f64, between: f64, shift: f64) -> Told {
    let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
    let value = 100.0 + shift + between * normal() + within * normal();
    let mut stream = || (0..300).map(|_| within * normal()).collect();
    Told {
        value,
        is_lower_bound: false,
        noise: Noise::Deviations([stream(), stream()]),
    }
}

/// The share of trials in which groups of so many runs are called different.
fn repeats(runs: [usize; 2], within: f64, between: f64, shift: f64) -> f64 {
    const TRIALS: u32 = 200;
    let mut random = Random(7);
    let mut count = 0;
    for _ in 0..TRIALS {
        let mut group = |n: usize, shift: f64| -> Vec<Option<Told>> {
            (0..n)
                .map(|_| Some(noisy(&mut random, within, between, shift)))
                .collect()
        };
        let (before, after) = (group(runs[0], 0.0), group(runs[1], shift));
        count += u32::from(differs(&before, &after));
    }
    let share = f64::from(count) / f64::from(TRIALS);
    println!("{runs:?} runs, {within} within, {between} between, {shift} apart: {share}");
    share
}

#[test]
fn noise_from_run_to_run_is_called_a_difference_in_about_one_of_twenty() {
    for runs in [[2, 2], [3, 3], [5, 5], [5, 1], [3, 8]] {
        for (within, between) in [(1.0, 10.0), (5.0, 5.0)] {
            let share = repeats(runs, within, between, 0.0);
            assert!(share <= 0.1, "{runs:?} {within} {between}: {share}");
            // With two of each Welch's interval is wide; with more it is about right.
            if runs[0] >= 5 && within < between {
                assert!(share >= 0.015, "{runs:?} {within} {between}: {share}");
            }
        }
        // Noise within the runs alone: never more than that.
        assert!(repeats(runs, 5.0, 0.0, 0.0) <= 0.1);
    }
    let single = repeats([1, 1], 5.0, 0.0, 0.0);
    assert!((0.02..=0.09).contains(&single), "{single}");
}

#[test]
fn repeats_find_a_difference_of_a_fifth() {
    assert!(repeats([5, 5], 2.0, 5.0, 20.0) >= 0.95);
    assert!(repeats([3, 3], 2.0, 3.0, 20.0) >= 0.9);
}
