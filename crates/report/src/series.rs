//! The series of the charts, per interval: rates, latencies, discards, debt, and stalls.

use ::judge::counting;
use ::judge::verdict::Foreground;
use ::record::RunRecord;

/// Of all bytes discarded; what is far below this share isn't worth a mark.
pub(crate) const SIGNIFICANT: f64 = counting::SIGNIFICANT;

/// Operations a baseline must expect in an interval before its rate says something.
pub(crate) const ENOUGH_OPERATIONS: f64 = 20.0;

/// Operations that an actor completes on average in what its rate is taken over: below,
/// a line jumps between 0 and 1 operation and shows nothing else.
const OPERATIONS: f64 = 5.0;

/// Most intervals that a rate is taken over.
const MOST_TOGETHER: f64 = 50.0;

/// Completed operations per second of an actor; `None` while it isn't running.
pub(crate) fn rate(record: &RunRecord, actor: usize, interval: usize) -> Option<f64> {
    let columns = record.intervals.actors.get(actor)?;
    let seconds = f64::from(*record.intervals.seconds.get(interval)?);
    (columns.running[interval] && seconds > 0.0).then(|| f64::from(columns.ops[interval]) / seconds)
}

/// An actor's rate in each interval, over as many of them as it takes to see some
/// operations, and how many those are.
pub(crate) fn rates(record: &RunRecord, actor: usize) -> (Vec<f64>, usize) {
    let seconds = &record.intervals.seconds;
    let mut rates = vec![f64::NAN; seconds.len()];
    let Some(columns) = record.intervals.actors.get(actor) else {
        return (rates, 1);
    };
    let runs: Vec<usize> = (0..seconds.len()).filter(|&i| columns.running[i]).collect();
    let done = |i: &usize| f64::from(columns.ops[*i]);
    let mean = runs.iter().map(done).sum::<f64>() / runs.len().max(1) as f64;
    let together = if mean > 0.0 {
        (OPERATIONS / mean).ceil().clamp(1.0, MOST_TOGETHER) as usize
    } else {
        1
    };
    for block in runs.chunks(together) {
        let long: f64 = block.iter().map(|&i| f64::from(seconds[i])).sum();
        if long > 0.0 {
            let rate = block.iter().map(done).sum::<f64>() / long;
            block.iter().for_each(|&i| rates[i] = rate);
        }
    }
    (rates, together)
}

/// The 99th percentile of an actor's latency, in microseconds, or the age of
/// its oldest operation in flight where that is more.
pub(crate) fn latency_us(record: &RunRecord, actor: usize, interval: usize) -> Option<f64> {
    let columns = record.intervals.actors.get(actor)?;
    // f32::max takes the other one when one is NaN.
    let us = columns.p99_us[interval].max(columns.oldest_us[interval]);
    (columns.running[interval] && us > 0.0).then(|| f64::from(us))
}

/// Discarded bytes and debt, interval by interval.
#[derive(Debug)]
pub(crate) struct Discards {
    /// Bytes discarded in each interval.
    pub(crate) bytes: Vec<u64>,
    /// Bytes freed and not yet discarded at the end of each interval.
    pub(crate) debt: Vec<u64>,
    /// The devices that were counted, as indices.
    pub(crate) devices: Vec<usize>,
    /// Bytes from which an interval counts as discarding.
    significant: u64,
}

impl Discards {
    pub(crate) fn of(record: &RunRecord) -> Discards {
        let intervals = &record.intervals;
        let counted = counting::counted_in(record, 0..intervals.len());
        let bytes = counted.sums(0..intervals.len(), |device, i| {
            intervals.devices[device].discard_bytes[i]
        });
        // Each part owes only what it freed itself: without discards a control
        // run would pass its debt on to the next part.
        let parts: Vec<f64> = record
            .phases
            .windows(2)
            .filter(|pair| pair[0].part != pair[1].part)
            .map(|pair| pair[1].at_s)
            .collect();
        let mut part = 0;
        let mut owed = 0_u64;
        let debt = (0..intervals.len())
            .map(|i| {
                while parts.get(part).is_some_and(|&at| at <= intervals.at_s[i]) {
                    part += 1;
                    owed = 0;
                }
                owed = owed
                    .saturating_add(intervals.freed_bytes[i])
                    .saturating_sub(bytes[i]);
                owed
            })
            .collect();
        Discards {
            significant: counting::significant(&bytes),
            bytes,
            debt,
            devices: counted.devices,
        }
    }

    /// Discarded bytes per second.
    pub(crate) fn rate(&self, record: &RunRecord, interval: usize) -> Option<f64> {
        let seconds = f64::from(*record.intervals.seconds.get(interval)?);
        (seconds > 0.0).then(|| self.bytes[interval] as f64 / seconds)
    }

    fn significant_near(&self, interval: usize) -> bool {
        let near = interval.saturating_sub(1)..(interval + 2).min(self.bytes.len());
        self.bytes[near]
            .iter()
            .any(|&bytes| bytes >= self.significant)
    }
}

/// A mark under an actor's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Low while discards were processed.
    Stall,
    /// Low without them.
    Dip,
}

