//! The script of a run: prepare, settle, baseline, delete, recovery; with a
//! control the last four come twice.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::AtomicBool;

use load::Clock;
use record::{EndReason, EventKind, Head, Part, PhaseName, RecordWriter};
use record::{RunRecord, Waits};
use storage::remount::DiscardGuard;

use crate::actors::Actors;
use crate::error::BenchError;
use crate::observer::Observer;
use crate::plan::{Control, Plan};
use crate::preflight::{Checked, started_unix_s};
use crate::session::{Session, Stopped};
use crate::sink::Sink;
use crate::survey::{Survey, others};
use crate::warning::Warning;
use crate::watched::WatchedDevice;
use crate::workplace::Workplace;
use load::workers::RunWorkers;

mod delete;
mod gain;
mod prepare;
mod settle;

/// Explains the waits of a run's actors from its record so far and the moment of the record's zero
/// on the monotonic clock, in seconds.
pub type Explain = Box<dyn FnOnce(&RunRecord, f64) -> Waits>;

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// The record, whole or not.
    pub record: RunRecord,
    /// The failure on the way, if there was one.
    pub error: Option<BenchError>,
}

/// Why the script ended early.
enum Early {
    Stopped,
    Failed(BenchError),
}

impl From<Stopped> for Early {
    fn from(_: Stopped) -> Self {
        Early::Stopped
    }
}

impl<E: Into<BenchError>> From<E> for Early {
    fn from(error: E) -> Self {
        Early::Failed(error.into())
    }
}

/// A run that has what it needs and has not begun. Dropping it removes its
/// directory, which is empty.
pub struct ReadyRun<'a> {
    plan: &'a Plan,
    survey: &'a Survey,
    clock: Clock,
    actors: Actors,
    head: Head,
    devices: Vec<WatchedDevice>,
    workplace: Workplace,
    /// The actors and phases of the run: empty now, it grows while the run goes on.
    pub workers: RunWorkers,
    /// Explains the waits of the actors at the run's end, as a line of the record.
    pub explain: Option<Explain>,
}

impl std::fmt::Debug for ReadyRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadyRun")
            .field("plan", self.plan)
            .finish_non_exhaustive()
    }
}

impl<'a> ReadyRun<'a> {
    /// Takes what a run needs: its directory or device. Nothing
    /// refuses the run after this, so that what an earlier one recorded can be
    /// overwritten.
    ///
    /// # Errors
    /// When the run can't begin.
    pub fn claim(checked: Checked<'a>) -> Result<Self, BenchError> {
        let Checked {
            plan,
            survey,
            actors,
            mut head,
        } = checked;
        let clock = Clock::start();
        head.started_unix_s = started_unix_s(clock);
        let devices = head
            .devices
            .iter()
            .map(|device| WatchedDevice::open(device.statistics()))
            .collect::<Result<_, _>>()
            .map_err(|e| survey.refuse(e))?;
        let workplace = Workplace::claim(plan, survey)?;
        Ok(ReadyRun {
            plan,
            survey,
            clock,
            actors,
            head,
            devices,
            workplace,
            workers: RunWorkers::default(),
            explain: None,
        })
    }

