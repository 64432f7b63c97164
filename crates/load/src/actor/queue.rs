//! The loops of the engines with a queue: one thread, one queue, `depth` slots.
//!
//! The hot path is [`Worker::push`] and [`Worker::reap`], without allocation or lock. It costs one
//! clock reading per batch pushed and one per reaping pass. One system call submits and waits (two
//! with libaio).

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use record::LoopKind;

use super::blocks::{Allowance, Blocks, Op};
use super::mix::{Direction, Mix};
use super::shared::{Failures, Running, Shared, sharpen_timers};
use super::spec::ActorSpec;
use crate::clock::Nanos;
use crate::error::LoadError;
use crate::meter::{IoFailure, Lane};
use crate::pattern::{Pattern, Stamp, scramble};
use crate::ring::Area;
use crate::schedule::Schedule;

/// A sleeping open loop looks this often whether it was stopped.
const NAP: Duration = Duration::from_millis(100);

/// One operation, as a queue takes it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Io {
    /// Does nothing, and completes.
    Nop,
    /// Moves a block between the file and memory.
    Block {
        direction: Direction,
        address: *mut u8,
        len: u32,
        offset: u64,
    },
}

/// A way into the kernel that takes operations and gives back their completions.
/// It belongs to the thread that makes it.
pub(super) trait Queue: Sized {
    /// A queue for so many operations in flight.
    fn new(depth: u32) -> Result<Self, LoadError>;

    /// Tells it the file and the memory that all its operations are about.
    /// Returns what isn't as one would wish, in words.
    fn attach(&mut self, file: RawFd, area: &Area) -> Option<String>;

    /// Takes an operation; the kernel sees it at the next [`Queue::enter`].
    ///
    /// # Safety
    /// Its memory lives, and nobody else uses it, until it has been reaped.
    unsafe fn push(&mut self, io: Io, name: u64);

    /// Submits what was pushed, then waits for `wait` completions, at most
    /// so long. With `wait` 0 it only collects what is there.
    fn enter(&mut self, wait: u32, timeout: Option<Duration>) -> io::Result<()>;

    /// Hands every completion to `each`: the name given, and the bytes moved
    /// or minus an `errno`.
    fn reap(&mut self, each: impl FnMut(u64, i32));

    /// Lets the file go, once nothing is in flight.
    fn detach(&mut self) {}
}

/// Starts the thread, waits until its queue stands, and returns its notes.
pub(super) fn start<Q: Queue>(
    spec: &ActorSpec,
    blocks: &Blocks,
    shared: &Arc<Shared>,
) -> Result<Vec<String>, LoadError> {
    let (tell, told) = mpsc::sync_channel(1);
    let running = shared.enter();
    let shared = shared.clone();
    let thread = std::thread::Builder::new().name(format!("io:{}", spec.name));
    let own = (spec.clone(), blocks.clone());
    let spawned = thread.spawn(move || {
        let _running: Running = running;
        // Dropped before the guard: once the actor counts as ended, it holds
        // no file open that would keep a file system from being unmounted.
        let ((spec, blocks), shared) = (own, shared);
        shared.workers.join();
        // A series each for reads and writes costs a little, so that only a mix has it.
        match shared.meters.len() {
            1 => run::<Q, 1>(&spec, &blocks, &shared, &tell),
            _ => run::<Q, 2>(&spec, &blocks, &shared, &tell),
        }
    });
    spawned.map_err(LoadError::system("start a thread"))?;
    told.recv().unwrap_or_else(|_| {
        let ended = io::Error::other("its thread ended at once");
        Err(LoadError::system("start the engine")(ended))
    })
}

fn run<Q: Queue, const SERIES: usize>(
    spec: &ActorSpec,
    blocks: &Blocks,
    shared: &Arc<Shared>,
    tell: &mpsc::SyncSender<Result<Vec<String>, LoadError>>,
) {
    match Worker::<Q, SERIES>::new(spec, blocks, shared) {
        Ok((worker, notes)) => {
            // The receiver is waiting; were it gone, the stop flag would end the loop.
            let _ = tell.send(Ok(notes));
            worker.run(spec.arrival, blocks.batch, spec.seed);
        }
        Err(error) => {
            let _ = tell.send(Err(error));
        }
    }
}

