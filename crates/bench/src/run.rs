//! The script of a run: prepare, settle, baseline, delete, recovery; with a
//! control the last four come twice.

use std::fs::File;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use linux::remount::NodiscardGuard;
use load::deleter::CommandOutcome;
use load::{Clock, Deletion, Nanos};
use timeline::RunRecord;
use timeline::record::{
    DeletionLine, DiscardSetting, EndReason, EventKind, Head, Line, Part, PhaseName, RecordWriter,
};

use crate::actors;
use crate::commit::Commit;
use crate::drain::{Drain, State};
use crate::error::BenchError;
use crate::head;
use crate::observer::Observer;
use crate::plan::{Control, Plan};
use crate::session::{Session, Stopped};
use crate::sink::Sink;
use crate::steady::Settling;
use crate::survey::Survey;
use crate::watched::{Watched, WatchedDevice};
use crate::workplace::Workplace;

/// How often a fill is looked at: often enough for the shortest interval.
const GLANCE: Duration = Duration::from_millis(5);

/// How a run ended.
#[derive(Debug)]
pub struct Outcome {
    /// What was recorded, whole or not.
    pub record: RunRecord,
    /// What failed on the way, if anything did.
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
#[derive(Debug)]
pub struct Claimed<'a> {
    plan: &'a Plan,
    survey: &'a Survey,
    clock: Clock,
    engine: load::Engine,
    notes: Vec<String>,
    head: Head,
    devices: Vec<WatchedDevice>,
    workplace: Workplace,
}

impl<'a> Claimed<'a> {
    /// Takes what a plan needs: its engine, and its directory or device. Nothing
    /// refuses the run after this, so that what an earlier one recorded can be
    /// overwritten.
    ///
    /// # Errors
    /// When the run can't begin.
    pub fn claim(plan: &'a Plan, survey: &'a Survey) -> Result<Self, BenchError> {
        let clock = Clock::start();
        let (engine, notes) = actors::resolve_engine(plan.foreground.engine, clock)?;
        let head = head::of(plan, survey, engine);
        let devices = head
            .devices
            .iter()
            .map(|device| WatchedDevice::open(&device.name))
            .collect::<Result<_, _>>()
            .map_err(|e| survey.refuse(e))?;
        let workplace = Workplace::claim(plan, survey)?;
        Ok(Claimed {
            plan,
            survey,
            clock,
            engine,
            notes,
            head,
            devices,
            workplace,
        })
    }

    /// Carries out the plan.
    ///
    /// The record also goes to `out`, line by line, while the run goes on. Setting
    /// `stop` ends the run early; the record says so, and whatever was made is removed.
    ///
    /// # Errors
    /// When the run can't begin. What fails later is told in the [`Outcome`], beside
    /// the record so far.
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
        let interval = plan.timing.interval;
        let session = Session::start(
            self.clock,
            self.head,
            self.devices,
            sink,
            interval,
            observer,
            stop,
        )
        .map_err(|e| survey.refuse(e))?;
        let mut script = Script {
            plan,
            survey,
            engine: self.engine,
            workplace: self.workplace,
            spacers: Vec::new(),
            not_restored: None,
            session,
        };
        for note in survey.warnings.iter().chain(&self.notes) {
            script.session.warn(note);
        }
        if plan.foreground.reuse && !survey.reuses(plan) {
            let text = "no foreground file that could be reused was left by an earlier --keep, or \
                        it is too small: it is written anew";
            script.session.warn(text);
        }
        let (reason, error) = match script.perform() {
            Ok(()) => (EndReason::Completed, None),
            Err(Early::Stopped) => {
                script.session.event(EventKind::Interrupted, None);
                (EndReason::Interrupted, None)
            }
            Err(Early::Failed(error)) => (EndReason::Failed, Some(error)),
        };
        let message = error.as_ref().map(ToString::to_string);
        let (record, written) = script.session.finish(reason, message);
        let removed = script.workplace.leave(plan, reason == EndReason::Completed);
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
    engine: load::Engine,
    workplace: Workplace,
    /// They keep the gaps between the extents of fragmented files in use: freed
    /// gaps would be discarded along with their neighbours.
    spacers: Vec<File>,
    /// The file system is still as the control had it.
    not_restored: Option<BenchError>,
    session: Session<'a>,
}

