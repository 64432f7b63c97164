//! One thread of a job: its logs, and what they say of one direction.

use super::jobs::Job;
use super::latencies::{HistogramWindow, Latencies};
use super::logs::{Direction, HistogramLog, Log, LogKind, Row, is_since_1970};
use super::series::FioSeries;
use super::unit::{self, Unit};
use super::windows::{self, Window};
use record::units::percent;

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
                let warning = |in_flight: f64| {
                    format!(
                        "Latencies were read as microseconds, as fio 2 logs them: as nanoseconds, operations \
                         would have been in flight for {} of the time.",
                        percent(in_flight)
                    )
                };
                self.warnings.extend(in_flight.map(warning));
            }
            Unit::Unknown => {
                self.no_unit = true;
                let warning = "Latencies were left out: their unit is unknown, nanoseconds (fio 3) or \
                     microseconds (fio 2). Give fio's JSON, which has its version.";
                self.warnings.push(warning.to_owned());
            }
        }
    }

    /// Whether its times are since 1970; `None` if it has no line.
    pub(super) fn since_1970(&self) -> Option<bool> {
        let logs = self.logs.iter().flat_map(|(_, log)| log.rows.first());
        let histogram = self.histogram.iter().flat_map(|log| log.rows.first());
        let times = logs.map(|row| row.at_ms);
        let mut times = times.chain(histogram.map(|row| row.at_ms));
        times.next().map(is_since_1970)
    }

    /// Adds the thread's work in a series' direction; false if its logs have nothing of it.
    pub(super) fn add_to(&self, series: &mut FioSeries, job: &Job<'_>) -> bool {
        let direction = series.direction;
        let latencies = self.latencies(job, direction);
        let (operations, nominal_s) = self.operations(job, direction, &latencies);
        if operations.is_empty() {
            return false;
        }
        series.bytes.extend(self.bytes(job, direction, &operations));
        let ends = operations.iter().map(|w| w.end_s);
        let end_s = ends.fold(f64::NEG_INFINITY, f64::max);
        let begins = operations.iter().map(|w| w.begin_s);
        let begin_s = begins.fold(f64::INFINITY, f64::min);
        // Where fio says that it ran on for longer than it takes to log a window, it hung.
        let said_s = job.runtime_s(direction).map_or(end_s, |s| begin_s + s);
        let hung = said_s - end_s > 2.0 * nominal_s.max(0.1);
        let end_s = if hung { said_s } else { end_s };
        let (first_s, last_s) = series.ran_s.unwrap_or((begin_s, end_s));
        series.ran_s = Some((first_s.min(begin_s), last_s.max(end_s)));
        series.operations.extend(operations);
        series.latencies.extend(latencies);
        true
    }

    /// Its operations and the usual length of a window: from the best log there is.
    fn operations(
        &self,
        job: &Job<'_>,
        direction: Direction,
        latencies: &Latencies,
    ) -> (Vec<Window>, f64) {
        if let Some(log) = self.log(LogKind::Iops).filter(|log| log.is_averaged()) {
            return self.rates(log, job, direction, 1.0);
        }
        if let Some(log) = self.single() {
            return (windows::of_single(&log.rows, direction, |_| 1.0), 0.0);
        }
        let block = job.block_bytes(direction).filter(|&bytes| bytes > 0.0);
        if let (Some(log), Some(block)) = (self.log(LogKind::Bandwidth), block) {
            return self.rates(log, job, direction, 1024.0 / block);
        }
        let counted = latencies.windows.iter().map(|w| Window {
            begin_s: w.end_s - latencies.window_s,
            end_s: w.end_s,
            amount: w.counts.iter().map(|&(_, n)| f64::from(n)).sum(),
        });
        (counted.collect(), latencies.window_s)
    }

    /// A log of single I/Os.
    fn single(&self) -> Option<&Log> {
        let mut logs = self.logs.iter().map(|(_, log)| log);
        logs.find(|log| !log.is_averaged())
    }

    fn bytes(&self, job: &Job<'_>, direction: Direction, operations: &[Window]) -> Vec<Window> {
        let bandwidth = self.log(LogKind::Bandwidth);
        if let Some(log) = bandwidth.filter(|log| log.is_averaged()) {
            return self.rates(log, job, direction, 1024.0).0;
        }
        if let Some(log) = self.single() {
            return windows::of_single(&log.rows, direction, |row| row.block_bytes as f64);
        }
        if job.has_one_block_size(direction) {
            return Vec::new();
        }
        let block = job.block_bytes(direction).unwrap_or(0.0);
        let bytes = |w: &Window| Window {
            amount: w.amount * block,
            ..*w
        };
        operations.iter().map(bytes).collect()
    }

    /// The windows of a log of rates, and their usual length in seconds.
    fn rates(
        &self,
        log: &Log,
        job: &Job<'_>,
        direction: Direction,
        scale: f64,
    ) -> (Vec<Window>, f64) {
        let wanted_ms = job.options.number("log_avg_msec");
        // A log of a single window tells no length; fio's own default is half a second.
        let nominal_ms = windows::nominal_ms(wanted_ms, &log.rows, direction).unwrap_or(500.0);
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
            if log.is_averaged() {
                let values = job.options.get("log_window_value");
                let longest = |row: &Row| match values {
                    None | Some("avg" | "0" | "both") => row.most,
                    Some(_) => Some(row.value),
                };
                let longest = rows.filter_map(|row| Some((at_s(row), longest(row)?)));
                latencies.longest = longest.collect();
            } else {
                latencies.single = rows.map(|row| (at_s(row), row.value)).collect();
            }
        }
        if let Some(log) = &self.histogram
            && let Some(layout) = log.layout
        {
            let rows = log.rows.iter().filter(|row| row.direction == direction);
            let windows = rows.map(|row| HistogramWindow {
                end_s: row.at_ms as f64 / 1e3,
                layout,
                counts: row.counts.clone(),
            });
            latencies.windows = windows.collect();
            latencies.window_s = job.histogram_s(&latencies.windows);
        }
        latencies
    }
}