struct Worker<'a, Q, const SERIES: usize> {
    shared: &'a Shared,
    /// The lane of each series: of one, or of reads and writes. Slots are
    /// common to both: a slot is in use in one of them.
    lanes: [&'a Lane; SERIES],
    queue: Q,
    /// `None`: the operations do nothing.
    area: Option<Area>,
    block: u32,
    pattern: Pattern,
    mix: Mix,
    /// Slots with nothing in flight; a stack, so that warm ones are used first.
    free: Vec<u32>,
    depth: usize,
    /// Written into each block, so that no two written are alike.
    stamp: Stamp,
    failures: Failures,
    allowance: Option<Arc<Allowance>>,
    _file: Option<Arc<File>>,
}

/// The name of an operation in the queue: its slot, and above it its series.
const SERIES_SHIFT: u32 = 32;

impl<'a, Q: Queue, const SERIES: usize> Worker<'a, Q, SERIES> {
    fn new(
        spec: &ActorSpec,
        blocks: &Blocks,
        shared: &'a Arc<Shared>,
    ) -> Result<(Self, Vec<String>), LoadError> {
        let depth = spec.arrival.depth();
        let mut queue = Q::new(depth)?;
        let mut notes = Vec::new();
        let block = blocks.bytes_per_op();
        let file = blocks.target.as_ref().map(|region| region.file.clone());
        let mut area = None;
        if let (Some(file), true) = (&file, blocks.op != Op::Nop) {
            let memory = Area::new(depth as usize * block as usize)
                .map_err(LoadError::system("get memory for the I/O buffers"))?;
            if blocks.op.writes() {
                // SAFETY: nothing is in flight yet.
                let bytes = unsafe { memory.bytes_mut(0, memory.len()) };
                fastrand::Rng::with_seed(spec.seed).fill(bytes);
            }
            let note = queue.attach(file.as_raw_fd(), &memory);
            notes.extend(note.map(|note| format!("{}: {note}", spec.name)));
            area = Some(memory);
        }
        let pattern = spec.offsets(blocks, spec.seed)?;
        let worker = Worker {
            shared,
            lanes: std::array::from_fn(|series| &shared.meters[series].lanes()[0]),
            queue,
            area,
            block,
            pattern,
            mix: Mix::new(blocks, spec.seed),
            free: (0..depth).rev().collect(),
            depth: depth as usize,
            stamp: Stamp::new(scramble(spec.seed)),
            failures: Failures::default(),
            allowance: blocks.allowance.clone(),
            _file: file,
        };
        Ok((worker, notes))
    }

    fn run(mut self, arrival: LoopKind, batch: u32, seed: u64) {
        match arrival {
            LoopKind::Closed { .. } => self.run_closed(batch),
            LoopKind::Open {
                rate_per_s,
                poisson,
                ..
            } => {
                sharpen_timers();
                let start = self.shared.clock.now();
                self.run_open(Schedule::new(start, rate_per_s, poisson, seed));
            }
        }
        self.drain();
    }

