//! How often the judge errs: made-up logs of a foreground with noise, whose truth is known.
//!
//! A short form by default; with `TRIMBENCH_SOAK` a thousand logs of each, and the table that
//! docs/figures/judge.md shows.

#![allow(clippy::unwrap_used, reason = "tests may")]

mod made_up;
mod real;

use judge::verdict::{Finding, Reason};
use judge::{JudgeOptions, judge};
use made_up::{Log, Noise};
use testkit::Rng;
use testkit::gate::{soak, times};

/// How often each was found, of this many logs.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    stall: usize,
    slowdown: usize,
    none: usize,
    of: usize,
}

impl Found {
    fn share(count: usize, of: usize) -> f64 {
        count as f64 / of as f64
    }

    fn wrong(&self) -> f64 {
        Found::share(self.stall + self.slowdown, self.of)
    }
}

/// The discards begin anywhere within an interval if `anywhere`.
fn found(log: Log, of: usize, anywhere: bool) -> Found {
    let mut random = Rng::new(7);
    let mut found = Found {
        of,
        ..Found::default()
    };
    for _ in 0..of {
        let late = if anywhere {
            random.unit() * log.interval_s
        } else {
            0.0
        };
        let discards = (log.discards.0 + late, log.discards.1 + late);
        let record = Log { discards, ..log }.record(&mut random);
        match judge(&record, &JudgeOptions::default()).verdict {
            Finding::Stall => found.stall += 1,
            Finding::Slowdown => found.slowdown += 1,
            Finding::None => found.none += 1,
            Finding::Inconclusive => {}
        }
    }
    found
}

/// Logs of each kind: a few, or a thousand.
fn count(few: usize) -> usize {
    times(few, 1000)
}

const NOISES: [(&str, Noise); 6] = [
    ("white", Noise::Correlated(0.0)),
    ("AR 0.5", Noise::Correlated(0.5)),
    ("AR 0.8", Noise::Correlated(0.8)),
    ("AR 0.95", Noise::Correlated(0.95)),
    ("drift", Noise::Drift),
    ("dips", Noise::Dips),
];

fn log(noise: Noise, sd: f64, interval_s: f64, left: f64) -> Log {
    Log {
        noise,
        sd,
        interval_s,
        left,
        discards: (20.0, 24.0),
    }
}

/// Discards that do nothing: at most one log in twenty gets another verdict than none or
/// inconclusive. Of few logs a few more may.
#[test]
fn noise_alone_is_no_verdict() {
    let (of, most) = (count(40), if soak() { 0.05 } else { 0.1501 });
    let sds: &[f64] = if soak() {
        &[0.02, 0.05, 0.1, 0.2, 0.4]
    } else {
        &[0.2, 0.4]
    };
    let intervals: &[f64] = if soak() { &[1.0, 0.1] } else { &[1.0] };
    println!("| interval | noise | sd | stall | slowdown | none |\n|---|---|---|---|---|---|");
    let mut worst = 0.0_f64;
    for &interval_s in intervals {
        for (name, noise) in NOISES {
            for &sd in sds {
                let found = found(log(noise, sd, interval_s, 1.0), of, false);
                row(interval_s, name, sd, found);
                worst = worst.max(found.wrong());
            }
        }
    }
    assert!(worst <= most + 1e-9, "{worst}");
}

/// Real effects at a scatter of 5 %: 70 % left is a slowdown, 45 % a stall or a slowdown.
#[test]
fn real_effects_are_found_in_noise() {
    let (of, least) = (count(40), if soak() { 0.95 } else { 0.85 });
    let sds: &[f64] = if soak() { &[0.05, 0.1, 0.2] } else { &[0.05] };
    let intervals: &[f64] = if soak() { &[1.0, 0.1] } else { &[1.0] };
    for left in [0.7, 0.45] {
        println!(
            "{left} left\n| interval | noise | sd | stall | slowdown | none |\n|---|---|---|---|---|---|"
        );
        for &interval_s in intervals {
            for (name, noise) in NOISES {
                for &sd in sds {
                    let found = found(log(noise, sd, interval_s, left), of, false);
                    row(interval_s, name, sd, found);
                    // A dip of its own takes as much in one second as 70 % left do in four.
                    let least = match noise {
                        Noise::Dips => least - 0.02,
                        _ => least,
                    };
                    assert!(
                        found.wrong() >= least || sd > 0.05,
                        "{left} {name} {found:?}"
                    );
                }
            }
        }
    }
}

/// A stall of exactly two intervals, wherever it begins within one.
#[test]
fn two_intervals_at_a_tenth_are_a_stall() {
    let (of, least) = (count(60), if soak() { 0.98 } else { 0.93 });
    println!("| interval | noise | sd | stall | slowdown | none |\n|---|---|---|---|---|---|");
    for interval_s in [1.0, 0.1] {
        // A stall as short as the dips of a neighbour can't be told from one of them.
        for &(name, noise) in &NOISES[..5] {
            let discards = (20.0, 20.0 + 2.0 * interval_s);
            let log = Log {
                discards,
                ..log(noise, 0.05, interval_s, 0.1)
            };
            let found = found(log, of, true);
            row(interval_s, name, 0.05, found);
            assert!(Found::share(found.stall, of) >= least, "{name} {found:?}");
        }
    }
}

fn row(interval_s: f64, name: &str, sd: f64, found: Found) {
    let percent = |count| format!("{:.1} %", 100.0 * Found::share(count, found.of));
    println!(
        "| {interval_s} s | {name} | {:.0} % | {} | {} | {} |",
        100.0 * sd,
        percent(found.stall),
        percent(found.slowdown),
        percent(found.none)
    );
}

/// 50,000 reads/s are not too few operations; they scatter, and the verdict says how much.
#[test]
fn noise_is_named_with_the_loss_that_would_have_been_seen() {
    let log = log(Noise::Correlated(0.0), 0.2, 1.0, 1.0);
    let mut noisy = 0;
    let mut random = Rng::new(3);
    for _ in 0..20 {
        let verdict = judge(&log.record(&mut random), &JudgeOptions::default());
        assert!(!verdict.reasons.contains(&Reason::TooFewOperations));
        if verdict.reasons.contains(&Reason::TooNoisy) {
            noisy += 1;
            let seen = verdict.foreground[0].detectable.unwrap();
            assert!((0.1..0.6).contains(&seen), "{seen}");
            assert!(
                verdict.summary.contains("would have been seen"),
                "{}",
                verdict.summary
            );
        }
    }
    assert!(noisy >= 10, "{noisy}");
}
