//! Judges a deletion by its readers, which know nothing of the pacer.

use std::time::Duration;

use ssd::Time;
use testkit::harness::Outcome;

/// The loss of the readers, window by window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged {
    /// The most that any window lost, as a share of it.
    pub(crate) worst_window: f64,
    /// The mean loss, as a share of the time from the start to the last discard's end.
    pub(crate) mean: f64,
    /// The time lost in all, in seconds.
    pub(crate) lost: f64,
    /// The time from the start to the last discard's end, in seconds.
    pub(crate) time: f64,
    /// Intervals of max(100 ms, 3·S) in which less than half was read.
    pub(crate) low: usize,
}

/// One millisecond.
const BIN: f64 = 0.001;

/// Judges from `start` on against a baseline of so many reads/s.
pub(crate) fn judge(
    outcome: &Outcome,
    start: Time,
    baseline: f64,
    window: f64,
    service: f64,
) -> Judged {
    let end = outcome.discards.last().map_or(start, |d| d.completed);
    judge_range(outcome, start, end, baseline, window, service)
}

/// The same from `start` to `end`.
pub(crate) fn judge_range(
    outcome: &Outcome,
    start: Time,
    end: Time,
    baseline: f64,
    window: f64,
    service: f64,
) -> Judged {
    let bins = (outcome.length.as_secs_f64() / BIN) as usize;
    let mut sums = vec![0_u64; bins + 1];
    for read in &outcome.reads {
        let bin = (read.completed.as_secs_f64() / BIN) as usize;
        if bin < bins {
            sums[bin + 1] += 1;
        }
    }
    for i in 0..bins {
        sums[i + 1] += sums[i];
    }
    let loss = |from: usize, to: usize| {
        let to = to.min(bins);
        let expected = baseline * (to - from) as f64 * BIN;
        1.0 - (sums[to] - sums[from]) as f64 / expected
    };
    let (first, last) = (bin(start), bin(end).min(bins));
    let length = (window / BIN).round() as usize;
    let mut worst = 0.0_f64;
    // A window that reaches beyond the end is one like any other.
    for from in first..=last {
        if from + length <= bins {
            worst = worst.max(loss(from, from + length));
        }
    }
    let time = end.since(start).as_secs_f64();
    let lost = loss(first, last + 20) * ((last + 20).min(bins) - first) as f64 * BIN;
    // One discard alone can take half of 100 ms.
    let grid = (service * 3.0 / BIN).max(100.0) as usize;
    let low = (first..last)
        .step_by(grid)
        .filter(|&i| i + grid <= bins && loss(i, i + grid) > 0.5)
        .count();
    Judged {
        worst_window: worst,
        mean: lost / time.max(1e-9),
        lost,
        time,
        low,
    }
}

fn bin(time: Time) -> usize {
    (time.as_secs_f64() / BIN) as usize
}

/// The open-loop canary's quantile of added latency.
pub(crate) fn added(outcome: &Outcome, start: Time, share: f64) -> Duration {
    let end = outcome.discards.last().map_or(start, |d| d.completed);
    let mut quiet: Vec<Duration> = outcome
        .canary
        .iter()
        .filter(|r| r.intended < start)
        .map(|r| r.latency())
        .collect();
    quiet.sort_unstable();
    let usual = quiet.get(quiet.len() / 2).copied().unwrap_or_default();
    let mut added: Vec<Duration> = outcome
        .canary
        .iter()
        .filter(|r| r.intended >= start && r.intended < end)
        .map(|r| r.latency().saturating_sub(usual))
        .collect();
    added.sort_unstable();
    let rank = (added.len() as f64 * share).ceil() as usize;
    added
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or_default()
}
