//! The runs, in rounds: each round tries everything once, beginning elsewhere than
//! the one before, so that what drifts hits all alike.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use bench::plan::Place;
use bench::{Observer, Outcome, ReadyRun, Survey};
use judge::{JudgeOptions, judge};
use record::{EndReason, RecordWriter, RunRecord};
use serde::Serialize;

use crate::Error;
use crate::tune::candidates::{BESIDE, surveyed_anew};
use crate::tune::disturbed::disturbed;
use crate::tune::figures::Figures;
use crate::tune::frontier::Point;
use crate::tune::settings::Settings;
use crate::tune::trials::{Trial, Trials};

mod notes;

/// A smaller limit isn't tried where one takes so many times as long as the first.
const TOO_LONG: f64 = 4.0;

/// And at least so long, in seconds.
const LONG_S: f64 = 5.0;

/// A run that was carried out.
#[derive(Debug, Serialize)]
pub struct Run {
    /// The trial.
    #[serde(flatten)]
    pub trial: Trial,
    /// The figures of the run.
    #[serde(flatten)]
    pub figures: Figures,
    /// The reason why it is no fair run, in words to be read after "for".
    pub disturbed: Option<String>,
    /// Whether it counts: a disturbed one does where it can't be repeated any more.
    pub counts: bool,
    /// Whether the same trial is run once more because of the disturbance.
    #[serde(skip)]
    pub repeated: bool,
}

/// The runs and what they add up to.
#[derive(Debug)]
pub struct Findings {
    /// A point for each trial with a run that counts.
    pub points: Vec<Point>,
    /// All runs, in their order.
    pub runs: Vec<Run>,
    /// Sentences about how far the figures can be trusted.
    pub notes: Vec<String>,
    /// Whether the rounds were stopped early.
    pub interrupted: bool,
}

/// Watches the rounds and keeps their records.
pub trait Watch {
    /// Watches one run; dropped when that is over.
    type Observer: Observer;

    /// A run begins, the `number`th from 1 on. Returns where its record goes.
    ///
    /// # Errors
    /// When its record can't be written.
    fn begins(&mut self, number: usize, trial: &Trial)
    -> Result<Option<RecordWriter<File>>, Error>;

    /// Returns who watches the run, whose intervals are so long.
    fn observer(&mut self, interval: Duration) -> Self::Observer;

    /// A run of a round, counted from 1, is over.
    fn ended(&mut self, round: u32, run: &Run);

    /// A trial is left out, or no more runs are possible, and why.
    fn note(&mut self, text: &str);
}

/// The rounds.
pub struct Rounds<'a, W> {
    trials: &'a Trials,
    survey: &'a Survey,
    watch: W,
    stop: Arc<AtomicBool>,
    time: Duration,
    deadline: Instant,
    runs: Vec<Run>,
    notes: Vec<String>,
    spare: usize,
    /// Why there were no more runs, where they ended early.
    ended: Option<String>,
}

