//! The step `engines`: the same reads by every engine.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use linux::SysRoot;
use load::{
    ActorSpec, Blocks, Clock, Engine, LoopKind, Nanos, Op, PatternKind, Region, Sampler, Work,
};
use rustix::fs::{Advice, fadvise};

use super::Turn;
use super::writeback::{Running, processor_s};
use crate::Error;
use crate::suite::log::Figures;
use crate::suite::measure::{Cache, Costs, EngineRun, Engines};

const DEPTH: u32 = 8;
const BLOCK: u32 = 4096;
/// How often a cold read looks whether the whole file was read.
const LOOK: Duration = Duration::from_millis(10);

/// Every way of reading: engine, completions waited for at once, and where the blocks are.
const WAYS: [(Engine, u32, Cache); 12] = [
    (Engine::IoUring, 1, Cache::Direct),
    (Engine::IoUring, DEPTH, Cache::Direct),
    (Engine::IoPoll, 1, Cache::Direct),
    (Engine::SqPoll, 1, Cache::Direct),
    (Engine::Libaio, 1, Cache::Direct),
    (Engine::Sync, 1, Cache::Direct),
    (Engine::IoUring, 1, Cache::Cold),
    (Engine::Libaio, 1, Cache::Cold),
    (Engine::Sync, 1, Cache::Cold),
    (Engine::IoUring, 1, Cache::Cached),
    (Engine::Libaio, 1, Cache::Cached),
    (Engine::Sync, 1, Cache::Cached),
];

impl Turn<'_> {
    /// Reads a file in every way.
    pub(super) fn engines(&mut self) -> Result<Figures, Error> {
        if self.files {
            self.without_files()?;
        }
        let before = self.stage.counters()?;
        let len = self.plan.foreground_bytes();
        let file = self.job_file("engines", len)?;
        let clock = Clock::start();
        let costs = load::overhead::measure(&clock);
        let mut runs = Vec::new();
        for (choice, batch, cache) in WAYS {
            let mut run = EngineRun {
                engine: choice.name().to_owned(),
                cache,
                batch,
                reads_per_s: None,
                p50_us: None,
                p99_us: None,
                cpu_us: None,
                why: None,
            };
            match self.read(&file.0, len, choice, &mut run, clock) {
                Ok(()) => {}
                Err(Error::Stopped) => return Err(Error::Stopped),
                Err(failed) => run.why = Some(failed.to_string()),
            }
            runs.push(run);
        }
        drop(file);
        let engines = Engines {
            runs,
            costs: Costs {
                source: costs.source.to_owned(),
                clock_ns: costs.clock_ns,
                kernel_clock_ns: costs.kernel_clock_ns,
                record_ns: costs.record_ns,
            },
        };
        let figures = self.figures(0.0, &before)?;
        Ok(Figures {
            engines: Some(Box::new(engines)),
            ..figures
        })
    }

    /// Reads in one way, and fills in the figures.
    fn read(
        &mut self,
        path: &Path,
        len: u64,
        choice: Engine,
        run: &mut EngineRun,
        clock: Clock,
    ) -> Result<(), Error> {
        if choice == Engine::IoPoll
            && let Some(why) = why_not_polled(self.stage.device())
        {
            return Err(Error::Failed(why));
        }
        let direct = run.cache == Cache::Direct;
        let file = load::target::open(path, Op::Read, direct).map_err(Error::failed)?;
        self.prepare(&file, run.cache)?;
        let spec = spec(file, len, choice, run);
        let cpu_before = processor_s();
        let began = clock.now();
        let mut running = Running::start(spec, clock)?;
        let mut histogram = Sampler::histogram();
        let most = Nanos(self.read_time().as_nanos() as u64);
        let blocks = len / u64::from(BLOCK);
        let mut reads = 0;
        let mut now = began;
        // What was read once is in the page cache: a cold read ends with the file.
        while now.since(began) < most && (run.cache != Cache::Cold || reads < blocks) {
            self.pause(LOOK)?;
            now = clock.now();
            let sample = running.sampler.sample(now);
            sample.add_response_to(&mut histogram);
            reads += sample.interval.ops;
        }
        let seconds = now.since(began).as_secs_f64();
        let cpu_s = processor_s() - cpu_before;
        running.end()?;
        if reads == 0 {
            return Err(Error::Failed(format!(
                "no read ended in {}",
                record::units::seconds(seconds)
            )));
        }
        let us = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        run.reads_per_s = Some(reads as f64 / seconds);
        (run.p50_us, run.p99_us) = (Some(us(0.5)), Some(us(0.99)));
        run.cpu_us = Some(cpu_s.max(0.0) * 1e6 / reads as f64);
        Ok(())
    }

    /// Brings the file's blocks to where they shall be.
    fn prepare(&mut self, file: &File, cache: Cache) -> Result<(), Error> {
        match cache {
            // Blocks in the cache would make direct reads look there first.
            Cache::Direct | Cache::Cold => {
                fadvise(file, 0, None, Advice::DontNeed).map_err(Error::failed)?;
                fadvise(file, 0, None, Advice::Random).map_err(Error::failed)
            }
            Cache::Cached => {
                let mut whole = file;
                let read = std::io::copy(&mut whole, &mut std::io::sink());
                read.map(drop).map_err(Error::failed)
            }
        }
    }

    fn read_time(&self) -> Duration {
        Duration::from_millis(if self.plan.quick { 300 } else { 2000 })
    }
}

fn spec(file: File, len: u64, choice: Engine, run: &EngineRun) -> ActorSpec {
    ActorSpec {
        name: "reader".to_owned(),
        work: Work::Blocks(Blocks {
            // A cold read asks for each block once.
            pattern: match run.cache {
                Cache::Cold => PatternKind::Sequential,
                Cache::Direct | Cache::Cached => PatternKind::Random,
            },
            engine: choice,
            target: Some(Region {
                file: Arc::new(file),
                start: 0,
                len,
            }),
            direct: run.cache == Cache::Direct,
            batch: run.batch,
            ..Blocks::READS
        }),
        arrival: LoopKind::Closed { depth: DEPTH },
        seed: 1,
    }
}

/// Why the device can't be polled for completions; `None` if it can.
fn why_not_polled(device: &Path) -> Option<String> {
    let sys = SysRoot::host();
    let name = sys.device_at(device)?;
    let can = linux::block::polls(&sys, &name)?;
    (!can).then(|| {
        format!(
            "{name} has no queues for polling (queue/io_poll is 0; of NVMe, nvme.poll_queues sets \
             them up)"
        )
    })
}
