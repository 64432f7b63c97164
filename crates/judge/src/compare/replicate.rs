//! How far a run's figures could be from what they would be on average: from the
//! scatter of the intervals that each was made of ([`Spread`]).

use crate::judging::samples::{ActorSamples, IntervalLatency, PhaseSamples, Sampled};
use crate::judging::stats::{mean, median};
use crate::verdict::{Figures, Finding, Foreground, Stall};

use super::figure::{Figure, Percentile, Stretch};
use super::spread::Spread;

/// A figure of one run.
#[derive(Debug, Clone)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) is_lower_bound: bool,
    pub(super) noise: Noise,
}

/// How a figure scatters within its run.
#[derive(Debug, Clone, Copy)]
pub(super) enum Noise {
    /// It is a count: not at all.
    Counted,
    /// It happened once, and nothing within the run tells.
    Once,
    /// As its intervals do.
    Within(Spread),
}

impl Noise {
    /// Its variance within the run; 0 where nothing tells.
    pub(super) fn variance(self) -> f64 {
        match self {
            Noise::Counted | Noise::Once => 0.0,
            Noise::Within(spread) => spread.variance,
        }
    }
}

/// A figure of an actor; `None` where the run doesn't tell.
pub(super) fn of_actor(
    run: &Sampled<'_>,
    seen: &Foreground,
    samples: &ActorSamples<'_>,
    figure: Figure,
) -> Option<Estimate> {
    // A run that leaves open whether there was a stall has none of its figures.
    let judged = run.verdict.verdict != Finding::Inconclusive;
    let of_stall = matches!(
        figure,
        Figure::OpsRatio | Figure::Depth | Figure::Stall | Figure::Longest | Figure::Lost
    );
    if of_stall && !judged {
        return None;
    }
    let has_baseline = seen.baseline_from.is_some();
    let stall = seen.stall;
    match figure {
        Figure::BaselineRate => {
            let value = seen.baseline.ops_per_s?;
            Some(around(value, baseline(value, samples)))
        }
        Figure::DeleteRate => {
            let value = seen.beside().ops_per_s?;
            Some(around(value, delete_rate(value, samples, run)))
        }
        Figure::OpsRatio => {
            let shares: Vec<f64> = samples.covered.iter().map(|c| c.0).collect();
            let value = seen.ops_ratio?;
            Some(around(value, share_left(value, &shares, samples)))
        }
        Figure::Depth => match stall {
            Some(stall) => {
                let spread = share_left(stall.depth, &samples.full, samples);
                Some(around(stall.depth, spread))
            }
            // Whether there was none is known unless noise decided it.
            None if unsure_s(samples, run.low) > 0.0 => once(Some(1.0)),
            None => Some(counted(1.0)),
        }
        .filter(|_| has_baseline),
        Figure::Stall | Figure::Longest => {
            let Some(stall) = stall else {
                let estimate = match unsure(samples, run) {
                    spread if spread.variance > 0.0 => around(0.0, Some(spread)),
                    _ => counted(0.0),
                };
                return has_baseline.then_some(estimate);
            };
            let value = match figure {
                Figure::Stall => stall.seconds,
                _ => stall.longest_s,
            };
            // Where a stall begins and ends isn't known closer than an interval.
            let spread = Spread::of_ends(run.interval_s).and(unsure(samples, run));
            Some(around(value, Some(spread)))
        }
        Figure::Lost => match seen.lost_s {
            Some(value) => {
                // Outside a stall only what belongs to it is counted as lost.
                let counted = unsure(samples, run).times(1.0 - run.low);
                let lost = lost(samples, stall, run.interval_s).map(|lost| lost.and(counted));
                Some(around(value, lost))
            }
            None => has_baseline.then(|| counted(0.0)),
        },
        Figure::Worst => once(seen.beside().max_us),
        Figure::Latency(stretch, percentile) => {
            let (figures, i) = match stretch {
                Stretch::Baseline => (&seen.baseline, 0),
                Stretch::Delete => (seen.beside(), 1),
                Stretch::Recovery => (&seen.recovery, 2),
            };
            latency(figures, samples.latencies[i].as_ref()?, percentile)
        }
        _ => None,
    }
}

/// A figure that a run has once; `None` where it doesn't tell. Figures of discards may include
/// others', and nothing within such a run tells how many.
pub(super) fn of_run(run: &Sampled<'_>, figure: Figure) -> Option<Estimate> {
    let estimate = of_its_own(run, figure)?;
    match run.verdict.others {
        Some(_) if estimate.value > 0.0 => once(Some(estimate.value)),
        _ => Some(estimate),
    }
}