impl<'a, W: Watch> Rounds<'a, W> {
    /// Rounds of trials where the survey was made. They end when `stop` is raised, or before
    /// they take longer than `time` from now on.
    pub fn new(
        trials: &'a Trials,
        survey: &'a Survey,
        time: Duration,
        watch: W,
        stop: Arc<AtomicBool>,
    ) -> Rounds<'a, W> {
        Rounds {
            trials,
            survey,
            watch,
            stop,
            time,
            deadline: Instant::now() + time,
            runs: Vec::new(),
            notes: Vec::new(),
            spare: trials.all.len(),
            ended: None,
        }
    }

    /// Carries them out.
    ///
    /// # Errors
    /// When a run fails, its record can't be kept, or the present setting can't be tried.
    pub fn perform(mut self, settings: &mut Settings) -> Result<Findings, Error> {
        let mut trials = self.trials.all.clone();
        for round in 0..self.trials.repeats {
            // The first from the largest limit down, so that those that would take
            // ever longer can be left out.
            for trial in crate::turns(&trials, round as usize) {
                if round == 0 && self.takes_too_long(trial) {
                    continue;
                }
                if !self.one(trial, round + 1, settings)? {
                    return Ok(self.findings());
                }
            }
            trials.retain(|trial| self.runs.iter().any(|run| run.trial == *trial));
        }
        Ok(self.findings())
    }

    /// One run of a trial, and another where it was disturbed. `false`: no more.
    fn one(&mut self, trial: &Trial, round: u32, settings: &mut Settings) -> Result<bool, Error> {
        let mut repeated = false;
        loop {
            // Nothing is set for a run that won't be.
            if self.is_over() {
                return Ok(self.end_of_time());
            }
            if !self.has_room()? {
                self.ended = Some("there was no more room".to_owned());
                return Ok(false);
            }
            if let Err(error) = settings.set(trial) {
                // XFS can't be remounted so; whatever else it is, the others may go on.
                let note = format!("{trial} could not be tried: {error}");
                if trial.is_online_at(self.trials.now_bytes) && self.runs.is_empty() {
                    let note =
                        format!("{note}; all else is compared with that, so nothing was tried");
                    return Err(Error::Failed(note));
                }
                if !self.notes.contains(&note) {
                    self.note(note);
                    let lost = settings.is_lost();
                    self.ended = lost.then(|| "the settings could not be put back".to_owned());
                    return Ok(!lost);
                }
                return Ok(true);
            }
            let Some(record) = self.run(trial)? else {
                return Ok(self.end_of_time());
            };
            let verdict = judge(&record, &JudgeOptions::default());
            let Some(figures) = Figures::of(&record, &verdict) else {
                return Ok(true);
            };
            let others: Vec<&Figures> = self.counting().map(|run| &run.figures).collect();
            let disturbance = disturbed(trial, &verdict, &figures, &others);
            let useless = disturbance.as_ref().is_some_and(|found| found.useless);
            repeated = disturbance.is_some() && self.spare > 0 && !repeated;
            let run = Run {
                trial: *trial,
                figures,
                disturbed: disturbance.map(|found| found.why),
                counts: !repeated && !useless,
                repeated,
            };
            self.watch.ended(round, &run);
            self.runs.push(run);
            if !repeated {
                return Ok(true);
            }
            self.spare -= 1;
        }
    }

    /// Whether the user stopped it, or no further run would end in time.
    fn is_over(&self) -> bool {
        let left = self.deadline.saturating_duration_since(Instant::now());
        self.stop.load(Ordering::Relaxed) || left < BESIDE
    }

    /// The time is up: no more runs.
    fn end_of_time(&mut self) -> bool {
        let time = record::units::duration_exact(self.time);
        self.ended = Some(format!("--for {time} was over; give more"));
        false
    }

    /// Whether another run fits beside what is to stay free; notes where it doesn't.
    fn has_room(&mut self) -> Result<bool, Error> {
        let needed = self.trials.setup.written_bytes();
        let mut space = surveyed_anew(self.survey)?.space;
        if space.usable_bytes() < needed {
            // What the last run deleted may be free only when that is on the disk, too (btrfs).
            let _ = linux::files::syncfs(self.survey.place.path());
            space = surveyed_anew(self.survey)?.space;
        }
        let usable = space.usable_bytes();
        if usable < needed {
            self.note(format!(
                "no more runs: each writes {}, and other files leave room for {} beyond the {} that \
                 stay free",
                record::units::bytes(needed),
                record::units::bytes(usable),
                record::units::bytes(space.reserve_bytes()),
            ));
        }
        Ok(usable >= needed)
    }

    /// The record of a run; `None` where it was stopped, or the time was up.
    fn run(&mut self, trial: &Trial) -> Result<Option<RunRecord>, Error> {
        let survey = surveyed_anew(self.survey)?;
        let place = Place::Directory(survey.place.path().to_path_buf());
        let plan = self.trials.setup.plan(trial, &place, survey.direct.is_ok());
        let checked = bench::preflight(&plan, &survey)?;
        let timer = Timer::start(Arc::clone(&self.stop), self.deadline);
        let mut observer = self.watch.observer(plan.phases.interval());
        let claimed = ReadyRun::claim(checked)?;
        let writer = self.watch.begins(self.runs.len() + 1, trial)?;
        let performed = claimed.perform(writer, &mut observer, &timer.stop);
        drop((observer, timer));
        let Outcome { record, error } = performed?;
        if let Some(error) = error {
            return Err(error.into());
        }
        let end = record.end.as_ref().map(|end| end.reason);
        Ok((end == Some(EndReason::Completed)).then_some(record))
    }

    /// Whether a limit would take longer still than one that took too long already.
    fn takes_too_long(&mut self, trial: &Trial) -> bool {
        let now = trial.is_online_at(self.trials.now_bytes);
        let Some(first) = self.counting().next().filter(|_| !now) else {
            return false;
        };
        let most = LONG_S.max(TOO_LONG * first.figures.freeing_s);
        let long = self.counting().any(|run| {
            run.trial.policy == trial.policy
                && run.trial.limit_bytes > trial.limit_bytes
                && run.figures.freeing_s > most
        });
        if long {
            self.note(format!(
                "{trial} was not tried: a larger limit took {TOO_LONG} times as long already"
            ));
        }
        long
    }

    fn note(&mut self, note: String) {
        self.watch.note(&note);
        self.notes.push(note);
    }

    fn counting(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.counts)
    }

    fn findings(mut self) -> Findings {
        let interrupted = self.stop.load(Ordering::Relaxed);
        let mut points = Vec::new();
        for trial in &self.trials.all {
            let of = self.counting().filter(|run| run.trial == *trial);
            let figures: Vec<Figures> = of.map(|run| run.figures.clone()).collect();
            points.extend(Point::of(*trial, &figures));
        }
        let ended = self.ended.take();
        let missing = notes::missing(&self.trials.all, &self.runs, &self.notes, ended.as_deref());
        self.notes.extend(missing);
        self.notes
            .extend(notes::of(&points, &self.runs, self.trials, interrupted));
        Findings {
            points,
            runs: self.runs,
            notes: self.notes,
            interrupted,
        }
    }
}

// The end of a run that takes too long, or that the user stops.

/// Time between two looks at the clock and at the request to stop.
const LOOK: Duration = Duration::from_millis(50);

/// Ends a run when the user stops it, or when the time is up.
struct Timer {
    /// Raised when the run is to end.
    stop: Arc<AtomicBool>,
    /// Dropped with the timer, which ends its thread.
    _run: Sender<()>,
}

impl Timer {
    fn start(asked: Arc<AtomicBool>, deadline: Instant) -> Timer {
        let stop = Arc::new(AtomicBool::new(false));
        let raised = Arc::clone(&stop);
        let (run, over) = mpsc::channel();
        std::thread::spawn(move || {
            while over.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if asked.load(Ordering::Relaxed) || Instant::now() >= deadline {
                    raised.store(true, Ordering::Relaxed);
                }
            }
        });
        Timer { stop, _run: run }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_when_the_user_stops_it_or_the_time_is_up() {
        let (asked, far) = (Arc::new(AtomicBool::new(false)), Duration::from_secs(3600));
        let timer = Timer::start(Arc::clone(&asked), Instant::now() + far);
        assert!(!timer.stop.load(Ordering::Relaxed));
        asked.store(true, Ordering::Relaxed);
        let late = Timer::start(Arc::default(), Instant::now());
        for stop in [&timer.stop, &late.stop] {
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
