//! The runs, in rounds: each round tries everything once, beginning elsewhere than
//! the one before, so that what drifts hits all alike.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ::tune::{Figures, Held, Point, Policy, Trial, disturbed, surveyed_anew};
use bench::plan::Place;
use bench::{Claimed, Outcome, Survey};
use record::RunRecord;
use record::{EndReason, RecordWriter};

use super::trials::Trials;
use crate::commands::tune::args::TuneArgs;
use crate::console::Stream;
use crate::exit::Error;
use crate::output::Output;
use crate::run_progress::Progress;
use crate::verdicts;

/// How often it is looked whether the time is up.
const LOOK: Duration = Duration::from_millis(50);
/// A smaller limit isn't tried where one takes so many times as long as the first.
const TOO_LONG: f64 = 4.0;
/// And at least so long, in seconds.
const LONG_S: f64 = 5.0;

/// Discarding so many times what was deleted is worth a word.
const MORE: f64 = 1.25;

/// A run that was carried out.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) trial: Trial,
    pub(super) figures: Figures,
    /// What disturbed it, if anything did.
    pub(super) disturbed: Option<String>,
    /// Whether it counts: a disturbed one does where it can't be repeated any more.
    pub(super) counts: bool,
}

/// What came of it all.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) points: Vec<Point>,
    pub(super) runs: Vec<Run>,
    /// What is to be known about them, in sentences.
    pub(super) notes: Vec<String>,
    pub(super) interrupted: bool,
}

/// The rounds.
pub(super) struct Rounds<'a> {
    args: &'a TuneArgs,
    trials: &'a Trials,
    survey: &'a Survey,
    people: Stream,
    stop: Arc<AtomicBool>,
    deadline: Instant,
    runs: Vec<Run>,
    notes: Vec<String>,
    spare: usize,
}

/// How a run ended.
enum Ended {
    Whole(Box<RunRecord>),
    /// Somebody stopped it, or the time was up.
    Stopped,
}

