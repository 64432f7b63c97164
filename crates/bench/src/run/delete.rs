//! The deletion itself, and the wait for its discards.

use std::time::Duration;

use judge::counting::LEAST_FREED;
use load::deleter::{CommandOutcome, FreeSpace};
use load::{Deletion, Nanos};
use record::{DeletionLine, DiscardSetting, EventKind, Line, Part};

use super::{Early, Script};
use crate::drain::{Drain, State};
use crate::error::BenchError;
use crate::plan::{Fstrim, Method};
use crate::warning::Warning;

impl Script<'_> {
    /// From the first deletion call until the discards are done or given up.
    /// Before it, intervals discarded up to `background_bytes`.
    pub(super) fn delete(&mut self, part: Part, background_bytes: u64) -> Result<(), Early> {
        let Some(spec) = self.workplace.deletion(self.plan, part) else {
            return Ok(());
        };
        let clock = self.session.clock;
        let space = self.free_space()?;
        let deletion = Deletion::start(spec, clock)?;
        self.session.set_deletion(deletion);
        self.deletion_began();
        if self.deletes_continuously() {
            // The deletion's line says so as well, but comes only after it.
            self.session.event(EventKind::ContinuousDeletionBegan, None);
        }

        let mut drain = self.drain(part).beside(background_bytes);
        while !self.session.deletion.as_ref().is_none_or(Deletion::is_done) {
            let tick = self.session.tick()?;
            drain.interval(tick.now, tick.freed_bytes, tick.discarded_bytes);
        }
        let tick = self.session.tick()?;
        drain.interval(tick.now, tick.freed_bytes, tick.discarded_bytes);
        let Some(mut line) = self.deletion_returned(part)? else {
            return Ok(());
        };
        let committed = match &self.plan.deletion {
            Some(deletion) if deletion.commit => self.commit_watched(&mut drain),
            _ => Ok(()),
        };
        // btrfs counts space as free only when it has committed.
        line.space_freed_bytes = space.map(|space| space.freed_bytes());
        if self.plan.event().is_some() {
            line.bytes = line.bytes.max(line.space_freed_bytes.unwrap_or(0));
            if line.bytes < LEAST_FREED {
                drain.expect_none();
            }
        }
        self.session.line(Line::Deletion(line));
        committed?;

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
                    let left = record::units::bytes(drain.debt_bytes());
                    let text = format!("{left} freed and not discarded");
                    self.session
                        .event(EventKind::DiscardsDidNotCome, Some(text));
                    return Ok(());
                }
                State::Quiet | State::NoneExpected => return Ok(()),
            }
            let tick = self.session.tick()?;
            now = tick.now;
            drain.interval(now, tick.freed_bytes, tick.discarded_bytes);
        }
    }

    /// Ends the deletion once its last call has returned, and says what it did.
    fn deletion_returned(&mut self, part: Part) -> Result<Option<DeletionLine>, Early> {
        let Some(deletion) = self.session.deletion.take() else {
            return Ok(None);
        };
        let outcome = deletion.finish(Duration::from_secs(1));
        let progress = outcome.progress;
        let began = progress.began_at.unwrap_or_default();
        let returned = progress
            .returned_at
            .unwrap_or_else(|| self.session.clock.now());
        self.session
            .event_at(returned, EventKind::DeletionReturned, None);
        let command = outcome.command.as_ref();
        let line = DeletionLine {
            part,
            at_s: began.as_secs_f64(),
            seconds: returned.since(began).as_secs_f64(),
            bytes: progress.freed_bytes,
            files: progress.files_done,
            errors: progress.errors,
            continuous: self.deletes_continuously(),
            space_freed_bytes: None,
            exit_code: command.and_then(|command| command.code),
            signal: command.and_then(|command| command.signal),
        };
        let program = self.plan.program().unwrap_or_default();
        let failure = command.and_then(CommandOutcome::failure);
        let failure = failure.map(|how| format!("`{program}` {how}"));
        let Some(failure) = failure.or(outcome.first_error) else {
            return Ok(Some(line));
        };
        if self.plan.event().is_some() {
            let warning = Warning::EventFailed(failure.to_string());
            self.session.warn(&warning);
            return Ok(Some(line));
        }
        if progress.freed_bytes == 0 && (progress.total_bytes > 0 || !self.has_debt()) {
            self.session.line(Line::Deletion(line));
            return Err(Early::Failed(BenchError::Deletion(failure)));
        }
        let warning = Warning::DeletionErrors(failure.to_string());
        self.session.warn(&warning);
        Ok(Some(line))
    }

    /// The free space before a deletion of which only that tells what it frees.
    fn free_space(&self) -> Result<Option<FreeSpace>, Early> {
        let foreign = |deletion: &&crate::plan::Deletion| deletion.method.how().is_foreign;
        match (
            self.plan.deletion.as_ref().filter(foreign),
            self.workplace.on_file_system(),
        ) {
            (Some(_), Some(dir)) => Ok(Some(FreeSpace::of(&dir)?)),
            _ => Ok(None),
        }
    }

    /// Forces a commit and waits for it, with discards followed meanwhile.
    pub(super) fn commit_watched(&mut self, drain: &mut Drain) -> Result<(), Early> {
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
            self.session.warn(&Warning::CommitFailed(e.to_string()));
        }
        Ok(())
    }

    /// The drain that follows the discards of a part.
    fn drain(&self, part: Part) -> Drain {
        let limit = self.plan.phases.drain_limit();
        if self.has_debt() {
            let expected = self.expects_discards(part);
            let drain = Drain::new(limit, expected);
            // An outside program may trim by itself.
            return match expected || self.plan.program().is_some() {
                true => drain,
                false => drain.sending_none(),
            };
        }
        if let Some(Method::Event(event)) = self.method() {
            return Drain::without_debt(limit, self.expects_discards(part)).quiet_for(event.quiet);
        }
        // FITRIM has discarded all it will by the time that it returns.
        let continuous = self.deletes_continuously();
        Drain::without_debt(limit, continuous && self.expects_discards(part))
    }

    fn method(&self) -> Option<&Method> {
        self.plan.deletion.as_ref().map(|deletion| &deletion.method)
    }

    fn deletes_continuously(&self) -> bool {
        self.method().is_some_and(Method::is_continuous)
    }

    /// Whether all that the deletion frees will be discarded, as far as it is known.
    fn has_debt(&self) -> bool {
        self.method()
            .is_none_or(|method| method.how().has_files && *method != Fstrim.into())
    }

    pub(super) fn expects_discards(&self, part: Part) -> bool {
        let kept_away = part == Part::Control;
        let setting = self.survey.target.discard;
        !kept_away && !matches!(setting, DiscardSetting::Off | DiscardSetting::Unsupported)
    }

    /// Measures the foreground undisturbed, for as long as the plan says.
    pub(super) fn baseline(&mut self) -> Result<(), Early> {
        let asked = self.plan.phases.baseline();
        match self.shares.is_some() {
            true => self.baseline_of_gain(asked),
            false => Ok(self.session.tick_for(asked)?),
        }
    }

    /// Records that the deletion or the event begins.
    pub(super) fn deletion_began(&mut self) {
        let command = self.plan.event().map(|event| event.text.clone());
        self.session.event(EventKind::DeletionBegan, command);
    }
}
