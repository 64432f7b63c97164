//! The results of a run: its record, its verdict, and a row of figures.

use std::ops::Range;

use hdrhistogram::Histogram;
use judge::verdict::Finding;
use judge::{JudgeOptions, Verdict};
use record::{PhaseName, RunRecord};
use serde::Serialize;
use ssd::flash::Flash;

use crate::PolicyKind;
use crate::engine::Tally;
use crate::recorder::FreeSpace;
use crate::setup::Setup;

/// A run's results.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The record, as of a real run.
    pub record: RunRecord,
    /// Its verdict.
    pub verdict: Verdict,
    /// Its figures.
    pub figures: Figures,
    /// The free space over time, row by row.
    pub free: Vec<FreeSpace>,
    /// Events of the simulation: I/Os completed, and acts of the host.
    pub events: u64,
}

/// A run in figures. Unknown ones are `None`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figures {
    /// The policy's name.
    pub policy: String,
    /// The finding of the verdict.
    pub verdict: Finding,
    /// From the first removal to the last call's return, in seconds.
    pub deletion_s: Option<f64>,
    /// From the first removal to the last discard, in seconds; `None` if some were outstanding at
    /// `limit`.
    pub drained_s: Option<f64>,
    /// Bytes removed.
    pub removed_bytes: u64,
    /// Bytes removed for each second until the last discard; `None` without discards, or if some
    /// were outstanding at `limit`.
    pub freed_bytes_per_s: Option<f64>,
    /// Foreground time lost to the discards, in seconds: of the actor that lost most. Of a workload
    /// that goes on all the time it is known after [`Outcome::measure_by`].
    pub lost_s: Option<f64>,
    /// The largest share of its rate that it lost over a second, 0 to 1.
    pub worst_second: Option<f64>,
    /// Its 99th percentile while data was deleted, in milliseconds.
    pub p99_ms: Option<f64>,
    /// Its 99.9th percentile, in milliseconds.
    pub p999_ms: Option<f64>,
    /// Its longest latency, in milliseconds.
    pub max_ms: Option<f64>,
    /// Discard commands.
    pub commands: u64,
    /// Their ranges.
    pub ranges: u64,
    /// Bytes discarded.
    pub discarded_bytes: u64,
    /// Bytes whose discard an allocation made unnecessary.
    pub cancelled_bytes: u64,
    /// Bytes that are free at the end and that the drive takes for data.
    pub untold_bytes: u64,
    /// Bytes that were free and that the drive took for data, on average over the run.
    pub debt_mean_bytes: u64,
    /// How long a removed byte was so, on average, in seconds: until a discard or until it was
    /// used again (Little's law).
    pub debt_age_s: Option<f64>,
    /// How much longer the foreground's I/O took than without discards, all together, in seconds.
    pub waited_s: Option<f64>,
    /// Most bytes that were free and could not be allocated.
    pub held_max_bytes: u64,
    /// Allocations that waited for a discard.
    pub allocations_held: u64,
    /// The time that they waited, in seconds.
    pub allocations_waited_s: f64,
    /// Pages written to the flash for each one of the host; only with `flash`.
    pub write_amplification: Option<f64>,
    /// Erasures of the most worn block; only with `flash`.
    pub most_erasures: Option<u32>,
    /// Mean erasures of a block; only with `flash`.
    pub mean_erasures: Option<f64>,
    /// Whether the volume ran full.
    pub is_full: bool,
    /// Whether discards were outstanding at `limit`.
    pub gave_up: bool,
}

impl Outcome {
    pub(crate) fn new(
        setup: &Setup,
        (record, free): (RunRecord, Vec<FreeSpace>),
        tally: &Tally,
        flash: Option<&Flash>,
        events: u64,
    ) -> Outcome {
        let verdict = judge::judge(&record, &JudgeOptions::default());
        let mut figures = figures(setup, &record, &verdict, tally, flash);
        if !free.is_empty() {
            let sum: f64 = free.iter().map(|row| row.debt_bytes as f64).sum();
            let mean = sum / free.len() as f64;
            let seconds = free.last().map_or(0.0, |row| row.at_s);
            figures.untold_bytes = free.last().map_or(0, |row| row.debt_bytes);
            figures.debt_mean_bytes = mean as u64;
            figures.debt_age_s =
                (figures.removed_bytes > 0).then(|| mean * seconds / figures.removed_bytes as f64);
        }
        Outcome {
            record,
            verdict,
            figures,
            free,
            events,
        }
    }

