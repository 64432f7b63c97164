//! The samples behind a verdict's figures, interval by interval. A comparison computes from them
//! how far each figure could have come out otherwise.

use std::borrow::Cow;

use hdrhistogram::Histogram;

use super::actor::{Seen, Setting};
use super::figures::{self, Stretch};
use super::runs;
use super::{JudgeOptions, with_its_part};
use crate::verdict::{Foreground, Verdict};
use record::{Latency, RunRecord};

/// A verdict with its samples.
#[derive(Debug, Clone)]
pub(crate) struct Sampled<'a> {
    pub(crate) verdict: Verdict,
    /// One per actor of the verdict, in its order.
    pub(crate) actors: Vec<ActorSamples<'a>>,
    /// The rates that the TRIM rate is the median of; empty where it is a bound.
    pub(crate) trim: Vec<f64>,
    /// Of each interval with discards: the sum of their waits in ms, and their number.
    pub(crate) waits: Vec<(f64, f64)>,
    /// Nominal length of an interval, in seconds.
    pub(crate) interval_s: f64,
    /// Share of the baseline below which stalls begin.
    pub(crate) low: f64,
}

/// The samples behind one actor's figures, in order of time.
#[derive(Debug, Clone, Default)]
pub(crate) struct ActorSamples<'a> {
    /// Rates of the baseline's cells.
    pub(crate) baseline: Vec<f64>,
    /// Rates of all cells that aren't low, without discards; the baseline's are among them
    /// unless it has no cells.
    pub(crate) quiet: Vec<f64>,
    /// Operations and length in seconds of each interval with discards in service, or else of each
    /// of the deletion, and whether
    /// discards were in service in it.
    pub(crate) delete: Vec<(f64, f64, bool)>,
    /// Share of the baseline in each cell with discards in service, and its seconds.
    pub(crate) covered: Vec<(f64, f64)>,
    /// Shares of the baseline in the stalls' full cells.
    pub(crate) full: Vec<f64>,
    /// Latencies of the baseline, of the same intervals, and of the recovery.
    pub(crate) latencies: [Option<PhaseSamples<'a>>; 3],
}

/// Response times over one stretch.
#[derive(Debug, Clone)]
pub(crate) struct PhaseSamples<'a> {
    /// All of them, where they were recorded.
    pub(crate) histogram: Option<Cow<'a, Histogram<u64>>>,
    /// Of each interval.
    pub(crate) intervals: Vec<IntervalLatency>,
}

/// Response times in one interval, in microseconds; NaN where the record has none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IntervalLatency {
    pub(crate) ops: f64,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) max_us: f64,
}

/// Judges a record, and keeps the samples behind the verdict.
pub(crate) fn sample<'a>(record: &'a RunRecord, options: &JudgeOptions) -> Sampled<'a> {
    let (verdict, part) = with_its_part(record, options);
    let interval_s = record.head.interval_ms / 1e3;
    let Some((window, main)) = part else {
        return Sampled {
            verdict,
            actors: Vec::new(),
            trim: Vec::new(),
            waits: Vec::new(),
            interval_s,
            low: options.low,
        };
    };
    let discards = &main.discards;
    let setting = Setting {
        record,
        discards,
        window: &window,
        reference: &main.reference,
        borrowed: None,
        options,
    };
    let actors = main.actors.iter().map(|judged| {
        let seen = Seen::of(setting, judged.index);
        actor(
            record,
            judged.index,
            &discards.covered,
            &judged.foreground,
            &seen,
        )
    });
    let with = (0..discards.commands.len()).filter(|&i| discards.commands[i] > 0);
    Sampled {
        verdict,
        actors: actors.collect(),
        trim: discards.full_rates(record).unwrap_or_default(),
        waits: with
            .map(|i| (discards.wait_ms[i] as f64, f64::from(discards.commands[i])))
            .collect(),
        interval_s,
        low: options.low,
    }
}

fn actor<'a>(
    record: &'a RunRecord,
    index: usize,
    covered: &[bool],
    foreground: &Foreground,
    seen: &Seen,
) -> ActorSamples<'a> {
    let stretches = &seen.stretches;
    let columns = &record.intervals.actors[index];
    let compared = stretches.compared();
    let mut samples = ActorSamples {
        latencies: compared.map(|stretch| Some(phase(record, index, stretch?))),
        ..ActorSamples::default()
    };
    if let Some(beside) = compared[1] {
        let running = beside.spans.intervals().filter(|&i| columns.running[i]);
        for i in running {
            let (ops, seconds) = (columns.ops[i], record.intervals.seconds[i]);
            let row = (f64::from(ops), f64::from(seconds), covered[i]);
            samples.delete.push(row);
        }
    }
    let (Some(baseline), Some(laid)) = (&seen.baseline, &seen.laid) else {
        return samples;
    };
    let (grid, lows) = (&laid.grid, &laid.lows);
    // Without phases the grid begins after the actor's first interval; the baseline
    // may be shorter than a cell: then its own intervals have to do.
    samples.baseline = grid.among(&baseline.spans).map(|i| grid.rate(i)).collect();
    if samples.baseline.len() < 2 {
        let rate = |i: usize| f64::from(columns.ops[i]) / f64::from(record.intervals.seconds[i]);
        samples.baseline = baseline.spans.intervals().map(rate).collect();
    }
    let quiet = (0..grid.len()).filter(|&i| !grid.covered[i] && !lows.low[i]);
    samples.quiet = quiet.map(|i| grid.rate(i)).collect();
    let cells = laid.cells.clone();
    samples.covered = cells
        .filter(|&i| grid.covered[i])
        .map(|i| (lows.share(i), grid.seconds(i)))
        .collect();
    if foreground.stall.is_some() {
        let stalls: Vec<_> = laid.pieces.iter().filter(|p| p.stall).collect();
        let full = runs::full_cells(lows, &stalls).into_iter();
        samples.full = full.map(|i| lows.share(i)).collect();
    }
    samples
}

fn phase<'a>(record: &'a RunRecord, index: usize, stretch: &Stretch) -> PhaseSamples<'a> {
    let columns = &record.intervals.actors[index];
    let running = stretch.spans.intervals().filter(|&i| columns.running[i]);
    PhaseSamples {
        histogram: figures::histogram(record, index, stretch, Latency::Response),
        intervals: running
            .map(|i| IntervalLatency {
                ops: f64::from(columns.ops[i]),
                p50_us: f64::from(columns.p50_us[i]),
                p99_us: f64::from(columns.p99_us[i]),
                max_us: f64::from(columns.max_us[i]),
            })
            .collect(),
    }
}