    /// As soon as one finishes, another begins.
    fn run_closed(&mut self, batch: u32) {
        while !self.shared.stopping() {
            let now = self.shared.clock.now();
            while !self.free.is_empty()
                && self.may_write()
                && let Some(slot) = self.free.pop()
            {
                self.push(slot, now, now);
            }
            let in_flight = (self.depth - self.free.len()) as u32;
            if in_flight == 0 {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            self.enter(batch.min(in_flight), None);
            self.reap();
            self.failures.back_off();
        }
    }

    /// Takes an operation's bytes from its allowance, if it has one.
    #[inline]
    fn may_write(&self) -> bool {
        let allowance = self.allowance.as_ref();
        allowance.is_none_or(|allowance| allowance.take(self.block.into()))
    }

    /// Submits what is due, reaps all that is there, sleeps until the next is due.
    fn run_open(&mut self, mut schedule: Schedule) {
        while !self.shared.stopping() {
            let now = self.shared.clock.now();
            schedule.skip_to(self.shared.meters[0].left_out_before());
            while schedule.next() <= now
                && let Some(slot) = self.free.pop()
            {
                self.push(slot, schedule.next(), now);
                schedule.advance();
            }
            self.shared.publish_next(schedule.next());
            // With every slot taken only a completion helps.
            let until_due = if self.free.is_empty() {
                NAP
            } else {
                Duration::from_nanos(schedule.next().since(now).0).min(NAP)
            };
            if until_due.is_zero() {
                self.enter(0, None);
            } else {
                self.enter(1, Some(until_due));
            }
            self.reap();
            self.failures.back_off();
        }
    }

    /// Waits, for ever if need be, for what is in flight: its memory is in use.
    fn drain(&mut self) {
        while self.free.len() < self.depth {
            self.enter(1, None);
            self.reap();
        }
        self.queue.detach();
    }

    #[inline]
    fn push(&mut self, slot: u32, intended: Nanos, now: Nanos) {
        let (io, series) = self.next_io(slot);
        self.lanes[series].slots[slot as usize].begin(intended, now);
        let name = u64::from(slot) | (series as u64) << SERIES_SHIFT;
        // SAFETY: the slot's memory belongs to this I/O until it is reaped,
        // and `drop` leaks the memory while anything is in flight.
        unsafe { self.queue.push(io, name) };
    }

    /// The next operation, and its series.
    #[inline]
    fn next_io(&mut self, slot: u32) -> (Io, usize) {
        let Some(area) = &self.area else {
            return (Io::Nop, 0);
        };
        let direction = self.mix.draw();
        let start = slot as usize * self.block as usize;
        if direction == Direction::Write {
            // SAFETY: the slot is free, so nothing else touches its memory.
            self.stamp
                .put(unsafe { area.bytes_mut(start, self.block as usize) });
        }
        let io = Io::Block {
            direction,
            address: area.at(start),
            len: self.block,
            offset: self.pattern.next_offset(),
        };
        let series = match SERIES {
            1 => 0,
            _ => (direction == Direction::Write) as usize,
        };
        (io, series)
    }

    #[inline]
    fn enter(&mut self, wait: u32, timeout: Option<Duration>) {
        let Err(error) = self.queue.enter(wait, timeout) else {
            return;
        };
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            // Short of memory, or completions must be reaped first.
            Some(libc::EAGAIN | libc::EBUSY) => std::thread::sleep(Duration::from_millis(1)),
            errno => {
                let failure = IoFailure::Os(errno.unwrap_or(libc::EIO));
                let now = self.shared.clock.now();
                self.shared.meters[0].fail(self.lanes[0], failure, now);
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    /// Takes every completion that is there.
    #[inline]
    fn reap(&mut self) {
        let now = self.shared.clock.now();
        let left_out_before = self.shared.meters[0].left_out_before();
        let Worker {
            shared,
            lanes,
            queue,
            block,
            free,
            failures,
            ..
        } = self;
        // Those pushed at once and reaped at once have the same latency: counted at once.
        let mut same = [(0, 0); SERIES];
        queue.reap(|name, res| {
            let series = match SERIES {
                1 => 0,
                _ => (name >> SERIES_SHIFT) as usize,
            };
            let lane = lanes[series];
            let slot = &lane.slots[name as u32 as usize];
            let (intended, issued) = slot.times();
            slot.end();
            free.push(name as u32);
            if res != *block as i32 {
                failures.bad();
                shared.meters[series].fail(lane, failure_of(res), now);
                return;
            }
            failures.good();
            if intended < left_out_before {
                return;
            }
            let ns = now.since(intended).0;
            let (same_ns, n) = &mut same[series];
            if let Some(service) = &lane.service {
                lane.response.add(ns, 1);
                service.add(now.since(issued).0, 1);
            } else if ns == *same_ns {
                *n += 1;
            } else {
                if *n > 0 {
                    lane.response.add(*same_ns, *n);
                }
                (*same_ns, *n) = (ns, 1);
            }
        });
        for (lane, (same_ns, n)) in lanes.iter().zip(same) {
            if n > 0 {
                lane.response.add(same_ns, n);
            }
        }
    }
}

impl<Q, const SERIES: usize> Drop for Worker<'_, Q, SERIES> {
    fn drop(&mut self) {
        // Only after a panic in between; the kernel may still write there.
        if self.free.len() < self.depth {
            std::mem::forget(self.area.take());
        }
    }
}

#[cold]
fn failure_of(res: i32) -> IoFailure {
    if res < 0 {
        IoFailure::Os(-res)
    } else {
        IoFailure::Short
    }
}
