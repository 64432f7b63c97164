//! fio's logs, or its JSON, as a record of their own. Its trims are the discards; it knows no others.

use record::{
    ActorInterval, End, EndReason, Event, EventKind, Head, Host, Interval, Line, MAX_ACTORS,
    MAX_INTERVALS, PushError, RUN_SCHEMA, RunRecord, Target,
};

use super::grid::Grid;
use super::json::{DirectionOutput, JobOutput, Output};
use super::logs::Direction;
use super::series::FioSeries;
use super::trims;
use crate::told::{Moment, deletion_at};

/// Facts that the logs don't hold.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RecordOptions {
    /// Length of an interval, in seconds; by default that of the logs' windows.
    pub interval_s: Option<f64>,
    /// When the deletion began.
    pub deletion: Option<Moment>,
}

/// Shortest interval that is chosen, in seconds: of single I/Os, and what a run records.
pub(crate) const SHORTEST_S: f64 = 0.1;

/// Intervals that a record may have however few lines the logs have: a day at 100 ms.
const FEW_LINES: usize = 864_000;

/// Makes a record of series alone. A gap in the logs is in it as what it was:
/// intervals in which nothing completed.
///
/// # Errors
/// If they cover more than a record can hold.
pub fn record(all: &[FioSeries], options: &RecordOptions) -> Result<RunRecord, PushError> {
    let ran: Vec<(f64, f64)> = all.iter().filter_map(FioSeries::ran).collect();
    let begin_s = ran.iter().map(|r| r.0).fold(f64::INFINITY, f64::min);
    let end_s = ran.iter().map(|r| r.1).fold(f64::NEG_INFINITY, f64::max);
    let windows = all.iter().map(FioSeries::window_s).fold(0.0, f64::max);
    let interval_s = options
        .interval_s
        .unwrap_or(((windows * 1e3).round() / 1e3).max(SHORTEST_S));
    let long_s = if end_s > begin_s {
        end_s - begin_s
    } else {
        0.0
    };
    let n = (long_s / interval_s - 1e-6).ceil().max(0.0);
    // One wrong time in a short log would make millions of empty intervals.
    let lines: usize = all.iter().map(|series| series.operations.len()).sum();
    let most = lines.saturating_mul(10).clamp(FEW_LINES, MAX_INTERVALS);
    if n > most as f64 {
        return Err(PushError::TooMany {
            what: "intervals",
            most,
        });
    }
    let at_s: Vec<f64> = (0..n as usize).map(|i| i as f64 * interval_s).collect();
    let seconds = vec![interval_s as f32; at_s.len()];
    // Where the clock isn't known, the logs' zero is the record's.
    let known = all.iter().any(|s| s.started_unix_s.is_some());
    let started_unix_s = if known && begin_s.is_finite() {
        begin_s
    } else {
        0.0
    };
    let grid = Grid {
        started_unix_s,
        at_s: &at_s,
        seconds: &seconds,
    };
    let (trims, actors): (Vec<&FioSeries>, Vec<&FioSeries>) = all.iter().partition(|s| s.is_trim());
    let columns: Vec<Vec<Option<ActorInterval>>> = actors
        .iter()
        .map(|series| series.intervals(&grid))
        .collect();
    let devices = trims::devices(&trims, &grid);
    let mut head = head(&actors, started_unix_s, interval_s);
    head.devices = devices.iter().map(|device| device.0.clone()).collect();
    let mut record = RunRecord::new(head)?;
    warn(&mut record, all)?;
    for (i, &at_s) in at_s.iter().enumerate() {
        record.push(&Line::Interval(Interval {
            at_s,
            seconds: interval_s,
            actors: columns.iter().map(|column| column[i]).collect(),
            devices: devices.iter().map(|device| device.1[i]).collect(),
            freed_bytes: 0,
            ..Interval::default()
        }))?;
    }
    if let Some(at) = options.deletion {
        deletion_at(&mut record, at)?;
    }
    end(&mut record)?;
    Ok(record)
}

