//! The io_uring engine: one thread, one ring, `depth` slots.
//!
//! The hot path is [`Worker::push`] and [`Worker::reap`]: no allocation, no
//! lock, one clock reading per batch pushed and one per reaping pass, and one
//! system call that submits and waits.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::shared::{Failures, Running, Shared, sharpen_timers};
use super::spec::{ActorSpec, Arrival, Op};
use crate::clock::Nanos;
use crate::error::LoadError;
use crate::meter::{IoFailure, Lane};
use crate::pattern::{Pattern, scramble};
use crate::ring::{Area, Cqe, Ring, Sqe};
use crate::schedule::Schedule;

/// A sleeping open loop looks this often whether it was stopped.
const NAP: Duration = Duration::from_millis(100);

/// Starts the thread, waits until its ring stands, and returns its notes.
pub(super) fn start(spec: ActorSpec, shared: &Arc<Shared>) -> Result<Vec<String>, LoadError> {
    let (tell, told) = mpsc::sync_channel(1);
    let running = shared.enter();
    let shared = shared.clone();
    let thread = std::thread::Builder::new().name(format!("io:{}", spec.name));
    let spawned = thread.spawn(move || {
        let _running: Running = running;
        // Dropped before the guard: once the actor counts as ended, it holds
        // no file open that would keep a file system from being unmounted.
        let (spec, shared) = (spec, shared);
        // The ring belongs to the thread that makes it.
        match Worker::new(&spec, &shared) {
            Ok((worker, notes)) => {
                // The receiver is waiting; were it gone, the stop flag would end the loop.
                let _ = tell.send(Ok(notes));
                worker.run(spec.arrival, spec.seed);
            }
            Err(error) => {
                let _ = tell.send(Err(error));
            }
        }
    });
    spawned.map_err(|source| LoadError::System {
        what: "start a thread",
        source,
    })?;
    told.recv().unwrap_or_else(|_| {
        Err(LoadError::System {
            what: "start the io_uring engine",
            source: io::Error::other("its thread ended at once"),
        })
    })
}

/// What an entry looks like, apart from where it goes.
#[derive(Debug, Clone, Copy)]
struct Shape {
    op: Op,
    block: u32,
    fd: i32,
    fixed_file: bool,
    fixed_buffer: bool,
}

struct Worker<'a> {
    shared: &'a Shared,
    lane: &'a Lane,
    ring: Ring,
    area: Option<Area>,
    shape: Shape,
    pattern: Pattern,
    /// Slots with nothing in flight; a stack, so that warm ones are used first.
    free: Vec<u32>,
    depth: usize,
    /// Written into each block, so that no two written are alike.
    stamp: u64,
    failures: Failures,
    _file: Option<Arc<File>>,
}

impl<'a> Worker<'a> {
    fn new(
        spec: &ActorSpec,
        shared: &'a Arc<Shared>,
    ) -> Result<(Worker<'a>, Vec<String>), LoadError> {
        let depth = spec.arrival.depth();
        let mut ring = Ring::new(depth).map_err(|error| LoadError::NoIoUring {
            reason: why_forbidden(&error),
        })?;
        let mut notes = Vec::new();
        let mut shape = Shape {
            op: spec.op,
            block: spec.bytes_per_op(),
            fd: -1,
            fixed_file: false,
            fixed_buffer: false,
        };
        let file = spec.target.as_ref().map(|region| region.file.clone());
        let mut area = None;
        if let (Some(file), true) = (&file, spec.op != Op::Nop) {
            shape.fd = file.as_raw_fd();
            shape.fixed_file = ring.register_file(shape.fd).is_ok();
            if shape.fixed_file {
                shape.fd = 0;
            }
            let memory = Area::new(depth as usize * shape.block as usize).map_err(|source| {
                LoadError::System {
                    what: "get memory for the I/O buffers",
                    source,
                }
            })?;
            if spec.op == Op::Write {
                // SAFETY: nothing is in flight yet.
                let bytes = unsafe { memory.bytes_mut(0, memory.len()) };
                fastrand::Rng::with_seed(spec.seed).fill(bytes);
            }
            match ring.register_area(&memory) {
                Ok(()) => shape.fixed_buffer = true,
                Err(error) => notes.push(format!(
                    "{}: the I/O buffers aren't registered ({error}; see ulimit -l), so each I/O costs a little more",
                    spec.name
                )),
            }
            area = Some(memory);
        }
        let pattern = spec.offsets(spec.seed).ok_or_else(|| LoadError::Spec {
            actor: spec.name.clone(),
            what: "no block fits the region".into(),
        })?;
        let worker = Worker {
            shared,
            lane: &shared.meter.lanes()[0],
            ring,
            area,
            shape,
            pattern,
            free: (0..depth).rev().collect(),
            depth: depth as usize,
            stamp: scramble(spec.seed),
            failures: Failures::default(),
            _file: file,
        };
        Ok((worker, notes))
    }