    /// Measures what the discards cost by a run of the same setup that sends none. Of a workload
    /// that goes on all the time, no stretch of its own need be without discards.
    pub fn measure_by(&mut self, without: &Outcome) {
        let seconds = |record: &RunRecord| -> f64 {
            record
                .intervals
                .seconds
                .iter()
                .copied()
                .map(f64::from)
                .sum()
        };
        let ops = |record: &RunRecord, actor: usize| -> f64 {
            let ops = &record.intervals.actors[actor].ops;
            ops.iter().copied().map(f64::from).sum()
        };
        let worst = (0..self.record.head.actors.len()).map(|actor| {
            let usual = ops(&without.record, actor) / seconds(&without.record);
            let lost_s = seconds(&self.record) - ops(&self.record, actor) / usual;
            Cost {
                actor,
                usual: Some(usual),
                lost_s: Some(lost_s.max(0.0)),
            }
        });
        let worst = worst.max_by(Cost::order);
        let waited_s = waited_s(&self.record, &without.record, PhaseName::Delete);
        if let Some(cost) = worst.filter(|_| waited_s.is_some()) {
            self.figures
                .take(&self.record, &cost, Some(0.0..f64::INFINITY));
        }
        self.figures.waited_s = waited_s;
    }
}

fn figures(
    setup: &Setup,
    record: &RunRecord,
    verdict: &Verdict,
    tally: &Tally,
    flash: Option<&Flash>,
) -> Figures {
    let began = tally.first_removal;
    let since = |end: Option<ssd::Time>| Some((end? - began?).as_secs_f64());
    let deletion_s = since(tally.last_call);
    let last = tally.last_discard.filter(|_| tally.commands > 0);
    let drained_s = since(last).filter(|_| !setup.workload.is_continuous() && !tally.gave_up);
    let took = drained_s.unwrap_or(0.0).max(deletion_s.unwrap_or(0.0));
    let during = began.zip(last.or(tally.last_call));
    let during = during.map(|(began, ended)| began.as_secs_f64()..ended.as_secs_f64());
    let costs = (0..record.head.actors.len()).filter_map(|actor| {
        let name = &record.head.actors[actor].name;
        let found = verdict
            .foreground
            .iter()
            .find(|found| found.actor == *name)?;
        Some(Cost {
            actor,
            usual: found.baseline.ops_per_s,
            lost_s: found.lost_s,
        })
    });
    let cost = costs.max_by(Cost::order);
    let mut figures = Figures {
        policy: setup.policy.name().to_owned(),
        verdict: verdict.verdict,
        deletion_s,
        drained_s,
        removed_bytes: tally.removed_bytes,
        freed_bytes_per_s: (took > 0.0 && tally.discarded_bytes > 0 && !tally.gave_up)
            .then(|| tally.removed_bytes as f64 / took),
        lost_s: None,
        worst_second: None,
        p99_ms: None,
        p999_ms: None,
        max_ms: None,
        commands: tally.commands,
        ranges: tally.ranges,
        discarded_bytes: tally.discarded_bytes,
        cancelled_bytes: tally.cancelled,
        untold_bytes: 0,
        debt_mean_bytes: 0,
        debt_age_s: None,
        waited_s: waited_s(record, record, PhaseName::Baseline),
        held_max_bytes: tally.held_max,
        allocations_held: tally.waits,
        allocations_waited_s: tally.waited.as_secs_f64(),
        write_amplification: flash.and_then(|f| f.stats().write_amplification()),
        most_erasures: flash.map(|f| f.wear().most),
        mean_erasures: flash.map(|f| f.wear().mean),
        is_full: tally.is_full,
        gave_up: tally.gave_up,
    };
    if let Some(cost) = cost {
        figures.take(record, &cost, during);
    }
    figures
}

/// The cost of the discards for an actor.
struct Cost {
    actor: usize,
    /// Its rate without discards, per second.
    usual: Option<f64>,
    /// The time that it lost, in seconds.
    lost_s: Option<f64>,
}

impl Cost {
    fn order(&self, other: &Cost) -> std::cmp::Ordering {
        let of = |cost: &Cost| cost.lost_s.unwrap_or(-1.0);
        of(self).total_cmp(&of(other))
    }
}

impl Figures {
    /// Takes over the figures of the actor that lost most. `during`: the time of the discards, in
    /// seconds, if it is known.
    fn take(&mut self, record: &RunRecord, cost: &Cost, during: Option<Range<f64>>) {
        let ms = |nanos: u64| nanos as f64 / 1e6;
        self.lost_s = cost.lost_s;
        let known = cost.usual.zip(during);
        self.worst_second =
            known.and_then(|(usual, during)| worst_second(record, cost.actor, usual, during));
        if let Some(waits) = latencies(record, cost.actor, PhaseName::Delete) {
            self.p99_ms = Some(ms(waits.value_at_quantile(0.99)));
            self.p999_ms = Some(ms(waits.value_at_quantile(0.999)));
            self.max_ms = Some(ms(waits.max()));
        }
    }
}

