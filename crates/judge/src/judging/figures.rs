//! Rate and latencies of one actor over one stretch of the record.

use std::borrow::Cow;
use std::ops::Range;

use hdrhistogram::Histogram;

use super::spans::Spans;
use crate::verdict::Figures;
use record::{
    ActorColumns, Latency, Part, PhaseName, RunRecord, decode_histogram, latency_histogram,
};

/// The stretch that figures are for.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    /// Its intervals.
    pub(super) spans: Spans,
    /// Where its latencies were recorded.
    pub(super) latencies: Recorded,
}

/// Where a stretch's latencies were recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Recorded {
    /// It is this phase, which has a histogram.
    Phase(Part, PhaseName),
    /// In short stretches of this part's deletion.
    Stretches(Part),
    /// As figures of its intervals alone.
    Intervals,
}

/// Share of a stretch that histograms of its parts cover at least, if they stand for all of it.
const MOST: f64 = 0.9;

/// Response times and rate. Percentiles come from histograms; without one p50 and p99 are the intervals' own, weighed by their operations, and p99.9 isn't known.
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
    let mut figures = percentiles(record, actor, stretch, Latency::Response).unwrap_or(Figures {
        p50_us: weighed(columns, &stretch.spans, &columns.p50_us),
        p99_us: weighed(columns, &stretch.spans, &columns.p99_us),
        ..Figures::default()
    });
    figures.ops_per_s = Some(ops / seconds);
    let seen = running().chain(after(record, columns, stretch));
    let seen = seen.flat_map(|i| [columns.max_us[i], columns.oldest_us[i]]);
    let hull = stretch.spans.hull();
    let unfinished = hull.and_then(|range| unfinished_in(record, actor, &range));
    let unfinished = unfinished.map(|[then, _]| then);
    let longest = seen.map(f64::from).chain(unfinished);
    figures.max_us = longest
        .filter(|us| !us.is_nan())
        .chain(figures.max_us)
        .max_by(f64::total_cmp);
    figures
}

/// Service times; `None` where they weren't recorded.
pub(super) fn service(record: &RunRecord, actor: usize, stretch: &Stretch) -> Option<Figures> {
    percentiles(record, actor, stretch, Latency::Service)
}

/// Returns the intervals after those of a stretch with discards: what waited completes there.
fn after(
    record: &RunRecord,
    columns: &ActorColumns,
    stretch: &Stretch,
) -> impl Iterator<Item = usize> {
    let waited = matches!(stretch.latencies, Recorded::Stretches(_));
    let ends = stretch.spans.ranges().iter().map(|range| range.end);
    let ends = ends.filter(|&i| i < record.intervals.len() && columns.running[i]);
    ends.filter(move |_| waited)
}

/// All latencies of a stretch; `None` where none were recorded.
pub(super) fn histogram<'a>(
    record: &'a RunRecord,
    actor: usize,
    stretch: &Stretch,
    latency: Latency,
) -> Option<Cow<'a, Histogram<u64>>> {
    let histogram = match stretch.latencies {
        Recorded::Phase(part, phase) => {
            let of = |h: &&record::PhaseHistogram| {
                (h.actor, h.latency, h.part, h.phase) == (actor, latency, part, phase)
            };
            Cow::Borrowed(&record.histograms.iter().find(of)?.histogram)
        }
        Recorded::Stretches(part) => {
            let of = |s: &&record::StretchHistogram| {
                (s.actor, s.latency, s.part) == (actor, latency, part)
            };
            Cow::Owned(merged(record, record.stretches.iter().filter(of), stretch)?)
        }
        Recorded::Intervals => return None,
    };
    (!histogram.is_empty()).then_some(histogram)
}

/// Returns the sum of those that lie in a stretch; `None` where they don't cover most of it.
fn merged<'a>(
    record: &RunRecord,
    parts: impl Iterator<Item = &'a record::StretchHistogram>,
    stretch: &Stretch,
) -> Option<Histogram<u64>> {
    let at = &record.intervals.at_s;
    let mut sum = latency_histogram();
    let mut covered_s = 0.0;
    for part in parts {
        let middle = part.at_s + part.seconds / 2.0;
        let after = at.partition_point(|&at_s| at_s <= middle);
        let mut ranges = stretch.spans.ranges().iter();
        if !ranges.any(|range| (range.start + 1..=range.end).contains(&after)) {
            continue;
        }
        sum.add(decode_histogram(&part.v2).ok()?).ok()?;
        covered_s += part.seconds;
    }
    (covered_s >= MOST * stretch.spans.seconds(record)).then_some(sum)
}

fn percentiles(
    record: &RunRecord,
    actor: usize,
    stretch: &Stretch,
    latency: Latency,
) -> Option<Figures> {
    let histogram = histogram(record, actor, stretch, latency)?;
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

/// The age of the oldest operation that never finished, if it had begun by the end of these
/// intervals: then, and when the run ended. In microseconds.
pub(super) fn unfinished_in(
    record: &RunRecord,
    actor: usize,
    range: &Range<usize>,
) -> Option<[f64; 2]> {
    let end = record.end.as_ref()?;
    let unfinished = end
        .unfinished
        .iter()
        .find(|u| u.actor == actor && u.operations > 0)?;
    let last = range.end.checked_sub(1).filter(|_| !range.is_empty())?;
    let intervals = &record.intervals;
    let until = intervals.at_s[last] + f64::from(intervals.seconds[last]);
    let begun = end.at_s - unfinished.oldest_us / 1e6;
    let age = unfinished.oldest_us - (end.at_s - until).max(0.0) * 1e6;
    (begun < until).then_some([age, unfinished.oldest_us])
}
