//! Ways of discarding what a file system has freed: each a small type.

use std::fmt::Debug;
use std::ops::Range;

use ssd::Time;

use crate::stack::{Count, Limits};
use crate::volume::Volume;

mod adaptive;
mod btrfs;
mod ffs;
mod fstrim;
mod guard;
mod kind;
mod online;
mod outbox;
mod paced;

pub use kind::{Parameters, PolicyKind};

/// The deeds that a policy asks for. They are done in order, when it has returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Send a discard. From now until it completes its blocks can't be allocated; then they can.
    Discard {
        /// For [`Policy::discarded`].
        tag: u64,
        /// In bytes.
        ranges: Vec<Range<u64>>,
    },
    /// Let these bytes be allocated.
    Release(Range<u64>),
    /// From now on at most so many discards are in flight on each drive; the rest wait before it.
    Throttle(usize),
    /// Call [`Policy::woken`] at this time.
    WakeAt(Time),
    /// Free these bytes of removed files: they are in the next commit.
    Free(Vec<Range<u64>>),
    /// Commit now what was freed.
    Commit,
    /// From now on the canary reads, or no longer.
    Canary(bool),
}

/// A policy's view of the run, and the place for its orders.
#[derive(Debug)]
pub struct Desk<'a> {
    /// The present time.
    pub now: Time,
    /// The limits of a discard.
    pub limits: Limits,
    /// Counters of the drives and the foreground.
    pub seen: Seen<'a>,
    pub(crate) volume: &'a Volume,
    pub(crate) orders: Vec<Order>,
}

/// Counters of the drives and the foreground.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// Discards of all drives: commands, bytes and busy time.
    pub(crate) discards: Count,
    /// Flushes of all drives.
    pub(crate) flushes: Count,
    /// Reads of the foreground.
    pub(crate) reads: Count,
    /// Writes, whoever asked for them.
    pub(crate) writes: u64,
    /// Commits so far that [`Order::Commit`] asked for.
    pub(crate) commits: u64,
    /// When the foreground's last I/O completed.
    pub(crate) last_foreground: Time,
    /// The canary's reads since the policy was last called.
    pub(crate) canary: &'a [pace::Canary],
}

impl Desk<'_> {
    /// Adds an order.
    pub fn order(&mut self, order: Order) {
        self.orders.push(order);
    }

    /// Has the policy woken at a time, unless it is to be woken already.
    pub fn wake(&mut self, is_awake: &mut bool, at: Time) {
        if !std::mem::replace(is_awake, true) {
            self.order(Order::WakeAt(at));
        }
    }

    /// Lets all of these be allocated.
    pub fn release(&mut self, ranges: &[Range<u64>]) {
        let each = ranges.iter().cloned().map(Order::Release);
        self.orders.extend(each);
    }
}

/// Properties of a policy that don't change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nature {
    /// Freed space reaches the policy when the file system commits, and not at once.
    pub commits: bool,
    /// The deleter waits until the discards are done.
    pub deleter_waits: bool,
    /// The commit isn't done until its discards are: whoever syncs waits, too.
    pub commit_waits: bool,
    /// Whether it asks for a canary's reads, by [`Order::Canary`].
    pub canary: bool,
}

impl Default for Nature {
    fn default() -> Nature {
        Nature {
            commits: true,
            deleter_waits: false,
            commit_waits: false,
            canary: false,
        }
    }
}

/// A way of discarding what a file system has freed.
///
/// The engine calls it when space is freed and when its discards complete; its [`Desk`] takes its orders. It has
/// no clock: a run in virtual time calls it, and the same calls give the same orders.
pub trait Policy: Debug + Send {
    /// Its fixed properties: those of a file system with commits, for which nobody waits.
    fn nature(&self) -> Nature {
        Nature::default()
    }

    /// These bytes of removed files are to be freed. As a rule at once.
    fn remove(&mut self, ranges: Vec<Range<u64>>, desk: &mut Desk<'_>) {
        desk.order(Order::Free(ranges));
    }

    /// The file system has freed these bytes. They can't be allocated until the policy releases
    /// them, or has discarded them.
    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>);

    /// These bytes, released before, were allocated: they must not be discarded.
    fn allocated(&mut self, _range: &Range<u64>) {}

    /// The discard with this tag has completed.
    fn discarded(&mut self, tag: u64, desk: &mut Desk<'_>);

    /// A commit that it ordered is done; [`Policy::freed`] came before, if it freed anything.
    fn committed(&mut self, _desk: &mut Desk<'_>) {}

    /// The time that it asked for has come.
    fn woken(&mut self, _desk: &mut Desk<'_>) {}

    /// Whether nothing waits and nothing is in flight.
    fn is_settled(&self) -> bool;

    /// Discards that allocations made unnecessary so far, in bytes.
    fn cancelled_bytes(&self) -> u64 {
        0
    }
}