/// The latencies of an actor in a phase.
fn latencies(record: &RunRecord, actor: usize, phase: PhaseName) -> Option<&Histogram<u64>> {
    let mut all = record.histograms.iter();
    let found = all.find(|one| one.actor == actor && one.phase == phase)?;
    Some(&found.histogram)
}

/// How much longer the foreground's I/O took while data was deleted than in a phase without
/// discards, all together, in seconds. `None` if an actor has nothing to compare with.
fn waited_s(record: &RunRecord, without: &RunRecord, phase: PhaseName) -> Option<f64> {
    let waits = (0..record.head.actors.len()).map(|actor| {
        let own = latencies(record, actor, PhaseName::Delete)?;
        let longer = own.mean() - latencies(without, actor, phase)?.mean();
        Some(longer * own.len() as f64 / 1e9)
    });
    let sum = waits.sum::<Option<f64>>()?;
    Some(sum.max(0.0))
}

/// Returns the largest share of its rate that an actor lost over a second that touches `during`, a
/// time in seconds; `None` without a whole second.
fn worst_second(record: &RunRecord, actor: usize, usual: f64, during: Range<f64>) -> Option<f64> {
    const SECOND: f64 = 1.0 - 1e-6;
    let rows = &record.intervals;
    let ops = &rows.actors[actor].ops;
    let (mut first, mut done, mut seconds) = (0, 0.0, 0.0);
    let mut worst: Option<f64> = None;
    for last in 0..rows.len() {
        done += f64::from(ops[last]);
        seconds += f64::from(rows.seconds[last]);
        while seconds - f64::from(rows.seconds[first]) >= SECOND {
            done -= f64::from(ops[first]);
            seconds -= f64::from(rows.seconds[first]);
            first += 1;
        }
        let end_s = rows.at_s[last] + f64::from(rows.seconds[last]);
        if seconds >= SECOND && rows.at_s[first] < during.end && end_s > during.start {
            let lost = 1.0 - done / (usual * seconds);
            worst = Some(worst.map_or(lost, |worst| worst.max(lost)));
        }
    }
    worst.map(|worst| worst.max(0.0))
}

// Policies that no other one beats in everything.

/// The costs that are weighed.
fn costs(figures: &Figures) -> [f64; 5] {
    // Without discards nothing is lost to them; else an unknown loss is no small one.
    let unknown = match figures.commands {
        0 => 0.0,
        _ => f64::INFINITY,
    };
    let untold = figures.untold_bytes as f64 / figures.removed_bytes.max(1) as f64;
    [
        figures.drained_s.or(figures.deletion_s).unwrap_or(0.0),
        figures.waited_s.unwrap_or(unknown),
        figures.worst_second.unwrap_or(unknown),
        // A share of a thousandth is a file system's rounding.
        (untold * 1000.0).floor(),
        // A workload that goes on for a fixed time gets less done.
        1.0 / figures.removed_bytes.max(1) as f64,
    ]
}

/// Returns of each run whether it is on the Pareto front: no other run is at least as good in all
/// costs, and better in one. The costs are the time until all is discarded, how long the
/// foreground waited, its worst second, the share that is never discarded, and what was left to
/// delete. Differences below 1 % count as none. A policy that would discard and sent nothing was not
/// tried, and is not on it.
pub fn pareto_front(all: &[Figures]) -> Vec<bool> {
    let costs: Vec<_> = all.iter().map(costs).collect();
    let beats = |a: &[f64; 5], b: &[f64; 5]| {
        let no_worse = a.iter().zip(b).all(|(a, b)| *a <= b * 1.01 + 1e-9);
        let better = a.iter().zip(b).any(|(a, b)| *a < b * 0.99 - 1e-9);
        no_worse && better
    };
    let idle =
        |figures: &Figures| figures.commands == 0 && figures.policy != PolicyKind::None.name();
    let fails = |figures: &Figures| figures.is_full || figures.gave_up || idle(figures);
    // The time of a run that was cut off is unknown.
    let ended = || costs.iter().zip(all).filter(|(_, figures)| !fails(figures));
    let is_beaten = |own: &[f64; 5]| ended().any(|(other, _)| beats(other, own));
    costs
        .iter()
        .zip(all)
        .map(|(own, figures)| !fails(figures) && !is_beaten(own))
        .collect()
}
