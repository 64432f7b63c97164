//! A user's job file, and what fio is given instead. Pure.

use std::collections::BTreeMap;

use formats::fio::{JobFile, Logging, with_in_each_job};
use record::ActorInfo;

use crate::error::BenchError;
use crate::plan::FioJob;
use crate::scenario::Phases;

/// Memory that fio may take for latencies: 15 kB for each window, direction and thread.
const MOST_WINDOWS: u64 = (64 << 20) / (15 << 10);

/// As long as anybody lets a run go on: fio is ended with it.
const RUNTIME_S: u32 = 30 * 86_400;

/// Options that have a job wait for another's end, which never comes.
const IN_TURN: &[&str] = &["stonewall", "wait_for_previous", "wait_for"];

/// A job file that fio can run beside actors.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// The job file with which the logs of the run are read.
    pub(crate) file: JobFile,
    /// Makes the files and does nothing else.
    pub(crate) layout: String,
    /// Runs until it is ended.
    pub(crate) endless: String,
}

impl Job {
    /// Reads a job file.
    ///
    /// # Errors
    /// [`BenchError::Fio`] when it isn't one, or can't run beside actors.
    pub(crate) fn of(job: &FioJob, phases: &Phases, folder: &str) -> Result<Job, BenchError> {
        let refuse = |why: String| BenchError::Fio {
            path: job.path.clone(),
            why,
        };
        let file = parse(job)?;
        for one in file.jobs() {
            if let Some(option) = IN_TURN.iter().find(|name| one.options.get(name).is_some()) {
                return Err(refuse(format!(
                    "[{}] has '{option}', and would wait for ever, since all jobs run until the \
                     run is over: leave it out",
                    one.name
                )));
            }
        }
        if let Some(why) = file.jobs().iter().find_map(leads_away) {
            return Err(refuse(why));
        }
        // As threads, for the processes that fio starts would outlive it, and us.
        let endless = with_in_each_job(job.text.lines(), |_| {
            format!("time_based=1\nruntime={RUNTIME_S}\nthread=1\n")
        });
        let file = JobFile::parse(&endless).map_err(|e| refuse(e.to_string()))?;
        let logging = Logging {
            dir: folder.to_owned(),
            window_ms: milliseconds(phases.interval()),
            histogram_ms: histogram_ms(&file, phases),
        };
        Ok(Job {
            layout: with_in_each_job(job.text.lines(), |_| "create_only=1\nthread=1\n".to_owned()),
            endless: file.with_logs(&logging),
            file,
        })
    }

    /// The entries of its series in the record's head, in order.
    pub(crate) fn series(&self) -> Vec<ActorInfo> {
        self.file.actors()
    }
}

/// Why a job would work outside of the run's own directory. Files and devices there may hold
/// data, and nothing would remove fio's files.
fn leads_away(job: &formats::fio::Job) -> Option<String> {
    let files = job.options.get("filename").unwrap_or_default().split(':');
    let directories = job.options.get("directory").unwrap_or_default().split(':');
    let path = files
        .chain(directories)
        .find(|path| path.contains('/') || *path == "..")?;
    Some(format!(
        "[{}] names '{path}', and a run works in a directory of its own only: leave it out, or \
         give a file name without '/'",
        job.name
    ))
}

fn parse(job: &FioJob) -> Result<JobFile, BenchError> {
    JobFile::parse(&job.text).map_err(|e| BenchError::Fio {
        path: job.path.clone(),
        why: e.to_string(),
    })
}

/// Bytes that its files take in its folder, as far as that is known: what
/// fio lays out, or writes if it has the time.
pub(super) fn space_bytes(job: &FioJob) -> Result<u64, BenchError> {
    let file = parse(job)?;
    let mut named: BTreeMap<&str, u64> = BTreeMap::new();
    let mut own = 0u64;
    for job in file.jobs() {
        let size = job.options.number("size").unwrap_or(0);
        match job.options.get("filename") {
            Some(name) => {
                let known = named.entry(name).or_default();
                *known = size.max(*known);
            }
            None => {
                let all = size.saturating_mul(job.options.threads().into());
                own = own.saturating_add(all);
            }
        }
    }
    Ok(named.into_values().fold(own, u64::saturating_add))
}

fn milliseconds(time: std::time::Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX).max(1)
}

