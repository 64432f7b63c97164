//! The gain of a trim of all free space: the rate of closed-loop writers after it over that before.
//!
//! Writes are joined to cells of a second at most, and the ratio of their means has the interval
//! that `compare` gives two runs: neighbours resemble each other. A drive can't be
//! trimmed a second time, so the cells before the trim are the control. A gain must exceed the trend
//! that they show, or that their scatter could hide.

use std::ops::Range;

use super::stats::{mean, median};
use super::window::Window;
use crate::compare::difference::half;
use crate::compare::spread::Spread;
use crate::verdict::{Gain, GainDoubt, GainFinding, Ratio};
use record::units::{byte_rate, bytes, latency_us, names, percent};
use record::{LoopKind, RunRecord};

/// Where a record's scenario has the limit of bytes of a trim of all free space.
const LIMIT: &str = "/deletion/method/event/writes_at_most_bytes";
/// A gain that counts: as much as makes a slowdown.
const COUNTS: f64 = 1.1;
/// Cells of writing, before the trim and after it, that tell at least.
const LEAST: usize = 8;
/// A fast cache is full where the rate falls below this share within seconds.
const STEP: f64 = 0.65;
/// Cells on each side of such a step.
const SIDE: usize = 4;
/// Writes go on until this multiple of the cache is written, so that it is full.
pub const FILLS: u64 = 2;

/// The writes of a second, or of a twentieth of a shorter baseline.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    bytes: f64,
    seconds: f64,
    /// Sum of the intervals' p99, each times its operations; and the operations.
    p99: f64,
    ops: f64,
}

/// Returns the gain of a record's trim; `None` if its deletion is no trim or nobody writes.
pub(super) fn of(record: &RunRecord, window: &Window, trimmed_bytes: u64) -> Option<Gain> {
    record.head.scenario.pointer(LIMIT)?.as_u64()?;
    let writers = writers(record);
    if writers.is_empty() {
        return None;
    }
    let length = cell_s(record, window);
    let cells =
        |range: Option<Range<usize>>| cells(record, &writers, range.unwrap_or(0..0), length);
    let recovery = cells(window.recovery.clone());
    let before = cells(window.baseline.clone());
    let after = recovery.len().saturating_sub(before.len());
    let after = recovery.get(after..).unwrap_or_default().to_vec();
    let earlier = 0..window.delete.clone().map_or(0, |delete| delete.start);
    let cache_bytes = cache_bytes(
        &cells(Some(earlier))
            .iter()
            .map(|cell| cell.bytes)
            .collect::<Vec<_>>(),
    );
    let written = |range: Option<Range<usize>>| -> u64 {
        let intervals = range.into_iter().flatten();
        let of = |i| {
            writers
                .iter()
                .map(move |&w| record.intervals.actors[w].bytes[i])
        };
        intervals.flat_map(of).sum()
    };
    let mut gain = Gain {
        finding: GainFinding::Inconclusive,
        why: None,
        sentence: String::new(),
        trimmed_bytes: Some(trimmed_bytes),
        written_bytes: written(Some(0..record.intervals.len())),
        cache_bytes,
        rate: ratio(&rates(&before), &rates(&after)),
        p99_us: ratio(&p99s(&before), &p99s(&after)),
        trend: None,
    };
    let filled = cache_bytes
        // The run saw its cells a little otherwise.
        .is_none_or(|cache| written(window.recovery.clone()) >= cache.saturating_add(cache / 2));
    // In cells, as the trend's stretch is.
    let apart = apart_s(record, window, after.len() as f64 * length) / length;
    let trend = Trend::of(&rates(&before), apart);
    gain.trend = trend.map(|trend| trend.leads_to.exp());
    let falls = Trend::of(&rates(&after), after.len() as f64)
        .is_some_and(|trend| trend.leads_to < -COUNTS.ln());
    let doubts = [
        (window.cut_short.is_some(), GainDoubt::CutShort),
        (trimmed_bytes == 0, GainDoubt::NotTrimmed),
        (before.len().min(after.len()) < LEAST, GainDoubt::TooShort),
        (!filled, GainDoubt::Cache),
        (falls, GainDoubt::Trend),
    ];
    let doubt = doubts.into_iter().find(|(holds, _)| *holds);
    let doubt = doubt.map(|(_, doubt)| doubt);
    (gain.finding, gain.why) = match (doubt, gain.rate, trend) {
        (None, Some(rate), Some(trend)) => found(rate, trend),
        (doubt, ..) => (
            GainFinding::Inconclusive,
            doubt.or(Some(GainDoubt::TooShort)),
        ),
    };
    gain.sentence = sentence(record, &gain);
    Some(gain)
}