/// The same of a run beside which nobody else discards.
fn of_its_own(run: &Sampled<'_>, figure: Figure) -> Option<Estimate> {
    let discard = &run.verdict.discard;
    // A run that was watched and had no discards discarded nothing.
    let watched = |n: Option<u64>| n.map(|n| counted(n as f64));
    let timed = |value: Option<f64>| Some(around(value?, Some(Spread::of_ends(run.interval_s))));
    match figure {
        Figure::TrimRate => {
            let value = discard.bytes_per_s?;
            if discard.bytes_per_s_is_lower_bound {
                return Some(Estimate {
                    is_lower_bound: true,
                    ..counted(value)
                });
            }
            Some(around(value, Spread::of_median(&run.trim, &[])))
        }
        Figure::DiscardBytes => watched(discard.bytes),
        Figure::DiscardCommands => watched(discard.commands),
        Figure::DiscardActive => timed(discard.active_s),
        Figure::Drain => timed(discard.drain_s),
        Figure::Await => {
            let cells = run.waits.iter().map(|&(ms, commands)| (1e3 * ms, commands));
            Some(around(discard.await_us?, ratio(cells)))
        }
        Figure::DeletionSeconds => once(run.verdict.deletion.as_ref().map(|d| d.seconds)),
        _ => None,
    }
}

fn counted(value: f64) -> Estimate {
    Estimate {
        value,
        is_lower_bound: false,
        noise: Noise::Counted,
    }
}

fn once(value: Option<f64>) -> Option<Estimate> {
    Some(Estimate {
        noise: Noise::Once,
        ..counted(value?)
    })
}

/// A figure that scatters; one whose intervals don't tell how is measured once.
fn around(value: f64, spread: Option<Spread>) -> Estimate {
    let known = spread.filter(|spread| spread.variance.is_finite());
    Estimate {
        noise: known.map_or(Noise::Once, Noise::Within),
        ..counted(value)
    }
}

/// Spread of what is in proportion to the baseline's rate; `None` of a single cell.
fn baseline(value: f64, samples: &ActorSamples<'_>) -> Option<Spread> {
    let rate = median(samples.baseline.iter().copied()).filter(|&rate| rate > 0.0)?;
    Some(Spread::of_median(&samples.baseline, &samples.quiet)?.times(value / rate))
}

/// Spread of a share of the baseline, the median of these, which scatters as the baseline does.
fn share_left(value: f64, shares: &[f64], samples: &ActorSamples<'_>) -> Option<Spread> {
    Some(Spread::of_median(shares, &[])?.and(baseline(value, samples)?))
}

/// Spread of one more cell of the baseline, as a share of its rate.
fn of_cell(samples: &ActorSamples<'_>) -> Option<Spread> {
    let rate = mean(&samples.baseline).filter(|&rate| rate > 0.0)?;
    Some(Spread::of_another(&samples.baseline, &samples.quiet)?.times(1.0 / rate))
}

/// A cell's share of the baseline is taken to scatter by this much at least: few cells
/// often show less than they scatter.
const LEAST_DEVIATION: f64 = 0.1;

/// Seconds that noise alone can have made a part of a stall or not: their share of the
/// baseline is within two standard deviations of where stalls begin.
fn unsure_s(samples: &ActorSamples<'_>, low: f64) -> f64 {
    let share = of_cell(samples).zip(baseline(1.0, samples));
    let deviation = share.map_or(0.0, |(cell, base)| cell.and(base).variance.sqrt());
    let deviation = deviation.max(LEAST_DEVIATION);
    let near = |share: f64| share > 0.0 && (share / low).ln().abs() < 2.0 * deviation;
    let cells = samples.covered.iter().filter(|cell| near(cell.0));
    cells.map(|cell| cell.1).sum()
}

/// Spread of stalled seconds for that reason: neighbours, and the stall's edges with them,
/// may all fall to the same side.
fn unsure(samples: &ActorSamples<'_>, run: &Sampled<'_>) -> Spread {
    let seconds = match unsure_s(samples, run.low) {
        0.0 => 0.0,
        seconds => seconds + 2.0 * run.interval_s,
    };
    Spread {
        variance: seconds * seconds / 4.0,
        ..Spread::NONE
    }
}

/// Spread of the seconds lost in a stall, or else while discards were in service.
fn lost(samples: &ActorSamples<'_>, stall: Option<Stall>, interval_s: f64) -> Option<Spread> {
    let shares: Vec<f64> = match stall {
        Some(_) => samples.full.clone(),
        None => samples.covered.iter().map(|cell| cell.0).collect(),
    };
    let seconds = match stall {
        Some(stall) => stall.seconds,
        None => samples.covered.iter().map(|cell| cell.1).sum(),
    };
    let losses: Vec<f64> = shares.iter().map(|share| (1.0 - share).max(0.0)).collect();
    let kept = 1.0 - mean(&losses).unwrap_or(0.0);
    let cells = match (Spread::of_mean(&losses), stall) {
        (Some(spread), _) => spread,
        // A stall shorter than two cells scatters as the baseline does.
        (None, Some(_)) => of_cell(samples)?.times(kept),
        (None, None) => return None,
    };
    let both = cells.and(baseline(kept, samples)?).times(seconds);
    // Where a stall begins and ends isn't known closer than an interval.
    let ends = stall.map(|stall| Spread::of_ends(interval_s * (1.0 - stall.depth)));
    Some(both.and(ends.unwrap_or(Spread::NONE)))
}

