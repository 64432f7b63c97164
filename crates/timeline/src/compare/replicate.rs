//! How a run's figures could have come out otherwise: the bootstrap over its intervals.
//!
//! The intervals of a run are resampled, and each figure computed again from
//! them. Neighbours resemble each other (a drive works in the background for
//! seconds), so they are drawn in blocks that follow each other: circular block
//! bootstrap, Politis and Romano 1992; a block is the cube root of their number
//! long, after Hall, Horowitz and Jing 1995.

use crate::judge::samples::{ActorSamples, IntervalLatency, PhaseSamples, Sampled};
use crate::judge::stats::{MOST, RESAMPLES, Random, mean, median};
use crate::verdict::{Figures, Foreground};

use super::figure::{Figure, Percentile, Stretch};

/// A figure of one run.
#[derive(Debug, Clone)]
pub(super) struct Told {
    pub(super) value: f64,
    pub(super) is_lower_bound: bool,
    pub(super) noise: Noise,
}

/// How a figure scatters within its run.
#[derive(Debug, Clone)]
pub(super) enum Noise {
    /// It is a count: not at all.
    Counted,
    /// It happened once, and nothing within the run tells.
    Once,
    /// Figures of resampled runs, less its own: two independent streams of them.
    Deviations([Vec<f64>; 2]),
}

/// The streams' seeds: the same for every run and figure, so that which run is the
/// first of two changes nothing but the sign.
pub(super) const SEEDS: [u64; 2] = [0x5851_f42d_4c95_7f2d, 0x1405_7b7e_f767_814f];

/// A figure of an actor; `None` where the run doesn't tell.
pub(super) fn of_actor(
    run: &Sampled<'_>,
    seen: &Foreground,
    samples: &ActorSamples<'_>,
    figure: Figure,
) -> Option<Told> {
    let has_baseline = seen.baseline_from.is_some();
    let stall = seen.stall;
    let none = |value| Some(counted(value)).filter(|_| has_baseline);
    match figure {
        Figure::BaselineRate => {
            let value = seen.baseline.ops_per_s?;
            Some(around(value, scaled(value, &baseline_factors(samples))))
        }
        Figure::DeleteRate => {
            let value = seen.delete.ops_per_s?;
            Some(around(value, delete_rate(value, samples)))
        }
        Figure::OpsRatio => {
            let value = seen.ops_ratio?;
            let shares = binned(&samples.covered, |cells| {
                mean(&cells.iter().map(|c| c.0).collect::<Vec<_>>()).unwrap_or(0.0)
            });
            let middle = |picked: &[usize]| median_of(&shares, picked);
            Some(around(value, against(value, &shares, middle, samples)))
        }
        Figure::Depth => {
            let Some(stall) = stall else { return none(1.0) };
            let full = binned(&samples.full, |cells| mean(cells).unwrap_or(0.0));
            let middle = |picked: &[usize]| median_of(&full, picked);
            Some(around(
                stall.depth,
                against(stall.depth, &full, middle, samples),
            ))
        }
        Figure::Stall | Figure::Longest => {
            let Some(stall) = stall else { return none(0.0) };
            let value = if figure == Figure::Stall {
                stall.seconds
            } else {
                stall.longest_s
            };
            // Its intervals are stalled, all of them; where it begins and ends isn't
            // known closer than one.
            Some(around(value, resolution(run.interval_s)))
        }
        Figure::Lost => {
            let Some(value) = seen.lost_s.or(stall.map(|s| s.lost_s)) else {
                return none(0.0);
            };
            let lost = match stall {
                Some(stall) => {
                    let edges = resolution(run.interval_s * (1.0 - stall.depth));
                    added(lost(samples, true), &edges)
                }
                None => lost(samples, false),
            };
            Some(around(value, lost))
        }
        Figure::Worst => once(seen.delete.max_us),
        Figure::Latency(stretch, percentile) => {
            let (figures, i) = match stretch {
                Stretch::Baseline => (&seen.baseline, 0),
                Stretch::Delete => (&seen.delete, 1),
                Stretch::Recovery => (&seen.recovery, 2),
            };
            latency(figures, samples.latencies[i].as_ref()?, percentile)
        }
        _ => None,
    }
}

