//! Orders and questions to a running drive.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use ssd::Card;

use super::state::Pending;
use super::{Answer, Device};
use crate::faults::Fault;
use crate::stats::{Counts, Stats};

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
        let drive = state.drive.stats();
        let mapped_bytes = state.drive.mapped().covered();
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
            unmapped_bytes: drive.bytes_unmapped,
            lost_to_rounding_bytes: drive.bytes_lost_to_rounding,
            ignored_bytes: drive.bytes_ignored,
            in_flight,
            faults,
            hangs_for_s,
            power,
            stored_bytes: self.store.allocated().unwrap_or(0),
            no_room: self.store.refused(),
            not_logged: self.store.not_logged(),
            ..counts.stats()
        }
    }

    /// Forgets what was counted.
    pub(crate) fn reset_stats(&self) {
        let fresh = Counts::new();
        self.lock().counts = fresh;
    }
}
