//! fio's JSON output (`--output-format=json` or `json+`).

use serde_json::Value;

use super::latencies::Figures;
use super::logs::Direction;
use super::options::Options;
use crate::Unfit;
use crate::parts::quantile;

/// The output that fio printed at its end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// fio's version, e.g. `fio-3.33`.
    pub version: String,
    /// When it was printed, in seconds since 1970; `None` in very old versions.
    pub at_unix_s: Option<f64>,
    /// One per thread of a job; one per group with `group_reporting`.
    pub jobs: Vec<JobOutput>,
}

/// Figures of one job (or group) over its whole run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobOutput {
    /// Its name.
    pub name: String,
    /// Its group's number.
    pub group: u64,
    /// The job's options, with those of the global section.
    pub options: Options,
    /// The first error's errno; 0 if there was none.
    pub error: i64,
    /// When it started, in seconds since 1970; fio tells since 3.36 or so.
    pub started_unix_s: Option<f64>,
    /// Directions in which there was I/O.
    pub directions: Vec<DirectionOutput>,
    /// Its fsyncs and the like: how many, and the longest in nanoseconds.
    pub syncs: Option<(u64, u64)>,
}

/// Figures of one direction of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct DirectionOutput {
    /// Which way.
    pub direction: Direction,
    /// Operations completed.
    pub operations: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// How long it ran, in milliseconds.
    pub runtime_ms: u64,
    /// From submission to completion.
    pub completion: Option<LatencyOutput>,
    /// Submission and completion together.
    pub total: Option<LatencyOutput>,
    /// How long submitting took.
    pub submission: Option<LatencyOutput>,
}

/// Latencies over a whole run, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LatencyOutput {
    /// How many.
    pub count: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Longest.
    pub max_ns: u64,
    /// Percent and latency, in order; empty where fio kept none.
    pub percentiles: Vec<(f64, u64)>,
    /// Latencies and how many took about that long, in order; `json+` has them.
    pub bins: Vec<(u64, u64)>,
}

impl Output {
    /// Reads fio's JSON out of a text that may have warnings before and lines after it: of
    /// several documents the last.
    ///
    /// # Errors
    /// If there is none, it is broken, or it isn't fio's.
    pub fn parse(text: &str) -> Result<Output, Unfit> {
        Ok(Output::parse_all(text)?.pop().unwrap_or_default())
    }

    /// Reads all documents in a text, in order: `--status-interval` prints one each time. One that
    /// breaks off behind whole ones is left out.
    ///
    /// # Errors
    /// As [`parse`](Self::parse), about the first.
    pub fn parse_all(text: &str) -> Result<Vec<Output>, Unfit> {
        let mut all = Vec::new();
        let mut at = 0;
        while let Some(begin) = text[at..].find('{').map(|found| at + found) {
            let json = serde_json::Deserializer::from_str(&text[begin..]);
            let mut values = json.into_iter::<Value>();
            match values.next() {
                Some(Ok(value)) => all.push(Output::of(&value)?),
                Some(Err(error)) if all.is_empty() => {
                    let line = text[..begin].matches('\n').count() + error.line();
                    return Err(Unfit::Broken(format!(
                        "line {line}: {error}; was fio stopped before it could finish it?"
                    )));
                }
                _ => break,
            }
            at = begin + values.byte_offset();
        }
        if all.is_empty() {
            let why = "no JSON in it: run fio with --output-format=json";
            return Err(Unfit::Other(why.to_owned()));
        }
        Ok(all)
    }

    fn of(value: &Value) -> Result<Output, Unfit> {
        let list = |name: &str| value.get(name).and_then(Value::as_array);
        // A client prints each host's jobs, and then their sums.
        let jobs = list("jobs").or(list("client_stats"));
        let none = || Unfit::Other("JSON, but not fio's: it has no list of jobs".to_owned());
        let jobs = jobs.ok_or_else(none)?.iter();
        let own = jobs.filter(|job| string(job, "jobname") != "All clients");
        let mut global = Options::default();
        set(&mut global, value.get("global options"));
        let seconds = number(value, "timestamp_ms").map(|ms| ms / 1e3);
        Ok(Output {
            version: string(value, "fio version"),
            at_unix_s: seconds.or(number(value, "timestamp")),
            jobs: own.map(|j| job(j, &global)).collect(),
        })
    }

