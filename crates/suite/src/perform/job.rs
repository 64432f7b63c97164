//! The file that the jobs of 2008 and 2009 read and write, and the processor time they take.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use linux::files::Caching;
use load::fill::{Fill, FillSpec};
use load::{Actor, ActorSpec, Clock};

use super::Turn;
use crate::programs::Trouble;

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

pub(super) fn failed(error: impl std::fmt::Display) -> Trouble {
    Trouble::Failed(error.to_string())
}

impl Turn<'_> {
    /// Writes a file of random data, so many bytes long, and waits until the device is quiet.
    pub(super) fn job_file(&mut self, name: &str, len: u64) -> Result<JobFile, Trouble> {
        let path = self.stage.mount_point().join(name);
        let _ = std::fs::remove_file(&path);
        let made = linux::files::create(&path, Caching::Buffered).map_err(failed)?;
        let file = JobFile(path.clone());
        let spec = FillSpec {
            file: Arc::new(made),
            path,
            len,
            direct: false,
            extent_bytes: None,
            seed: u64::from(self.now.round),
        };
        let fill = Fill::start(spec).map_err(failed)?;
        while !fill.wait_timeout(LOOK) {
            if self.stop.load(Ordering::Relaxed) {
                fill.stop();
                let _ = fill.wait();
                return Err(Trouble::Stopped);
            }
            self.tick();
        }
        fill.wait().map_err(failed)?;
        self.sync()?;
        self.settle()?;
        Ok(file)
    }

    /// Waits for so long, unless the suite is stopped.
    pub(super) fn pause(&mut self, length: Duration) -> Result<(), Trouble> {
        let began = std::time::Instant::now();
        while began.elapsed() < length {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Trouble::Stopped);
            }
            std::thread::sleep(LOOK.min(length));
            self.tick();
        }
        Ok(())
    }
}

/// An actor that is stopped, and waited for, when this is dropped: its file system can be
/// unmounted then.
pub(super) struct Running(Option<Actor>);

impl Running {
    pub(super) fn start(spec: ActorSpec, clock: Clock) -> Result<Running, Trouble> {
        Ok(Running(Some(Actor::start(spec, clock).map_err(failed)?)))
    }

    /// Its only series.
    pub(super) fn series(&self) -> Option<&load::Series> {
        self.0.as_ref()?.series().first()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(actor) = self.0.take() {
            actor.finish(GRACE);
        }
    }
}

/// Processor time of all threads of this process, in seconds. That of a ring's kernel thread is
/// among them.
pub(super) fn processor_s() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