/// A figure that a run has once; `None` where it doesn't tell.
pub(super) fn of_run(run: &Sampled<'_>, figure: Figure) -> Option<Told> {
    let discard = &run.verdict.discard;
    // A run that was watched and had no discards discarded nothing.
    let watched = |n: Option<u64>| n.map(|n| counted(n as f64));
    let timed = |value: Option<f64>| {
        let value = value?;
        Some(around(value, resolution(run.interval_s)))
    };
    match figure {
        Figure::TrimRate => {
            let value = discard.bytes_per_s?;
            if discard.bytes_per_s_is_lower_bound {
                return Some(Told {
                    is_lower_bound: true,
                    ..counted(value)
                });
            }
            let cells = binned(&run.trim, |cells| mean(cells).unwrap_or(0.0));
            let middle = |picked: &[usize]| median_of(&cells, picked);
            Some(around(value, ratios(value, cells.len(), middle)))
        }
        Figure::DiscardBytes => watched(discard.bytes),
        Figure::DiscardCommands => watched(discard.commands),
        Figure::DiscardActive => timed(discard.active_s),
        Figure::Drain => timed(discard.drain_s),
        Figure::Await => {
            let value = discard.await_us?;
            let cells = binned(&run.waits, |cells| {
                let sum = |of: fn(&(f64, f64)) -> f64| cells.iter().map(of).sum::<f64>();
                (sum(|c| c.0), sum(|c| c.1))
            });
            let wait = |picked: &[usize]| {
                let (ms, commands) = picked.iter().fold((0.0, 0.0), |sum, &i| {
                    (sum.0 + cells[i].0, sum.1 + cells[i].1)
                });
                ms / commands
            };
            Some(around(value, ratios(value, cells.len(), wait)))
        }
        Figure::DeletionSeconds => once(run.verdict.deletion.map(|d| d.seconds)),
        _ => None,
    }
}

fn counted(value: f64) -> Told {
    Told {
        value,
        is_lower_bound: false,
        noise: Noise::Counted,
    }
}

fn once(value: Option<f64>) -> Option<Told> {
    Some(Told {
        noise: Noise::Once,
        ..counted(value?)
    })
}

/// A figure that scatters; one whose resampling came to nothing is measured once.
fn around(value: f64, deviations: [Vec<f64>; 2]) -> Told {
    let told = |stream: &Vec<f64>| !stream.is_empty() && stream.iter().all(|d| d.is_finite());
    let noise = if deviations.iter().all(told) {
        Noise::Deviations(deviations)
    } else {
        Noise::Once
    };
    Told {
        noise,
        ..counted(value)
    }
}

/// At most [`MOST`] neighbours taken together: resampling a hundred thousand
/// intervals would take minutes and say the same.
fn binned<T: Clone, U>(all: &[T], join: impl Fn(&[T]) -> U) -> Vec<U> {
    let n = all.len().min(MOST);
    (0..n)
        .map(|i| join(&all[i * all.len() / n..(i + 1) * all.len() / n]))
        .collect()
}

fn median_of(cells: &[f64], picked: &[usize]) -> f64 {
    median(picked.iter().map(|&i| cells[i])).unwrap_or(f64::NAN)
}

/// What `statistic` says of each resampling of `0..n`: two streams. Empty for
/// fewer than two: one interval doesn't tell how it scatters.
fn resampled(n: usize, statistic: impl Fn(&[usize]) -> f64) -> [Vec<f64>; 2] {
    if n < 2 {
        return [Vec::new(), Vec::new()];
    }
    let block = (n as f64).cbrt().round().max(1.0) as usize;
    SEEDS.map(|seed| {
        let mut random = Random(seed);
        let mut picked = Vec::with_capacity(n + block);
        (0..RESAMPLES)
            .map(|_| {
                picked.clear();
                while picked.len() < n {
                    let first = random.below(n);
                    picked.extend((first..first + block).map(|i| i % n));
                }
                picked.truncate(n);
                statistic(&picked)
            })
            .collect()
    })
}

/// Deviations of a value that scatters in proportion to a statistic of its intervals.
fn ratios(value: f64, n: usize, statistic: impl Fn(&[usize]) -> f64) -> [Vec<f64>; 2] {
    let all: Vec<usize> = (0..n).collect();
    let own = statistic(&all);
    resampled(n, statistic).map(|stream| {
        let ratio = |again: f64| if own == 0.0 { 1.0 } else { again / own };
        stream
            .into_iter()
            .map(|again| value * (ratio(again) - 1.0))
            .collect()
    })
}

/// By how much the baseline's rate could have been more: factors.
fn baseline_factors(samples: &ActorSamples<'_>) -> [Vec<f64>; 2] {
    let cells = binned(&samples.baseline, |cells| mean(cells).unwrap_or(0.0));
    let own = median(cells.iter().copied()).unwrap_or(0.0);
    if cells.len() < 2 {
        return SEEDS.map(|_| vec![1.0; RESAMPLES]);
    }
    resampled(cells.len(), |picked| median_of(&cells, picked)).map(|stream| {
        let factor = |again: f64| if own > 0.0 { again / own } else { 1.0 };
        stream.into_iter().map(factor).collect()
    })
}