/// The finding on a ratio beside a trend, and the doubt if there is none.
fn found(rate: Ratio, trend: Trend) -> (GainFinding, Option<GainDoubt>) {
    let [ratio, low, high] = [rate.ratio, rate.low, rate.high].map(f64::ln);
    let counts = COUNTS.ln();
    let expected = trend.leads_to;
    let (up, down) = (expected.max(0.0), expected.min(0.0));
    if ratio >= counts && low > 0.0 {
        return match low > up && ratio > up + trend.unsure {
            true => (GainFinding::Gained, None),
            false if up > 0.0 => (GainFinding::Inconclusive, Some(GainDoubt::Trend)),
            false => (GainFinding::Inconclusive, Some(GainDoubt::TooNoisy)),
        };
    }
    if ratio <= -counts && high < 0.0 {
        return match high < down && ratio < down - trend.unsure {
            true => (GainFinding::Slower, None),
            false => (GainFinding::Inconclusive, Some(GainDoubt::Trend)),
        };
    }
    match high < counts {
        // A rate that was falling and no longer falls may have gained what it would have lost.
        true if down < -counts => (GainFinding::Inconclusive, Some(GainDoubt::Trend)),
        true => (GainFinding::Nothing, None),
        false => (GainFinding::Inconclusive, Some(GainDoubt::TooNoisy)),
    }
}

/// The trend of a stretch, as logarithms of ratios.
#[derive(Debug, Clone, Copy)]
struct Trend {
    /// Where it leads to, so far away; 0 where it doesn't stand out.
    leads_to: f64,
    /// The most that its scatter may hide, over its own length.
    unsure: f64,
}

impl Trend {
    /// The trend of a stretch of cells, so many cells from its middle; `None` of too few.
    fn of(rates: &[f64], apart: f64) -> Option<Trend> {
        let middle = rates.len() / 2;
        let (first, second) = (&rates[..middle], &rates[rates.len() - middle..]);
        let both = ratio(first, second)?;
        let change = both.ratio.ln();
        let unsure = (both.high.ln() - both.low.ln()) / 2.0;
        let stands_out = change.abs() > unsure;
        let leads_to = match stands_out {
            true => change * apart / middle as f64,
            false => 0.0,
        };
        let unsure = 2.0 * unsure;
        Some(Trend { leads_to, unsure })
    }
}

/// Length of a cell, in seconds.
fn cell_s(record: &RunRecord, window: &Window) -> f64 {
    let interval = record.head.interval_ms / 1e3;
    let intervals = window.baseline.as_ref().map_or(0, Range::len) as f64;
    (intervals * interval / 20.0).clamp(interval.min(1.0), 1.0)
}

/// From the middle of the baseline to that of the last `after_s` seconds after the trim.
fn apart_s(record: &RunRecord, window: &Window, after_s: f64) -> f64 {
    let at = |i: usize| record.intervals.at_s.get(i).copied();
    let middle = |range: &Range<usize>| {
        let (begin, last) = (at(range.start)?, at(range.end.checked_sub(1)?)?);
        Some((f64::midpoint(begin, last), last))
    };
    let before = window.baseline.as_ref().and_then(middle);
    let recovery = window.recovery.as_ref().and_then(middle);
    match (before, recovery) {
        (Some((before, _)), Some((_, end))) => end - after_s / 2.0 - before,
        _ => 0.0,
    }
}

/// The closed-loop writers.
fn writers(record: &RunRecord) -> Vec<usize> {
    let actors = record.head.actors.iter().enumerate();
    let writes = actors.filter(|(_, actor)| {
        matches!(actor.op.as_str(), "write" | "append")
            && matches!(actor.loop_kind, LoopKind::Closed { .. })
    });
    writes.map(|(index, _)| index).collect()
}

/// The intervals of a range, joined to cells; those without writers are left out.
fn cells(record: &RunRecord, writers: &[usize], range: Range<usize>, length_s: f64) -> Vec<Cell> {
    let mut all = Vec::new();
    let mut cell = Cell::default();
    for i in range {
        let columns = || writers.iter().map(|&w| &record.intervals.actors[w]);
        if !columns().all(|actor| actor.running[i]) {
            continue;
        }
        cell.seconds += f64::from(record.intervals.seconds[i]);
        for actor in columns() {
            cell.bytes += actor.bytes[i] as f64;
            if !actor.p99_us[i].is_nan() {
                cell.p99 += f64::from(actor.p99_us[i]) * f64::from(actor.ops[i]);
                cell.ops += f64::from(actor.ops[i]);
            }
        }
        // Lengths are measured, and ten intervals may be a little short.
        if cell.seconds > 0.95 * length_s {
            all.push(std::mem::take(&mut cell));
        }
    }
    all
}

fn rates(cells: &[Cell]) -> Vec<f64> {
    cells.iter().map(|s| s.bytes / s.seconds).collect()
}

fn p99s(cells: &[Cell]) -> Vec<f64> {
    let some = cells.iter().filter(|s| s.ops > 0.0);
    some.map(|s| s.p99 / s.ops).collect()
}

