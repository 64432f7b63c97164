//! The writeback job of 2008: threads dirty a mapped file, first alone and then beside a deletion.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linux::files::Caching;
use load::{Actor, ActorSpec, Blocks, Clock, Engine, LoopKind, Op, Region, Sampler, Work};

use super::Turn;
use crate::Error;
use crate::suite::log::{Figures, Side, Writeback};
use crate::suite::step::Step;

/// Threads that dirty pages.
const THREADS: u32 = 4;

/// Length of the intervals that lumpiness compares, as of a record.
const INTERVAL: Duration = Duration::from_millis(100);

/// A deletion whose syncs take longer is left alone.
const DELETION: Duration = Duration::from_secs(120);

impl Turn<'_> {
    /// Runs the job, alone and beside a deletion.
    pub(super) fn writeback(&mut self, step: Step) -> Result<Figures, Error> {
        if self.files {
            self.without_files()?;
        }
        let before = self.stage.counters()?;
        let len = self.plan.foreground_bytes();
        let victim = self.job_file("victim", self.plan.cell_bytes())?;
        let job = self.job_file("pages", len)?;
        let engine = match step {
            Step::MsyncWriteback => Engine::MmapSync,
            _ => Engine::Mmap,
        };
        let file = load::target::open(&job.0, Op::Write, false).map_err(Error::failed)?;
        let spec = ActorSpec {
            name: "pages".to_owned(),
            work: Work::Blocks(Blocks {
                op: Op::Write,
                engine,
                target: Some(Region {
                    file: Arc::new(file),
                    start: 0,
                    len,
                }),
                direct: false,
                ..Blocks::READS
            }),
            arrival: LoopKind::Closed { depth: THREADS },
            seed: u64::from(self.now.round),
        };
        let clock = Clock::start();
        let mut running = Running::start(spec, clock)?;
        let time = self.side_time(step);
        let over = AtomicBool::new(true);
        let alone = self.side(&mut running.sampler, clock, time, &over)?;
        over.store(false, Ordering::Relaxed);
        let mount = self.stage.mount_point().to_path_buf();
        let beside = std::thread::scope(|scope| {
            scope.spawn(|| {
                // Its file has no other name, so its space is free when the commit is done.
                drop(victim);
                let _ = linux::files::syncfs(&mount);
                over.store(true, Ordering::Relaxed);
            });
            self.side(&mut running.sampler, clock, time, &over)
        })?;
        running.end()?;
        drop(job);
        self.sync()?;
        let figures = self.figures(0.0, &before)?;
        Ok(Figures {
            writeback: Some(Box::new(Writeback { alone, beside })),
            ..figures
        })
    }

    /// The kernel writes a page back 30 s after it was dirtied, if not too much is dirty before.
    fn side_time(&self, step: Step) -> Duration {
        Duration::from_secs(match (self.plan.quick, step) {
            (true, _) => 3,
            (false, Step::MsyncWriteback) => 10,
            (false, _) => 40,
        })
    }

    /// Measures for so long, and until `over`.
    fn side(
        &mut self,
        sampler: &mut Sampler,
        clock: Clock,
        length: Duration,
        over: &AtomicBool,
    ) -> Result<Side, Error> {
        let first = self.stage.counters()?;
        let began = Instant::now();
        sampler.sample(clock.now());
        let (mut last, mut at) = (first, began);
        let mut rates = Vec::new();
        let mut dirtied = 0;
        let ended = |began: Instant| {
            let passed = began.elapsed();
            passed >= length && (over.load(Ordering::Relaxed) || passed >= DELETION)
        };
        while !ended(began) {
            self.pause(INTERVAL)?;
            let (now, counters) = (Instant::now(), self.stage.counters()?);
            let written = counters.since(&last).write_bytes as f64;
            rates.push(written / now.duration_since(at).as_secs_f64());
            dirtied += sampler.sample(clock.now()).interval.bytes;
            (last, at) = (counters, now);
        }
        let seconds = at.duration_since(began).as_secs_f64();
        let busy_ms = last.busy_ms.saturating_sub(first.busy_ms) as f64;
        let drives = self.stage.drives().max(1) as f64;
        Ok(Side {
            dirtied_bytes_per_s: dirtied as f64 / seconds,
            written_bytes_per_s: last.since(&first).write_bytes as f64 / seconds,
            utilisation: (busy_ms / 1e3 / seconds / drives).min(1.0),
            lumpiness: judge::lumpiness(&rates),
        })
    }
}

// The file that the jobs of 2008 and 2009 read and write, and the processor time they take.

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
