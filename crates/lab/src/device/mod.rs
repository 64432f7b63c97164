//! The drive: it takes commands and answers them at the time that the model says.
//!
//! One lock guards the model and the commands in flight. The thread that brings a command takes the
//! lock and hands the command to the model with the real time. It also answers the commands that
//! are done by now. The timekeeper, one thread that sleeps until the model's next event, answers
//! the others. No thread waits for a command, and data are copied outside the lock.
//!
//! This is also the boundary to the front end, which knows how a kernel brings commands and takes
//! answers. It needs [`Op`], [`Answer`] and [`Device::submit`], and nothing else. FUSE is the only
//! front end.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

use rustix::io::Errno;
use ssd::Drive;

use crate::stats::Kind;
use crate::store::{Store, lock};

mod answers;
mod state;
#[cfg(test)]
mod tests;
mod tuning;

use state::{Pending, State};
pub(crate) use tuning::Counted;
use tuning::Tuning;

/// A request of the kernel. Ranges are in bytes and lie on the drive.
#[derive(Debug)]
pub(crate) enum Op<'a> {
    Read(Range<u64>),
    Write(u64, &'a [u8]),
    Flush,
    Discard(Range<u64>),
    /// Zeros, with the space kept.
    Zero(Range<u64>),
}

/// Takes the answer to one command, from any thread, exactly once.
pub(crate) trait Answer: Send {
    /// A read of so many bytes: `read` fills them, or fails, and then the read has failed.
    fn data(self, len: usize, read: impl FnOnce(&mut [u8]) -> io::Result<()>);
    /// Anything else is done.
    fn done(self);
    /// It failed: `EIO`, or `EOPNOTSUPP` where the drive has no such command.
    fn fail(self, errno: Errno);
}

/// A drive whose answers go to `A`.
#[derive(Debug)]
pub(crate) struct Device<A> {
    state: Mutex<State<A>>,
    /// The timekeeper has to look again: something comes sooner.
    sooner: Condvar,
    /// How often the power was cut; changed with the lock held.
    cuts: AtomicU64,
    store: Store,
    tuning: Mutex<Tuning>,
}

impl<A: Answer> Device<A> {
    /// A drive over a store of its size, at rest.
    pub(crate) fn new(drive: Drive, store: Store, slower: f64) -> Device<A> {
        Device {
            state: Mutex::new(State::new(drive, slower)),
            sooner: Condvar::new(),
            cuts: AtomicU64::new(0),
            store,
            tuning: Mutex::default(),
        }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Takes a command; its answer comes when the drive would give it, perhaps
    /// before this returns.
    pub(crate) fn submit(&self, op: Op<'_>, answer: A) {
        let came = Instant::now();
        let (kind, range, data) = match op {
            Op::Read(range) => (Kind::Read, range, None),
            Op::Write(at, data) => (Kind::Write, at..at + data.len() as u64, Some(data)),
            Op::Flush => (Kind::Flush, 0..0, None),
            Op::Discard(range) => (Kind::Discard, range, None),
            Op::Zero(range) => (Kind::Zero, range, None),
        };
        let mut state = self.lock();
        let outcome = state.faults.judge(kind, &range);
        let cuts = self.cuts.load(Ordering::Relaxed);
        if state.off {
            state.counts.failed(kind);
            drop(state);
            return answer.fail(Errno::IO);
        }
        drop(state);
        if outcome.cuts_power() {
            // Whatever of the cache can't be taken back stays; the drive is off all the same.
            let _ = self.cut_power();
            return answer.fail(Errno::IO);
        }
        // The data come with the command, and nobody else keeps them.
        if let Some(data) = data
            && outcome.stores()
            && self
                .store
                .write(outcome.lands(&range, self.store.size()), data)
                .is_err()
        {
            self.lock().counts.failed(kind);
            return answer.fail(Errno::IO);
        }
        let done = self.hand_over(Pending {
            answer,
            kind,
            rest: if kind == Kind::Discard {
                range.clone()
            } else {
                0..0
            },
            range,
            came,
            outcome,
            cuts,
            flush: match kind {
                Kind::Flush => self.store.begin_flush(),
                _ => 0,
            },
        });
        self.answer_all(done);
    }

    /// Ends [`Device::keep_time`] and the store's sweeping. Commands in flight stay unanswered.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.sooner.notify_all();
        self.store.close();
    }

    fn lock(&self) -> MutexGuard<'_, State<A>> {
        lock(&self.state)
    }
}
