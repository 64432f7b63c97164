//! Calls of the policy, and the orders that it gives.

use std::ops::Range;

use ssd::{Command, Time};

use super::job::OWN_TAG;
use super::{Act, Run, SimError};
use crate::policy::{Desk, Order, Policy, Seen};
use crate::stack::{Count, Limits, Owner};

/// A drive without discards gets none; the policy sees these limits, so that it does its work.
pub(super) const NO_LIMITS: Limits = Limits {
    max_bytes: 1 << 31,
    max_ranges: 256,
};

impl Run<'_> {
    /// Calls the policy, and does what it orders.
    pub(super) fn with_policy(
        &mut self,
        call: impl FnOnce(&mut dyn Policy, &mut Desk<'_>),
    ) -> Result<(), SimError> {
        let canary = std::mem::take(&mut self.seen.canary);
        let (mut discards, mut flushes) = (Count::default(), Count::default());
        let mut writes = 0;
        for counters in self.stack.counters() {
            add(&mut discards, counters.discards);
            add(&mut flushes, counters.flushes);
            writes += counters.writes.ops;
        }
        let mut desk = Desk {
            now: self.now,
            limits: self.limits.unwrap_or(NO_LIMITS),
            seen: Seen {
                discards,
                flushes,
                reads: self.seen.reads,
                writes,
                commits: self.seen.ordered_commits,
                last_foreground: self.seen.last_foreground,
                canary: &canary,
            },
            volume: &self.volume,
            orders: Vec::new(),
        };
        call(self.policy.as_mut(), &mut desk);
        let orders = std::mem::take(&mut desk.orders);
        for order in orders {
            self.obey(order)?;
        }
        self.look_for_waiters()
    }

    fn obey(&mut self, order: Order) -> Result<(), SimError> {
        match order {
            Order::Discard { tag, ranges } => self.order_discard(tag, ranges)?,
            Order::Release(range) => {
                self.held = self.held.saturating_sub(range.end - range.start);
                self.volume.release(&range);
            }
            Order::Throttle(depth) => self.stack.throttle(self.now, depth)?,
            Order::WakeAt(at) => self.plan(at.max(self.now), Act::Wake),
            Order::Free(ranges) => self.free(ranges)?,
            Order::Canary(reads) => self.set_canary(reads),
            Order::Commit => {
                self.commits.ordered = true;
                self.begin_commit()?;
            }
        }
        Ok(())
    }

    /// Its blocks can't be allocated from now on.
    fn order_discard(&mut self, tag: u64, ranges: Vec<Range<u64>>) -> Result<(), SimError> {
        for range in &ranges {
            let held = self.volume.hold(range).ok_or(SimError::LiveData {
                start: range.start,
                end: range.end,
            })?;
            self.held(held);
        }
        self.queue_discard(tag, ranges);
        Ok(())
    }

    /// The kernel's thread sends a discard when it comes to it.
    pub(super) fn queue_discard(&mut self, tag: u64, ranges: Vec<Range<u64>>) {
        self.kernel_busy_until = self.kernel_busy_until.max(self.now) + self.setup.per_discard;
        let number = self.sent + self.to_send.len() as u32;
        self.to_send.push_back((tag, ranges));
        self.plan(self.kernel_busy_until, Act::Send(number));
    }

    /// So many bytes more are free and can't be allocated before they are discarded.
    pub(super) fn held(&mut self, bytes: u64) {
        self.held += bytes;
        self.tally.held_max = self.tally.held_max.max(self.held);
    }

    pub(super) fn send_discard(&mut self, number: u32) -> Result<(), SimError> {
        debug_assert_eq!(number, self.sent);
        let Some((tag, ranges)) = self.to_send.pop_front() else {
            return Ok(());
        };
        self.sent = self.sent.wrapping_add(1);
        self.in_flight.push((tag, ranges.clone()));
        if self.limits.is_none() {
            // The kernel ends a discard at once where the drive takes none.
            return self.discard_done(tag, self.now);
        }
        self.tally.commands += 1;
        self.tally.ranges += ranges.len() as u64;
        let owner = Owner::Policy(tag);
        self.stack
            .submit(self.now, self.now, owner, Command::Discard(ranges))?;
        Ok(())
    }

    pub(super) fn discard_done(&mut self, tag: u64, at: Time) -> Result<(), SimError> {
        let place = self.in_flight.iter().position(|(own, _)| *own == tag);
        let Some(place) = place else { return Ok(()) };
        let (_, ranges) = self.in_flight.swap_remove(place);
        // A drive that takes none has learned nothing.
        let is_told = self.limits.is_some();
        for range in &ranges {
            self.volume.release(range);
            self.held = self.held.saturating_sub(range.end - range.start);
            if is_told {
                self.flash.iter_mut().for_each(|flash| flash.trim(range));
                self.tally.discarded_bytes += range.end - range.start;
            }
        }
        if is_told {
            self.tally.last_discard = Some(at);
        }
        if tag == OWN_TAG {
            return self.discard_next();
        }
        self.with_policy(|policy, desk| policy.discarded(tag, desk))
    }
}