/// The marks of each interval, for the eye; their sums are the verdict's to tell.
///
/// Stalls are marked only where the verdict found one, and dips are those it lists.
pub(crate) fn marks(
    record: &RunRecord,
    actor: usize,
    seen: &Foreground,
    discards: &Discards,
) -> Vec<Option<Mark>> {
    let intervals = &record.intervals;
    let mut marks = vec![None; intervals.len()];
    for dip in &seen.dips {
        // An interval is in the dip if its middle is.
        let middle = |i: usize| intervals.at_s[i] + f64::from(intervals.seconds[i]) / 2.0;
        let first = intervals.at_s.partition_point(|&at| at < dip.at_s);
        let dipped = marks
            .iter_mut()
            .enumerate()
            .skip(first.saturating_sub(1))
            .skip_while(|&(i, _)| middle(i) < dip.at_s)
            .take_while(|&(i, _)| middle(i) < dip.at_s + dip.seconds);
        for (_, mark) in dipped {
            *mark = Some(Mark::Dip);
        }
    }
    if seen.stall.is_none() {
        return marks;
    }
    let low = |i: usize| is_low(record, actor, seen, i);
    let mut i = 0;
    while i < marks.len() {
        let from = i;
        while i < marks.len() && low(i) {
            i += 1;
        }
        if (from..i).any(|i| discards.significant_near(i)) {
            for mark in &mut marks[from..i] {
                // What the verdict told apart as a dip stays one.
                *mark = mark.or(Some(Mark::Stall));
            }
        }
        i = i.max(from + 1);
    }
    marks
}

/// Below half the baseline; where too few operations are expected for that, or
/// they come by the clock, the age of the oldest one tells.
fn is_low(record: &RunRecord, actor: usize, seen: &Foreground, interval: usize) -> bool {
    let Some(columns) = record.intervals.actors.get(actor) else {
        return false;
    };
    let seconds = f64::from(record.intervals.seconds[interval]);
    let baseline = seen.baseline.ops_per_s.unwrap_or(0.0);
    let sparse = baseline * seconds < ENOUGH_OPERATIONS;
    if sparse || seen.loop_kind.is_open() {
        let old = (10.0 * seen.baseline.p99_us.unwrap_or(0.0)).max(seconds * 1e6);
        f64::from(columns.oldest_us[interval]) > old
    } else {
        rate(record, actor, interval).is_some_and(|rate| rate < 0.5 * baseline)
    }
}

#[cfg(test)]
mod tests {
    use ::judge::verdict::Dip;
    use ::record::{DeviceKind, Part, Phase, PhaseName};

    use super::*;
    use crate::common::{self, GIB, SHORT};

    /// The intervals with a mark, as the time the first begins and their number.
    fn marked(record: &RunRecord, seen: &Foreground, mark: Mark) -> (f64, usize) {
        let marks = marks(record, 0, seen, &Discards::of(record));
        let first = marks.iter().position(|&m| m == Some(mark));
        let count = marks.iter().filter(|&&m| m == Some(mark)).count();
        (first.map_or(f64::NAN, |i| record.intervals.at_s[i]), count)
    }

    #[test]
    fn a_stall_and_a_dip_are_marked_where_they_were() {
        let (record, verdict) = (SHORT.record(), SHORT.verdict());
        let mut seen = verdict.foreground[0].clone();
        seen.dips = vec![Dip {
            at_s: 70.0,
            seconds: 0.5,
            depth: 0.3,
            discards: None,
        }];
        let (at_s, count) = marked(&record, &seen, Mark::Stall);
        assert!(
            (at_s - 106.4).abs() < 0.11 && (2..=3).contains(&count),
            "{at_s} {count}"
        );
        let (at_s, count) = marked(&record, &seen, Mark::Dip);
        assert!((at_s - 70.0).abs() < 0.01 && count == 5, "{at_s} {count}");
        // Where the verdict found no stall none is marked.
        seen.stall = None;
        assert_eq!(marked(&record, &seen, Mark::Stall).1, 0);
    }

    #[test]
    fn a_stall_is_marked_where_no_interval_has_a_thousandth_of_the_discards() {
        let run = common::Run {
            interval_s: 0.01,
            ..common::READER
        };
        let (at_s, count) = marked(&run.record(), &run.verdict().foreground[0], Mark::Stall);
        assert!((at_s - 99.6).abs() < 0.02, "{at_s}");
        assert!((1685..=1695).contains(&count), "{count}");
    }

    #[test]
    fn the_debt_rises_when_bytes_are_freed_and_is_paid_by_discards() {
        let record = SHORT.record();
        let debt = Discards::of(&record).debt;
        let at = |at_s: f64| debt[record.intervals.at_s.partition_point(|&at| at < at_s)];
        assert_eq!(at(90.0), 0);
        assert_eq!(at(104.0), 8 * GIB);
        assert!(at(110.0) < GIB / 10);
    }

    #[test]
    fn a_part_doesn_t_inherit_the_debt_of_the_one_before() {
        let mut record = SHORT.record();
        for device in &mut record.intervals.devices {
            device.discard_bytes.fill(0);
        }
        assert_eq!(Discards::of(&record).debt.last(), Some(&(8 * GIB)));
        record.phases.push(Phase {
            name: PhaseName::Baseline,
            part: Part::Control,
            at_s: 130.0,
        });
        assert_eq!(Discards::of(&record).debt.last(), Some(&0));
    }

    #[test]
    fn discards_count_once_though_each_level_sees_them() {
        let record = SHORT.record();
        let total: u64 = Discards::of(&record).bytes.iter().sum();
        let leaf: u64 = record.intervals.devices[1].discard_bytes.iter().sum();
        assert!(total == leaf && total > 7 * GIB, "{total} {leaf}");
    }

    #[test]
    fn the_level_above_counts_where_the_leaf_saw_nothing() {
        let mut record = SHORT.record();
        record.head.devices[0] = common::device("loop0", DeviceKind::Loop, 0, &["nvme0n1"]);
        record.intervals.devices[1].discard_bytes.fill(0);
        assert!(Discards::of(&record).bytes.iter().sum::<u64>() > 7 * GIB);
    }
}