/// Returns the spread of the rate beside discards, or without any in the deletion. Intervals form four groups: with and without
/// discards, low and not. Each scatters around its own mean. The sizes of the groups aren't chance,
/// unless noise alone may decide which intervals are low.
fn delete_rate(value: f64, samples: &ActorSamples<'_>, run: &Sampled<'_>) -> Option<Spread> {
    let base = mean(&samples.baseline).unwrap_or(0.0);
    let all_s: f64 = samples.delete.iter().map(|c| c.1).sum();
    let sure = unsure_s(samples, run.low) == 0.0;
    let is_low = |ops: f64, seconds: f64| sure && ops < base * run.low * seconds;
    // Discards begin and end somewhere within an interval: those are no samples, and
    // scatter as the others do.
    let first = samples.delete.iter().position(|c| c.2);
    let last = samples.delete.iter().rposition(|c| c.2);
    let inner = |i: usize| Some(i) != first && Some(i) != last;
    let cells = || (samples.delete.iter().enumerate()).filter(|&(i, _)| inner(i));
    let inner_s: f64 = cells().map(|(_, cell)| cell.1).sum();
    let mut sum = Spread::of_ends(run.interval_s * (base - value) / all_s);
    let mut degrees = f64::INFINITY;
    for (discards, low) in [(false, true), (false, false), (true, true), (true, false)] {
        let cells = cells().filter(|(_, cell)| cell.2 == discards && is_low(cell.0, cell.1) == low);
        let (seconds, rates): (Vec<f64>, Vec<f64>) = cells
            .map(|(_, &(ops, seconds, _))| (seconds, ops / seconds))
            .unzip();
        let Some(rate) = mean(&rates) else { continue };
        // A single interval scatters as the baseline does.
        let spread = match Spread::of_mean(&rates) {
            Some(spread) => spread,
            None => of_cell(samples)?.times(rate),
        };
        sum = sum.and(spread.times(seconds.iter().sum::<f64>() / inner_s));
        degrees = degrees.min(spread.degrees);
    }
    // Few intervals often show less than they scatter: the edges must not hide that.
    let sum = Spread { degrees, ..sum };
    degrees.is_finite().then_some(sum)
}

/// Spread of a sum over another: how far each part lies from what the ratio makes of it.
fn ratio(parts: impl Iterator<Item = (f64, f64)> + Clone) -> Option<Spread> {
    let (above, below) = parts
        .clone()
        .fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
    let apart: Vec<f64> = parts.map(|p| p.0 - p.1 * above / below).collect();
    Some(Spread::of_mean(&apart)?.times(apart.len() as f64 / below))
}

/// A percentile rests on at least so many longer latencies.
const ENOUGH: f64 = 8.0;

/// A percentile. Which share of the operations took longer than it scatters from
/// interval to interval; that share is looked up among all latencies.
fn latency(
    figures: &Figures,
    phase: &PhaseSamples<'_>,
    percentile: Percentile,
) -> Option<Estimate> {
    let value = match percentile {
        Percentile::P50 => figures.p50_us,
        Percentile::P99 => figures.p99_us,
        Percentile::P999 => figures.p999_us,
    }?;
    let measured = phase.intervals.iter().filter(|i| i.ops > 0.0);
    let Some(histogram) = &phase.histogram else {
        // The value is a mean of the intervals' own, weighed by operations.
        let of = |i: &IntervalLatency| match percentile {
            Percentile::P50 => i.p50_us,
            _ => i.p99_us,
        };
        let measured = measured.filter(|i| !of(i).is_nan());
        return Some(around(
            value,
            ratio(measured.map(|i| (i.ops * of(i), i.ops))),
        ));
    };
    let beyond = 1.0 - percentile.quantile();
    let count = histogram.len() as f64;
    // The few longest say nothing of how a percentile scatters.
    if count * beyond < ENOUGH {
        return once(Some(value));
    }
    let shares = measured.map(|i| (i.ops * above(i, value), i.ops));
    let (above, all) = shares
        .clone()
        .fold((0.0, 0.0), |s, p| (s.0 + p.0, s.1 + p.1));
    let spread = ratio(shares).filter(|_| above > 0.0).map(|share| {
        let chance = ((1.0 - beyond) / (count * beyond)).sqrt();
        let deviation = beyond * (share.variance.sqrt() * all / above).max(chance).min(1.0);
        let at = |beyond: f64| histogram.value_at_quantile(1.0 - beyond) as f64 / 1e3;
        let apart = at(beyond - deviation) - at(beyond + deviation);
        // Latencies of one bucket look equal.
        let bucket = histogram.equivalent_range((value * 1e3) as u64) as f64 / 1e3;
        Spread {
            variance: (apart.max(bucket) / 2.0).powi(2),
            ..share
        }
    });
    Some(around(value, spread))
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
