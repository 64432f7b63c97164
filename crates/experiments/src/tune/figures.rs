//! The figures of one run of a trial.

use judge::verdict::{Finding, Verdict};
use record::{EventKind, PhaseName, RunRecord};
use serde::Serialize;

use crate::tune::candidates::{READER, SYNCER};

/// Discards of fewer bytes than this share of the run's are a journal's own.
const SIGNIFICANT: f64 = 0.001;

/// An interval in which so much of the baseline is lost is low, as the judge sees it.
const LOW: f64 = 0.5;

/// The figures of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// From the first deletion call until all was discarded, in seconds.
    pub freeing_s: f64,
    /// Time that the readers lost meanwhile: the sum of 1 − share of the baseline,
    /// gains subtracted, so that what only fluctuates cancels out.
    pub lost_s: f64,
    /// Share of the baseline lost in the worst interval meanwhile, 0 to 1.
    pub worst_loss: f64,
    /// The same in the baseline.
    pub usual_worst_loss: f64,
    /// Share of the baseline's intervals in which half of it or more was lost, 0 to 1.
    pub usual_low: f64,
    /// Longest wait of a read meanwhile, in microseconds.
    pub worst_read_us: f64,
    /// Longest wait for an fsync meanwhile, in microseconds.
    pub worst_fsync_us: f64,
    /// Reads per second in the baseline.
    pub baseline_reads_per_s: f64,
    /// Bytes discarded.
    pub discard_bytes: u64,
    /// Discards.
    pub discards: u64,
    /// Whether the verdict is a stall or a slowdown.
    pub stalled: bool,
    /// Whether the verdict is `inconclusive`.
    pub inconclusive: bool,
}

impl Figures {
    /// Of a run's record and verdict; `None` when it wasn't carried out as far as that.
    pub fn of(record: &RunRecord, verdict: &Verdict) -> Option<Figures> {
        let events = || record.events.iter();
        let at = |kind| Some(events().rfind(|event| event.kind == kind)?.at_s);
        let phases = || record.phases.iter();
        let phase = |name| Some(phases().rfind(|phase| phase.name == name)?.at_s);
        let actor = |name| {
            record
                .head
                .actors
                .iter()
                .position(|actor| actor.name == name)
        };
        let began = at(EventKind::DeletionBegan)?;
        let recovery = phase(PhaseName::Recovery)?;
        let baseline = phase(PhaseName::Baseline)?;
        let reader = actor(READER)?;
        let rates = |from, to| rates(record, reader, from, to);
        let before = rates(baseline, began).map(|(rate, _)| rate);
        let usual = record::units::median(before).filter(|&rate| rate > 0.0)?;
        let ends = [
            at(EventKind::DeletionReturned),
            at(EventKind::DebtPaid),
            last_discard(record, began, recovery),
        ];
        let done = ends.into_iter().flatten().fold(began, f64::max);
        let lost = |from, to| rates(from, to).map(move |(rate, s)| (1.0 - rate / usual, s));
        let worst = |from, to| lost(from, to).map(|(share, _)| share).fold(0.0, f64::max);
        let syncer = actor(SYNCER)?;
        Some(Figures {
            freeing_s: done - began,
            lost_s: f64::max(0.0, lost(began, done).map(|(share, s)| share * s).sum()),
            worst_loss: worst(began, done),
            usual_worst_loss: worst(baseline, began),
            usual_low: {
                let all = lost(baseline, began).count().max(1);
                let low = lost(baseline, began).filter(|(share, _)| *share >= LOW);
                low.count() as f64 / all as f64
            },
            worst_read_us: longest_us(record, reader, began, done),
            worst_fsync_us: longest_us(record, syncer, began, done),
            baseline_reads_per_s: usual,
            discard_bytes: verdict.discard.bytes.unwrap_or(0),
            discards: verdict.discard.commands.unwrap_or(0),
            stalled: matches!(verdict.verdict, Finding::Stall | Finding::Slowdown),
            inconclusive: verdict.verdict == Finding::Inconclusive,
        })
    }
}

/// Intervals that lie within a stretch for the most part.
fn intervals(record: &RunRecord, from: f64, to: f64) -> impl Iterator<Item = usize> + '_ {
    let all = &record.intervals;
    (0..all.len()).filter(move |&i| {
        let middle = all.at_s[i] + f64::from(all.seconds[i]) / 2.0;
        (from..to).contains(&middle)
    })
}

/// When the last interval ends in which a significant share was discarded.
fn last_discard(record: &RunRecord, from: f64, to: f64) -> Option<f64> {
    let discarded = |i: usize| -> u64 {
        let devices = record.head.devices.iter().zip(&record.intervals.devices);
        let leaves = devices.filter(|(device, _)| device.leaf);
        leaves.map(|(_, columns)| columns.discard_bytes[i]).sum()
    };
    let total: u64 = intervals(record, from, to).map(discarded).sum();
    let significant = (total as f64 * SIGNIFICANT).max(1.0);
    let last = intervals(record, from, to).filter(|&i| discarded(i) as f64 >= significant);
    let last = last.last()?;
    Some(record.intervals.at_s[last] + f64::from(record.intervals.seconds[last]))
}

