//! One thread of a job: its logs, and what they say of one direction.

use super::jobs::Job;
use super::latencies::{HistogramWindow, Latencies};
use super::logs::{Direction, HistogramLog, Log, LogKind, Row};
use super::unit::{self, Unit};
use super::windows::{self, Window};

/// The logs of one thread; of all threads of a run with `per_job_logs=0`.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) logs: Vec<(LogKind, Log)>,
    pub(super) histogram: Option<HistogramLog>,
    /// Whether the unit of its latencies isn't known.
    pub(super) no_unit: bool,
    /// Oddities of the files themselves.
    pub(super) warnings: Vec<String>,
}

/// The work of a thread in one direction; times are seconds on its logs' clock.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) operations: Vec<Window>,
    /// Empty where all operations are of one size.
    pub(super) bytes: Vec<Window>,
    pub(super) latencies: Latencies,
    pub(super) ran_s: (f64, f64),
}

impl Thread {
    pub(super) fn log(&self, kind: LogKind) -> Option<&Log> {
        let found = self.logs.iter().find(|(k, _)| *k == kind);
        found.map(|(_, log)| log).filter(|log| !log.rows.is_empty())
    }

    /// Makes nanoseconds of its latencies. `microseconds` is what fio's version tells.
    pub(super) fn set_unit(&mut self, microseconds: Option<bool>) {
        let unit = match microseconds {
            Some(true) => Unit::Microseconds(None),
            Some(false) => Unit::Nanoseconds,
            None => unit::of(self),
        };
        match unit {
            Unit::Nanoseconds => {}
            Unit::Microseconds(in_flight) => {
                let latency = |kind: &LogKind| !matches!(kind, LogKind::Iops | LogKind::Bandwidth);
                let logs = self.logs.iter_mut().filter(|(kind, _)| latency(kind));
                for row in logs.flat_map(|(_, log)| &mut log.rows) {
                    row.value = row.value.saturating_mul(1000);
                    row.most = row.most.map(|us| us.saturating_mul(1000));
                }
                self.warnings.extend(in_flight.map(|in_flight| {
                    format!(
                        "Latencies were read as microseconds, as fio 2 logs them: as nanoseconds they \
                         would have had {in_flight:.1e} operations in flight."
                    )
                }));
            }
            Unit::Unknown => {
                self.no_unit = true;
                self.warnings.push(
                    "Latencies were left out: their unit is unknown, nanoseconds (fio 3) or \
                     microseconds (fio 2). Give fio's JSON, which has its version."
                        .to_owned(),
                );
            }
        }
    }

    /// Whether its times are since 1970; `None` if it has no line.
    pub(super) fn since_1970(&self) -> Option<bool> {
        let logs = self.logs.iter().map(|(_, log)| log);
        let told = logs.filter(|log| !log.rows.is_empty()).map(Log::since_1970);
        let histogram = self.histogram.iter().filter(|log| !log.rows.is_empty());
        told.chain(histogram.map(HistogramLog::since_1970)).next()
    }

    /// The thread's work in a direction; `None` if its logs have nothing of it.
    pub(super) fn track(&self, job: &Job<'_>, direction: Direction) -> Option<Track> {
        let latencies = self.latencies(job, direction);
        let (operations, nominal_s) = self.operations(job, direction, &latencies)?;
        let bytes = self.bytes(job, direction, &operations);
        let ends = operations.iter().map(|w| w.end_s);
        let end_s = ends.fold(f64::NEG_INFINITY, f64::max);
        let begins = operations.iter().map(|w| w.begin_s);
        let begin_s = begins.fold(f64::INFINITY, f64::min);
        // Where fio says that it ran on for longer than it takes to log a window, it hung.
        let said_s = job.runtime_s(direction).map_or(end_s, |s| begin_s + s);
        let hung = said_s - end_s > 2.0 * nominal_s.max(0.1);
        Some(Track {
            operations,
            bytes,
            latencies,
            ran_s: (begin_s, if hung { said_s } else { end_s }),
        })
    }

