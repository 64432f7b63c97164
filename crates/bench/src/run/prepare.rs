//! Everything before the first phase that is measured: files, and running actors.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use linux::files::FileError;
use load::{Actor, ActorSpec, Deletion, LoadError, Workers};
use record::units::names;
use record::{EventKind, Part};

use super::{Early, Script};
use crate::actors;
use crate::drain::{Drain, State};
use crate::error::BenchError;
use crate::warning::Warning;

/// How often a fill is looked at: often enough for the shortest interval.
const GLANCE: Duration = Duration::from_millis(5);

impl Script<'_> {
    /// Makes the files, or fills the regions of a raw device.
    pub(super) fn prepare(&mut self) -> Result<(), Early> {
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
                let written = fill.written_bytes();
                self.session.observer.preparing(done + written, total);
                stopped = self.session.tick_if_due();
            }
            if stopped.is_err() {
                fill.stop();
            }
            let report = fill.wait();
            stopped?;
            let report = report?;
            self.spacers.extend(report.spacer);
            for why in report.notes {
                let path = path.clone();
                self.session.warn(&Warning::File { path, why });
            }
            if let (true, Some(extents)) = (wants_extents, report.extents) {
                let text = format!("{} has {extents} extents", names::shown(&path));
                self.session.event(EventKind::Prepared, Some(text));
            }
            done += one.len;
        }
        self.session.observer.preparing(total, total);
        self.workplace.filled()?;
        // What is still dirty would be written back during the baseline.
        self.commit()?;
        self.unlink_before()
    }

    /// Deletes what `fstrim` is to find free, and waits until nothing of that is
    /// left to be discarded by the file system itself.
    fn unlink_before(&mut self) -> Result<(), Early> {
        let Some(spec) = self.workplace.unlinked_before(self.plan) else {
            return Ok(());
        };
        let expected = self.expects_discards(Part::Main);
        let mut drain = Drain::new(self.plan.phases.drain_limit(), expected);
        let deletion = Deletion::start(spec, self.session.clock)?;
        self.session.note_deleter(&deletion);
        while !deletion.is_done() {
            let tick = self.session.tick()?;
            drain.interval(tick.now, 0, tick.discarded_bytes);
        }
        let outcome = deletion.finish(Duration::from_secs(1));
        if let Some(failure) = outcome.first_error {
            return Err(BenchError::Deletion(failure).into());
        }
        self.commit_watched(&mut drain)?;
        let mut tick = self.session.tick()?;
        drain.interval(tick.now, outcome.progress.freed_bytes, tick.discarded_bytes);
        drain.returned(tick.now);
        // What held the gaps between extents is to be trimmed as well.
        self.spacers.clear();
        while drain.state(tick.now) == State::Waiting {
            tick = self.session.tick()?;
            drain.interval(tick.now, 0, tick.discarded_bytes);
        }
        Ok(())
    }

    pub(super) fn start_actors(&mut self) -> Result<(), Early> {
        // Threads begin where the one is that starts them; this one goes back, for
        // it will start those that delete and commit.
        let cgroup = self.survey.foreground_cgroup.as_deref();
        let inside = cgroup.map(linux::cgroup::visit).transpose();
        if let (Err(error), Some(dir)) = (&inside, cgroup) {
            let (cgroup, why) = (dir.to_path_buf(), error.to_string());
            self.session.warn(&Warning::OutsideCgroup { cgroup, why });
        }
        let actors = std::mem::take(&mut self.actors);
        if self.shares.is_some() {
            self.session.allowance = Some(Arc::default());
            self.allow(|shares| shares.before);
        }
        for (i, mut spec) in actors.specs.into_iter().enumerate() {
            let area = if i < self.plan.actors.len() {
                self.workplace.work_area(self.plan, i)
            } else {
                self.workplace.shared(self.plan)
            };
            actors::aim(&mut spec, area, self.session.allowance.as_ref())?;
            let actor = self.start_actor(spec)?;
            for note in actor.notes() {
                self.session.warn(&Warning::Load(note.clone()));
            }
            self.session.add_actor(actor);
        }
        Ok(())
    }

    /// Some have files to write first, so intervals and a stop are looked after meanwhile.
    fn start_actor(&mut self, spec: ActorSpec) -> Result<Actor, Early> {
        let (clock, stop) = (self.session.clock, AtomicBool::new(false));
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("prepare".into());
            let start = || Actor::start_unless(spec, clock, &stop);
            let starting = thread.spawn_scoped(scope, start).map_err(no_thread)?;
            let mut stopped = self.session.tick_if_due();
            while stopped.is_ok() && !starting.is_finished() {
                std::thread::sleep(GLANCE);
                stopped = self.session.tick_if_due();
            }
            stop.store(stopped.is_err(), Ordering::Relaxed);
            let panicked = |_| Err(no_thread(std::io::Error::other("it panicked")));
            let started = starting.join().unwrap_or_else(panicked);
            stopped?;
            Ok(started?)
        })
    }

    pub(super) fn commit(&mut self) -> Result<(), Early> {
        let Some(commit) = self.begin_commit()? else {
            return Ok(());
        };
        while !commit.is_done() {
            self.session.tick()?;
        }
        Ok(())
    }

    pub(super) fn begin_commit(&self) -> Result<Option<Commit>, BenchError> {
        let path = self.workplace.on_file_system();
        let begun = path.map(Commit::begin).transpose();
        let begun = begun.map_err(no_thread)?;
        if let Some(commit) = &begun {
            self.session.note_commit(commit.workers());
        }
        Ok(begun)
    }
}

fn no_thread(source: std::io::Error) -> LoadError {
    LoadError::System {
        what: "start a thread",
        source,
    }
}

/// A `syncfs` under way.
#[derive(Debug)]
pub(crate) struct Commit {
    thread: JoinHandle<Result<(), FileError>>,
    workers: Workers,
}

impl Commit {
    /// Begins to commit the file system that holds a path.
    pub(crate) fn begin(path: PathBuf) -> io::Result<Commit> {
        let workers = Workers::default();
        let own = workers.clone();
        let thread = std::thread::Builder::new()
            .name("commit".into())
            .spawn(move || {
                own.join();
                linux::files::syncfs(&path)
            })?;
        Ok(Commit { thread, workers })
    }

    /// Its thread.
    pub(crate) fn workers(&self) -> &Workers {
        &self.workers
    }

    /// Whether it has returned.
    pub(crate) fn is_done(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end, and returns its result.
    pub(crate) fn result(self) -> Result<(), String> {
        match self.thread.join() {
            Ok(result) => result.map_err(|e| e.to_string()),
            Err(_) => Err("the committing thread panicked".to_owned()),
        }
    }
}
