//! The same in the noise of real drives: the undisturbed stretches of recorded runs, with stalls of
//! known length spliced in.
//!
//! `TRIMBENCH_SOAK=1 cargo test -p trimbench-judge --test judge_errs -- --nocapture real` prints the
//! table of docs/figures/judge-noise.md.

use judge::verdict::Finding;
use judge::{JudgeOptions, judge};
use testkit::Rng;
use testkit::gate::times;
use testkit::recorded::{RUNS, Recorded};

use super::made_up::record;

/// The lengths of the stalls, in seconds.
const STALLS_S: [f64; 5] = [0.2, 0.5, 1.0, 2.0, 5.0];
/// The share of the rate that a stall leaves: as on the T500.
const LEFT: f64 = 0.04;
/// At least so long before the discards, and behind them, in seconds.
const BEFORE_S: f64 = 10.0;
const BEHIND_S: f64 = 3.0;

/// A drive's reads per second while nothing was discarded.
struct Noise {
    name: String,
    interval_s: f64,
    rates: Vec<f64>,
}

/// The stretches of a run without discards that are long enough; a run begins and ends without reads,
/// and a file system's journal sends a lone discard at times.
fn stretches(run: &Recorded) -> Vec<Noise> {
    let mut seconds = vec![(0.0, 0.0); run.seconds()];
    run.each(|second, device, row| {
        // An array counts what its drives count.
        if !device.starts_with("md") {
            seconds[second - 1].0 += row.figure("r/s");
            seconds[second - 1].1 += row.figure("dMB/s");
        }
    });
    let mut all: Vec<f64> = seconds.iter().map(|second| second.0).collect();
    all.sort_by(f64::total_cmp);
    let idle = all[all.len() / 2] / 10.0;
    let disturbed = |second: &(f64, f64)| second.0 < idle || second.1 > 1.0;
    // A second beside discards has a part of them.
    let beside: Vec<bool> = (0..seconds.len())
        .map(|i| {
            seconds[i.saturating_sub(1)..(i + 2).min(seconds.len())]
                .iter()
                .any(disturbed)
        })
        .collect();
    let rates = |stretch: &[usize]| stretch.iter().map(|&i| seconds[i].0).collect::<Vec<_>>();
    let indices: Vec<usize> = (0..seconds.len()).collect();
    let stretches = indices.split(|&i| beside[i]).map(rates);
    stretches
        .filter(|rates| rates.len() as f64 >= BEFORE_S + 2.0 + BEHIND_S)
        .map(|rates| Noise {
            name: run.name.to_owned(),
            interval_s: 1.0,
            rates,
        })
        .collect()
}

/// Stretches of a root disk, read at depth 8 while others compiled on it.
fn root_disk() -> impl Iterator<Item = Noise> {
    let text = include_str!("root-disk.csv");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| Noise {
        name: "root disk".to_owned(),
        interval_s: 0.1,
        rates: line.split(',').map(|rate| rate.parse().unwrap()).collect(),
    })
}

/// The shares of so many logs, in percent, in which the judge finds an effect, says that it can't
/// know, and rules one out.
fn judged(noise: &Noise, stall_s: f64, left: f64, of: usize, random: &mut Rng) -> [f64; 3] {
    let length_s = noise.rates.len() as f64 * noise.interval_s;
    let room_s = length_s - BEFORE_S - stall_s - BEHIND_S;
    let mut shares = [0.0; 3];
    for _ in 0..of {
        let from_s = BEFORE_S + random.unit() * room_s.max(0.0);
        let (discards, rates) = ((from_s, from_s + stall_s), noise.rates.iter().copied());
        let record = record(noise.interval_s, rates, discards, left);
        let which = match judge(&record, &JudgeOptions::default()).verdict {
            Finding::Stall | Finding::Slowdown => 0,
            Finding::Inconclusive => 1,
            Finding::None => 2,
        };
        shares[which] += 100.0 / of as f64;
    }
    shares
}

/// Standard deviation of the rates, as a share of their mean.
fn scatter(rates: &[f64]) -> f64 {
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    (squares / rates.len() as f64).sqrt() / mean
}

#[test]
fn in_real_noise_no_long_stall_is_ruled_out_and_none_is_made_up() {
    let of = times(20, 1000);
    let mut random = Rng::new(11);
    println!(
        "| noise | interval | seconds | sd | 0.2 s | 0.5 s | 1 s | 2 s | 5 s | no effect |\n\
         |---|---|---|---|---|---|---|---|---|---|"
    );
    let all = RUNS.into_iter().flat_map(stretches).chain(root_disk());
    for noise in all {
        let length_s = noise.rates.len() as f64 * noise.interval_s;
        let mut row = format!(
            "| {} | {} s | {length_s:.0} | {:.1} % |",
            noise.name,
            noise.interval_s,
            100.0 * scatter(&noise.rates)
        );
        let kinds = STALLS_S.map(|stall_s| (stall_s, LEFT));
        for (stall_s, left) in kinds.into_iter().chain([(2.0, 1.0)]) {
            if BEFORE_S + stall_s + BEHIND_S > length_s {
                row += " too short |";
                continue;
            }
            let shares = judged(&noise, stall_s, left, of, &mut random);
            row += &format!(" {:.0} / {:.0} / {:.0} |", shares[0], shares[1], shares[2]);
            // Two whole intervals, wherever the stall begins; and of few logs a few more may err.
            let wrong = match left < 1.0 {
                true if stall_s >= 3.0 * noise.interval_s && stall_s >= 1.0 => shares[2],
                true => 0.0,
                false => shares[0],
            };
            assert!(
                wrong <= 5.0,
                "{} {stall_s} s {left}: {shares:?}",
                noise.name
            );
        }
        println!("{row}");
    }
}
