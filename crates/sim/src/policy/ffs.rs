//! The three approaches of T. Unangst's "lessons learned about TRIM" (2011), for FFS.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use ssd::extents::{Order as By, Short};

use super::outbox::{Outbox, Shape};
use super::{Desk, Limits, Nature, Order, Policy};
use crate::volume::pieces;

/// Approaches one and two: a discard for each block, or for each run of blocks that are freed one
/// after the other and long enough. They are sent in the order in which the blocks were freed, one
/// in flight, and a block is free when its discard is done.
#[derive(Debug)]
pub(super) struct InOrder {
    /// Most bytes in a discard.
    piece: u64,
    /// Shorter runs are never discarded.
    at_least: u64,
    waiting: VecDeque<Range<u64>>,
    in_flight: bool,
    next: u64,
}

impl InOrder {
    pub(super) fn new(piece: u64, at_least: u64) -> InOrder {
        InOrder {
            piece,
            at_least,
            waiting: VecDeque::new(),
            in_flight: false,
            next: 0,
        }
    }

    fn pump(&mut self, desk: &mut Desk<'_>) {
        if !self.in_flight
            && let Some(range) = self.waiting.pop_front()
        {
            self.in_flight = true;
            self.next += 1;
            desk.order(Order::Discard {
                tag: self.next,
                ranges: vec![range],
            });
        }
    }
}

impl Policy for InOrder {
    fn nature(&self) -> Nature {
        Nature {
            commits: false,
            deleter_waits: true,
            ..Nature::default()
        }
    }

    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        for range in ranges {
            match range.end - range.start >= self.at_least {
                true => self.waiting.extend(pieces(range, self.piece)),
                false => desk.order(Order::Release(range.clone())),
            }
        }
        self.pump(desk);
    }

    fn discarded(&mut self, _: u64, desk: &mut Desk<'_>) {
        self.in_flight = false;
        self.pump(desk);
    }

    fn is_settled(&self) -> bool {
        !self.in_flight && self.waiting.is_empty()
    }
}

/// Approach three, the plan: what is freed may be allocated at once, and cancels its discard; from
/// time to time a command with many ranges is sent.
#[derive(Debug)]
pub(super) struct Queued {
    period: Duration,
    outbox: Outbox,
    is_awake: bool,
}

impl Queued {
    /// `period`: so long it collects before it sends; `largest`: most bytes in a range.
    pub(super) fn new(
        ranges: usize,
        largest: u64,
        at_least: u64,
        period: Duration,
        limits: Limits,
    ) -> Queued {
        let ranges = ranges.min(limits.max_ranges).max(1);
        // All ranges together must fit into a command as well.
        let piece = largest.min(limits.max_bytes / ranges as u64);
        Queued {
            period,
            outbox: Outbox::new(Shape {
                depth: 1,
                ranges,
                piece: piece.max(crate::volume::BLOCK),
                at_least,
                order: By::Longest,
                short: Short::Wait,
            }),
            is_awake: false,
        }
    }
}

impl Policy for Queued {
    fn nature(&self) -> Nature {
        Nature {
            commits: false,
            ..Nature::default()
        }
    }

    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        self.outbox.add(ranges);
        desk.release(ranges);
        desk.wake(&mut self.is_awake, desk.now + self.period);
    }

    fn allocated(&mut self, range: &Range<u64>) {
        self.outbox.cancel(range);
    }

    fn discarded(&mut self, tag: u64, desk: &mut Desk<'_>) {
        self.outbox.go_on(tag, desk);
    }

    fn woken(&mut self, desk: &mut Desk<'_>) {
        self.is_awake = false;
        self.outbox.pump(desk);
    }

    fn is_settled(&self) -> bool {
        !self.is_awake && self.outbox.is_settled()
    }

    fn cancelled_bytes(&self) -> u64 {
        self.outbox.cancelled_bytes()
    }
}
