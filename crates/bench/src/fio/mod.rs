//! fio as part of the foreground: it is started, watched, ended and read.
//!
//! fio's figures are known only when it has ended and written its logs. So its
//! series come into the record after the intervals.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use linux::space::Space;
use load::Workers;
use load::child::{Program, Running, Signal};
use record::ActorInfo;
use record::units::names;

use crate::error::BenchError;
use crate::plan::{FioJob, Plan};

mod job;
mod logs;
mod room;

pub(crate) use job::Job;
pub(crate) use logs::read;

use room::Room;

/// The program.
pub(crate) const PROGRAM: &str = "fio";

/// How long fio may take to write its logs once it is asked to end.
pub(crate) const GRACE: Duration = Duration::from_secs(15);

/// fio's own account of a run, beside its logs.
const OUTPUT: &str = "fio.json";

/// The series that a plan's job will have, in order; none without one.
///
/// # Errors
/// When it isn't a job file that can be used.
pub(crate) fn series(plan: &Plan) -> Result<Vec<ActorInfo>, BenchError> {
    Ok(match &plan.fio {
        Some(fio) => Job::of(fio, &plan.phases, "/")?.series(),
        None => Vec::new(),
    })
}

impl FioJob {
    /// Bytes that its files take beside a run's own, as far as their sizes are
    /// known; the rest is watched while fio runs.
    ///
    /// # Errors
    /// [`BenchError::Fio`] when it isn't a job file.
    pub fn space_bytes(&self) -> Result<u64, BenchError> {
        job::space_bytes(self)
    }
}

/// Whether fio itself takes the job: it reads it and does nothing.
///
/// # Errors
/// [`BenchError::Fio`] with what fio says, when it doesn't.
pub(crate) fn understands(plan: &Plan) -> Result<(), BenchError> {
    let Some(fio) = &plan.fio else { return Ok(()) };
    let refuse = |why: String| BenchError::Fio {
        path: fio.path.clone(),
        why,
    };
    let asked = ask(&Job::of(fio, &plan.phases, "/")?.layout);
    let answer = asked.map_err(|e| refuse(format!("fio can't be asked about it: {e}")))?;
    if answer.status.success() {
        return Ok(());
    }
    let words = [answer.stdout, answer.stderr].concat();
    let words = String::from_utf8_lossy(&words);
    Err(refuse(format!("fio doesn't take it: {}", words.trim())))
}

/// Runs fio so that it only checks a job, and returns its output.
fn ask(job: &str) -> io::Result<Output> {
    let mut fio = Command::new(PROGRAM)
        .args(["--parse-only", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = fio.stdin.take() {
        // One that gives up before it has read all says so by its exit code.
        let _ = stdin.write_all(job.as_bytes());
    }
    fio.wait_with_output()
}

/// fio under way.
#[derive(Debug)]
pub(crate) struct Fio {
    job_path: PathBuf,
    folder: PathBuf,
    running: Running,
    workers: Workers,
    room: Room,
    reserve_bytes: u64,
    /// Whether a good end is no news.
    ends_by_itself: bool,
    /// Whether there will be no more news.
    over: bool,
}

/// The state of fio.
#[derive(Debug)]
pub(crate) enum News {
    /// It has ended well, though the run goes on.
    Ended,
    /// It has failed, or had to be stopped.
    Failed(BenchError),
}

impl Fio {
    /// Has fio make the job's files in its folder.
    ///
    /// # Errors
    /// When it can't be started.
    pub(crate) fn lay_out(plan: &Plan, job: &Job, folder: &Path) -> Result<Fio, BenchError> {
        let mut fio = Fio::start(plan, folder, "layout.fio", &job.layout, &[])?;
        fio.ends_by_itself = true;
        Ok(fio)
    }

    /// Has fio run the job.
    ///
    /// # Errors
    /// When it can't be started.
    pub(crate) fn run(plan: &Plan, job: &Job, folder: &Path) -> Result<Fio, BenchError> {
        let output = format!("--output={}", names::shown(folder.join(OUTPUT)));
        let options = ["--output-format=json", &output];
        Fio::start(plan, folder, "job.fio", &job.endless, &options)
    }

    fn start(
        plan: &Plan,
        folder: &Path,
        name: &str,
        text: &str,
        options: &[&str],
    ) -> Result<Fio, BenchError> {
        let job_path = plan.fio.as_ref().map(|fio| fio.path.clone());
        let failed = |what: &'static str, path: &Path, source| BenchError::File {
            path: path.to_owned(),
            what,
            source,
        };
        let file = folder.join(name);
        std::fs::write(&file, text).map_err(|e| failed("write it for fio", &file, e))?;
        let space = Space::of(folder).map_err(|e| failed("look at its space", folder, e.source))?;
        let mut argv = vec![PROGRAM.into(), "--eta=never".into()];
        argv.extend(options.iter().map(Into::into));
        argv.push(file.into());
        let program = Program {
            argv,
            dir: Some(folder.to_owned()),
        };
        let start = |e| failed("start it", Path::new(PROGRAM), e);
        let room = Room::watch(folder.to_owned(), space.reserve_bytes()).map_err(start)?;
        let running = program.start().map_err(start)?;
        let workers = Workers::default();
        running
            .pid()
            .into_iter()
            .for_each(|pid| workers.add_program(pid));
        Ok(Fio {
            job_path: job_path.unwrap_or_default(),
            folder: folder.to_owned(),
            running,
            workers,
            room,
            reserve_bytes: space.reserve_bytes(),
            ends_by_itself: false,
            over: false,
        })
    }

    /// Its processes.
    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    /// Whether it has ended.
    pub(crate) fn is_done(&self) -> bool {
        self.running.is_done()
    }

    /// Returns the change since the last call, if there is one. Never waits.
    pub(crate) fn news(&mut self) -> Option<News> {
        if self.over {
            return None;
        }
        if self.running.is_done() {
            self.over = true;
            return match self.status() {
                Some(how) => Some(News::Failed(self.failed(how))),
                None if self.ends_by_itself => None,
                None => Some(News::Ended),
            };
        }
        if self.room.is_too_little() {
            self.over = true;
            self.running.signal(Signal::KILL);
            let reserve = record::units::bytes(self.reserve_bytes);
            return Some(News::Failed(self.failed(format!(
                "its files leave less than the {reserve} that stay free on this file system: give \
                 it smaller ones"
            ))));
        }
        None
    }

    /// Tells it to end and write its logs. Returns at once.
    pub(crate) fn end(&mut self) {
        self.over = true;
        self.running.signal(Signal::INT);
    }

    /// Waits at most `grace` for its end, then kills it; its folder.
    pub(crate) fn finish(self, grace: Duration) -> PathBuf {
        // However it ended, what it wrote is read; and what isn't there is told.
        let _ = self.running.finish(grace);
        self.folder
    }

    /// How it failed, in words; `None` when it didn't.
    fn status(&mut self) -> Option<String> {
        let how = self.running.failure()?;
        let said = self.running.said();
        Some(match said.is_empty() {
            true => format!("fio {how}"),
            false => format!("fio {how} with: {said}"),
        })
    }

    fn failed(&self, why: String) -> BenchError {
        BenchError::FioFailed {
            path: self.job_path.clone(),
            why,
        }
    }
}