    /// Carries out the plan.
    ///
    /// The record also goes to `out`, line by line, while the run goes on. Setting
    /// `stop` ends the run early; the record says so, and whatever was made is removed.
    ///
    /// # Errors
    /// When the run can't begin. A later failure is in the [`Outcome`], beside the record so
    /// far.
    pub fn perform<W: Write + Send + 'static>(
        self,
        out: Option<RecordWriter<W>>,
        observer: &mut dyn Observer,
        stop: &AtomicBool,
    ) -> Result<Outcome, BenchError> {
        let (plan, survey) = (self.plan, self.survey);
        let sink = out
            .map(Sink::start)
            .transpose()
            .map_err(BenchError::Record)?;
        let interval = plan.phases.interval();
        let mut session = Session::start(
            self.clock,
            self.head,
            self.devices,
            sink,
            interval,
            observer,
            stop,
        )
        .map_err(|e| survey.refuse(e))?;
        session.workers = self.workers;
        let mut script = Script {
            plan,
            survey,
            actors: self.actors,
            workplace: self.workplace,
            spacers: Vec::new(),
            not_restored: None,
            shares: gain::Shares::of(plan),
            session,
        };
        let notes = std::mem::take(&mut script.actors.notes);
        let notes: Vec<Warning> = notes.into_iter().map(Warning::Load).collect();
        for warning in survey.warnings.iter().chain(&notes) {
            script.session.warn(warning);
        }
        let performed = script.perform();
        // One that began later warned nobody here.
        let begun = |warning: &Warning| !survey.warnings.contains(warning);
        for warning in others(&survey.devices).iter().filter(|w| begun(w)) {
            script.session.warn(warning);
        }
        let (reason, error) = match performed {
            Ok(()) => (EndReason::Completed, None),
            Err(Early::Stopped) => match script.session.failure.take() {
                Some(error) => (EndReason::Failed, Some(error)),
                None => {
                    script.session.event(EventKind::Interrupted, None);
                    (EndReason::Interrupted, None)
                }
            },
            Err(Early::Failed(error)) => (EndReason::Failed, Some(error)),
        };
        let message = error.as_ref().map(ToString::to_string);
        let (record, written) = script.session.finish(reason, message, self.explain);
        let removed = script.workplace.leave();
        let failures = error
            .into_iter()
            .chain(script.not_restored)
            .chain(written.err().map(BenchError::Record))
            .chain(removed.err());
        let error = BenchError::of(failures.collect());
        Ok(Outcome { record, error })
    }
}

struct Script<'a> {
    plan: &'a Plan,
    survey: &'a Survey,
    /// Empty once the actors run.
    actors: Actors,
    workplace: Workplace,
    /// They keep the gaps between the extents of fragmented files in use: freed
    /// gaps would be discarded along with their neighbours.
    spacers: Vec<File>,
    /// The file system is still as the control had it.
    not_restored: Option<BenchError>,
    /// The bytes that writers may write, where they are limited.
    shares: Option<gain::Shares>,
    session: Session<'a>,
}

impl Script<'_> {
    fn perform(&mut self) -> Result<(), Early> {
        let first = match self.plan.control {
            Control::Off => Part::Main,
            _ => Part::Control,
        };
        self.session.phase(PhaseName::Prepare, first);
        self.prepare()?;
        self.start_actors()?;
        if self.plan.control != Control::Off {
            let guard = match self.plan.control {
                Control::Nodiscard => Some(self.remount()?),
                _ => None,
            };
            let ended = self.part(Part::Control);
            // Whatever the control came to, what it changed is changed back.
            let restored = guard.map_or(Ok(()), DiscardGuard::restore);
            if let Err(error) = restored {
                // At once: what is left to do may take its time on such a file system.
                self.session.warn(&Warning::NotRestored(error.to_string()));
                match ended {
                    Ok(()) => return Err(error.into()),
                    Err(_) => self.not_restored = Some(error.into()),
                }
            }
            ended?;
        }
        self.part(Part::Main)
    }

    /// Settle, baseline, delete, recovery.
    fn part(&mut self, part: Part) -> Result<(), Early> {
        let phases = &self.plan.phases;
        self.session.phase(PhaseName::Settle, part);
        self.settle()?;
        self.session.phase(PhaseName::Baseline, part);
        self.baseline()?;
        if self.plan.deletion.is_some() {
            let background_bytes = self.session.most_discarded_bytes;
            self.session.phase(PhaseName::Delete, part);
            self.allow(|shares| shares.during);
            self.delete(part, background_bytes)?;
            self.session.phase(PhaseName::Recovery, part);
            self.allow(|shares| shares.after);
            match self.shares.is_some() {
                true => self.recover()?,
                false => self.session.tick_for(phases.recovery())?,
            }
            if part == Part::Control {
                // While the control still keeps discards away.
                self.workplace.clear_up(self.plan)?;
                self.commit()?;
            }
        }
        Ok(())
    }

    fn remount(&mut self) -> Result<DiscardGuard, Early> {
        let mount = self.survey.mount.as_ref().ok_or_else(|| {
            BenchError::Plan("--control=remount needs a mounted file system".to_owned())
        })?;
        Ok(DiscardGuard::off(mount)?)
    }
}