impl<'a> Rounds<'a> {
    pub(super) fn new(
        args: &'a TuneArgs,
        trials: &'a Trials,
        survey: &'a Survey,
        people: Stream,
        stop: Arc<AtomicBool>,
    ) -> Rounds<'a> {
        Rounds {
            args,
            trials,
            survey,
            people,
            stop,
            deadline: Instant::now() + args.time,
            runs: Vec::new(),
            notes: Vec::new(),
            spare: trials.spare(),
        }
    }

    pub(super) fn perform(mut self, held: &mut Held) -> Result<Found, Error> {
        let mut trials = self.trials.all.clone();
        'rounds: for round in 0..self.trials.repeats {
            // The first from the largest limit down, so that those that would take
            // ever longer can be left out.
            let count = trials.len();
            for i in 0..count {
                let trial = trials[(i + round as usize) % count];
                if round == 0 && self.takes_too_long(&trial) {
                    continue;
                }
                if !self.one(&trial, round, held)? {
                    break 'rounds;
                }
            }
            trials.retain(|trial| self.runs.iter().any(|run| run.trial == *trial));
            if trials.is_empty() {
                break;
            }
        }
        Ok(self.found())
    }

    /// Whether all else is compared with it: online discard with the limit as it is.
    fn is_now(&self, trial: &Trial) -> bool {
        trial.policy == Policy::Online && trial.limit_bytes == self.trials.now_bytes
    }

    /// One run of a trial, and another where it was disturbed. `false`: no more.
    fn one(&mut self, trial: &Trial, round: u32, held: &mut Held) -> Result<bool, Error> {
        let mut repeated = false;
        loop {
            // Nothing is set for a run that won't be.
            if self.is_over() || !self.has_room()? {
                return Ok(false);
            }
            if let Err(error) = held.set(trial) {
                // XFS can't be remounted so; whatever else it is, the others may go on.
                let note = format!("{} could not be tried: {error}", told(trial));
                if self.is_now(trial) && self.runs.is_empty() {
                    return Err(Error::Setting(format!(
                        "{note}; all else is compared with that, so nothing was tried"
                    )));
                }
                if self.notes.contains(&note) {
                    return Ok(true);
                }
                self.people.print(&format!("{note}\n"));
                self.notes.push(note);
                return Ok(!held.is_lost());
            }
            let record = match self.run(trial)? {
                Ended::Whole(record) => record,
                Ended::Stopped => return Ok(false),
            };
            let verdict = verdicts::verdict(&record);
            let Some(figures) = Figures::of(&record, &verdict) else {
                return Ok(true);
            };
            let others: Vec<&Figures> = self.counting().map(|run| &run.figures).collect();
            let why = disturbed(trial, &verdict, &figures, &others);
            let again = why.is_some() && self.spare > 0 && !repeated;
            let counts = match &why {
                None => true,
                Some(disturbance) => !again && !disturbance.useless,
            };
            self.people.print(&format!(
                "{} of {}, {}: {} lost, freed in {}{}\n",
                round + 1,
                self.trials.repeats,
                told(trial),
                super::table::lost(figures.lost_s),
                units::seconds(figures.freeing_s),
                match &why {
                    Some(found) if again => format!("; once more, for {}", found.why),
                    Some(found) if found.useless => format!("; left out, for {}", found.why),
                    Some(found) => format!("; though {}", found.why),
                    None => String::new(),
                }
            ));
            self.runs.push(Run {
                trial: *trial,
                figures,
                disturbed: why.map(|found| found.why),
                counts,
            });
            if !again {
                return Ok(true);
            }
            self.spare -= 1;
            repeated = true;
        }
    }

    /// Whether somebody stopped it, or no run would end in time any more.
    fn is_over(&self) -> bool {
        let left = self.deadline.saturating_duration_since(Instant::now());
        self.stop.load(Ordering::Relaxed) || left < self.trials.course.beside()
    }

    /// The place as it is now.
    fn surveyed(&self) -> Result<Survey, Error> {
        surveyed_anew(self.survey).map_err(|error| Error::Usage(error.to_string()))
    }

    /// Whether another run fits beside what is to stay free; says so where it doesn't.
    fn has_room(&mut self) -> Result<bool, Error> {
        let needed = self.trials.course.written_bytes();
        let mut space = self.surveyed()?.space;
        if space.usable_bytes() < needed {
            // What the last run deleted may be free only when that is on the disk, too (btrfs).
            let _ = linux::files::syncfs(self.survey.place.path());
            space = self.surveyed()?.space;
        }
        let usable = space.usable_bytes();
        if usable >= needed {
            return Ok(true);
        }
        let note = format!(
            "no more runs: each writes {}, and somebody has left room for {} beyond the {} that \
             stay free",
            units::bytes(needed),
            units::bytes(usable),
            units::bytes(space.reserve_bytes()),
        );
        self.people.print(&format!("{note}\n"));
        self.notes.push(note);
        Ok(false)
    }

    fn run(&self, trial: &Trial) -> Result<Ended, Error> {
        let survey = self.surveyed()?;
        let place = Place::Directory(survey.place.path().to_path_buf());
        let course = &self.trials.course;
        let plan = course.plan(trial, &place, survey.direct.is_ok());
        bench::preflight(&plan, &survey)?;
        let timer = Timer::start(Arc::clone(&self.stop), self.deadline);
        // Elsewhere than on a terminal a line for each run is enough.
        let mut progress = Progress::new(!Stream::Err.is_terminal(), plan.timing.interval);
        let performed = Claimed::claim(&plan, &survey)?.perform(
            self.record(trial)?,
            &mut progress,
            &timer.stop,
        );
        progress.end();
        drop(timer);
        let Outcome { record, error } = performed?;
        let whole = record.end.as_ref().map(|end| end.reason);
        match (whole, error) {
            (Some(EndReason::Completed), None) => Ok(Ended::Whole(Box::new(record))),
            (Some(EndReason::Interrupted) | None, None) => Ok(Ended::Stopped),
            (_, Some(error)) => Err(error.into()),
            (Some(_), None) => Ok(Ended::Stopped),
        }
    }

    /// Where the run's record is kept, if it is.
    fn record(&self, trial: &Trial) -> Result<Option<RecordWriter<File>>, Error> {
        let Some(directory) = &self.args.records else {
            return Ok(None);
        };
        let policy = serde_json::to_value(trial.policy).unwrap_or_default();
        let name = format!(
            "{:02}-{}-{}.jsonl.zst",
            self.runs.len() + 1,
            policy.as_str().unwrap_or_default(),
            trial.limit_bytes
        );
        let path: PathBuf = directory.join(name);
        Output::open(&path)?.record().map(Some)
    }

    /// Whether a limit would take longer still than one that took too long already.
    fn takes_too_long(&mut self, trial: &Trial) -> bool {
        let Some(first) = self.counting().next().filter(|_| !self.is_now(trial)) else {
            return false;
        };
        let same = |run: &&Run| run.trial.policy == trial.policy;
        let larger = |run: &&Run| run.trial.limit_bytes > trial.limit_bytes;
        let took = |run: &Run| run.figures.freeing_s;
        let most = LONG_S.max(TOO_LONG * took(first));
        let long = self
            .counting()
            .filter(same)
            .filter(larger)
            .any(|run| took(run) > most);
        if long {
            let note = format!(
                "{} was not tried: a larger limit took {TOO_LONG} times as long already",
                told(trial)
            );
            self.people.print(&format!("{note}\n"));
            self.notes.push(note);
        }
        long
    }

    fn counting(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.counts)
    }

    fn found(mut self) -> Found {
        let interrupted = self.stop.load(Ordering::Relaxed);
        let mut points = Vec::new();
        for trial in &self.trials.all {
            let of = self.counting().filter(|run| run.trial == *trial);
            let figures: Vec<Figures> = of.map(|run| run.figures.clone()).collect();
            points.extend(Point::of(*trial, &figures));
        }
        let left_out = self.runs.iter().filter(|run| !run.counts).count();
        if left_out > 0 {
            self.notes.push(format!(
                "{left_out} of {} runs were disturbed and don't count",
                self.runs.len()
            ));
        }
        let though = self
            .counting()
            .filter(|run| run.disturbed.is_some())
            .count();
        if though > 0 {
            self.notes.push(format!(
                "{though} of {} runs were disturbed and count all the same: try again when the machine is quiet",
                self.runs.len()
            ));
        }
        let size = self.trials.course.size_bytes as f64;
        let trimmed = points.iter().map(|point| point.discard_bytes.median);
        let more = trimmed.filter(|&bytes| bytes > MORE * size);
        if let Some(most) = more.max_by(f64::total_cmp) {
            self.notes.push(format!(
                "where {} were deleted, {} were discarded: {}, and that takes longer",
                units::bytes(size as u64),
                units::bytes(most as u64),
                match self.trials.course.discards_again {
                    true => {
                        "btrfs discards block groups that became empty once more, and a trim takes \
                         them whole"
                    }
                    false => "a trim reaches what is free between the pieces of a file, too",
                }
            ));
        }
        let whole = self.trials.repeats as usize;
        if points.iter().any(|point| point.runs < whole) && !interrupted {
            self.notes.push(format!(
                "fewer than {whole} runs of some count, so their figures are less sure"
            ));
        }
        if points.iter().all(|point| point.runs < 2) {
            self.notes.push(
                "with one run each, how far the figures scatter is a guess: give --repeats 3"
                    .into(),
            );
        }
        Found {
            points,
            runs: self.runs,
            notes: self.notes,
            interrupted,
        }
    }
}

fn told(trial: &Trial) -> String {
    super::name(trial.policy, trial.limit_bytes)
}

/// Ends a run when somebody wants it to, or when the time is up.
struct Timer {
    stop: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Timer {
    fn start(asked: Arc<AtomicBool>, deadline: Instant) -> Timer {
        let stop = Arc::new(AtomicBool::new(false));
        let over = Arc::new(AtomicBool::new(false));
        let (its_stop, its_over) = (Arc::clone(&stop), Arc::clone(&over));
        let watch = move || {
            while !its_over.load(Ordering::Relaxed) {
                if asked.load(Ordering::Relaxed) || Instant::now() >= deadline {
                    its_stop.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(LOOK);
            }
        };
        Timer {
            stop,
            over,
            thread: Some(std::thread::spawn(watch)),
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