fn scaled(value: f64, factors: &[Vec<f64>; 2]) -> [Vec<f64>; 2] {
    factors
        .each_ref()
        .map(|stream| stream.iter().map(|f| value * (f - 1.0)).collect())
}

/// Deviations of a share of the baseline, which scatters as well.
fn against(
    value: f64,
    shares: &[f64],
    statistic: impl Fn(&[usize]) -> f64,
    samples: &ActorSamples<'_>,
) -> [Vec<f64>; 2] {
    let all: Vec<usize> = (0..shares.len()).collect();
    let own = statistic(&all);
    let [again_0, again_1] = resampled(shares.len(), statistic);
    // Each with the other's factors: one number must not decide both.
    let [factors_1, factors_0] = baseline_factors(samples);
    let both = |again: Vec<f64>, factors: Vec<f64>| {
        let pairs = again.into_iter().zip(factors);
        pairs
            .map(|(again, factor)| again - own - value * (factor - 1.0))
            .collect()
    };
    [both(again_0, factors_0), both(again_1, factors_1)]
}

/// Deviations of lost seconds: the intervals' losses, against a baseline that scatters.
fn lost(samples: &ActorSamples<'_>, stalled: bool) -> [Vec<f64>; 2] {
    // A stall's edges are no samples of it: only what lies between them is resampled.
    let of = |edge: bool| -> Vec<(f64, f64)> {
        let cells = samples.stalled.iter();
        cells
            .filter(|c| (c.0 < 0.999 * c.2) == edge)
            .map(|c| (c.1, c.2))
            .collect()
    };
    let cells = if stalled {
        of(false)
    } else {
        samples.covered.clone()
    };
    let cells = binned(&cells, <[(f64, f64)]>::to_vec);
    let sum = |i: usize, factor: f64| {
        let of = |&(share, seconds): &(f64, f64)| (1.0 - share / factor).max(0.0) * seconds;
        cells[i].iter().map(of).sum::<f64>()
    };
    let own: f64 = (0..cells.len()).map(|i| sum(i, 1.0)).sum();
    let mut again = resampled(cells.len(), |picked| {
        picked.iter().map(|&i| sum(i, 1.0)).sum::<f64>() - own
    });
    if stalled && again[0].is_empty() {
        again = SEEDS.map(|_| vec![0.0; RESAMPLES]);
    }
    let [again_0, again_1] = again;
    let [factors_1, factors_0] = baseline_factors(samples);
    let against = |again: Vec<f64>, factors: Vec<f64>| {
        // Factors repeat themselves little, and a hundred cells take no time.
        let moved = factors.into_iter().map(|factor| {
            let all: f64 = (0..cells.len()).map(|i| sum(i, factor)).sum();
            all - own
        });
        again.into_iter().zip(moved).map(|(a, b)| a + b).collect()
    };
    [against(again_0, factors_0), against(again_1, factors_1)]
}

/// Deviations of the deletion's rate. Intervals without discards, those with that were
/// low, and those with that weren't are resampled each for themselves: how many there
/// are of which isn't chance, and an edge of a stall is no sample of it.
fn delete_rate(value: f64, samples: &ActorSamples<'_>) -> [Vec<f64>; 2] {
    let half = mean(&samples.baseline).unwrap_or(0.0) / 2.0;
    let all: f64 = samples.delete.iter().map(|c| c.1).sum();
    let mut sum: Option<[Vec<f64>; 2]> = None;
    for (discards, low) in [(false, true), (false, false), (true, true), (true, false)] {
        let cells = samples.delete.iter().copied();
        let cells: Vec<(f64, f64)> = cells
            .filter(|&(ops, seconds, covered)| covered == discards && (ops < half * seconds) == low)
            .map(|(ops, seconds, _)| (ops, seconds))
            .collect();
        let rates = binned(&cells, |cells| {
            let (ops, seconds) = cells.iter().fold((0.0, 0.0), |s, c| (s.0 + c.0, s.1 + c.1));
            ops / seconds
        });
        let own = mean(&rates).unwrap_or(0.0);
        let weight = cells.iter().map(|c| c.1).sum::<f64>() / all;
        let again = resampled(rates.len(), |picked| {
            let sum: f64 = picked.iter().map(|&i| rates[i]).sum();
            weight * (sum / picked.len() as f64 - own)
        });
        // One interval doesn't scatter, and doesn't keep the others from telling.
        if again[0].is_empty() {
            continue;
        }
        sum = Some(match sum {
            // The streams change places: one number must not decide both.
            Some([first, second]) => added(again, &[second, first]),
            None => again,
        });
    }
    let streams = sum.unwrap_or_default();
    streams.map(|stream| stream.into_iter().map(|d| d.max(-value)).collect())
}