    /// Whether its logs count latencies in microseconds (fio 2 and before).
    pub fn logs_microseconds(&self) -> bool {
        self.version.starts_with("fio-2") || self.version.starts_with("fio-1")
    }
}

impl LatencyOutput {
    /// A percentile in nanoseconds, if fio printed it, or bins that tell it.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let near = |p: f64| (p - percent).abs() < 1e-6;
        let printed = self.percentiles.iter().find(|p| near(p.0));
        printed.map(|p| p.1).or_else(|| self.of_bins(percent))
    }

    fn of_bins(&self, percent: f64) -> Option<u64> {
        let bins: Vec<(u64, f64)> = self.bins.iter().map(|bin| (bin.0, bin.1 as f64)).collect();
        quantile(&bins, percent / 100.0)
    }
}

impl DirectionOutput {
    /// Latencies of the whole run: from submission if fio tells, else of completions. Of trims, which
    /// are shown by the time that they take together, the mean stands for the median.
    pub(super) fn figures(&self) -> Figures {
        let some = |l: &&LatencyOutput| !l.percentiles.is_empty() || !l.bins.is_empty();
        let total = self.total.as_ref().filter(some);
        let latency = total.or(self.completion.as_ref());
        let us = |ns: u64| ns as f64 / 1e3;
        let percentile = |percent| latency.and_then(|l| l.percentile(percent)).map(us);
        let mean_us = self.completion.as_ref().map(|l| l.mean_ns / 1e3);
        Figures {
            p50_us: match self.direction {
                Direction::Trim => mean_us,
                _ => percentile(50.0),
            },
            p99_us: percentile(99.0),
            max_us: latency.map(|l| us(l.max_ns)),
        }
    }
}

fn job(job: &Value, global: &Options) -> JobOutput {
    let mut options = global.clone();
    set(&mut options, job.get("job options"));
    let host = job.get("hostname").and_then(Value::as_str);
    let name = string(job, "jobname");
    let all = Direction::ALL.into_iter();
    let syncs = job.get("sync").and_then(|sync| latency(sync, "lat"));
    JobOutput {
        name: host.map_or(name.clone(), |host| format!("{name}-{host}")),
        group: count(job, "groupid"),
        options,
        error: job.get("error").and_then(Value::as_i64).unwrap_or(0),
        started_unix_s: number(job, "job_start").map(|ms| ms / 1e3),
        directions: all
            .filter_map(|d| direction(job.get(d.name())?, d))
            .collect(),
        syncs: syncs.filter(|s| s.count > 0).map(|s| (s.count, s.max_ns)),
    }
}

fn direction(side: &Value, direction: Direction) -> Option<DirectionOutput> {
    let operations = count(side, "total_ios");
    (operations > 0).then(|| DirectionOutput {
        direction,
        operations,
        bytes: count(side, "io_bytes"),
        runtime_ms: count(side, "runtime"),
        completion: latency(side, "clat"),
        total: latency(side, "lat"),
        submission: latency(side, "slat"),
    })
}

