//! fio beside the actors: its files before, its figures after.

use std::path::PathBuf;
use std::time::Duration;

use super::{Early, Script};
use crate::fio::{Fio, GRACE, Job, read};

impl Script<'_> {
    /// Has fio make the files of its job, so that the baseline doesn't begin
    /// while it still does.
    pub(super) fn lay_out_fio(&mut self) -> Result<(), Early> {
        let Some((job, folder)) = self.fio_job()? else {
            return Ok(());
        };
        self.session
            .set_fio(Fio::lay_out(self.plan, &job, &folder)?);
        let mut ended = Ok(());
        while ended.is_ok() && !self.session.fio.as_ref().is_some_and(Fio::is_done) {
            ended = self.session.tick().map(drop);
        }
        // The last look tells whether it went well.
        let looked = ended.and_then(|()| self.session.look_after_fio());
        if let Some(fio) = self.session.fio.take() {
            // One that was interrupted mustn't make files while ours are removed.
            fio.finish(Duration::ZERO);
        }
        Ok(looked?)
    }

    pub(super) fn start_fio(&mut self) -> Result<(), Early> {
        if let Some((job, folder)) = self.fio_job()? {
            self.session.set_fio(Fio::run(self.plan, &job, &folder)?);
        }
        Ok(())
    }

    /// Ends fio, if it runs, and puts what it did into the record.
    pub(super) fn end_fio(&mut self) {
        let Some(mut fio) = self.session.fio.take() else {
            return;
        };
        let Ok(Some((job, _))) = self.fio_job() else {
            return;
        };
        fio.end();
        let folder = fio.finish(GRACE);
        let record = &self.session.record;
        let first = record.head.actors.len().saturating_sub(job.series().len());
        let logged = read(
            &folder,
            &job,
            record,
            first,
            self.session.last.as_secs_f64(),
        );
        for warning in logged.warnings {
            self.session.warn(&warning);
        }
        for line in logged.lines {
            self.session.line(line);
        }
    }

    fn fio_job(&self) -> Result<Option<(Job, PathBuf)>, Early> {
        let (Some(fio), Some(folder)) = (&self.plan.fio, self.workplace.fio()) else {
            return Ok(None);
        };
        let job = Job::of(fio, &self.plan.phases, &folder.to_string_lossy())?;
        Ok(Some((job, folder)))
    }
}