/// Makes a record of what fio printed at its end: one interval, as long as the
/// run. That tells no stall, and a warning says so.
///
/// # Errors
/// If there is more than a record can hold.
pub fn totals(output: &Output) -> Result<RunRecord, PushError> {
    // Before they are named: each name is compared with all others.
    let count: usize = output.jobs.iter().map(|job| job.directions.len()).sum();
    if count > MAX_ACTORS {
        return Err(PushError::TooMany {
            what: "actors",
            most: MAX_ACTORS,
        });
    }
    let mut actors = Vec::new();
    let mut columns = Vec::new();
    let mut devices = Vec::new();
    let mut long_s: f64 = 0.0;
    for job in &output.jobs {
        for direction in &job.directions {
            long_s = long_s.max(direction.runtime_ms as f64 / 1e3);
            if direction.direction == Direction::Trim {
                devices.push(trims::of_totals(job, direction));
                continue;
            }
            let mut info = job
                .options
                .actor(&job.name, direction.direction, threads(job));
            let taken = actors.iter().filter(|a: &&record::ActorInfo| {
                a.name == info.name || a.name.starts_with(&format!("{}-", info.name))
            });
            match taken.count() {
                0 => {}
                n => info.name = format!("{}-{}", info.name, n + 1),
            }
            actors.push(info);
            columns.push(Some(sums(direction)));
        }
    }
    let started_unix_s = output
        .at_unix_s
        .map_or(0.0, |at_s| (at_s - long_s).max(0.0));
    let mut head = head(&[], started_unix_s, (long_s * 1e3).max(1.0));
    head.interval_ms = (long_s * 1e3).max(1.0);
    head.actors = actors;
    head.devices = devices.iter().map(|device| device.0.clone()).collect();
    let mut record = RunRecord::new(head)?;
    push_warning(
        &mut record,
        "fio's JSON tells the whole run in one figure, which shows no stall; give its logs, too \
         (write_iops_log, write_hist_log, log_avg_msec=100)."
            .to_owned(),
    )?;
    if long_s > 0.0 {
        record.push(&Line::Interval(Interval {
            at_s: 0.0,
            seconds: long_s,
            actors: columns,
            devices: devices.into_iter().map(|device| device.1).collect(),
            freed_bytes: 0,
            ..Interval::default()
        }))?;
    }
    end(&mut record)?;
    Ok(record)
}

fn threads(job: &JobOutput) -> u32 {
    let jobs = job.options.number("numjobs").unwrap_or(1);
    u32::try_from(jobs).unwrap_or(u32::MAX).max(1)
}

fn sums(direction: &DirectionOutput) -> ActorInterval {
    let latency = direction
        .total
        .as_ref()
        .filter(|l| !l.percentiles.is_empty() || !l.bins.is_empty());
    let latency = latency.or(direction.completion.as_ref());
    let us = |ns: u64| ns as f64 / 1e3;
    let percentile = |percent| latency.and_then(|l| l.percentile(percent)).map(us);
    ActorInterval {
        ops: direction.operations,
        bytes: direction.bytes,
        p50_us: percentile(50.0),
        p99_us: percentile(99.0),
        max_us: latency.map(|l| us(l.max_ns)),
        ..ActorInterval::default()
    }
}

fn head(all: &[&FioSeries], started_unix_s: f64, interval_s: f64) -> Head {
    Head {
        schema: RUN_SCHEMA.to_owned(),
        run: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s,
        host: Host::default(),
        target: Target::default(),
        scenario: serde_json::json!({ "imported_from": "fio" }),
        interval_ms: interval_s * 1e3,
        actors: all.iter().map(|series| series.info.clone()).collect(),
        devices: vec![],
    }
}

/// Adds what the series warn of.
pub(crate) fn warn(record: &mut RunRecord, all: &[FioSeries]) -> Result<(), PushError> {
    let mut said: Vec<&String> = Vec::new();
    for warning in all.iter().flat_map(|series| &series.warnings) {
        if !said.contains(&warning) {
            said.push(warning);
            push_warning(record, warning.clone())?;
        }
    }
    Ok(())
}

/// Adds a warning.
pub(crate) fn push_warning(record: &mut RunRecord, text: String) -> Result<(), PushError> {
    record.push(&Line::Event(Event {
        at_s: 0.0,
        kind: EventKind::Warning,
        detail: Some(text),
    }))
}

fn end(record: &mut RunRecord) -> Result<(), PushError> {
    let at_s = record.intervals.end_s();
    record.push(&Line::End(End {
        at_s,
        reason: EndReason::Completed,
        message: None,
        unfinished: vec![],
    }))
}
