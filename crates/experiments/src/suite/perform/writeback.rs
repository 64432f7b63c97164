//! The writeback job of 2008: threads dirty a mapped file, first alone and then beside a deletion.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use load::{ActorSpec, Blocks, Clock, Engine, LoopKind, Op, Region, Sampler, Work};

use super::Turn;
use super::job::Running;
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
