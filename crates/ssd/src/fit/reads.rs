//! How long a read takes, and how many there are, while nothing is discarded.

use record::RunRecord;
use record::{DeviceColumns, Part, PhaseName};

use super::figure::{Estimate, Figure, median};
use crate::rng::Rng;

/// Intervals right before the first discard that count in a record without a
/// baseline phase: so many seconds, as the judge takes at most.
const BEFORE_S: f64 = 10.0;

/// Fewer intervals than this don't show how much they differ.
const FEW: usize = 5;

/// Reads beside no discards.
#[derive(Debug, Clone, PartialEq)]
pub struct Reads {
    /// Mean time of a read in the device, in microseconds.
    pub service_us: Figure,
    /// Reads per second, all devices together.
    pub per_s: Option<f64>,
    /// Reads in flight on average.
    pub in_flight: Option<f64>,
}

/// The times of reads and their rates, interval by interval.
#[derive(Debug, Clone, Default)]
pub(super) struct Quiet {
    us: Vec<f64>,
    per_s: Vec<f64>,
    in_flight: Vec<f64>,
}

/// A record's.
pub(super) fn of(record: &RunRecord) -> Quiet {
    let intervals = &record.intervals;
    let leaves: Vec<&DeviceColumns> = (record.head.devices.iter().zip(&intervals.devices))
        .filter(|(info, _)| info.leaf)
        .map(|(_, columns)| columns)
        .collect();
    let mut all = Quiet::default();
    // The kernel tells whole milliseconds: some hundred reads make them a figure.
    let (mut reads, mut ms, mut seconds) = (0_u64, 0_u64, 0.0);
    for i in quiet(record, &leaves) {
        reads += leaves.iter().map(|d| u64::from(d.reads[i])).sum::<u64>();
        ms += leaves.iter().map(|d| u64::from(d.read_ms[i])).sum::<u64>();
        seconds += f64::from(intervals.seconds[i]);
        if reads >= 20 && ms >= 20 {
            all.us.push(ms as f64 * 1e3 / reads as f64);
            all.per_s.push(reads as f64 / seconds);
            all.in_flight.push(ms as f64 / 1e3 / seconds);
            (reads, ms, seconds) = (0, 0, 0.0);
        }
    }
    all
}

impl Quiet {
    /// The same in the time of a drive that is so many times faster.
    pub(super) fn in_time(mut self, times: f64) -> Quiet {
        self.us.iter_mut().for_each(|us| *us /= times);
        self.per_s.iter_mut().for_each(|rate| *rate *= times);
        self
    }

    /// Those of several records.
    pub(super) fn sum<'q>(parts: impl Iterator<Item = &'q Quiet>) -> Quiet {
        parts.fold(Quiet::default(), |mut sum, part| {
            sum.us.extend(&part.us);
            sum.per_s.extend(&part.per_s);
            sum.in_flight.extend(&part.in_flight);
            sum
        })
    }

    /// The reads' figures.
    pub(super) fn reads(&self) -> Reads {
        if self.us.is_empty() {
            return Reads {
                service_us: Figure::unknown("too few reads beside no discards"),
                per_s: None,
                in_flight: None,
            };
        }
        let value = median(self.us.iter().copied());
        let mut rng = Rng::new(2);
        let samples = (0..super::line::RESAMPLES).map(|_| {
            let one = |_| self.us[rng.below(self.us.len() as u64) as usize];
            median(self.us.iter().map(one))
        });
        let mut estimate = Estimate::of(value, samples.collect());
        if self.us.len() < FEW {
            // Nothing is known of how much they differ: a fifth is usual.
            (estimate.low, estimate.high) = (estimate.low * 0.8, estimate.high * 1.2);
        }
        Reads {
            service_us: Figure::Known(estimate),
            per_s: Some(median(self.per_s.iter().copied())),
            in_flight: Some(median(self.in_flight.iter().copied())),
        }
    }
}

/// The intervals in which nobody discards: those of the baseline, or the last
/// seconds before the first discard.
fn quiet(record: &RunRecord, leaves: &[&DeviceColumns]) -> Vec<usize> {
    let intervals = &record.intervals;
    let silent = |i: usize| leaves.iter().all(|d| d.discards[i] == 0);
    let baseline = record
        .phases
        .iter()
        .position(|p| p.part == Part::Main && p.name == PhaseName::Baseline);
    if let Some(at) = baseline {
        let from = record.phases[at].at_s;
        let to = record.phases.get(at + 1).map_or(f64::INFINITY, |p| p.at_s);
        let within = |&i: &usize| (from..to).contains(&intervals.at_s[i]);
        return (0..intervals.len())
            .filter(within)
            .filter(|&i| silent(i))
            .collect();
    }
    let total = |i: usize| {
        leaves
            .iter()
            .map(|d| d.discard_bytes[i])
            .fold(0, u64::saturating_add)
    };
    let all = (0..intervals.len()).map(total).fold(0, u64::saturating_add);
    let significant = |i: usize| total(i) as f64 > 1e-3 * all as f64;
    let first = (0..intervals.len()).find(|&i| significant(i));
    let end = first.unwrap_or(intervals.len());
    let until = intervals
        .at_s
        .get(end)
        .copied()
        .unwrap_or_else(|| intervals.end_s());
    let near = |&i: &usize| intervals.at_s[i] >= until - BEFORE_S;
    (0..end).filter(near).filter(|&i| silent(i)).collect()
}
