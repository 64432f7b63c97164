//! The sync engine: `depth` threads, each a lane of its own, that read or write with
//! plain system calls. For kernels and containers without io_uring, and for
//! buffered files where that is missing.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::blocks::{Blocks, Op};
use super::lanes;
use super::mix::{Direction, Mix};
use super::shared::{Failures, Shared};
use super::spec::ActorSpec;
use crate::clock::Nanos;
use crate::error::LoadError;
use crate::meter::IoFailure;
use crate::pattern::{Pattern, scramble};
use crate::ring::Area;

/// Starts the threads.
pub(super) fn start(
    spec: &ActorSpec,
    blocks: &Blocks,
    shared: &Arc<Shared>,
) -> Result<Vec<String>, LoadError> {
    let appended = Arc::new(AtomicU64::new(0));
    // All memory first, so that a failure leaves nothing running.
    let lanes = 0..spec.arrival.depth();
    let workers = lanes.map(|lane| Worker::new(spec, blocks, shared, lane, &appended));
    let workers = workers.collect::<Result<Vec<_>, _>>()?;
    lanes::start(spec, shared, workers)?;
    Ok(Vec::new())
}

struct Worker {
    shared: Arc<Shared>,
    lane: usize,
    nop: bool,
    file: Option<Arc<File>>,
    memory: Area,
    block: usize,
    offsets: Offsets,
    mix: Mix,
    stamp: u64,
    failures: Failures,
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
        shared: &Arc<Shared>,
        lane: u32,
        appended: &Arc<AtomicU64>,
    ) -> Result<Worker, LoadError> {
        let seed = scramble(spec.seed).wrapping_add(u64::from(lane));
        let block = blocks.bytes_per_op() as usize;
        let memory = Area::new(block).map_err(|source| LoadError::System {
            what: "get memory for the I/O buffers",
            source,
        })?;
        if blocks.op.writes() {
            // SAFETY: just made; nobody else knows it.
            fastrand::Rng::with_seed(seed).fill(unsafe { memory.bytes_mut(0, block) });
        }
        let pattern = blocks
            .offsets(seed)
            .ok_or_else(|| spec.wrong("no block fits the region"))?;
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
            shared: shared.clone(),
            lane: lane as usize,
            nop: blocks.op == Op::Nop,
            file: blocks.target.as_ref().map(|region| region.file.clone()),
            memory,
            block,
            offsets,
            mix: Mix::new(blocks, seed),
            stamp: seed,
            failures: Failures::default(),
        })
    }

    fn call(&mut self, direction: Direction, offset: u64) -> io::Result<usize> {
        let Some(file) = &self.file else {
            return Ok(self.block);
        };
        if self.nop {
            return Ok(self.block);
        }
        // SAFETY: this thread alone uses its memory.
        let bytes = unsafe { self.memory.bytes_mut(0, self.block) };
        if direction == Direction::Write {
            // No two blocks written are alike.
            self.stamp = self.stamp.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let len = bytes.len().min(8);
            bytes[..len].copy_from_slice(&self.stamp.to_ne_bytes()[..len]);
        }
        loop {
            let done = match direction {
                Direction::Read => file.read_at(bytes, offset),
                Direction::Write => file.write_at(bytes, offset),
            };
            match done {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }
}

impl lanes::Worker for Worker {
    fn operate(&mut self, intended: Option<Nanos>) {
        let (direction, offset) = (self.mix.draw(), self.offsets.next());
        let shared = self.shared.clone();
        // With one series, that is it.
        let series = (direction == Direction::Write) as usize % shared.meters.len();
        let meter = &shared.meters[series];
        let lane = &meter.lanes()[self.lane];
        let issued = shared.clock.now();
        let intended = intended.unwrap_or(issued);
        lane.slots[0].begin(intended, issued);
        let outcome = self.call(direction, offset);
        let now = shared.clock.now();
        lane.slots[0].end();
        let failure = match outcome {
            Ok(n) if n == self.block => {
                self.failures.good();
                meter.succeed(lane, intended, issued, now);
                return;
            }
            Ok(_) => IoFailure::Short,
            Err(error) => IoFailure::Os(error.raw_os_error().unwrap_or(libc::EIO)),
        };
        self.failures.bad();
        meter.fail(lane, failure, now);
    }

    fn failures(&self) -> &Failures {
        &self.failures
    }
}
