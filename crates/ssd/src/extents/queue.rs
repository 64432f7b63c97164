//! A queue of discards that an allocation may cancel.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use crate::extents::Extents;

/// The limits of a drive's commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLimits {
    /// Ranges in a command; at least 1. One block of an ATA payload has 64, an NVMe command 256.
    pub ranges: usize,
    /// Blocks in a range; at least 1. A range of an ATA payload has up to 65,535 sectors.
    pub blocks: u64,
    /// Ranges of fewer blocks are not sent.
    pub at_least: u64,
}

/// Which ranges are sent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The longest, so that a command moves the most.
    Longest,
    /// By their addresses, from where the last command ended: an elevator that goes one way.
    Address,
}

/// The fate of ranges that are too short for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Short {
    /// They are forgotten, and the drive never hears of them.
    Drop,
    /// They wait until others that they touch are freed.
    Wait,
}

/// A command to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// For [`DiscardQueue::complete`].
    pub id: u64,
    /// Its ranges, in the order in which they were chosen. They don't overlap.
    pub ranges: Vec<Range<u64>>,
}

/// Blocks that a command in flight discards can't be allocated or freed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InFlight(
    /// The first of them in the range that was asked for.
    pub Range<u64>,
);

/// The blocks of a volume that are free and that its drive doesn't know of yet.
///
/// A freed block may be allocated again at once: that cancels its discard, or the part of it that
/// is reused. Only while a command with the block is in flight it can't, for the drive might
/// discard what has been written meanwhile. So no space waits for a slow drive, and no block in use
/// is ever in a command. The plan is Ted Unangst's for OpenBSD's FFS ("lessons learned about TRIM",
/// 2011, approach three).
///
/// ```
/// use ssd::extents::{CommandLimits, DiscardQueue, Order, Short};
///
/// let limits = CommandLimits { ranges: 2, blocks: 100, at_least: 4 };
/// let mut queue = DiscardQueue::new(limits, Order::Longest, Short::Wait);
/// queue.free(0..250)?;
/// queue.free(900..902)?;
/// assert_eq!(queue.allocate(20..30)?, 10);
/// let command = queue.send().unwrap();
/// assert_eq!(command.ranges, [30..130, 130..230]);
/// assert!(queue.allocate(100..101).is_err());
/// queue.complete(command.id);
/// assert_eq!(queue.allocate(100..101)?, 0);
/// # Ok::<(), ssd::extents::InFlight>(())
/// ```
#[derive(Debug, Clone)]
pub struct DiscardQueue {
    limits: CommandLimits,
    order: Order,
    short: Short,
    pending: Extents,
    /// For [`Order::Longest`]: length, start and end of each pending range, and of some that changed.
    by_length: BinaryHeap<(u64, Reverse<u64>, u64)>,
    in_flight: Extents,
    commands: BTreeMap<u64, Vec<Range<u64>>>,
    /// The next command's number.
    next: u64,
    /// Where the last command ended.
    at: u64,
}

impl DiscardQueue {
    /// An empty queue. Limits of 0 ranges or blocks count as 1.
    pub fn new(limits: CommandLimits, order: Order, short: Short) -> DiscardQueue {
        let limits = CommandLimits {
            ranges: limits.ranges.max(1),
            blocks: limits.blocks.max(1),
            at_least: limits.at_least,
        };
        DiscardQueue {
            limits,
            order,
            short,
            pending: Extents::new(),
            by_length: BinaryHeap::new(),
            in_flight: Extents::new(),
            commands: BTreeMap::new(),
            next: 0,
            at: 0,
        }
    }

    /// Notes that blocks are free. They are discarded some time, unless they are allocated before.
    ///
    /// # Errors
    /// Some are in flight, so they were free already. Then nothing is noted.
    pub fn free(&mut self, range: Range<u64>) -> Result<(), InFlight> {
        self.idle(&range)?;
        self.add(range);
        Ok(())
    }

    fn add(&mut self, range: Range<u64>) {
        let whole = self.pending.coalesce(range);
        self.note_length(&whole);
    }

    /// Takes blocks out of those that wait; returns how many of them did.
    fn remove(&mut self, range: Range<u64>) -> u64 {
        let removed = self.pending.remove(range.clone());
        let before = range.start.checked_sub(1);
        for address in before.into_iter().chain([range.end]) {
            if let Some(left) = self.pending.around(address) {
                self.note_length(&left);
            }
        }
        removed
    }

