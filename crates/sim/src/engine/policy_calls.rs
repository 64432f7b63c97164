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
        for range in &ranges {
            self.volume.release(range);
            self.held = self.held.saturating_sub(range.end - range.start);
            self.flash.iter_mut().for_each(|flash| flash.trim(range));
            self.tally.discarded_bytes += range.end - range.start;
        }
        self.tally.last_discard = Some(at);
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
