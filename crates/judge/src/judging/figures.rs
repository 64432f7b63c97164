//! Rate and latencies of one actor over one stretch of the record.

use std::ops::Range;

use hdrhistogram::Histogram;

use super::spans::Spans;
use crate::verdict::Figures;
use record::{ActorColumns, Latency, Part, PhaseName, RunRecord};

/// The stretch that figures are for.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    /// Its intervals.
    pub(super) spans: Spans,
    /// The phase it is, where it is one.
    pub(super) phase: Option<(Part, PhaseName)>,
}

/// Response times and rate. Percentiles come from the phase's histogram; without one
/// p50 and p99 are the intervals' own, weighed by their operations, and p99.9 isn't known.
pub(super) fn response(record: &RunRecord, actor: usize, stretch: &Stretch) -> Figures {
    let Some(columns) = record.intervals.actors.get(actor) else {
        return Figures::default();
    };
    let running = || stretch.spans.intervals().filter(|&i| columns.running[i]);
    let seconds: f64 = running()
        .map(|i| f64::from(record.intervals.seconds[i]))
        .sum();
    if seconds == 0.0 {
        return Figures::default();
    }
    let ops: f64 = running().map(|i| f64::from(columns.ops[i])).sum();
    let mut figures = histogram(record, actor, stretch, Latency::Response).unwrap_or(Figures {
        p50_us: weighed(columns, &stretch.spans, &columns.p50_us),
        p99_us: weighed(columns, &stretch.spans, &columns.p99_us),
        ..Figures::default()
    });
    figures.ops_per_s = Some(ops / seconds);
    let seen = running().flat_map(|i| [columns.max_us[i], columns.oldest_us[i]]);
    let hull = stretch.spans.hull();
    let unfinished = hull.and_then(|range| unfinished_in(record, actor, &range));
    let longest = seen.map(f64::from).chain(unfinished);
    figures.max_us = longest
        .filter(|us| !us.is_nan())
        .chain(figures.max_us)
        .max_by(f64::total_cmp);
    figures
}

/// Service times; `None` where they weren't recorded.
pub(super) fn service(record: &RunRecord, actor: usize, stretch: &Stretch) -> Option<Figures> {
    histogram(record, actor, stretch, Latency::Service)
}

/// All latencies of a stretch that is a phase; `None` where none were recorded.
pub(super) fn of_phase<'a>(
    record: &'a RunRecord,
    actor: usize,
    stretch: &Stretch,
    latency: Latency,
) -> Option<&'a Histogram<u64>> {
    let (part, phase) = stretch.phase?;
    let of = |h: &&record::PhaseHistogram| {
        (h.actor, h.latency, h.part, h.phase) == (actor, latency, part, phase)
    };
    let histogram = &record.histograms.iter().find(of)?.histogram;
    (!histogram.is_empty()).then_some(histogram)
}

fn histogram(
    record: &RunRecord,
    actor: usize,
    stretch: &Stretch,
    latency: Latency,
) -> Option<Figures> {
    let histogram = of_phase(record, actor, stretch, latency)?;
    let us = |ns: u64| Some(ns as f64 / 1e3);
    Some(Figures {
        ops_per_s: None,
        p50_us: us(histogram.value_at_quantile(0.5)),
        p99_us: us(histogram.value_at_quantile(0.99)),
        p999_us: us(histogram.value_at_quantile(0.999)),
        max_us: us(histogram.max()),
    })
}

fn weighed(columns: &ActorColumns, spans: &Spans, values: &[f32]) -> Option<f64> {
    let (mut sum, mut weight) = (0.0, 0.0);
    for i in spans.intervals().filter(|&i| !values[i].is_nan()) {
        let ops = f64::from(columns.ops[i]);
        sum += ops * f64::from(values[i]);
        weight += ops;
    }
    (weight > 0.0).then(|| sum / weight)
}

/// The age of the oldest operation that never finished, if it was in flight
/// during these intervals.
pub(super) fn unfinished_in(record: &RunRecord, actor: usize, range: &Range<usize>) -> Option<f64> {
    let end = record.end.as_ref()?;
    let unfinished = end
        .unfinished
        .iter()
        .find(|u| u.actor == actor && u.operations > 0)?;
    let last = range.end.checked_sub(1).filter(|_| !range.is_empty())?;
    let intervals = &record.intervals;
    let until = intervals.at_s[last] + f64::from(intervals.seconds[last]);
    let begun = end.at_s - unfinished.oldest_us / 1e6;
    (begun < until).then_some(unfinished.oldest_us)
}
