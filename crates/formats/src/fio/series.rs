//! fio's logs as series of a record.

use std::collections::BTreeMap;
use std::io::BufRead;

use record::{ActorInfo, ActorInterval};

use super::grid::{Grid, whole};
use super::jobs::{Job, assign};
use super::json::Output;
use super::latencies::Latencies;
use super::logs::{Direction, HistogramLog, Log, LogKind, LogName};
use super::thread::Thread;
use super::windows::Window;
use crate::Unfit;
use crate::lines::Left;

/// A log: its file's name, which tells what is in it, and its text.
#[derive(Debug)]
pub struct Input<R> {
    /// File name, with or without its directory, e.g. `job1_iops.1.log`.
    pub name: String,
    /// The log's text.
    pub text: R,
}

/// One actor: what a job did in one direction.
#[derive(Debug, Clone)]
pub struct FioSeries {
    /// The actor as a record's head describes it.
    pub info: ActorInfo,
    /// Which way its data went.
    pub direction: Direction,
    /// Gaps and oddities of the logs.
    pub warnings: Vec<String>,
    /// The zero of the logs' clock, in seconds since 1970; `None` where the logs don't have it.
    /// Then it is the record's zero.
    pub started_unix_s: Option<f64>,
    pub(super) operations: Vec<Window>,
    /// Empty where each operation moves `info.block_bytes`.
    pub(super) bytes: Vec<Window>,
    pub(super) latencies: Latencies,
    /// From the first window's begin to the last's end, on the logs' clock.
    pub(super) ran_s: Option<(f64, f64)>,
}

impl FioSeries {
    /// One in which nothing was done yet.
    pub(super) fn new(info: ActorInfo, direction: Direction) -> FioSeries {
        FioSeries {
            info,
            direction,
            warnings: Vec::new(),
            started_unix_s: None,
            operations: Vec::new(),
            bytes: Vec::new(),
            latencies: Latencies::default(),
            ran_s: None,
        }
    }

    /// Operations in the logs.
    pub fn operations(&self) -> f64 {
        self.operations.iter().map(|w| w.amount).sum()
    }

    /// From when to when it ran, in seconds since 1970 (since its logs' zero
    /// where that isn't known); `None` if it logged nothing.
    pub fn ran(&self) -> Option<(f64, f64)> {
        let zero_s = self.started_unix_s.unwrap_or(0.0);
        let (begin_s, end_s) = self.ran_s?;
        Some((begin_s + zero_s, end_s + zero_s))
    }

    /// How long its windows mostly are, in seconds; 0 of single I/Os.
    pub fn window_s(&self) -> f64 {
        let lengths = self.operations.iter().map(|w| w.end_s - w.begin_s);
        let mut lengths: Vec<f64> = lengths.collect();
        lengths.sort_by(f64::total_cmp);
        lengths.get(lengths.len() / 2).copied().unwrap_or(0.0)
    }

    /// Its column of a record, one entry for each of the record's intervals. It is `None` while the
    /// job didn't run. It has 0 operations while the job ran and nothing completed, because fio
    /// then logs nothing. Of an interval in which it began or ended it must have run for half at
    /// least, so that neither looks like a stall.
    ///
    /// fio's windows are spread by overlap, so that sums are kept. Latencies are
    /// of windows that are at most twice as long as the interval; fio doesn't
    /// tell the age of what is in flight.
    pub fn intervals(&self, grid: &Grid<'_>) -> Vec<Option<ActorInterval>> {
        let offset_s = self.offset_s(grid);
        let Some((begin_s, end_s)) = self.ran_s else {
            return vec![None; grid.len()];
        };
        let (begin_s, end_s) = (begin_s + offset_s, end_s + offset_s);
        let operations = whole(&grid.spread(&self.operations, offset_s));
        let in_blocks = |ops: &u64| ops.saturating_mul(self.info.block_bytes);
        let bytes = match self.bytes.is_empty() {
            true => operations.iter().map(in_blocks).collect(),
            false => whole(&grid.spread(&self.bytes, offset_s)),
        };
        let latencies = grid.latencies(&self.latencies, offset_s);
        (0..grid.len())
            .map(|i| {
                let (from, to) = (grid.begin_s(i), grid.end_s(i));
                let ran_s = to.min(end_s) - from.max(begin_s);
                if ran_s < 0.5 * (to - from) {
                    return None;
                }
                // A window that ends with a stall is spread over it in part: what is told
                // of an interval is told only if something completed in it.
                let if_any = |us: Option<f64>| us.filter(|_| operations[i] > 0);
                Some(ActorInterval {
                    ops: operations[i],
                    errors: 0,
                    bytes: bytes[i],
                    p50_us: if_any(latencies[i].p50_us),
                    p99_us: if_any(latencies[i].p99_us),
                    max_us: if_any(latencies[i].max_us),
                    oldest_us: None,
                })
            })
            .collect()
    }

