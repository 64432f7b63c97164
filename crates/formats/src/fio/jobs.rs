//! Which job a log is of, and what its figures can't tell.

use record::units::{count, latency_us};
use record::{ActorInfo, LoopKind};

use super::json::{DirectionOutput, JobOutput, Output};
use super::latencies::HistogramWindow;
use super::logs::{Direction, LogKind};
use super::options::Options;
use super::series::FioSeries;
use super::thread::Thread;

/// The warning about logs that have no clock of their own.
pub(crate) const UNTIMED: &str = "its logs count from the job's start (no log_unix_epoch=1)";

/// A job whose logs these are.
#[derive(Debug, Default)]
pub(super) struct Job<'a> {
    pub(super) options: Options,
    /// Its directions, and the actor that each is.
    pub(super) actors: Vec<(Direction, ActorInfo)>,
    /// The job's entries in fio's output: one for each thread, or one for all.
    printed: Vec<&'a JobOutput>,
    /// When fio printed it, in seconds since 1970.
    printed_unix_s: Option<f64>,
    /// Whether there were no options at all.
    unknown: bool,
    /// How many threads it has, in fio's output.
    threads: u32,
}

impl<'a> Job<'a> {
    fn figures(&self, direction: Direction) -> impl Iterator<Item = &'a DirectionOutput> {
        let all = self.printed.iter().flat_map(|job| &job.directions);
        all.filter(move |d| d.direction == direction)
    }

    /// For how long a thread ran in a direction, in seconds, as fio says.
    pub(super) fn runtime_s(&self, direction: Direction) -> Option<f64> {
        let longest = self.figures(direction).map(|d| d.runtime_ms).max()?;
        (longest > 0).then_some(longest as f64 / 1e3)
    }

    /// Whether all operations in a direction are as large as its actor says.
    pub(super) fn has_one_block_size(&self, direction: Direction) -> bool {
        !self.unknown && self.options.block_bytes(direction).is_some()
    }

    /// Bytes of an operation: as set, else as it was on average.
    pub(super) fn block_bytes(&self, direction: Direction) -> Option<f64> {
        if !self.unknown
            && let Some(bytes) = self.options.block_bytes(direction)
        {
            return Some(bytes as f64);
        }
        let sum = |of: fn(&DirectionOutput) -> u64| self.figures(direction).map(of).sum::<u64>();
        let operations = sum(|d| d.operations);
        (operations > 0).then(|| sum(|d| d.bytes) as f64 / operations as f64)
    }

    /// Length of a histogram's window, in seconds: as set, else as it mostly was.
    pub(super) fn histogram_s(&self, windows: &[HistogramWindow]) -> f64 {
        if let Some(ms) = self.options.number("log_hist_msec").filter(|&ms| ms > 0) {
            return ms as f64 / 1e3;
        }
        let steps = windows.windows(2).map(|w| w[1].end_s - w[0].end_s);
        let mut steps: Vec<f64> = steps.filter(|&s| s > 0.0).collect();
        steps.sort_by(f64::total_cmp);
        let median = steps.get(steps.len().saturating_sub(1) / 2).copied();
        median.unwrap_or(1.0)
    }

    /// The logs' zero, in seconds since 1970: 0 if they count from then, else
    /// the job's start, as well as it is known.
    pub(super) fn logs_zero(&self, threads: &[Thread]) -> Option<f64> {
        if threads.iter().find_map(Thread::since_1970)? {
            return Some(0.0);
        }
        let started = self.printed.iter().filter_map(|job| job.started_unix_s);
        started.reduce(f64::min).or_else(|| {
            let directions = self.printed.iter().flat_map(|job| &job.directions);
            let ran_ms = directions.map(|d| d.runtime_ms).max()?;
            Some(self.printed_unix_s? - ran_ms as f64 / 1e3)
        })
    }

    /// The warning about a job that did something and has no logs; `None` for any other job.
    pub(super) fn without_logs(&self) -> Option<String> {
        let name = &self.printed.first()?.name;
        let directions = self.printed.iter().flat_map(|job| &job.directions);
        let operations: u64 = directions.map(|d| d.operations).sum();
        let did = count(operations);
        (operations > 0).then(|| {
            format!(
                "fio's job {name} did {did} operations and has no logs among these files, so the record \
                 lacks it; let fio write them (write_iops_log, write_hist_log)."
            )
        })
    }

    /// Adds warnings about figures of this direction that a reader must know.
    pub(super) fn warnings(
        &self,
        direction: Direction,
        threads: &[Thread],
        series: &FioSeries,
    ) -> Vec<String> {
        let name = &series.info.name;
        let mut all: Vec<String> = threads.iter().flat_map(|t| t.warnings.clone()).collect();
        if series.ran_s.is_none() {
            all.push(format!("{name}: fio logged nothing of it."));
        } else {
            all.extend(self.about_latencies(direction, threads, series));
            all.extend(self.about_times(threads, series));
            all.extend(self.about_sums(direction, series));
        }
        let no_syncs =
            format!("{name}: fio has no log of fsyncs, so the record has no timeline of them");
        if let Some((syncs, longest_ns)) = self.printed.iter().find_map(|job| job.syncs) {
            let (syncs, longest) = (count(syncs), latency_us(longest_ns as f64 / 1e3));
            all.push(format!(
                "{no_syncs}; over the whole run it counted {syncs} of them, the longest took {longest}."
            ));
        } else if self.options.syncs() && direction == Direction::Write {
            all.push(no_syncs + ".");
        }
        if let Some(job) = self.printed.iter().find(|job| job.error != 0) {
            all.push(format!("{name}: fio ended with error {}.", job.error));
        }
        all
    }

    fn about_latencies(
        &self,
        direction: Direction,
        threads: &[Thread],
        series: &FioSeries,
    ) -> Option<String> {
        let name = &series.info.name;
        let has = |kind| threads.iter().any(|t| t.log(kind).is_some());
        let latencies = &series.latencies;
        let known = !latencies.single.is_empty() || !latencies.windows.is_empty();
        if !known {
            let mut blocked = "";
            if has(LogKind::Completion) && !has(LogKind::Latency) {
                blocked = " Its logs count from the end of submission (clat), so they miss time blocked \
                           in it.";
            }
            return Some(format!(
                "{name}: fio wrote no histograms (write_hist_log), and averages are no percentiles, so \
                 those are not reported.{blocked}"
            ));
        }
        let figures = self.figures(direction);
        let submissions = figures.filter_map(|d| d.submission.as_ref());
        let longest_ns = submissions.map(|s| s.max_ns).max();
        let whole = !latencies.single.is_empty() && has(LogKind::Latency);
        let open = matches!(series.info.loop_kind, LoopKind::Open { .. });
        match (whole, open) {
            (true, false) => None,
            (false, false) => {
                let longest = longest_ns.filter(|&ns| ns >= 1000);
                let longest = longest.map(|ns| latency_us(ns as f64 / 1e3));
                let longest = longest.map_or(String::new(), |took| {
                    format!("; the longest submission took {took}")
                });
                Some(format!(
                    "{name}: fio's latencies count from the end of submission (clat), so time blocked \
                     in it is missing{longest}."
                ))
            }
            (_, true) => Some(format!(
                "{name}: fio counts from the moment it submits, not from the intended start, and waits \
                 for what is in flight before it goes on: latencies hide most of a stall. Its rate shows it."
            )),
        }
    }

    fn about_times(&self, threads: &[Thread], series: &FioSeries) -> Option<String> {
        let name = &series.info.name;
        let since_1970 = threads.iter().find_map(Thread::since_1970)?;
        if since_1970 {
            return None;
        }
        let known = match series.started_unix_s {
            Some(_) => "which is known to about a second only",
            None => "and when that was isn't known; the record's time is used",
        };
        Some(format!("{name}: {UNTIMED}, {known}."))
    }

    /// Logs that don't add up to what fio counted.
    fn about_sums(&self, direction: Direction, series: &FioSeries) -> Option<String> {
        let printed: u64 = self.figures(direction).map(|d| d.operations).sum();
        let logged = series.operations();
        let (begin_s, end_s) = series.ran_s?;
        // Nothing is logged of what comes before the first window and after the last.
        let edges = printed as f64 * (0.5 / (end_s - begin_s).max(0.5));
        let missing = (printed as f64 - logged).abs();
        (printed > 0 && missing > 0.03 * printed as f64 + edges).then(|| {
            let (name, logged) = (&series.info.name, count(logged.round() as u64));
            let printed = count(printed);
            format!("{name}: fio counted {printed} operations and logged {logged}.")
        })
    }
}