    /// Its operations and the usual length of a window: from the best log there is.
    fn operations(
        &self,
        job: &Job<'_>,
        direction: Direction,
        latencies: &Latencies,
    ) -> Option<(Vec<Window>, f64)> {
        let found = |windows: Vec<Window>, s: f64| (!windows.is_empty()).then_some((windows, s));
        let each: fn(&Row) -> f64 = |_| 1.0;
        let iops = self.log(LogKind::Iops);
        if let Some(log) = iops.filter(|log| log.is_averaged()) {
            let (windows, s) = self.rates(log, job, direction, 1.0);
            return found(windows, s);
        }
        let single = self.logs.iter().map(|(_, log)| log);
        let mut single = single.filter(|log| !log.is_averaged() && !log.rows.is_empty());
        if let Some(log) = single.next() {
            return found(windows::of_single(&log.rows, direction, each), 0.0);
        }
        let block = job.block_bytes(direction).filter(|&bytes| bytes > 0.0);
        if let (Some(log), Some(block)) = (self.log(LogKind::Bandwidth), block) {
            let (windows, s) = self.rates(log, job, direction, 1024.0 / block);
            return found(windows, s);
        }
        let counted = latencies.windows.iter().map(|w| Window {
            begin_s: w.end_s - latencies.window_s,
            end_s: w.end_s,
            amount: w.counts.iter().map(|&(_, n)| f64::from(n)).sum(),
        });
        found(counted.collect(), latencies.window_s)
    }

    fn bytes(&self, job: &Job<'_>, direction: Direction, operations: &[Window]) -> Vec<Window> {
        let bandwidth = self.log(LogKind::Bandwidth);
        if let Some(log) = bandwidth.filter(|log| log.is_averaged()) {
            return self.rates(log, job, direction, 1024.0).0;
        }
        let single = self.logs.iter().map(|(_, log)| log);
        if let Some(log) = single.into_iter().find(|log| !log.is_averaged()) {
            return windows::of_single(&log.rows, direction, |row| row.block_bytes as f64);
        }
        if job.has_one_block_size(direction) {
            return Vec::new();
        }
        let block = job.block_bytes(direction).unwrap_or(0.0);
        operations
            .iter()
            .map(|w| Window {
                amount: w.amount * block,
                ..*w
            })
            .collect()
    }

    /// The windows of a log of rates, and their usual length in seconds.
    fn rates(
        &self,
        log: &Log,
        job: &Job<'_>,
        direction: Direction,
        scale: f64,
    ) -> (Vec<Window>, f64) {
        let asked = job.options.number("log_avg_msec");
        // A log of a single window tells no length; fio's own default is half a second.
        let nominal_ms = windows::nominal_ms(asked, &log.rows, direction).unwrap_or(500.0);
        let stretches: Vec<&[Row]> = windows::stretches(&log.rows).collect();
        // In a log of several jobs nobody can tell whose completions the others show.
        let witnesses = match stretches.len() {
            1 => self.completions(direction),
            _ => Vec::new(),
        };
        let windows = stretches
            .into_iter()
            .flat_map(|rows| windows::of_rates(rows, direction, nominal_ms, &witnesses, scale))
            .collect();
        (windows, nominal_ms / 1e3)
    }

    /// Moments at which something completed, in order: fio writes these logs then.
    fn completions(&self, direction: Direction) -> Vec<u64> {
        let kinds = [LogKind::Latency, LogKind::Completion];
        let logs = kinds.into_iter().filter_map(|kind| self.log(kind));
        let mut times: Vec<u64> = logs
            .flat_map(|log| windows::times(&log.rows, direction))
            .collect();
        let histogram = self.histogram.iter().flat_map(|log| &log.rows);
        let rows = histogram.filter(|row| row.direction == direction);
        times.extend(rows.map(|row| row.at_ms));
        times.sort_unstable();
        times
    }

    fn latencies(&self, job: &Job<'_>, direction: Direction) -> Latencies {
        let mut latencies = Latencies::default();
        let log = self.log(LogKind::Latency).or(self.log(LogKind::Completion));
        if let Some(log) = log.filter(|_| !self.no_unit) {
            let rows = log.rows.iter().filter(|row| row.direction == direction);
            let at_s = |row: &Row| row.at_ms as f64 / 1e3;
            let longest = job.options.get("log_window_value");
            let only_longest = longest.is_some_and(|value| !matches!(value, "avg" | "0" | "both"));
            if !log.is_averaged() {
                latencies.single = rows.map(|row| (at_s(row), row.value)).collect();
            } else if only_longest {
                latencies.longest = rows.map(|row| (at_s(row), row.value)).collect();
            } else {
                let both = rows.filter_map(|row| Some((at_s(row), row.most?)));
                latencies.longest = both.collect();
            }
        }
        let Some((log, layout)) = self
            .histogram
            .as_ref()
            .and_then(|log| Some((log, log.layout?)))
        else {
            return latencies;
        };
        let rows = log.rows.iter().filter(|row| row.direction == direction);
        let windows = rows.map(|row| HistogramWindow {
            end_s: row.at_ms as f64 / 1e3,
            layout,
            counts: row.counts.clone(),
        });
        latencies.windows = windows.collect();
        latencies.window_s = job.histogram_s(&latencies.windows);
        latencies
    }
}
