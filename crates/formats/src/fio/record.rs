//! fio's logs, or its JSON, as a record of their own. Its trims are the discards; it knows no others.

use record::{ActorInterval, Interval, Line, MAX_INTERVALS, PushError, RunRecord};

use super::grid::Grid;
use super::json::Output;
use super::progress::of_documents;
use super::series::FioSeries;
use super::trims;
use crate::{Options, parts};

/// Shortest interval that is chosen, in seconds: of single I/Os, and what a run records.
pub(crate) const SHORTEST_S: f64 = 0.1;

/// Intervals that a record may have however few lines the logs have: eight hours at 100 ms.
const FEW_LINES: usize = 288_000;

/// Makes a record of series alone. A gap in the logs is in it as what it was:
/// intervals in which nothing completed.
///
/// # Errors
/// If they cover more than a record can hold.
pub fn record(all: &[FioSeries], options: &Options) -> Result<RunRecord, PushError> {
    let warnings = all.iter().flat_map(|series| series.warnings.clone());
    with_warnings(all, options, warnings)
}

/// Makes a record of what fio printed at its end: one interval, as long as the
/// run. That tells no stall, and a warning says so.
///
/// # Errors
/// If there is more than a record can hold.
pub fn totals(output: &Output) -> Result<RunRecord, PushError> {
    let mut output = output.clone();
    let directions = output.jobs.iter().flat_map(|job| &job.directions);
    let longest_ms = directions.map(|d| d.runtime_ms).max().unwrap_or(0);
    for direction in output.jobs.iter_mut().flat_map(|job| &mut job.directions) {
        direction.runtime_ms = longest_ms;
    }
    let options = Options {
        interval_s: Some((longest_ms as f64 / 1e3).max(1e-3)),
        ..Options::default()
    };
    let warning = "fio's JSON has one figure for the whole run, which shows no stall. Give its logs, too \
         (write_iops_log, write_hist_log, log_avg_msec=100).";
    let mut all = of_documents(&[output]);
    for one in &mut all {
        for window in one.operations.iter_mut().chain(&mut one.bytes) {
            // The length of the interval is rounded, too.
            window.end_s = window.end_s.min(f64::from(window.end_s as f32));
        }
    }
    with_warnings(&all, &options, std::iter::once(warning.to_owned()))
}

fn with_warnings(
    all: &[FioSeries],
    options: &Options,
    warnings: impl Iterator<Item = String>,
) -> Result<RunRecord, PushError> {
    let ran: Vec<(f64, f64)> = all.iter().filter_map(FioSeries::ran).collect();
    let begin_s = ran.iter().map(|r| r.0).fold(f64::INFINITY, f64::min);
    let end_s = ran.iter().map(|r| r.1).fold(f64::NEG_INFINITY, f64::max);
    let windows = all.iter().map(FioSeries::window_s).fold(0.0, f64::max);
    let interval_s = options
        .interval_s
        .unwrap_or(((windows * 1e3).round() / 1e3).max(SHORTEST_S));
    let n = ((end_s - begin_s).max(0.0) / interval_s - 1e-6)
        .ceil()
        .max(0.0);
    // One wrong time in a short log would make millions of empty intervals.
    let lines: usize = all.iter().map(|series| series.operations.len()).sum();
    let most = lines.saturating_mul(10).clamp(FEW_LINES, MAX_INTERVALS);
    if n > most as f64 {
        let what = "intervals";
        return Err(PushError::TooMany { what, most });
    }
    let at_s: Vec<f64> = (0..n as usize).map(|i| i as f64 * interval_s).collect();
    let seconds = vec![interval_s as f32; at_s.len()];
    // Where the clock isn't known, the logs' zero is the record's.
    let known = all.iter().any(|s| s.started_unix_s.is_some()) && begin_s.is_finite();
    let grid = Grid {
        started_unix_s: if known { begin_s } else { 0.0 },
        at_s: &at_s,
        seconds: &seconds,
    };
    let (trims, actors): (Vec<&FioSeries>, Vec<&FioSeries>) = all.iter().partition(|s| s.is_trim());
    let columns: Vec<Vec<Option<ActorInterval>>> = actors
        .iter()
        .map(|series| series.intervals(&grid))
        .collect();
    let devices = trims::devices(&trims, &grid);
    let mut head = parts::head("fio", grid.started_unix_s, interval_s * 1e3);
    head.actors = actors.iter().map(|series| series.info.clone()).collect();
    head.devices = devices.iter().map(|device| device.0.clone()).collect();
    let mut record = RunRecord::new(head)?;
    parts::warn(&mut record, warnings)?;
    for (i, &at_s) in at_s.iter().enumerate() {
        record.push(&Line::Interval(Interval {
            at_s,
            seconds: interval_s,
            actors: columns.iter().map(|column| column[i]).collect(),
            devices: devices.iter().map(|device| device.1[i]).collect(),
            ..Interval::default()
        }))?;
    }
    parts::finish(&mut record, options.deletion)?;
    Ok(record)
}
