//! The sync engine: `depth` threads, each a lane of its own, that read or write with
//! plain system calls. For kernels and containers without io_uring.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::shared::{Failures, Shared, sharpen_timers};
use super::spec::{ActorSpec, Arrival, Op};
use crate::clock::Nanos;
use crate::error::LoadError;
use crate::meter::{IoFailure, Lane};
use crate::pattern::{Pattern, scramble};
use crate::ring::Area;
use crate::schedule::Schedule;

/// A waiting lane looks this often whether it was stopped.
const NAP: Duration = Duration::from_millis(100);

/// A lane needs little more than its system call.
const STACK: usize = 128 << 10;

/// Starts the threads.
pub(super) fn start(spec: ActorSpec, shared: &Arc<Shared>) -> Result<Vec<String>, LoadError> {
    let depth = spec.arrival.depth();
    let schedule = match spec.arrival {
        Arrival::Closed { .. } => None,
        Arrival::Open {
            rate_per_s,
            poisson,
            ..
        } => {
            let start = shared.clock.now();
            let schedule = Schedule::new(start, rate_per_s, poisson, spec.seed);
            shared.publish_next(schedule.next());
            Some(Arc::new(Mutex::new(schedule)))
        }
    };
    // All memory first, so that a failure leaves nothing running.
    let lanes = (0..depth).map(|lane| Worker::new(&spec, shared, lane, schedule.clone()));
    for worker in lanes.collect::<Result<Vec<_>, _>>()? {
        let running = shared.enter();
        let name = format!("io:{}:{}", spec.name, worker.lane);
        let thread = std::thread::Builder::new().name(name).stack_size(STACK);
        let spawned = thread.spawn(move || {
            let _running = running;
            worker.run();
        });
        if let Err(source) = spawned {
            shared.stop();
            return Err(LoadError::System {
                what: "start a thread for each operation in flight",
                source,
            });
        }
    }
    Ok(Vec::new())
}

struct Worker {
    shared: Arc<Shared>,
    lane: usize,
    schedule: Option<Arc<Mutex<Schedule>>>,
    op: Op,
    file: Option<Arc<File>>,
    memory: Area,
    block: usize,
    pattern: Pattern,
    stamp: u64,
    failures: Failures,
}

impl Worker {
    fn new(
        spec: &ActorSpec,
        shared: &Arc<Shared>,
        lane: u32,
        schedule: Option<Arc<Mutex<Schedule>>>,
    ) -> Result<Worker, LoadError> {
        let seed = scramble(spec.seed).wrapping_add(u64::from(lane));
        let block = spec.bytes_per_op() as usize;
        let memory = Area::new(block).map_err(|source| LoadError::System {
            what: "get memory for the I/O buffers",
            source,
        })?;
        if spec.op == Op::Write {
            // SAFETY: just made; nobody else knows it.
            fastrand::Rng::with_seed(seed).fill(unsafe { memory.bytes_mut(0, block) });
        }
        let pattern = spec.offsets(seed).ok_or_else(|| LoadError::Spec {
            actor: spec.name.clone(),
            what: "no block fits the region".into(),
        })?;
        let share = f64::from(lane) / f64::from(spec.arrival.depth());
        Ok(Worker {
            shared: shared.clone(),
            lane: lane as usize,
            schedule,
            op: spec.op,
            file: spec.target.as_ref().map(|region| region.file.clone()),
            memory,
            block,
            pattern: pattern.starting_at(share),
            stamp: seed,
            failures: Failures::default(),
        })
    }

    fn run(mut self) {
        let shared = self.shared.clone();
        let lane = &shared.meter.lanes()[self.lane];
        sharpen_timers();
        while !shared.stopping() {
            let intended = match self.take_ticket() {
                Ticket::Now => None,
                Ticket::At(intended) => Some(intended),
                Ticket::Stopped => return,
            };
            self.operate(lane, intended);
            self.failures.back_off();
        }
    }

    /// The next operation, once it is due.
    fn take_ticket(&self) -> Ticket {
        let Some(schedule) = &self.schedule else {
            return Ticket::Now;
        };
        let intended = {
            let mut schedule = schedule.lock().unwrap_or_else(PoisonError::into_inner);
            let intended = schedule.next();
            schedule.advance();
            self.shared.publish_next(schedule.next());
            intended
        };
        loop {
            let now = self.shared.clock.now();
            if now >= intended {
                return Ticket::At(intended);
            }
            // One that was due when the stop came is done all the same.
            if self.shared.stopped_at().is_some_and(|at| at < intended) {
                return Ticket::Stopped;
            }
            let left = Duration::from_nanos(intended.since(now).0);
            std::thread::sleep(left.min(NAP));
        }
    }

    fn operate(&mut self, lane: &Lane, intended: Option<Nanos>) {
        let offset = self.pattern.next_offset();
        if self.op == Op::Write {
            self.stamp = self.stamp.wrapping_add(0x9E37_79B9_7F4A_7C15);
        }
        let issued = self.shared.clock.now();
        let intended = intended.unwrap_or(issued);
        lane.slots[0].begin(intended, issued);
        let outcome = self.call(offset);
        let now = self.shared.clock.now();
        lane.slots[0].end();
        let failure = match outcome {
            Ok(n) if n == self.block => {
                self.failures.good();
                lane.response.add(now.since(intended).0, 1);
                if let Some(service) = &lane.service {
                    service.add(now.since(issued).0, 1);
                }
                return;
            }
            Ok(_) => IoFailure::Short,
            Err(error) => IoFailure::Os(error.raw_os_error().unwrap_or(libc::EIO)),
        };
        self.failures.bad();
        self.shared.meter.fail(lane, failure, now);
    }

    fn call(&mut self, offset: u64) -> io::Result<usize> {
        let Some(file) = &self.file else {
            return Ok(self.block);
        };
        // SAFETY: this thread alone uses its memory.
        let bytes = unsafe { self.memory.bytes_mut(0, self.block) };
        loop {
            let done = match self.op {
                Op::Nop => return Ok(self.block),
                Op::Read => file.read_at(bytes, offset),
                Op::Write => {
                    let len = bytes.len().min(8);
                    bytes[..len].copy_from_slice(&self.stamp.to_ne_bytes()[..len]);
                    file.write_at(bytes, offset)
                }
            };
            match done {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }
}

enum Ticket {
    /// A closed loop: begin now.
    Now,
    /// An open loop: this one is due.
    At(Nanos),
    /// It wasn't due when the stop came.
    Stopped,
}
