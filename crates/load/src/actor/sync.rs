//! The sync engine: `depth` threads, each a lane of its own, that read or write with
//! plain system calls. For kernels and containers without io_uring, and for
//! buffered files where that is missing.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::blocks::{Blocks, Op};
use super::lanes::{self, Stopwatch};
use super::mix::{Direction, Mix};
use super::shared::Shared;
use super::spec::ActorSpec;
use crate::error::LoadError;
use crate::pattern::{Pattern, Stamp, scramble};
use crate::ring::Area;
use crate::task::Task;

/// Starts the threads.
pub(super) fn start(
    spec: &ActorSpec,
    blocks: &Blocks,
    shared: &Arc<Shared>,
) -> Result<Vec<String>, LoadError> {
    let appended = Arc::new(AtomicU64::new(0));
    // All memory first, so that a failure leaves nothing running.
    let lanes = 0..spec.arrival.depth();
    let workers = lanes.map(|lane| Worker::new(spec, blocks, shared.meters.len(), lane, &appended));
    let workers = workers.collect::<Result<Vec<_>, _>>()?;
    lanes::start(spec, shared, workers)?;
    Ok(Vec::new())
}

struct Worker {
    nop: bool,
    file: Option<Arc<File>>,
    memory: Area,
    block: usize,
    offsets: Offsets,
    mix: Mix,
    /// 1, or 2 where reads and writes are counted apart.
    series: usize,
    stamp: Stamp,
}

/// Where a lane goes next.
enum Offsets {
    /// Its own way.
    Own(Pattern),
    /// The way of all lanes together: whoever comes takes the next block.
    Append {
        /// Blocks taken so far.
        taken: Arc<AtomicU64>,
        start: u64,
        block: u64,
        blocks: u64,
    },
}

impl Offsets {
    fn next(&mut self) -> u64 {
        match self {
            Offsets::Own(pattern) => pattern.next_offset(),
            Offsets::Append {
                taken,
                start,
                block,
                blocks,
            } => *start + taken.fetch_add(1, Ordering::Relaxed) % *blocks * *block,
        }
    }
}

impl Worker {
    fn new(
        spec: &ActorSpec,
        blocks: &Blocks,
        series: usize,
        lane: u32,
        appended: &Arc<AtomicU64>,
    ) -> Result<Worker, LoadError> {
        let seed = scramble(spec.seed).wrapping_add(u64::from(lane));
        let block = blocks.bytes_per_op() as usize;
        let memory =
            Area::new(block).map_err(LoadError::system("get memory for the I/O buffers"))?;
        if blocks.op.writes() {
            // SAFETY: just made; nobody else knows it.
            fastrand::Rng::with_seed(seed).fill(unsafe { memory.bytes_mut(0, block) });
        }
        let pattern = spec.offsets(blocks, seed)?;
        let offsets = match (&blocks.target, blocks.op) {
            (Some(region), Op::Append) => Offsets::Append {
                taken: appended.clone(),
                start: region.start,
                block: block as u64,
                blocks: region.len / block as u64,
            },
            _ => {
                let share = f64::from(lane) / f64::from(spec.arrival.depth());
                Offsets::Own(pattern.starting_at(share))
            }
        };
        Ok(Worker {
            nop: blocks.op == Op::Nop,
            file: blocks.target.as_ref().map(|region| region.file.clone()),
            memory,
            block,
            offsets,
            mix: Mix::new(blocks, seed),
            series,
            stamp: Stamp::new(seed),
        })
    }

    fn call(&mut self, direction: Direction, offset: u64) -> io::Result<()> {
        let Some(file) = self.file.as_ref().filter(|_| !self.nop) else {
            return Ok(());
        };
        // SAFETY: this thread alone uses its memory.
        let bytes = unsafe { self.memory.bytes_mut(0, self.block) };
        if direction == Direction::Write {
            self.stamp.put(bytes);
        }
        loop {
            let done = match direction {
                Direction::Read => file.read_at(bytes, offset),
                Direction::Write => file.write_at(bytes, offset),
            };
            match done {
                Ok(n) if n == self.block => return Ok(()),
                Ok(_) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Task for Worker {
    fn operate(&mut self, watch: &mut Stopwatch<'_>) -> io::Result<()> {
        let (direction, offset) = (self.mix.draw(), self.offsets.next());
        // With one series, that is it.
        let series = (direction == Direction::Write) as usize % self.series;
        watch.time(series, || self.call(direction, offset))
    }
}
