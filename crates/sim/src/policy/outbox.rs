//! Discards that wait, and those in flight: what most policies are made of.

use std::ops::Range;

use ssd::extents::{CommandLimits, DiscardQueue, InFlight, Order as By, Short};

use super::{Desk, Order};
use crate::volume::BLOCK;

/// A [`DiscardQueue`] in bytes, with some commands in flight.
#[derive(Debug)]
pub(super) struct Outbox {
    queue: DiscardQueue,
    /// Commands in flight at once.
    depth: usize,
    in_flight: usize,
    cancelled: u64,
    /// Whether something that waits may be sent, as far as is known.
    has_more: bool,
}

/// How an outbox cuts and orders what it sends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) depth: usize,
    /// Ranges in a command.
    pub(super) ranges: usize,
    /// Bytes in a range.
    pub(super) piece: u64,
    /// A shorter range isn't sent.
    pub(super) at_least: u64,
    pub(super) order: By,
    pub(super) short: Short,
}

impl Shape {
    /// One range in each command, by address.
    pub(super) fn single(depth: usize, piece: u64) -> Shape {
        Shape {
            depth,
            ranges: 1,
            piece,
            at_least: 0,
            order: By::Address,
            short: Short::Drop,
        }
    }
}

impl Outbox {
    pub(super) fn new(shape: Shape) -> Outbox {
        let limits = CommandLimits {
            ranges: shape.ranges,
            blocks: shape.piece / BLOCK,
            at_least: shape.at_least.div_ceil(BLOCK),
        };
        Outbox {
            queue: DiscardQueue::new(limits, shape.order, shape.short),
            depth: shape.depth.max(1),
            in_flight: 0,
            cancelled: 0,
            has_more: false,
        }
    }

    /// Puts freed bytes into the queue.
    pub(super) fn add(&mut self, ranges: &[Range<u64>]) {
        self.has_more |= !ranges.is_empty();
        for range in ranges {
            let freed = self.queue.free(blocks(range));
            debug_assert_eq!(freed, Ok(()), "what is in flight is not in use");
        }
    }

    /// Cancels the discard of bytes that were allocated.
    pub(super) fn cancel(&mut self, range: &Range<u64>) {
        match self.queue.allocate(blocks(range)) {
            Ok(cancelled) => self.cancelled += cancelled * BLOCK,
            Err(InFlight(at)) => debug_assert!(false, "blocks {at:?} are in flight"),
        }
    }

    /// Sends one command, if there is one and its turn. Returns its bytes.
    pub(super) fn send(&mut self, desk: &mut Desk<'_>) -> Option<u64> {
        if self.in_flight >= self.depth {
            return None;
        }
        let Some(command) = self.queue.send() else {
            self.has_more = false;
            return None;
        };
        self.in_flight += 1;
        let ranges: Vec<Range<u64>> = command
            .ranges
            .iter()
            .map(|range| range.start * BLOCK..range.end * BLOCK)
            .collect();
        let bytes = ranges.iter().map(|r| r.end - r.start).sum();
        desk.order(Order::Discard {
            tag: command.id,
            ranges,
        });
        Some(bytes)
    }

    /// Sends as many as may be in flight.
    pub(super) fn pump(&mut self, desk: &mut Desk<'_>) {
        while self.send(desk).is_some() {}
    }

    /// A command has completed: sends more.
    pub(super) fn go_on(&mut self, completed: u64, desk: &mut Desk<'_>) {
        self.completed(completed);
        self.pump(desk);
    }

    /// A command has completed.
    pub(super) fn completed(&mut self, tag: u64) {
        if !self.queue.complete(tag).is_empty() {
            self.in_flight -= 1;
        }
    }

    pub(super) fn cancelled_bytes(&self) -> u64 {
        self.cancelled
    }

    pub(super) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.queue.pending().is_empty()
    }

    /// Whether nothing is in flight and nothing that waits would be sent.
    pub(super) fn is_settled(&self) -> bool {
        self.in_flight == 0 && !self.has_more
    }
}

fn blocks(range: &Range<u64>) -> Range<u64> {
    range.start / BLOCK..range.end / BLOCK
}