    /// The offset from the logs' clock to the record's, in seconds.
    fn offset_s(&self, grid: &Grid<'_>) -> f64 {
        let zero_s = self.started_unix_s;
        zero_s.map_or(0.0, |zero_s| zero_s - grid.started_unix_s)
    }
}

/// The series in fio's logs: one for each job and direction, in order of the
/// jobs. Without the output that fio printed, each prefix of log names is a job, and its depth is 1.
///
/// Lines that are none of a log are left out, and a warning names the first.
///
/// # Errors
/// If a text can't be read, or isn't a log of fio.
pub fn series<R: BufRead>(
    inputs: impl IntoIterator<Item = Input<R>>,
    output: Option<&Output>,
) -> Result<Vec<FioSeries>, Unfit> {
    let mut threads: BTreeMap<(String, Option<u32>), Thread> = BTreeMap::new();
    let mut first = None;
    for input in inputs {
        let name = LogName::parse(&input.name).ok_or_else(|| {
            Unfit::Broken(format!(
                "{}: not the name of a fio log; they end in _iops.N.log, _bw.N.log, _lat.N.log, \
                 _clat.N.log, _slat.N.log or _clat_hist.N.log",
                input.name
            ))
        })?;
        first.get_or_insert_with(|| (input.name.clone(), name.kind));
        let thread = threads.entry((name.prefix, name.thread));
        read_into(thread.or_default(), name.kind, input)?;
    }
    let known = output.filter(|output| !output.version.is_empty());
    let microseconds = known.map(Output::logs_microseconds);
    for thread in threads.values_mut() {
        thread.set_unit(microseconds);
    }
    let threads_are_empty = threads.values().all(|thread| thread.since_1970().is_none());
    let names: Vec<(String, Option<u32>)> = threads.keys().cloned().collect();
    let (jobs, owners) = assign(&names, output);
    let mut owned: Vec<Vec<Thread>> = jobs.iter().map(|_| Vec::new()).collect();
    for (thread, owner) in threads.into_values().zip(owners) {
        if let Some(threads) = owned.get_mut(owner) {
            threads.push(thread);
        }
    }
    let both = jobs.iter().zip(&owned);
    let all = both.clone().flat_map(|(job, threads)| of_job(job, threads));
    let mut all: Vec<FioSeries> = all.collect();
    let without = both.filter(|(_, threads)| threads.is_empty());
    let without: Vec<String> = without.filter_map(|(job, _)| job.without_logs()).collect();
    let ran = all.iter().any(|one| one.ran_s.is_some());
    if let Some((name, kind)) = first.filter(|_| !ran && !threads_are_empty) {
        let (what, or) = match kind {
            LogKind::Bandwidth => (
                "bandwidth",
                ", or give its JSON, too, which has the block size",
            ),
            _ => ("latencies", ""),
        };
        return Err(Unfit::Broken(format!(
            "{name}: can't be imported alone: it is fio's log of {what}, without operations over time. Let \
             fio write them (--write_iops_log=NAME --log_avg_msec=100){or}"
        )));
    }
    if let Some(first) = all.first_mut() {
        first.warnings.extend(without);
    }
    Ok(all)
}

fn read_into<R: BufRead>(thread: &mut Thread, kind: LogKind, input: Input<R>) -> Result<(), Unfit> {
    let file = input.name;
    let failed = |error| Unfit::Broken(format!("{file}: {error}"));
    let (left, cut_off, rows);
    if kind == LogKind::Histogram {
        let log = HistogramLog::read(input.text).map_err(failed)?;
        (left, cut_off, rows) = (log.skipped, log.cut_off, log.rows.len());
        thread.histogram = Some(log);
    } else {
        let log = Log::read(input.text).map_err(failed)?;
        (left, cut_off, rows) = (log.skipped, log.cut_off, log.rows.len());
        thread.logs.push((kind, log));
    }
    let Left { lines, first } = left;
    if rows == 0 && lines > 0 && !cut_off {
        return Err(Unfit::Other(format!(
            "{file}: not a log of fio: line {first} is none, and no other"
        )));
    }
    let warning = match lines {
        0 => return Ok(()),
        _ if cut_off => format!("line {first} is cut off; all lines before it were kept."),
        1 => format!("line {first} is no line of a fio log and was left out."),
        lines => format!(
            "{lines} lines are none of a fio log and were left out, the first is line {first}."
        ),
    };
    thread.warnings.push(format!("{file}: {warning}"));
    Ok(())
}

/// The series of one job, of those directions that its logs have.
fn of_job(job: &Job<'_>, threads: &[Thread]) -> Vec<FioSeries> {
    let mut all = Vec::new();
    for (direction, info) in &job.actors {
        let mut one = FioSeries::new(info.clone(), *direction);
        one.started_unix_s = job.logs_zero(threads);
        let mut ran = false;
        for thread in threads {
            ran |= thread.add_to(&mut one, job);
        }
        if ran {
            one.latencies.sort();
            one.warnings = job.warnings(*direction, threads, &one);
            all.push(one);
        }
    }
    all
}