    fn note_length(&mut self, range: &Range<u64>) {
        if self.order == Order::Longest {
            self.by_length.push(by_length(range));
        }
    }

    /// The longest range that waits; of several the first.
    fn longest(&mut self) -> Option<Range<u64>> {
        if self.by_length.len() > 2 * self.pending.len() + 64 {
            self.by_length = self.pending.iter().map(|range| by_length(&range)).collect();
        }
        while let Some(&(_, Reverse(start), end)) = self.by_length.peek() {
            if self.pending.around(start) == Some(start..end) {
                return Some(start..end);
            }
            self.by_length.pop();
        }
        None
    }

    /// Notes that blocks are in use. Returns how many discards of blocks that cancels.
    ///
    /// # Errors
    /// Some are in flight: the allocator must take others. Then nothing is noted.
    pub fn allocate(&mut self, range: Range<u64>) -> Result<u64, InFlight> {
        self.idle(&range)?;
        Ok(self.remove(range))
    }

    fn idle(&self, range: &Range<u64>) -> Result<(), InFlight> {
        match self.in_flight.within(range.clone()).next() {
            Some(busy) => Err(InFlight(busy)),
            None => Ok(()),
        }
    }

    /// Takes ranges out of the queue and into a command, if there is one worth it. Its blocks are
    /// in flight until [`DiscardQueue::complete`] or [`DiscardQueue::fail`].
    pub fn send(&mut self) -> Option<Command> {
        let mut ranges = Vec::new();
        while ranges.len() < self.limits.ranges
            && let Some(range) = self.take()
        {
            self.in_flight.insert(range.clone());
            self.at = range.end;
            ranges.push(range);
        }
        if ranges.is_empty() {
            return None;
        }
        let id = self.next;
        self.next += 1;
        self.commands.insert(id, ranges.clone());
        Some(Command { id, ranges })
    }

    /// Notes that a command is done: its blocks may be allocated. Returns its ranges, none if no
    /// such command is in flight.
    pub fn complete(&mut self, id: u64) -> Vec<Range<u64>> {
        let ranges = self.commands.remove(&id).unwrap_or_default();
        for range in &ranges {
            self.in_flight.remove(range.clone());
        }
        ranges
    }

    /// Notes that a command failed: its blocks may be allocated, and wait for another command.
    pub fn fail(&mut self, id: u64) -> Vec<Range<u64>> {
        let ranges = self.complete(id);
        ranges.iter().for_each(|range| self.add(range.clone()));
        ranges
    }

    /// The blocks that wait.
    pub fn pending(&self) -> &Extents {
        &self.pending
    }

    /// The blocks that are in flight.
    pub fn in_flight(&self) -> &Extents {
        &self.in_flight
    }

    /// The next range for a command.
    fn take(&mut self) -> Option<Range<u64>> {
        let least = self.limits.at_least.max(1);
        let found = match self.order {
            Order::Longest => self.longest().filter(|range| length(range) >= least),
            Order::Address => self.next_by_address(least),
        };
        let Some(range) = found else {
            if self.short == Short::Drop {
                self.pending.clear();
            }
            return None;
        };
        let range = range.start
            ..range
                .end
                .min(range.start.saturating_add(self.limits.blocks));
        self.remove(range.clone());
        Some(range)
    }

    /// The first range behind the last command that is long enough, else the first of all. Short
    /// ones on the way are dropped if they are to be.
    fn next_by_address(&mut self, least: u64) -> Option<Range<u64>> {
        let long = |range: &Range<u64>| length(range) >= least;
        let ahead = self.pending.within(self.at..u64::MAX).find(long);
        let found = ahead.or_else(|| self.pending.iter().find(long))?;
        if self.short == Short::Drop && found.start < self.at {
            self.pending.remove(self.at..u64::MAX);
            self.pending.remove(0..found.start);
        } else if self.short == Short::Drop {
            self.pending.remove(self.at..found.start);
        }
        Some(found)
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// A key that sorts ranges by their length, and those of one length from the last to the first.
fn by_length(range: &Range<u64>) -> (u64, Reverse<u64>, u64) {
    (length(range), Reverse(range.start), range.end)
}
