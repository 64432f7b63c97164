//! The plan, carried out.

mod files;
mod removal;

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lab::Launcher;
use record::units::names::shown;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::Error;
use crate::suite::cell::Cell;
use crate::suite::log::{Figures, Line, Log, Outcome, Writer};
use crate::suite::measure::RunFigures;
use crate::suite::plan::Plan;
use crate::suite::programs;
use crate::suite::stage::Stage;
use crate::suite::step::Step;

/// For so long the device may go on working between two steps.
const SETTLE: Duration = Duration::from_secs(30);

/// How far a suite is.
#[derive(Debug, Clone, PartialEq)]
pub struct Now {
    /// Turns that are over, those of an earlier start included.
    pub done: usize,
    /// Turns of the whole plan.
    pub turns: usize,
    /// The round, from 1.
    pub round: u32,
    /// The cell.
    pub cell: Cell,
    /// The step.
    pub step: Step,
    /// How long the rest will take, from the turns of this start; `None` during the first of them.
    pub left: Option<Duration>,
}

/// Watches a suite.
pub trait Watch {
    /// Called again and again during a step.
    fn tick(&mut self, now: &Now);
    /// A step is over.
    fn ended(&mut self, now: &Now, outcome: &Outcome);
}

/// Carries out what a log doesn't have yet, and writes it there.
///
/// # Errors
/// [`Error::Stopped`] when `stop` was raised; when the log can't be written; when the device
/// is gone. A step that fails is no error: its line says why, and the next one begins.
pub fn perform(
    stage: &Stage,
    launcher: &Launcher,
    log: &Log,
    writer: &mut Writer,
    stop: &AtomicBool,
    watch: &mut dyn Watch,
) -> Result<(), Error> {
    let left = log.left();
    let turns = log.head.plan.turns().len();
    let began = Instant::now();
    let mut ended = Ok(());
    for (i, (round, cell)) in left.iter().enumerate() {
        let per_turn = began.elapsed().checked_div(u32::try_from(i).unwrap_or(0));
        let rest = u32::try_from(left.len() - i).unwrap_or(u32::MAX);
        let mut turn = Turn {
            stage,
            trimbench: &launcher.program,
            plan: &log.head.plan,
            stop,
            writer,
            watch,
            now: Now {
                done: turns - left.len() + i,
                turns,
                round: *round,
                cell: *cell,
                step: Step::Mkfs,
                left: None,
            },
            files: false,
            left: per_turn.and_then(|one| one.checked_mul(rest)),
            began: Instant::now(),
        };
        ended = turn.perform();
        // A file system that can't be unmounted goes with the stage.
        let _ = stage.unmount();
        ended = ended.and_then(|()| stage.is_there());
        if ended.is_err() {
            break;
        }
    }
    stage.leave();
    ended
}

/// One cell in one round.
struct Turn<'a> {
    stage: &'a Stage,
    trimbench: &'a Path,
    plan: &'a Plan,
    stop: &'a AtomicBool,
    writer: &'a mut Writer,
    watch: &'a mut dyn Watch,
    now: Now,
    /// Whether the files are there.
    files: bool,
    /// The time that this turn and the rest were going to take when it began.
    left: Option<Duration>,
    began: Instant,
}

