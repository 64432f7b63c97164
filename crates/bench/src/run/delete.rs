//! The deletion itself, and the wait for its discards.

use std::time::Duration;

use load::deleter::CommandOutcome;
use load::{Deletion, Nanos};
use timeline::record::{DeletionLine, DiscardSetting, EventKind, Line, Part};

use super::{Early, Script};
use crate::drain::{Drain, State};
use crate::error::BenchError;
use crate::plan::Method;

impl Script<'_> {
    /// From the first deletion call until the discards are done or given up.
    /// Before it, intervals discarded up to `background_bytes`.
    pub(super) fn delete(&mut self, part: Part, background_bytes: u64) -> Result<(), Early> {
        let Some(spec) = self.workplace.deletion(self.plan, part) else {
            return Ok(());
        };
        let clock = self.session.clock();
        let deletion = Deletion::start(spec, clock)?;
        self.session.set_deletion(deletion);
        self.session.event(EventKind::DeletionBegan, None);
        if self.deletes_continuously() {
            // The deletion's line says so as well, but comes only after it.
            self.session.event(EventKind::ContinuousDeletionBegan, None);
        }

        let mut drain = self.drain(part).beside(background_bytes);
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
                State::Quiet | State::NoneExpected => return Ok(()),
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
            continuous: self.deletes_continuously(),
        }));
        let command = outcome
            .command
            .as_ref()
            .and_then(|command| command_failure(&self.plan.program().unwrap_or_default(), command));
        if let Some(failure) = command.or(outcome.first_error) {
            if progress.freed_bytes == 0 && (progress.total_bytes > 0 || !self.owes()) {
                return Err(Early::Failed(BenchError::Deletion(failure)));
            }
            self.session
                .warn(format!("the deletion had errors: {failure}"));
        }
        Ok(())
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
            self.session.warn(format!("the forced commit failed: {e}"));
        }
        Ok(())
    }

    /// What follows the discards of a part.
    fn drain(&self, part: Part) -> Drain {
        let limit = self.plan.timing.drain_limit;
        if self.owes() {
            return Drain::new(limit, self.expects_discards(part));
        }
        // FITRIM has discarded all it will by the time that it returns.
        let continuous = self.deletes_continuously();
        Drain::without_debt(limit, continuous && self.expects_discards(part))
    }

    fn deletes_continuously(&self) -> bool {
        let deletion = self.plan.deletion.as_ref();
        deletion.is_some_and(|d| d.method.is_continuous())
    }

    /// Whether all that the deletion frees is to be discarded, as far as can be told.
    fn owes(&self) -> bool {
        let deletion = self.plan.deletion.as_ref();
        deletion.is_none_or(|d| !d.method.is_continuous() && d.method != Method::Fstrim)
    }

    pub(super) fn expects_discards(&self, part: Part) -> bool {
        let kept_away = part == Part::Control;
        let setting = self.survey.target.discard;
        !kept_away && !matches!(setting, DiscardSetting::Off | DiscardSetting::Unsupported)
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
