//! From the model to the answers, when they are due.

use std::cmp::Reverse;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use ssd::Card;

use super::state::Pending;
use super::{Answer, Device};
use crate::faults::Fault;
use crate::stats::{Counts, Kind, Stats};

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
        let next = state.next_alarm();
        let sooner = state.is_sooner(next);
        drop(state);
        if sooner {
            self.sooner.notify_one();
        }
        done
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
            state.alarm = state.next_alarm();
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

// Orders and questions to a running drive.

impl<A: Answer> Device<A> {
    /// Changes the figures of the drive's model from now on.
    pub(crate) fn set_card(&self, card: &Card) {
        let mut state = self.lock();
        let time = state.time(Instant::now());
        state.drive.set_figures(time, card.figures().clone());
        drop(state);
        self.sooner.notify_one();
    }

    /// Makes the drive do nothing for `span` from now, at most a day; 0 ends a hang.
    pub(crate) fn hang(&self, span: Duration) {
        self.lock().clock.hang(Instant::now(), span);
        self.sooner.notify_one();
    }

    /// Cuts the power: everything in flight fails, and everything from now on. If the cache is
    /// volatile, writes that no flush covers are lost.
    pub(crate) fn cut_power(&self) -> std::io::Result<()> {
        let mut state = self.lock();
        state.off = true;
        state.clock.hang(Instant::now(), Duration::ZERO);
        // Also for what isn't in `pending`: about to enter, or to be answered.
        self.cuts.fetch_add(1, Ordering::Release);
        state.late.clear();
        let time = state.time(Instant::now());
        state.drive.lose_all(time);
        let pending: Vec<Pending<A>> = state.pending.drain().map(|(_, pending)| pending).collect();
        for lost in &pending {
            state.counts.failed(lost.kind);
        }
        drop(state);
        for lost in pending {
            lost.answer.fail(Errno::IO);
        }
        self.store.cut_power()
    }

    /// Gives power again.
    pub(crate) fn restore_power(&self) {
        self.lock().off = false;
    }

    pub(crate) fn add_fault(&self, fault: Fault) {
        self.lock().faults.add(fault);
    }

    /// Takes back every fault, ends a hang, and gives power.
    pub(crate) fn clear_faults(&self) {
        let mut state = self.lock();
        state.faults.clear();
        state.clock.hang(Instant::now(), Duration::ZERO);
        state.off = false;
        drop(state);
        self.sooner.notify_one();
    }

    /// Returns the counts, and the drive's own figures.
    pub(crate) fn stats(&self) -> Stats {
        let state = self.lock();
        // Percentiles are found without the lock: that takes as long as many I/Os.
        let counts = state.counts.clone();
        let (drive, before) = (state.drive.stats(), state.before);
        let mapped_bytes = state.drive.mapped().covered();
        let flash = state.drive.flash();
        let in_flight = state.pending.len() as u64;
        let faults = state.faults.list();
        let hangs_for_s = state
            .clock
            .hangs_for(Instant::now())
            .map(|left| left.as_secs_f64());
        let power = !state.off;
        drop(state);
        Stats {
            mapped_bytes,
            flash_pages: flash.map(|flash| [flash.host_pages, flash.moved_pages]),
            unmapped_bytes: drive.bytes_unmapped - before.bytes_unmapped,
            lost_to_rounding_bytes: drive.bytes_lost_to_rounding - before.bytes_lost_to_rounding,
            ignored_bytes: drive.bytes_ignored - before.bytes_ignored,
            in_flight,
            faults,
            hangs_for_s,
            power,
            stored_bytes: self.store.allocated().unwrap_or(0),
            no_room: self.store.refused(),
            ..counts.stats()
        }
    }

    /// Forgets what was counted.
    pub(crate) fn reset_stats(&self) {
        let fresh = Counts::new();
        let mut state = self.lock();
        state.counts = fresh;
        state.before = state.drive.stats();
    }
}