/// The ratio of two means with its interval; `None` where one isn't above 0 or has no spread.
fn ratio(before: &[f64], after: &[f64]) -> Option<Ratio> {
    let of = |values: &[f64]| {
        let mean = mean(values).filter(|&mean| mean > 0.0)?;
        Some((mean, Spread::of_mean(values)?.times(1.0 / mean)))
    };
    let ((first, noise), (second, more)) = (of(before)?, of(after)?);
    let half = half(noise.and(more)).min(20.0);
    let ratio = second / first;
    Some(Ratio {
        before: first,
        after: second,
        ratio,
        low: ratio * (-half).exp(),
        high: ratio * half.exp(),
    })
}

/// Bytes written before the rate fell for good, as where a drive's fast cache is full: from the
/// bytes of cells of one length. `None` where no such step shows.
#[must_use]
pub fn cache_bytes(written: &[f64]) -> Option<u64> {
    let n = written.len();
    let level = |range: Range<usize>| median(written[range].iter().copied());
    // Means find where a step is; medians would call the cells beside it as steep.
    let fall = |at: usize| Some(mean(&written[at..at + SIDE])? / mean(&written[at - SIDE..at])?);
    let falls = (SIDE..(n + 1).saturating_sub(SIDE)).filter_map(|at| Some((at, fall(at)?)));
    let (at, fall) = falls.min_by(|a, b| a.1.total_cmp(&b.1))?;
    // It stays low; a dip is no step.
    let stays = level(at..n)? < STEP * level(at - SIDE..at)?;
    (fall < STEP && stays).then(|| written[..at].iter().sum::<f64>() as u64)
}

fn sentence(record: &RunRecord, gain: &Gain) -> String {
    let trimming = format!("Trimming {}", bytes(gain.trimmed_bytes.unwrap_or(0)));
    let Some(rate) = gain
        .rate
        .filter(|_| gain.finding != GainFinding::Inconclusive)
    else {
        return format!(
            "It is unknown whether a trim makes writes faster here: {}.",
            doubt(gain, record)
        );
    };
    let rates = format!("{} → {}", byte_rate(rate.before), byte_rate(rate.after));
    let times = format!(
        "{} ({} to {})",
        times(rate.ratio),
        times(rate.low),
        times(rate.high)
    );
    match gain.finding {
        GainFinding::Gained => {
            let p99 = gain.p99_us.filter(|p99| p99.high < 1.0).map(|p99| {
                let [before, after] = [p99.before, p99.after].map(latency_us);
                format!(" and cut their p99 from {before} to {after}")
            });
            format!(
                "{trimming} made writes {times} times as fast ({rates}){}: this drive was slow \
                 because its free space was not trimmed. `trimbench guard {}` keeps it trimmed, or \
                 every week `trimbench fstrim --install-timer`.",
                p99.unwrap_or_default(),
                names::quoted(place(record)),
            )
        }
        GainFinding::Slower => {
            format!(
                "{trimming} did not make writes faster: they were {times} times as fast after it ({rates})."
            )
        }
        _ => format!(
            "{trimming} gained nothing that can be seen: {} to {} ({rates}).",
            signed(rate.low - 1.0),
            signed(rate.high - 1.0)
        ),
    }
}

fn place(record: &RunRecord) -> &str {
    let target = &record.head.target;
    target.mount.as_deref().unwrap_or(&target.path)
}

/// Why it is unknown, and the next step.
fn doubt(gain: &Gain, record: &RunRecord) -> String {
    let longer = "give phases.baseline and phases.recovery more time, and writes-at-most \
                  more bytes";
    match gain.why {
        Some(GainDoubt::CutShort) => "the run did not reach its end".to_owned(),
        Some(GainDoubt::NotTrimmed) => format!(
            "no discards reached the drive; `trimbench inspect {}` shows what stops them",
            names::quoted(place(record))
        ),
        Some(GainDoubt::Cache) => format!(
            "the drive has a fast cache of about {} that may have recovered during the trim, and \
             less than twice that was written after it; give writes-at-most more bytes",
            bytes(gain.cache_bytes.unwrap_or(0))
        ),
        Some(GainDoubt::Trend) => format!(
            "the rate of writes was changing anyway (by {} until after the trim); raise \
             phases.settle and writes-at-most, or repeat the run",
            signed(gain.trend.unwrap_or(1.0) - 1.0)
        ),
        Some(GainDoubt::TooNoisy) => {
            let rate = gain.rate.map(|rate| {
                let [low, high] = [rate.low, rate.high].map(|end| signed(end - 1.0));
                format!(" ({low} to {high})")
            });
            format!(
                "the rate of writes scatters too much{}; stop what else uses the drive, or {longer}",
                rate.unwrap_or_default()
            )
        }
        Some(GainDoubt::TooShort) | None => {
            format!("too few seconds of writing before or after the trim; {longer}")
        }
    }
}

fn times(ratio: f64) -> String {
    match ratio {
        x if x >= 9.95 => format!("{x:.0}"),
        x if x >= 1.995 => format!("{x:.1}"),
        x => format!("{x:.2}"),
    }
}

fn signed(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{}", percent(share.abs()))
}
