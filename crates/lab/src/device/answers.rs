//! From the model to the answers, when they are due.

use std::cmp::Reverse;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::state::Pending;
use super::{Answer, Device};
use crate::stats::Kind;

/// So late is an answer before the timekeeper gives it in place of the front end's threads.
const PATIENCE: Duration = Duration::from_millis(1);

impl<A: Answer> Device<A> {
    /// Gives the model what it hasn't seen of a command; returns what is done.
    pub(super) fn hand_over(&self, mut pending: Pending<A>) -> Vec<Pending<A>> {
        let mut state = self.lock();
        if self.is_lost(&pending) {
            state.counts.failed(pending.kind);
            drop(state);
            pending.answer.fail(Errno::IO);
            return Vec::new();
        }
        let command = pending.next_command(state.drive.figures());
        let now = Instant::now();
        let time = state.time(now);
        let Ok(id) = state.drive.submit(time, command) else {
            // Ranges are checked by the front end, sizes are kept above.
            state.counts.failed(pending.kind);
            drop(state);
            pending.answer.fail(Errno::OPNOTSUPP);
            return Vec::new();
        };
        state.pending.insert(id, pending);
        let done = state.take_completed(now);
        let next = state.next_alarm().map(|next| next + self.patience());
        let sooner = state.is_sooner(next);
        drop(state);
        if sooner {
            self.sooner.notify_one();
        }
        done
    }

    /// From now on threads of the front end answer what is due, each before it waits
    /// ([`Device::answer_due`]). The timekeeper does it where they are too busy.
    pub(crate) fn leave_to_front_end(&self) {
        self.front_end_answers.store(true, Ordering::Relaxed);
    }

    /// How late an answer is before the timekeeper gives it.
    fn patience(&self) -> Duration {
        match self.front_end_answers.load(Ordering::Relaxed) {
            true => PATIENCE,
            false => Duration::ZERO,
        }
    }

    /// Answers what is due, for a thread of the front end before it waits. Returns how long it may
    /// wait at most; `None`: another thread looks in time, or nothing is in flight.
    pub(crate) fn answer_due(&self) -> Option<Duration> {
        loop {
            let mut state = self.lock();
            let now = Instant::now();
            let done = state.take_completed(now);
            if done.is_empty() {
                let next = state.watches(thread::current().id());
                return next.map(|next| next.saturating_duration_since(now));
            }
            drop(state);
            self.answer_all(done);
        }
    }

    /// Answers what becomes due, until [`Device::close`]: a thread's work.
    pub(crate) fn keep_time(&self) {
        // By default the kernel may wake a sleeper 50 µs late, to save power.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let mut state = self.lock();
        while !state.closed {
            let now = Instant::now();
            let done = state.take_completed(now);
            let trims = state.take_late(now);
            if !done.is_empty() || !trims.is_empty() {
                drop(state);
                for range in trims {
                    self.store.free(range);
                }
                self.answer_all(done);
                state = self.lock();
                continue;
            }
            state.alarm = state.next_alarm().map(|next| next + self.patience());
            state = match state.alarm {
                Some(alarm) => {
                    let span = alarm.saturating_duration_since(now);
                    let woken = self.sooner.wait_timeout(state, span);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self
                    .sooner
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// Answers what is done, and what is done meanwhile.
    pub(super) fn answer_all(&self, mut done: Vec<Pending<A>>) {
        while !done.is_empty() {
            let mut next = Vec::new();
            for pending in done {
                // A drive's next command begins when the one before is done.
                if let Some(unfinished) = self.answer(pending) {
                    next.append(&mut self.hand_over(unfinished));
                }
            }
            done = next;
        }
    }

    /// Answers a command, or returns it if it has a further part.
    fn answer(&self, pending: Pending<A>) -> Option<Pending<A>> {
        if !pending.is_over() {
            return Some(pending);
        }
        if pending.outcome.fails() || self.is_lost(&pending) {
            pending.answer.fail(Errno::IO);
            return None;
        }
        match pending.kind {
            Kind::Read => {
                self.answer_read(pending);
                return None;
            }
            Kind::Discard if pending.outcome.stores() => {
                let range = pending.outcome.trimmed(pending.range.clone());
                match pending.outcome.late() {
                    Some(span) => self.free_after(span, &range),
                    None => self.store.free(range),
                }
            }
            Kind::Zero => self.store.free(pending.range.clone()),
            // The power was cut this moment.
            Kind::Flush if pending.outcome.stores() && !self.store.flushed(pending.flush) => {
                pending.answer.fail(Errno::IO);
                return None;
            }
            Kind::Discard | Kind::Write | Kind::Flush => {}
        }
        pending.answer.done();
        None
    }

    fn answer_read(&self, pending: Pending<A>) {
        let Range { start, end } = pending.range;
        pending.answer.data((end - start) as usize, |into| {
            self.store.read(start, into)?;
            pending.outcome.spoil(start, into);
            Ok(())
        });
    }

    /// Whether the power was cut since a command came.
    fn is_lost(&self, pending: &Pending<A>) -> bool {
        pending.cuts != self.cuts.load(Ordering::Acquire)
    }

    /// Frees a discard's data only after `span`.
    fn free_after(&self, span: Duration, range: &Range<u64>) {
        let when = Instant::now() + span;
        let mut state = self.lock();
        state.late.push(Reverse((when, range.start, range.end)));
        let sooner = state.is_sooner(Some(when));
        drop(state);
        if sooner {
            self.sooner.notify_one();
        }
    }
}