    fn run(mut self, arrival: Arrival, seed: u64) {
        match arrival {
            Arrival::Closed { batch, .. } => self.run_closed(batch),
            Arrival::Open {
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
            while let Some(slot) = self.free.pop() {
                self.push(slot, now, now);
            }
            self.enter(batch, None);
            self.reap();
            self.failures.back_off();
        }
    }

    /// Submits what is due, reaps all that is there, sleeps until the next is due.
    fn run_open(&mut self, mut schedule: Schedule) {
        while !self.shared.stopping() {
            let now = self.shared.clock.now();
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
        self.ring.unregister_file();
    }

    #[inline]
    fn push(&mut self, slot: u32, intended: Nanos, now: Nanos) {
        self.lane.slots[slot as usize].begin(intended, now);
        let sqe = self.entry(slot);
        // SAFETY: the slot's memory belongs to this I/O until it is reaped,
        // and `drop` leaks the memory while anything is in flight.
        unsafe { self.ring.push(sqe) };
    }

    #[inline]
    fn entry(&mut self, slot: u32) -> Sqe {
        let Some(area) = &self.area else {
            return Sqe::nop(u64::from(slot));
        };
        let shape = self.shape;
        let start = slot as usize * shape.block as usize;
        let (address, offset) = (area.at(start), self.pattern.next_offset());
        let mut sqe = match shape.op {
            Op::Write => {
                self.stamp = self.stamp.wrapping_add(0x9E37_79B9_7F4A_7C15);
                stamp(area, start, shape.block, self.stamp);
                Sqe::write(shape.fd, address, shape.block, offset, u64::from(slot))
            }
            Op::Read | Op::Nop => {
                Sqe::read(shape.fd, address, shape.block, offset, u64::from(slot))
            }
        };
        if shape.fixed_file {
            sqe = sqe.fixed_file();
        }
        if shape.fixed_buffer {
            sqe = sqe.fixed_buffer();
        }
        sqe
    }

    #[inline]
    fn enter(&mut self, wait: u32, timeout: Option<Duration>) {
        let Err(error) = self.ring.enter(wait, timeout) else {
            return;
        };
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            // Short of memory, or completions must be reaped first.
            Some(libc::EAGAIN | libc::EBUSY) => std::thread::sleep(Duration::from_millis(1)),
            errno => {
                let failure = IoFailure::Os(errno.unwrap_or(libc::EIO));
                let now = self.shared.clock.now();
                self.shared.meter.fail(self.lane, failure, now);
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    /// Takes every completion that is there.
    #[inline]
    fn reap(&mut self) {
        let now = self.shared.clock.now();
        let Worker {
            shared,
            lane,
            ring,
            shape,
            free,
            failures,
            ..
        } = self;
        // Those pushed at once and reaped at once have the same latency: counted at once.
        let (mut same_ns, mut same) = (0, 0);
        ring.reap(|cqe: Cqe| {
            let slot = &lane.slots[cqe.user_data as usize];
            let (intended, issued) = slot.times();
            slot.end();
            free.push(cqe.user_data as u32);
            if cqe.res != shape.block as i32 {
                failures.bad();
                shared.meter.fail(lane, failure_of(cqe.res), now);
                return;
            }
            failures.good();
            let ns = now.since(intended).0;
            if let Some(service) = &lane.service {
                lane.response.add(ns, 1);
                service.add(now.since(issued).0, 1);
            } else if ns == same_ns {
                same += 1;
            } else {
                if same > 0 {
                    lane.response.add(same_ns, same);
                }
                (same_ns, same) = (ns, 1);
            }
        });
        if same > 0 {
            lane.response.add(same_ns, same);
        }
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        // Only after a panic in between; the kernel may still write there.
        if self.free.len() < self.depth {
            std::mem::forget(self.area.take());
        }
    }
}

#[inline]
fn stamp(area: &Area, start: usize, block: u32, stamp: u64) {
    let len = (block as usize).min(8);
    // SAFETY: the slot is free, so nothing else touches its memory.
    let bytes = unsafe { area.bytes_mut(start, len) };
    bytes.copy_from_slice(&stamp.to_ne_bytes()[..len]);
}

#[cold]
fn failure_of(res: i32) -> IoFailure {
    if res < 0 {
        IoFailure::Os(-res)
    } else {
        IoFailure::Short
    }
}

/// Who forbids io_uring, as far as it can be told.
fn why_forbidden(error: &io::Error) -> String {
    let switch = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled");
    let switch = switch.as_deref().map(str::trim).unwrap_or_default();
    match (error.raw_os_error(), switch) {
        (Some(libc::EPERM), "2") => "the sysctl kernel.io_uring_disabled is 2".into(),
        (Some(libc::EPERM), "1") => {
            "the sysctl kernel.io_uring_disabled is 1 and this user isn't in kernel.io_uring_group"
                .into()
        }
        (Some(libc::EPERM), _) => "a seccomp filter forbids it, as containers do".into(),
        (Some(libc::ENOSYS), _) => "this kernel has none, or a seccomp filter hides it".into(),
        (Some(libc::ENOMEM), _) => "the limit on locked memory is too low, see ulimit -l".into(),
        (Some(libc::EMFILE | libc::ENFILE), _) => "too many files are open, see ulimit -n".into(),
        _ if error.kind() == io::ErrorKind::Unsupported => "this kernel is older than 5.11".into(),
        _ => error.to_string(),
    }
}
