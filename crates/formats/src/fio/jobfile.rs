//! A job file: who will run, and which logs to ask fio for.
//!
//! A record's head tells its actors before they start, and fio tells its
//! interval figures only in logs that the job asks for. So the file is read for
//! its jobs, and given back with the options that make the logs.

use record::ActorInfo;

use super::logs::Direction;
use super::options::Options;
use crate::Unfit;

/// Options that are ours to set: where figures go, and how they are averaged.
const OURS: &str = "write_bw_log write_iops_log write_lat_log write_hist_log log_avg_msec log_hist_msec \
    log_hist_coarseness log_window_value log_max_value log_offset log_prio log_issue_time log_unix_epoch \
    log_alternate_epoch log_alternate_epoch_clock_id log_compression log_store_compressed log_entries \
    per_job_logs bwavgtime iopsavgtime group_reporting";

/// A job file's jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFile {
    text: String,
    jobs: Vec<Job>,
}

/// One job: a section other than `[global]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Its options, with those of `[global]` before it.
    pub options: Options,
}

/// Which logs to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logging {
    /// Where logs go: a directory, absolute.
    pub dir: String,
    /// Length of a window of rates, in milliseconds: the record's interval.
    pub window_ms: u32,
    /// Length of a window of latencies, in milliseconds. fio keeps 15 kB of
    /// memory for each and writes 6 kB, so a long run needs longer ones.
    pub histogram_ms: u32,
}

impl JobFile {
    /// Reads a job file.
    ///
    /// # Errors
    /// If it has no job, or what fio wouldn't take or can't be followed.
    pub fn parse(text: &str) -> Result<JobFile, Unfit> {
        let mut global = Options::default();
        let mut jobs: Vec<Job> = Vec::new();
        let mut in_global = None;
        for (number, line) in text.lines().enumerate() {
            let wrong = |why: &str| {
                let what = format!("line {}: '{}' {why}", number + 1, line.trim());
                Err(Unfit::Broken(what))
            };
            match Line::of(line) {
                Line::Blank => {}
                Line::Broken => return wrong("lacks its closing bracket"),
                Line::Section("global") => in_global = Some(true),
                Line::Section(name) => {
                    in_global = Some(false);
                    jobs.push(Job {
                        name: name.to_owned(),
                        options: global.clone(),
                    });
                }
                Line::Option("include", _) => {
                    let line = number + 1;
                    return Err(Unfit::Broken(format!(
                        "line {line}: 'include' isn't followed; put the jobs into one file"
                    )));
                }
                Line::Option(name, value) => match (in_global, jobs.last_mut()) {
                    (Some(true), _) => global.set(name, value),
                    (Some(false), Some(job)) => job.options.set(name, value),
                    _ => return wrong("stands before the first [section]"),
                },
            }
        }
        if jobs.is_empty() {
            let why = "no job in it: a job begins with its name in brackets, e.g. [reader]";
            return Err(Unfit::Other(why.to_owned()));
        }
        let text = text.to_owned();
        Ok(JobFile { text, jobs })
    }

    /// Its jobs, in order.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// Its actors, one for each job and direction, in order: those of
    /// [`super::series`] of the logs that [`JobFile::with_logs`] asked for.
    pub fn actors(&self) -> Vec<ActorInfo> {
        self.parts().into_iter().map(|(_, _, info)| info).collect()
    }

    /// Job (from 0), direction and actor, in order.
    pub(super) fn parts(&self) -> Vec<(usize, Direction, ActorInfo)> {
        let mut parts: Vec<(usize, Direction, ActorInfo)> = Vec::new();
        for (number, job) in self.jobs.iter().enumerate() {
            for direction in job.options.directions() {
                let threads = job.options.threads();
                let mut info = job.options.actor(&job.name, direction, threads);
                if parts.iter().any(|(_, _, known)| known.name == info.name) {
                    let same = format!("{}.{}", job.name, number + 1);
                    info = job.options.actor(&same, direction, threads);
                }
                parts.push((number, direction, info));
            }
        }
        parts
    }

    /// The same jobs with the logs asked for: each job writes its own, whose
    /// names begin with `job1`, `job2`, … What it asked for itself is left out.
    pub fn with_logs(&self, logging: &Logging) -> String {
        let ours = |name| OURS.split(' ').any(|ours| ours == name);
        let lines = self.text.lines().filter(|line| match Line::of(line) {
            Line::Option(name, _) => !ours(name),
            _ => true,
        });
        with_in_each_job(lines, |number| self.logs(number, logging))
    }

