//! The results of an experiment.

use std::time::Duration;

use ssd::Time;
use ssd::drive::Drive;

/// One I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Which drive's.
    pub drive: usize,
    /// When it was meant to start; in a closed loop, when it was issued.
    pub intended: Time,
    /// When it was done.
    pub completed: Time,
    /// Its size.
    pub bytes: u64,
}

impl Sample {
    /// From its intended start to its completion.
    pub fn latency(&self) -> Duration {
        self.completed - self.intended
    }
}

/// All that was done, in order of completion.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// How long it ran.
    pub length: Duration,
    /// The reads.
    pub reads: Vec<Sample>,
    /// The canary's reads.
    pub canary: Vec<Sample>,
    /// The discards.
    pub discards: Vec<Sample>,
    /// The drives as they are now.
    pub drives: Vec<Drive>,
}

/// The operations that completed in an interval, as iostat has them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Interval {
    /// Its length in seconds.
    pub seconds: f64,
    /// Reads completed.
    pub reads: u64,
    /// Their mean latency in ms; 0 without reads.
    pub r_await_ms: f64,
    /// Discards completed.
    pub discards: u64,
    /// Their mean latency in ms; 0 without discards.
    pub d_await_ms: f64,
    /// Bytes they discarded.
    pub bytes_discarded: u64,
}

/// A time in which less than half of the baseline was read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stall {
    /// How long: the share of the loss in its intervals and its two edges, as if
    /// the rate had been `depth` throughout.
    pub seconds: f64,
    /// The median share of the baseline over its intervals.
    pub depth: f64,
    /// The time that it would take to catch up at the baseline's rate.
    pub lost_s: f64,
}

impl Outcome {
    /// The work in each interval of this length (above 0), up to the last whole one.
    pub fn intervals(&self, length: Duration) -> Vec<Interval> {
        let count = self.length.as_nanos() / length.as_nanos().max(1);
        let mut intervals = vec![
            Interval {
                seconds: length.as_secs_f64(),
                ..Interval::default()
            };
            usize::try_from(count).unwrap_or(0)
        ];
        let index = |sample: &Sample| {
            let nanos = u128::from(sample.completed.as_nanos());
            usize::try_from(nanos / length.as_nanos().max(1)).unwrap_or(usize::MAX)
        };
        for read in &self.reads {
            if let Some(interval) = intervals.get_mut(index(read)) {
                interval.reads += 1;
                interval.r_await_ms += ms(read.latency());
            }
        }
        for discard in &self.discards {
            if let Some(interval) = intervals.get_mut(index(discard)) {
                interval.discards += 1;
                interval.d_await_ms += ms(discard.latency());
                interval.bytes_discarded += discard.bytes;
            }
        }
        for interval in &mut intervals {
            interval.r_await_ms /= interval.reads.max(1) as f64;
            interval.d_await_ms /= interval.discards.max(1) as f64;
        }
        intervals
    }

    /// Reads that completed between the first discard's start and the last one's
    /// end.
    pub fn reads_while_discarding(&self) -> usize {
        let Some(first) = self.discards.iter().map(|d| d.intended).min() else {
            return 0;
        };
        let last = self.discards.last().map_or(first, |d| d.completed);
        let within = |read: &&Sample| first < read.completed && read.completed <= last;
        self.reads.iter().filter(within).count()
    }

    /// The longest stall against a baseline of so many reads/s, seen in
    /// intervals of this length; `None` if there is none. Its interval's loss
    /// counts, and that of the interval before and after it, since it neither
    /// begins nor ends with an interval.
    pub fn stall(&self, length: Duration, baseline_per_s: f64) -> Option<Stall> {
        let expected = baseline_per_s * length.as_secs_f64();
        let intervals = self.intervals(length);
        let shares: Vec<f64> = intervals
            .iter()
            .map(|i| i.reads as f64 / expected)
            .collect();
        let run = longest_low(&shares)?;
        let depth = median(shares[run.clone()].to_vec());
        let edges = run.start.saturating_sub(1)..(run.end + 1).min(shares.len());
        let losses = shares[edges].iter().map(|share| (1.0 - share).max(0.0));
        Some(Stall {
            seconds: losses
                .clone()
                .map(|loss| (loss / (1.0 - depth)).min(1.0) * length.as_secs_f64())
                .sum(),
            depth,
            lost_s: losses.sum::<f64>() * length.as_secs_f64(),
        })
    }

    /// The share of reads whose latency is above `limit`.
    pub fn share_above(&self, limit: Duration) -> f64 {
        let above = self.reads.iter().filter(|r| r.latency() > limit).count();
        above as f64 / self.reads.len().max(1) as f64
    }

    /// The latency that `share` (0 to 1) of the reads don't exceed.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let mut latencies: Vec<Duration> = self.reads.iter().map(Sample::latency).collect();
        latencies.sort_unstable();
        let rank = (share.clamp(0.0, 1.0) * latencies.len() as f64).ceil() as usize;
        latencies.get(rank.saturating_sub(1)).copied()
    }
}

/// The longest run of shares below a half.
fn longest_low(shares: &[f64]) -> Option<std::ops::Range<usize>> {
    let mut longest = 0..0;
    let mut start = 0;
    for (i, &share) in shares.iter().enumerate() {
        if share >= 0.5 {
            start = i + 1;
        } else if i + 1 - start > longest.len() {
            longest = start..i + 1;
        }
    }
    Some(longest).filter(|run| !run.is_empty())
}

/// The median; 0 of nothing.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}