/// The jobs, and for each thread's name the index of its job.
pub(super) fn assign<'a>(
    names: &[(String, Option<u32>)],
    output: Option<&'a Output>,
) -> (Vec<Job<'a>>, Vec<usize>) {
    of_output(names, output).unwrap_or_else(|| of_prefixes(names, output))
}

/// The jobs of fio's output: one for each name and group, whose threads are
/// numbered on in its order.
fn of_output<'a>(
    names: &[(String, Option<u32>)],
    output: Option<&'a Output>,
) -> Option<(Vec<Job<'a>>, Vec<usize>)> {
    let output = output.filter(|o| !o.jobs.is_empty())?;
    let mut numbers: Vec<u32> = names.iter().filter_map(|(_, thread)| *thread).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let alone = output.jobs.len() >= numbers.len();
    let mut jobs: Vec<Job<'_>> = Vec::new();
    for printed in &output.jobs {
        let same = |job: &&mut Job<'_>| {
            let last = job.printed[0];
            (&last.name, last.group) == (&printed.name, printed.group)
        };
        // With group_reporting there is one for all threads.
        let threads = if alone { 1 } else { printed.options.threads() };
        if let Some(job) = jobs.last_mut().filter(same) {
            job.printed.push(printed);
            job.threads = job.threads.saturating_add(threads);
            continue;
        }
        jobs.push(Job {
            printed: vec![printed],
            printed_unix_s: output.at_unix_s,
            threads,
            options: printed.options.clone(),
            ..Job::default()
        });
    }
    let mut used: Vec<String> = Vec::new();
    for job in &mut jobs {
        let name = job.printed[0].name.as_str();
        let mut directions = job.options.directions();
        // What was done counts, whatever the options say.
        for done in job.printed.iter().flat_map(|p| &p.directions) {
            if !directions.contains(&done.direction) {
                directions.push(done.direction);
            }
        }
        for direction in directions {
            let mut info = job.options.actor(name, direction, job.threads);
            let mut another = 2;
            while used.contains(&info.name) {
                info.name = format!("fio-{name}.{another}-{}", direction.name());
                another += 1;
            }
            used.push(info.name.clone());
            job.actors.push((direction, info));
        }
    }
    let all: u64 = jobs.iter().map(|job| u64::from(job.threads)).sum();
    let matches = jobs.len() == 1 || numbers.last().is_none_or(|&last| u64::from(last) <= all);
    let owners = names.iter().map(|(_, thread)| {
        let mut before = 0;
        let number = u64::from(thread.unwrap_or(1));
        let found = jobs.iter().position(|job| {
            before += u64::from(job.threads);
            number <= before
        });
        found.unwrap_or(jobs.len() - 1)
    });
    let owners: Vec<usize> = owners.collect();
    matches.then_some((jobs, owners))
}

/// Without anything to go by, logs of one prefix are a job.
fn of_prefixes<'a>(
    names: &[(String, Option<u32>)],
    output: Option<&'a Output>,
) -> (Vec<Job<'a>>, Vec<usize>) {
    let mut prefixes: Vec<&str> = names.iter().map(|(prefix, _)| prefix.as_str()).collect();
    prefixes.dedup();
    let jobs = prefixes.iter().map(|prefix| {
        let threads = names.iter().filter(|(p, _)| p == prefix).count() as u32;
        let actors = Direction::ALL.into_iter().map(|direction| {
            let mut info = Options::default().actor(prefix, direction, threads);
            (info.block_bytes, info.pattern, info.direct) = (0, None, None);
            info.engine = "fio".to_owned();
            (direction, info)
        });
        Job {
            unknown: true,
            printed_unix_s: output.and_then(|o| o.at_unix_s),
            actors: actors.collect(),
            ..Job::default()
        }
    });
    let owner = |prefix: &String| prefixes.iter().position(|p| p == prefix);
    let owners = names.iter().map(|(prefix, _)| owner(prefix).unwrap_or(0));
    (jobs.collect(), owners.collect())
}