impl Script<'_> {
    fn perform(&mut self) -> Result<(), Early> {
        let first = match self.plan.control {
            Some(_) => Part::Control,
            None => Part::Main,
        };
        self.session.phase(PhaseName::Prepare, first);
        self.prepare()?;
        self.start_actors()?;
        if let Some(control) = self.plan.control {
            let guard = match control {
                Control::Nodiscard => Some(self.remount()?),
                Control::SecondName => None,
            };
            let ended = self.part(Part::Control);
            // Whatever the control came to, what it changed is changed back.
            let restored = guard.map_or(Ok(()), NodiscardGuard::restore);
            if let Err(error) = restored {
                // At once: what is left to do may take its time on such a file system.
                self.session.warn(error.to_string());
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
        let timing = &self.plan.timing;
        self.session.phase(PhaseName::Settle, part);
        self.settle()?;
        self.session.phase(PhaseName::Baseline, part);
        self.session.tick_for(timing.baseline)?;
        if self.plan.deletion.is_some() {
            self.session.phase(PhaseName::Delete, part);
            self.delete(part)?;
            self.session.phase(PhaseName::Recovery, part);
            self.session.tick_for(timing.recovery)?;
        }
        Ok(())
    }

    /// Makes the files, or fills the regions of a raw device.
    fn prepare(&mut self) -> Result<(), Early> {
        let wanted = self.workplace.to_fill(self.plan);
        let total: u64 = wanted.iter().map(|one| one.len).sum();
        let mut done = 0;
        for one in wanted {
            // Each is made when its turn comes: thousands can't be open at once.
            let spec = self.workplace.fill(self.plan, &one)?;
            let path = spec.path.clone();
            let wants_extents = one.extent_bytes.is_some();
            let fill = load::Fill::start(spec)?;
            let mut stopped = self.session.tick_if_due();
            while stopped.is_ok() && !fill.wait_timeout(GLANCE) {
                let written = fill.progress().written_bytes;
                self.session.observer().preparing(done + written, total);
                stopped = self.session.tick_if_due();
            }
            if stopped.is_err() {
                fill.stop();
            }
            let report = fill.wait();
            stopped?;
            let report = report?;
            self.spacers.extend(report.spacer);
            for note in report.notes {
                self.session.warn(format!("{}: {note}", path.display()));
            }
            if let (true, Some(extents)) = (wants_extents, report.extents) {
                let text = format!("{} has {extents} extents", path.display());
                self.session.event(EventKind::Prepared, Some(text));
            }
            done += one.len;
        }
        self.session.observer().preparing(total, total);
        self.workplace.filled(self.plan)?;
        // What is still dirty would be written back during the baseline.
        self.commit()
    }

    fn start_actors(&mut self) -> Result<(), Early> {
        let clock = self.session.clock();
        let (path, len) = (self.workplace.foreground(), self.plan.foreground.size_bytes);
        for (mut spec, _) in actors::of(self.plan, self.engine) {
            actors::aim(&mut spec, &path, len)?;
            let actor = Watched::start(spec, clock)?;
            let notes = actor.actor().notes().to_vec();
            for note in notes {
                self.session.warn(note);
            }
            self.session.add_actor(actor);
        }
        Ok(())
    }

    fn settle(&mut self) -> Result<(), Early> {
        let limit = self.plan.timing.settle_limit;
        if limit.is_zero() {
            return Ok(());
        }
        let mut settling = Settling::new(self.plan.timing.interval, limit);
        let began = self.session.tick()?.now;
        loop {
            let tick = self.session.tick()?;
            if settling.is_steady_after(tick.ops_per_s) {
                self.session.event(EventKind::SettleSteady, None);
                return Ok(());
            }
            if tick.now.saturating_sub(began) >= limit {
                let text = if settling.can_tell() {
                    format!("not steady after {limit:?}")
                } else {
                    format!("not known to be steady: {limit:?} is too short to tell")
                };
                self.session.event(EventKind::SettleLimit, Some(text));
                return Ok(());
            }
        }
    }

    /// From the first deletion call until the discards are done or given up.
    fn delete(&mut self, part: Part) -> Result<(), Early> {
        let Some(spec) = self.workplace.deletion(self.plan, part) else {
            return Ok(());
        };
        let clock = self.session.clock();
        let deletion = Deletion::start(spec, clock)?;
        self.session.set_deletion(deletion);
        self.session.event(EventKind::DeletionBegan, None);

        let mut drain = Drain::new(self.plan.timing.drain_limit, self.expects_discards(part));
        while !self.session.deletion().is_none_or(Deletion::is_done) {
            let tick = self.session.tick()?;
            drain.interval(tick.now, tick.freed_bytes, tick.discarded_bytes);
        }
        let tick = self.session.tick()?;
        drain.interval(tick.now, tick.freed_bytes, tick.discarded_bytes);
        self.deletion_returned(part)?;
        if self.plan.deletion.as_ref().is_some_and(|d| d.commit) {
            self.commit_watched(&mut drain)?;
        }

        let mut now = Duration::from_nanos(clock.now().0);
        drain.returned(now);
        loop {
            match drain.state(now) {
                State::Waiting => {}
                State::Paid => {
                    if let Some(paid) = drain.paid_at() {
                        let at = Nanos::from_secs_f64(paid.as_secs_f64());
                        self.session.event_at(at, EventKind::DebtPaid, None);
                    }
                    return Ok(());
                }
                State::GaveUp => {
                    let left = timeline::units::bytes(drain.debt_bytes());
                    let text = format!("{left} freed and not discarded");
                    self.session
                        .event(EventKind::DiscardsDidNotCome, Some(text));
                    return Ok(());
                }
                State::NoneExpected => return Ok(()),
            }
            let tick = self.session.tick()?;
            now = tick.now;
            drain.interval(now, tick.freed_bytes, tick.discarded_bytes);
        }
    }

    /// Records what the deletion did once its last call has returned.
    fn deletion_returned(&mut self, part: Part) -> Result<(), Early> {
        let Some(deletion) = self.session.take_deletion() else {
            return Ok(());
        };
        let outcome = deletion.finish(Duration::from_secs(1));
        let progress = outcome.progress;
        let began = progress.began_at.unwrap_or_default();
        let returned = progress
            .returned_at
            .unwrap_or_else(|| self.session.clock().now());
        self.session
            .event_at(returned, EventKind::DeletionReturned, None);
        self.session.line(Line::Deletion(DeletionLine {
            part,
            at_s: began.as_secs_f64(),
            seconds: returned.since(began).as_secs_f64(),
            bytes: progress.freed_bytes,
            files: progress.files_done,
            errors: progress.errors,
        }));
        let command = outcome
            .command
            .as_ref()
            .and_then(|command| command_failure(&self.plan.program().unwrap_or_default(), command));
        if let Some(failure) = command.or(outcome.first_error) {
            if progress.freed_bytes == 0 && progress.total_bytes > 0 {
                return Err(Early::Failed(BenchError::Deletion(failure)));
            }
            self.session
                .warn(format!("the deletion had errors: {failure}"));
        }
        Ok(())
    }

    /// Forces a commit and waits for it, with discards followed meanwhile.
    fn commit_watched(&mut self, drain: &mut Drain) -> Result<(), Early> {
        let Some(commit) = self.begin_commit()? else {
            return Ok(());
        };
        self.session.event(EventKind::CommitForced, None);
        while !commit.is_done() {
            let tick = self.session.tick()?;
            drain.interval(tick.now, tick.freed_bytes, tick.discarded_bytes);
        }
        self.session.event(EventKind::CommitReturned, None);
        if let Err(e) = commit.result() {
            self.session.warn(format!("the forced commit failed: {e}"));
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<(), Early> {
        let Some(commit) = self.begin_commit()? else {
            return Ok(());
        };
        while !commit.is_done() {
            self.session.tick()?;
        }
        Ok(())
    }

    fn begin_commit(&self) -> Result<Option<Commit>, BenchError> {
        let path = self.workplace.on_file_system();
        path.map(Commit::begin).transpose().map_err(|source| {
            BenchError::Load(load::LoadError::System {
                what: "start a thread",
                source,
            })
        })
    }

    fn expects_discards(&self, part: Part) -> bool {
        let kept_away = part == Part::Control;
        let setting = self.survey.target.discard;
        !kept_away && !matches!(setting, DiscardSetting::Off | DiscardSetting::Unsupported)
    }

    fn remount(&mut self) -> Result<NodiscardGuard, Early> {
        let mount =
            self.survey.mount.as_ref().ok_or_else(|| {
                BenchError::Plan("--remount needs a mounted file system".to_owned())
            })?;
        Ok(NodiscardGuard::new(mount)?)
    }
}

/// How an outside program failed, in words; `None` when it didn't.
fn command_failure(program: &str, command: &CommandOutcome) -> Option<String> {
    let how = match (command.code, command.signal) {
        (Some(0), _) => return None,
        (Some(code), _) => format!("`{program}` exited with {code}"),
        (None, Some(signal)) => format!("signal {signal} ended `{program}`"),
        (None, None) => format!("`{program}` ended in an unknown way"),
    };
    let tail = command.tail.trim();
    Some(if tail.is_empty() {
        how
    } else {
        format!("{how} and said: {tail}")
    })
}
