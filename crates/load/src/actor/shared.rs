//! State that the threads of one actor share with the thread that started them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock::{Clock, Nanos};
use crate::meter::Meter;
use crate::workers::Workers;

/// Shared by the threads of one actor.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) clock: Clock,
    /// One for each series of the record.
    pub(super) meters: Vec<Arc<Meter>>,
    stop: AtomicBool,
    /// When it was asked to stop; 0 before.
    stopped_at: AtomicU64,
    /// Intended start of the first operation not taken yet; `u64::MAX` in a closed loop.
    next_intended: AtomicU64,
    running: Mutex<u32>,
    ended: Condvar,
    /// Its threads, as far as they have begun.
    pub(super) workers: Workers,
}

impl Shared {
    pub(super) fn new(clock: Clock, meters: Vec<Arc<Meter>>) -> Shared {
        Shared {
            clock,
            meters,
            stop: AtomicBool::new(false),
            stopped_at: AtomicU64::new(0),
            next_intended: AtomicU64::new(u64::MAX),
            running: Mutex::new(0),
            ended: Condvar::new(),
            workers: Workers::default(),
        }
    }

    /// Whether nothing more is to be issued.
    #[inline]
    pub(super) fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Tells the threads; the first call's time counts.
    pub(super) fn stop(&self) -> Nanos {
        let now = self.clock.now();
        let first = self
            .stopped_at
            .compare_exchange(0, now.0, Ordering::AcqRel, Ordering::Acquire);
        self.stop.store(true, Ordering::Release);
        first.map_or_else(Nanos, |_| now)
    }

    /// When it was asked to stop.
    pub(super) fn stopped_at(&self) -> Option<Nanos> {
        match self.stopped_at.load(Ordering::Acquire) {
            0 => None,
            at => Some(Nanos(at)),
        }
    }

    /// Makes known which operation is the next, so that those due and never
    /// issued can be counted though the thread is stuck.
    #[inline]
    pub(super) fn publish_next(&self, next: Nanos) {
        self.next_intended.store(next.0, Ordering::Relaxed);
    }

    /// The first operation not taken yet, in an open loop.
    pub(super) fn next_intended(&self) -> Option<Nanos> {
        match self.next_intended.load(Ordering::Relaxed) {
            u64::MAX => None,
            next => Some(Nanos(next)),
        }
    }

    /// A thread runs until the returned guard is dropped, also by a panic.
    pub(super) fn enter(self: &Arc<Self>) -> Running {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Running(self.clone())
    }

    /// Waits for all threads to end, at most so long; whether they did.
    pub(super) fn wait_all_ended(&self, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        while *running > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            running = self
                .ended
                .wait_timeout(running, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        true
    }
}

/// Held by a running thread.
pub(super) struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = self
            .0
            .running
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *running -= 1;
        self.0.ended.notify_all();
    }
}

/// So many failures in a row mean that the target is gone for good, and that
/// more tries would only burn the processor.
const HOPELESS: u32 = 1000;

/// Slows an actor down whose every operation fails.
#[derive(Debug, Default)]
pub(super) struct Failures {
    in_a_row: u32,
}

impl Failures {
    #[inline]
    pub(super) fn good(&mut self) {
        self.in_a_row = 0;
    }

    pub(super) fn bad(&mut self) {
        self.in_a_row = self.in_a_row.saturating_add(1);
    }

    /// Sleeps a little when it is hopeless.
    #[inline]
    pub(super) fn back_off(&self) {
        if self.in_a_row >= HOPELESS {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Lets this thread's timers fire when they are due; the default lets them be 50 µs late.
pub(super) fn sharpen_timers() {
    // SAFETY: sets a number of this thread; nothing is pointed to.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}
