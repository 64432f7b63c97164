//! The file that the jobs of 2008 and 2009 read and write, and the processor time they take.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linux::files::Caching;
use load::{Actor, ActorSpec, Clock, Sampler};

use super::Turn;
use crate::Error;

/// How often a waiting job looks whether it was stopped.
const LOOK: Duration = Duration::from_millis(20);
/// For so long the last operations of a job may take.
const GRACE: Duration = Duration::from_secs(60);

/// A file that goes with this value.
pub(super) struct JobFile(pub(super) PathBuf);

impl Drop for JobFile {
    fn drop(&mut self) {
        // A file system that is gone takes its file along.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Turn<'_> {
    /// Writes a file of random data, so many bytes long, and waits until the device is quiet.
    pub(super) fn job_file(&mut self, name: &str, len: u64) -> Result<JobFile, Error> {
        let file = JobFile(self.stage.mount_point().join(name));
        let seed = u64::from(self.now.round);
        self.write(vec![file.0.clone()], len, seed, Caching::Buffered)?;
        self.sync()?;
        self.settle()?;
        Ok(file)
    }

    /// Waits for so long, unless the suite is stopped.
    pub(super) fn pause(&mut self, length: Duration) -> Result<(), Error> {
        let began = std::time::Instant::now();
        while began.elapsed() < length {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            std::thread::sleep(LOOK.min(length));
            self.tick();
        }
        Ok(())
    }
}

/// An actor that is stopped, and waited for, when this is dropped: its file system can be
/// unmounted then.
pub(super) struct Running {
    actor: Option<Actor>,
    pub(super) sampler: Sampler,
}

impl Running {
    /// Starts an actor with a single series.
    pub(super) fn start(spec: ActorSpec, clock: Clock) -> Result<Running, Error> {
        let actor = Actor::start(spec, clock).map_err(Error::failed)?;
        let series = actor.series().first();
        let series = series.ok_or_else(|| Error::failed("the actor has no series"))?;
        Ok(Running {
            sampler: series.sampler(),
            actor: Some(actor),
        })
    }

    /// Stops it.
    ///
    /// # Errors
    /// The first error of its operations.
    pub(super) fn end(mut self) -> Result<(), Error> {
        let actor = self.actor.as_ref();
        let meter = actor.and_then(|actor| Some(actor.series().first()?.meter.clone()));
        self.stop();
        match meter.and_then(|meter| meter.first_error()) {
            Some((failure, _)) => Err(Error::failed(failure)),
            None => Ok(()),
        }
    }

    fn stop(&mut self) {
        if let Some(actor) = self.actor.take() {
            actor.finish(GRACE);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Processor time of all threads of this process, in seconds. That of a ring's kernel thread is
/// among them.
pub(super) fn processor_s() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