    /// The options that make the logs of a job, whose number counts from 0.
    fn logs(&self, number: usize, logging: &Logging) -> String {
        let prefix = format!("{}/job{}", logging.dir, number + 1);
        let varies = self.jobs.get(number).is_some_and(|job| {
            let mut directions = job.options.directions().into_iter();
            directions.any(|d| job.options.block_bytes(d).is_none())
        });
        let bandwidth = match varies {
            true => format!("write_bw_log={prefix}\n"),
            false => String::new(),
        };
        format!(
            "write_iops_log={prefix}\nwrite_hist_log={prefix}\nlog_avg_msec={}\nlog_hist_msec={}\n\
             log_unix_epoch=1\nper_job_logs=1\n{bandwidth}",
            logging.window_ms, logging.histogram_ms
        )
    }
}

/// The lines of a job file, with more at each job's end, where they win. `more` is given the job's
/// number, from 0.
pub fn with_in_each_job<'a>(
    lines: impl Iterator<Item = &'a str>,
    more: impl Fn(usize) -> String,
) -> String {
    let mut out = String::new();
    let (mut number, mut in_job) = (0, false);
    // A last section, so that the last job ends, too.
    for line in lines.chain(["[global]"]) {
        if let Line::Section(name) = Line::of(line) {
            if in_job {
                out += &more(number);
                number += 1;
            }
            in_job = name != "global";
        }
        out += line;
        out.push('\n');
    }
    out.truncate(out.len() - "[global]\n".len());
    out
}

enum Line<'a> {
    Blank,
    Section(&'a str),
    Option(&'a str, &'a str),
    Broken,
}

impl Line<'_> {
    fn of(line: &str) -> Line<'_> {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return Line::Blank;
        }
        if let Some(rest) = line.strip_prefix('[') {
            return match rest.find(']') {
                Some(end) if !rest[..end].is_empty() => Line::Section(&rest[..end]),
                _ => Line::Broken,
            };
        }
        if let Some(file) = line.strip_prefix("include ") {
            return Line::Option("include", file);
        }
        // A switch may stand alone.
        let (name, value) = line.split_once('=').unwrap_or((line, "1"));
        Line::Option(name.trim(), value.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::LoopKind;

    const TWO: &str = "\
; two jobs
[global]
filename=/data/f
direct=1
group_reporting
write_iops_log=mine

[readers]
rw=randread
numjobs=2
iodepth=4
ioengine=libaio
log_avg_msec=7
[log writer]
rw=rw
bs=64k
";

    #[test]
    fn actors_are_known_beforehand() {
        let file = JobFile::parse(TWO).unwrap();
        let actors = file.actors();
        let names: Vec<&str> = actors.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "fio-readers-read",
                "fio-log-writer-read",
                "fio-log-writer-write"
            ]
        );
        assert_eq!(actors[0].loop_kind, LoopKind::Closed { depth: 8 });
        assert!(
            actors.iter().all(|a| a.direct == Some(true)),
            "from [global]"
        );
    }

    #[test]
    fn jobs_of_one_name_are_told_apart() {
        let file = JobFile::parse("[a]\nrw=read\n[a]\nrw=read\n").unwrap();
        let names: Vec<String> = file.actors().into_iter().map(|a| a.name).collect();
        assert_eq!(names, ["fio-a-read", "fio-a.2-read"]);
    }

    #[test]
    fn logs_are_asked_for_in_each_job() {
        let logging = Logging {
            dir: "/tmp/logs".to_owned(),
            window_ms: 100,
            histogram_ms: 200,
        };
        let text = JobFile::parse(TWO).unwrap().with_logs(&logging);
        let again = JobFile::parse(&text).unwrap();
        for (number, job) in again.jobs().iter().enumerate() {
            let prefix = format!("/tmp/logs/job{}", number + 1);
            assert_eq!(job.options.get("write_iops_log"), Some(prefix.as_str()));
            assert_eq!(job.options.number("log_avg_msec"), Some(100));
            assert_eq!(job.options.number("log_hist_msec"), Some(200));
            assert_eq!(job.options.get("group_reporting"), None);
            assert_eq!(job.options.get("write_bw_log"), None, "one block size");
        }
        assert!(!text.contains("mine") && !text.contains("=7"));
        assert_eq!(again.actors(), JobFile::parse(TWO).unwrap().actors());
        let varying = JobFile::parse("[a]\nbsrange=4k-64k").unwrap();
        assert!(
            varying
                .with_logs(&logging)
                .contains("write_bw_log=/tmp/logs/job1\n")
        );
    }

    #[test]
    fn faults_name_their_line() {
        for (text, why) in [
            (
                "[global]\nrw=read\n",
                "no job in it: a job begins with its name in brackets, e.g. [reader]",
            ),
            (
                "# hi\nrw=read\n[a]\n",
                "line 2: 'rw=read' stands before the first [section]",
            ),
            ("[a\n", "line 1: '[a' lacks its closing bracket"),
            (
                "[a]\ninclude b.fio\n",
                "line 2: 'include' isn't followed; put the jobs into one file",
            ),
        ] {
            assert_eq!(JobFile::parse(text).unwrap_err().to_string(), why);
        }
    }
}