impl Turn<'_> {
    fn perform(&mut self) -> Result<(), Error> {
        let cell = self.now.cell;
        let mut blocked: Option<String> = None;
        for step in self.plan.steps_of(&cell) {
            self.now.step = step;
            let outcome = match &blocked {
                Some(why) => Outcome::Failed(why.clone()),
                None => match self.step(step) {
                    Ok(figures) => Outcome::Done(figures),
                    Err(Error::Stopped) => return Err(Error::Stopped),
                    Err(failed) => Outcome::Failed(failed.to_string()),
                },
            };
            // A program that failed because somebody pressed Ctrl-C failed for no reason of its own.
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            if let (Step::Mkfs, Outcome::Failed(why)) = (step, &outcome) {
                blocked = Some(format!("there is no file system: {why}"));
            }
            self.writer.write(&Line::Step {
                cell: cell.to_string(),
                round: self.now.round,
                step,
                outcome: outcome.clone(),
            })?;
            self.watch.ended(&self.now, &outcome);
            if step == Step::Mkfs && blocked.is_none() {
                let mounted = self.stage.mount(cell.kind.name(), cell.mounting.options);
                blocked = mounted.err().map(|failed| failed.to_string());
            }
        }
        Ok(())
    }

    fn step(&mut self, step: Step) -> Result<Figures, Error> {
        self.tick();
        match step {
            Step::Mkfs => self.mkfs(),
            Step::Create => self.create(),
            Step::RmEach | Step::Rm | Step::RmTrimbench => self.removal(step),
            Step::Fstrim | Step::FstrimTrimbench => self.trim(step),
            Step::Run | Step::RunRmTrimbench | Step::RunFstrim => self.run(step),
        }
    }

    fn mkfs(&mut self) -> Result<Figures, Error> {
        let cell = self.now.cell;
        if let Some(why) = self.stage.why_not(cell.kind) {
            return Err(Error::Failed(why));
        }
        self.stage.unmount()?;
        self.stage.empty(self.stop)?;
        self.settle()?;
        let Some(mkfs) = cell.kind.mkfs(cell.mkfs_discards) else {
            return Err(Error::Failed("its mkfs can't do that".to_owned()));
        };
        let striped = cell.kind.striped().filter(|_| self.stage.stripes_itself());
        let options = mkfs.iter().chain(striped.unwrap_or_default());
        let mut words: Vec<OsString> = options.map(OsString::from).collect();
        words.extend(self.stage.devices().map(OsString::from));
        self.timed(&words)
    }

    /// Runs a program, and counts what the device did meanwhile.
    fn timed(&mut self, words: &[OsString]) -> Result<Figures, Error> {
        let before = self.stage.counters()?;
        let seconds = self.program(words)?;
        self.figures(seconds, &before)
    }

    fn figures(&self, seconds: f64, before: &linux::stats::Counters) -> Result<Figures, Error> {
        let did = self.stage.counters()?.since(before);
        Ok(Figures {
            seconds,
            discards: did.discards,
            discard_bytes: did.discard_bytes,
            ..Figures::default()
        })
    }

    fn program(&mut self, words: &[OsString]) -> Result<f64, Error> {
        programs::run(words, self.stop, &mut || self.tick())
    }

    /// Waits until the device is quiet.
    fn settle(&self) -> Result<(), Error> {
        self.stage.settle(SETTLE, self.stop, |_| {})
    }

    /// Forces everything to the device; returns the seconds that took.
    fn sync(&self) -> Result<f64, Error> {
        let began = Instant::now();
        linux::files::syncfs(self.stage.mount_point()).map_err(Error::failed)?;
        Ok(began.elapsed().as_secs_f64())
    }

    fn tick(&mut self) {
        self.now.left = self
            .left
            .map(|left| left.saturating_sub(self.began.elapsed()));
        self.watch.tick(&self.now);
    }
}

// A run of `trimbench run` on the mounted file system.

impl Turn<'_> {
    /// Readers beside a deletion, judged by `trimbench run`.
    fn run(&mut self, step: Step) -> Result<Figures, Error> {
        if self.files {
            self.without_files()?;
        }
        self.settle()?;
        // A file without a name, so that nothing stays wherever this ends.
        let failed = Error::of("can't keep a verdict in memory");
        let memory = memfd_create("trimbench-verdict", MemfdFlags::CLOEXEC);
        let mut json = File::from(memory.map_err(|errno| failed(errno.into()))?);
        let path = format!("/proc/{}/fd/{}", std::process::id(), json.as_raw_fd());
        let mut words = self.run_words(&path);
        let trimbench = shown(self.trimbench);
        match step {
            Step::RunRmTrimbench => words.extend([
                "--delete".into(),
                format!("{trimbench} rm -f --quiet --set trash=false {{}}").into(),
            ]),
            Step::RunFstrim => words.extend(["--delete".into(), "fstrim".into()]),
            _ => {}
        }
        let figures = self.timed(&words)?;
        let mut text = String::new();
        json.rewind()
            .and_then(|()| json.read_to_string(&mut text))
            .map_err(failed)?;
        let verdict = serde_json::from_str(&text);
        let verdict = verdict.map_err(|_| Error::failed("trimbench run wrote no verdict"))?;
        Ok(Figures {
            run: Some(Box::new(RunFigures::of(verdict))),
            ..figures
        })
    }

    fn run_words(&self, json: &str) -> Vec<OsString> {
        let [settle, baseline, recovery, drain] = self.plan.run_times(&self.now.cell);
        let options = format!(
            "--size {} --set foreground.size={} --settle {settle}s --baseline {baseline}s \
             --recovery {recovery}s --set phases.drain-limit={drain}s --quiet --json {json}",
            self.plan.cell_bytes(),
            self.plan.foreground_bytes(),
        );
        let mut words: Vec<OsString> = vec![
            self.trimbench.into(),
            "run".into(),
            self.stage.mount_point().into(),
        ];
        words.extend(options.split(' ').map(OsString::from));
        words
    }
}