/// Length of a window of latencies: the record's interval, or as long as fio's memory asks for.
fn histogram_ms(file: &JobFile, phases: &Phases) -> u32 {
    // With a control everything but preparing comes twice.
    let once = phases.settle() + phases.baseline() + phases.recovery() + phases.drain_limit();
    let whole = 2 * once.as_millis() as u64;
    let kept = |job: &formats::fio::Job| {
        u64::from(job.options.threads()) * job.options.directions().len() as u64
    };
    let at_once: u64 = file.jobs().iter().map(kept).sum();
    let least = whole * at_once / MOST_WINDOWS;
    let windows = least
        .div_ceil(u64::from(milliseconds(phases.interval())))
        .max(1);
    u32::try_from(windows * u64::from(milliseconds(phases.interval()))).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::example;

    const TWO: &str = "\
[global]
directory=.
runtime=5
[read]
rw=randread
size=1m
time_based=0
[ global]
[write]
rw=randwrite
size=1m";

    fn given(text: &str) -> FioJob {
        FioJob {
            path: "my.fio".into(),
            text: text.into(),
        }
    }

    fn job(text: &str) -> Result<Job, BenchError> {
        Job::of(&given(text), &example().phases, "/logs")
    }

    #[test]
    fn every_job_runs_without_end_and_writes_logs() {
        let job = job(TWO).unwrap();
        let names: Vec<_> = job.series().into_iter().map(|s| s.name).collect();
        assert!(names.contains(&"fio-read-read".to_owned()), "{names:?}");
        for one in JobFile::parse(&job.endless).unwrap().jobs() {
            assert_eq!(one.options.is_on("time_based"), Some(true));
            assert_eq!(one.options.number("runtime"), Some(RUNTIME_S.into()));
            assert_eq!(one.options.is_on("thread"), Some(true));
            assert_eq!(one.options.number("log_avg_msec"), Some(100));
            assert!(one.options.get("write_iops_log").is_some());
            assert_eq!(one.options.is_on("create_only"), None);
        }
        for one in JobFile::parse(&job.layout).unwrap().jobs() {
            assert_eq!(one.options.is_on("create_only"), Some(true));
            assert_eq!(one.options.get("write_iops_log"), None);
        }
    }

    #[test]
    fn files_in_its_folder_are_counted() {
        let space = |text| given(text).space_bytes().unwrap();
        assert_eq!(space(TWO), 2 << 20);
        assert_eq!(space("[a]\nsize=1m\nnumjobs=4\n"), 4 << 20);
        let shared = "[global]\nfilename=f\n[a]\nsize=1m\nnumjobs=4\n[b]\nsize=3m\n";
        assert_eq!(space(shared), 3 << 20);
        assert_eq!(space("[a]\nsize=10%\n"), 0, "not known");
    }

    #[test]
    fn what_waits_for_another_is_refused() {
        let error = job("[a]\nrw=read\n[b]\nstonewall\nrw=write\n").unwrap_err();
        let text = error.to_string();
        assert!(error.is_usage(), "{text}");
        assert!(text.contains("my.fio") && text.contains("[b]") && text.contains("stonewall"));
        job("rw=read\n").unwrap_err();
    }

    #[test]
    fn what_lies_outside_of_its_directory_is_refused() {
        for away in [
            "filename=x:sub/y",
            "filename=/dev/sda",
            "filename=x:/mnt/y",
            "directory=/tmp",
            "directory=..",
        ] {
            let error = job(&format!("[a]\n{away}\nsize=1m\n")).unwrap_err();
            assert!(error.is_usage(), "{error}");
            assert!(error.to_string().contains("[a] names '"), "{error}");
        }
        job("[a]\nfilename=x:y\nsize=1m\n").unwrap();
    }

    #[test]
    fn latencies_of_many_threads_are_kept_in_longer_windows() {
        let few = JobFile::parse("[a]\nrw=read\n").unwrap();
        let many = JobFile::parse("[a]\nrw=randrw\nnumjobs=64\n").unwrap();
        let mut phases = example().phases;
        phases.baseline = Some(std::time::Duration::from_secs(100));
        assert_eq!(histogram_ms(&few, &phases), 100);
        let long = histogram_ms(&many, &phases);
        assert!(long > 1000 && long.is_multiple_of(100), "{long}");
    }
}