/// `NAME_ns` of fio 3, or `NAME` of fio 2 in microseconds.
fn latency(side: &Value, name: &str) -> Option<LatencyOutput> {
    let (value, unit) = match side.get(format!("{name}_ns")) {
        Some(value) => (value, 1),
        None => (side.get(name)?, 1000),
    };
    // The first fio 3 had no counts; something longer than nothing was counted.
    let max_ns = (number(value, "max")? as u64).saturating_mul(unit);
    let pairs = |name: &str| {
        let pairs = value.get(name).and_then(Value::as_object);
        pairs.into_iter().flatten()
    };
    let percentiles = pairs("percentile").filter_map(|(percent, ns)| {
        Some((percent.parse().ok()?, ns.as_u64()?.saturating_mul(unit)))
    });
    let mut percentiles: Vec<(f64, u64)> = percentiles.collect();
    percentiles.sort_by(|a, b| a.0.total_cmp(&b.0));
    let bins = pairs("bins")
        .filter_map(|(ns, n)| Some((ns.parse::<u64>().ok()?.checked_mul(unit)?, n.as_u64()?)));
    let mut bins: Vec<(u64, u64)> = bins.collect();
    bins.sort_unstable();
    Some(LatencyOutput {
        bins,
        count: number(value, "N").map_or(u64::from(max_ns > 0), |n| n as u64),
        mean_ns: number(value, "mean").unwrap_or(0.0) * unit as f64,
        max_ns,
        percentiles,
    })
}

fn number(value: &Value, name: &str) -> Option<f64> {
    value.get(name).and_then(Value::as_f64)
}

fn count(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

fn string(value: &Value, name: &str) -> String {
    let text = value.get(name).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

fn set(options: &mut Options, from: Option<&Value>) {
    for (name, value) in from.and_then(Value::as_object).into_iter().flatten() {
        options.set(name, value.as_str().unwrap_or("1"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_isnt_fios_is_said() {
        let why = |text: &str| Output::parse(text).unwrap_err();
        assert!(
            matches!(why("fio: no such file"), Unfit::Other(why) if why.starts_with("no JSON"))
        );
        assert!(matches!(why("{\"a\": 1}"), Unfit::Other(why) if why.contains("not fio's")));
        let broken = why("fio: a warning\n{\n\"jobs\" : [\n");
        assert!(
            matches!(&broken, Unfit::Broken(why) if why.starts_with("line 3") || why.starts_with("line 4")),
            "{broken}"
        );
    }

    #[test]
    fn text_around_it_is_passed_over() {
        let text = "note: both iodepth >= 1 and synchronous I/O engine\n\
                    {\"fio version\": \"fio-2.21\", \"jobs\": [{\"jobname\": \"a\",\
                     \"read\": {\"total_ios\": 5, \"lat\": {\"max\": 7, \"mean\": 2.5}}}]}\n\
                    Run status\n";
        let output = Output::parse(text).unwrap();
        assert!(output.logs_microseconds());
        let read = &output.jobs[0].directions[0];
        assert_eq!(read.operations, 5);
        let total = read.total.as_ref().unwrap();
        assert_eq!((total.max_ns, total.mean_ns), (7000, 2500.0));
    }

    #[test]
    fn absurd_latencies_of_fio_2_are_as_long_as_can_be() {
        let text = r#"{"fio version": "fio-2.21", "jobs": [{"jobname": "a", "read": {"total_ios": 1,
            "clat": {"max": 1e30, "percentile": {"50.000000": 18446744073709551615}}}}]}"#;
        let output = Output::parse(text).unwrap();
        let read = output.jobs[0].directions[0].completion.as_ref().unwrap();
        assert_eq!(
            (read.max_ns, read.percentile(50.0)),
            (u64::MAX, Some(u64::MAX))
        );
    }

    #[test]
    fn bins_tell_percentiles_that_were_not_printed() {
        let text = r#"{"fio version": "fio-3.33", "jobs": [{"jobname": "a", "read": {"total_ios": 100,
            "clat_ns": {"max": 9000, "N": 100, "percentile": {"50.000000": 700},
                        "bins": {"8960": 2, "708": 60, "692": 38}}}}]}"#;
        let output = Output::parse(text).unwrap();
        let read = output.jobs[0].directions[0].completion.as_ref().unwrap();
        let percentiles = [30.0, 50.0, 98.0, 99.0, 100.0].map(|p| read.percentile(p));
        assert_eq!(percentiles, [692, 700, 708, 8960, 8960].map(Some));
        assert_eq!(LatencyOutput::default().percentile(99.0), None);
    }
}