/// Deviations of what begins and ends somewhere within an interval.
fn resolution(interval_s: f64) -> [Vec<f64>; 2] {
    SEEDS.map(|seed| {
        let mut random = Random(!seed);
        (0..RESAMPLES)
            .map(|_| (random.unit() - random.unit()) * interval_s)
            .collect()
    })
}

fn added(mut to: [Vec<f64>; 2], more: &[Vec<f64>; 2]) -> [Vec<f64>; 2] {
    for (stream, more) in to.iter_mut().zip(more) {
        stream.iter_mut().zip(more).for_each(|(d, m)| *d += m);
    }
    to
}

/// A percentile. Which share of the operations took longer than it scatters from
/// interval to interval; that share, resampled, is looked up among all latencies.
fn latency(figures: &Figures, phase: &PhaseSamples<'_>, percentile: Percentile) -> Option<Told> {
    let value = match percentile {
        Percentile::P50 => figures.p50_us,
        Percentile::P99 => figures.p99_us,
        Percentile::P999 => figures.p999_us,
    }?;
    let told: Vec<IntervalLatency> = phase
        .intervals
        .iter()
        .copied()
        .filter(|i| i.ops > 0.0)
        .collect();
    let Some(histogram) = phase.histogram else {
        // The value is a mean of the intervals' own, weighed by operations.
        let of = |i: &IntervalLatency| match percentile {
            Percentile::P50 => i.p50_us,
            _ => i.p99_us,
        };
        let told: Vec<(f64, f64)> = told.iter().map(|i| (i.ops, of(i))).collect();
        let told: Vec<_> = told.into_iter().filter(|t| !t.1.is_nan()).collect();
        let cells = binned(&told, |cells| {
            let weighed: f64 = cells.iter().map(|c| c.0 * c.1).sum();
            (cells.iter().map(|c| c.0).sum::<f64>(), weighed)
        });
        let mean = |picked: &[usize]| {
            let (ops, weighed) = picked.iter().fold((0.0, 0.0), |sum, &i| {
                (sum.0 + cells[i].0, sum.1 + cells[i].1)
            });
            weighed / ops
        };
        return Some(around(value, ratios(value, cells.len(), mean)));
    };
    let cells = binned(&told, |cells| {
        let above: f64 = cells.iter().map(|i| i.ops * above(i, value)).sum();
        (cells.iter().map(|i| i.ops).sum::<f64>(), above)
    });
    let share = |picked: &[usize]| {
        let (ops, above) = picked.iter().fold((0.0, 0.0), |sum, &i| {
            (sum.0 + cells[i].0, sum.1 + cells[i].1)
        });
        above / ops
    };
    let all: Vec<usize> = (0..cells.len()).collect();
    let own = share(&all);
    let beyond = 1.0 - percentile.quantile();
    let deviations = resampled(cells.len(), share).map(|stream| {
        let at = |again: f64| {
            let factor = if own > 0.0 { again / own } else { 1.0 };
            let quantile = (1.0 - beyond * factor).clamp(0.0, 1.0);
            histogram.value_at_quantile(quantile) as f64 / 1e3 - value
        };
        stream.into_iter().map(at).collect()
    });
    Some(around(value, deviations))
}

/// The share of an interval's operations that took longer than `us`: between what it
/// tells of them (median, 99th percentile, longest) it falls by powers of both.
fn above(interval: &IntervalLatency, us: f64) -> f64 {
    let points = [
        (interval.p50_us / 4.0, 1.0),
        (interval.p50_us, 0.5),
        (interval.p99_us, 0.01_f64.max(0.5 / interval.ops).min(0.5)),
        (interval.max_us, (0.5 / interval.ops).min(0.01)),
    ];
    let points: Vec<(f64, f64)> = points.into_iter().filter(|p| p.0 > 0.0).collect();
    let after = points.iter().position(|p| p.0 >= us);
    match after {
        Some(0) => 1.0,
        None => 0.0,
        Some(i) => {
            let ((x0, y0), (x1, y1)) = (points[i - 1], points[i]);
            let at = (us / x0).ln() / (x1 / x0).ln();
            if at.is_finite() {
                y0 * (y1 / y0).powf(at.clamp(0.0, 1.0))
            } else {
                y1
            }
        }
    }
}