fn add(to: &mut Count, more: Count) {
    to.ops += more.ops;
    to.bytes += more.bytes;
    to.busy += more.busy;
}

// The file system's commits: what was freed reaches the policy with one.

/// Commits, one at a time.
#[derive(Debug, Default)]
pub(super) struct Commits {
    /// Freed and not committed.
    pub(super) freed: Vec<Range<u64>>,
    /// In the commit that is under way.
    committing: Vec<Range<u64>>,
    is_under_way: bool,
    /// Whether another is wanted when this one is done.
    is_wanted: bool,
    /// Whether the policy ordered the next one.
    pub(super) ordered: bool,
    ordered_now: bool,
    has_timer: bool,
    /// Actors that sync and wait for a commit with its discards.
    pub(super) waiting: Vec<u16>,
    /// Whether the workload waits for one.
    pub(super) job_waits: bool,
    job_waits_now: bool,
}

impl Run<'_> {
    /// Frees bytes of removed files: they reach the policy at once or with the next commit.
    pub(super) fn free(&mut self, ranges: Vec<Range<u64>>) -> Result<(), SimError> {
        self.recorder
            .freed(ranges.iter().map(|r| r.end - r.start).sum());
        if !self.nature.commits {
            return self.freed(&ranges);
        }
        self.commits.freed.extend(ranges);
        if !std::mem::replace(&mut self.commits.has_timer, true) {
            self.plan(self.now + self.setup.commit_every, Act::CommitTimer);
        }
        Ok(())
    }

    fn freed(&mut self, ranges: &[Range<u64>]) -> Result<(), SimError> {
        let before = self.held;
        self.held += ranges.iter().map(|r| r.end - r.start).sum::<u64>();
        self.with_policy(|policy, desk| policy.freed(ranges, desk))?;
        // What it releases at once was never held.
        let more = self.held.saturating_sub(before);
        self.held = self.held.min(before);
        self.held(more);
        Ok(())
    }

    pub(super) fn commit_timer(&mut self) -> Result<(), SimError> {
        self.commits.has_timer = false;
        match self.commits.freed.is_empty() {
            true => Ok(()),
            false => self.begin_commit(),
        }
    }

    /// Begins a commit, or another one behind that under way.
    pub(super) fn begin_commit(&mut self) -> Result<(), SimError> {
        if self.commits.is_under_way {
            self.commits.is_wanted = true;
            return Ok(());
        }
        self.commits.is_under_way = true;
        self.commits.committing = std::mem::take(&mut self.commits.freed);
        self.commits.ordered_now = std::mem::take(&mut self.commits.ordered);
        self.commits.job_waits_now = std::mem::take(&mut self.commits.job_waits);
        self.plan(self.now + self.setup.commit_time, Act::Committed);
        Ok(())
    }

    /// The commit's blocks are written: now they must be durable.
    pub(super) fn committed(&mut self) -> Result<(), SimError> {
        self.stack
            .submit(self.now, self.now, Owner::Commit, Command::Flush)?;
        Ok(())
    }

    pub(super) fn commit_flushed(&mut self) -> Result<(), SimError> {
        self.commits.is_under_way = false;
        let ordered = std::mem::take(&mut self.commits.ordered_now);
        let freed = std::mem::take(&mut self.commits.committing);
        if std::mem::take(&mut self.commits.job_waits_now) {
            self.job.synced = true;
        }
        if ordered {
            self.seen.ordered_commits += 1;
        }
        // A commit that frees nothing is none to the policy.
        if !freed.is_empty() {
            self.freed(&freed)?;
        }
        if ordered {
            self.with_policy(|policy, desk| policy.committed(desk))?;
        }
        if std::mem::take(&mut self.commits.is_wanted) {
            self.begin_commit()?;
        }
        self.look_for_waiters()
    }

    /// Whether whoever syncs has to wait for discards.
    pub(super) fn sync_waits(&self) -> bool {
        self.nature.commit_waits && !self.policy.is_settled()
    }

    /// Lets those go on whose wait is over.
    pub(super) fn look_for_waiters(&mut self) -> Result<(), SimError> {
        if !self.commits.waiting.is_empty() && !self.sync_waits() {
            for actor in std::mem::take(&mut self.commits.waiting) {
                self.sync_returns(actor);
            }
        }
        self.job_looks()
    }
}