/// The longest wait that ended in a stretch or was still going on in it.
fn longest_us(record: &RunRecord, actor: usize, from: f64, to: f64) -> f64 {
    let columns = &record.intervals.actors[actor];
    // What waited to the last ends in the interval after it.
    let last = intervals(record, from, to).last();
    let all = intervals(record, from, to).chain(last.map(|i| i + 1));
    all.filter(|&i| i < record.intervals.len())
        .flat_map(|i| [columns.max_us[i], columns.oldest_us[i]])
        .filter(|us| !us.is_nan())
        .map(f64::from)
        .fold(0.0, f64::max)
}

/// An actor's operations per second and the length of each interval of a stretch.
fn rates(
    record: &RunRecord,
    actor: usize,
    from: f64,
    to: f64,
) -> impl Iterator<Item = (f64, f64)> + '_ {
    intervals(record, from, to).map(move |i| {
        let seconds = f64::from(record.intervals.seconds[i]);
        let ops = f64::from(record.intervals.actors[actor].ops[i]);
        (ops / seconds.max(1e-6), seconds)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::{ActorInterval, DeviceInterval, Event, Head, Interval, Line, Part, Phase};
    use serde_json::json;

    fn head() -> Head {
        let actor = |name: &str| {
            json!({"name": name, "op": "read", "loop": "closed", "depth": 8, "batch": 1,
                   "block_bytes": 4096, "pattern": null, "engine": "sync"})
        };
        serde_json::from_value(json!({
            "schema": "trimbench.run/1", "version": "", "started_unix_s": 0.0,
            "host": {"name": "", "kernel": "", "cpus": 1, "memory_bytes": 0},
            "target": {"path": "/", "mount": null, "source": null, "fs": null, "discard": "on",
                       "size_bytes": 0, "available_bytes": null},
            "scenario": null, "interval_ms": 100.0,
            "actors": [actor(READER), actor(SYNCER)],
            "devices": [{"name": "sda", "kind": "disk", "level": 0, "leaf": true, "below": [],
                         "model": null, "size_bytes": 0, "rotational": null, "scheduler": null,
                         "discard": {"granularity_bytes": 0, "max_bytes": 0, "max_hw_bytes": 0,
                                     "max_segments": 0}}],
        }))
        .unwrap()
    }

    /// Two seconds of baseline, a deletion of a second with a discard in its first 600 ms,
    /// half a second afterwards; the readers' operations in each interval are given.
    fn record(ops: impl Fn(usize) -> u64) -> RunRecord {
        let mut record = RunRecord::new(head()).unwrap();
        let mut push = |line: Line| record.push(&line).unwrap();
        for (name, at_s) in [
            (PhaseName::Baseline, 0.0),
            (PhaseName::Delete, 2.0),
            (PhaseName::Recovery, 3.0),
        ] {
            let part = Part::Main;
            push(Line::Phase(Phase { name, part, at_s }));
        }
        for (kind, at_s) in [
            (EventKind::DeletionBegan, 2.0),
            (EventKind::DeletionReturned, 2.1),
        ] {
            let detail = None;
            push(Line::Event(Event { at_s, kind, detail }));
        }
        for i in 0..35 {
            let actor = |ops, max_us| {
                Some(ActorInterval {
                    ops,
                    max_us: Some(max_us),
                    ..ActorInterval::default()
                })
            };
            let discards = u64::from((20..26).contains(&i));
            push(Line::Interval(Interval {
                at_s: i as f64 / 10.0,
                seconds: 0.1,
                actors: vec![
                    actor(ops(i), if i == 26 { 9e3 } else { 100.0 }),
                    actor(2, 500.0),
                ],
                devices: vec![DeviceInterval {
                    discards,
                    discard_bytes: discards << 20,
                    ..DeviceInterval::default()
                }],
                freed_bytes: 0,
                absent: None,
                cpu_wait: Vec::new(),
            }));
        }
        record
    }

    fn figures(record: &RunRecord) -> Figures {
        let verdict = judge::judge(record, &judge::JudgeOptions::default());
        Figures::of(record, &verdict).unwrap()
    }

    #[test]
    fn what_is_lost_is_counted_to_the_last_discard() {
        let found = figures(&record(|i| if (20..26).contains(&i) { 25 } else { 100 }));
        assert!((found.freeing_s - 0.6).abs() < 1e-6, "{found:?}");
        assert!((found.lost_s - 0.45).abs() < 1e-4, "{found:?}");
        assert!((found.worst_loss - 0.75).abs() < 1e-6, "{found:?}");
        assert!(
            (found.baseline_reads_per_s - 1000.0).abs() < 0.1,
            "{found:?}"
        );
        // What waited for the last discard ended after it.
        assert_eq!((found.worst_read_us, found.worst_fsync_us), (9e3, 500.0));
        assert_eq!((found.usual_worst_loss, found.usual_low), (0.0, 0.0));
    }

    #[test]
    fn what_only_fluctuates_cancels_out() {
        let found = figures(&record(|i| if i % 2 == 0 { 80 } else { 120 }));
        assert!(found.lost_s < 0.01, "{found:?}");
        assert!(
            found.worst_loss < 0.25 && found.usual_worst_loss > 0.15,
            "{found:?}"
        );
        let held_up = figures(&record(|i| if i % 4 == 0 && i < 20 { 10 } else { 100 }));
        assert!((held_up.usual_low - 0.25).abs() < 1e-9, "{held_up:?}");
    }

    #[test]
    fn a_run_that_was_cut_short_has_none() {
        let whole = record(|_| 100);
        let verdict = judge::judge(&whole, &judge::JudgeOptions::default());
        let mut cut = whole.clone();
        cut.phases.pop();
        assert_eq!(Figures::of(&cut, &verdict), None);
    }
}
