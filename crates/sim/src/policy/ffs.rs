//! The three approaches of T. Unangst's "lessons learned about TRIM" (2011), for FFS.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use extents::{Order as By, Short};

use super::outbox::{Outbox, Shape};
use super::{Desk, Limits, Nature, Order, Policy};

/// Discards in the order in which the blocks were freed, one in flight.
#[derive(Debug, Default)]
struct Line {
    waiting: VecDeque<Range<u64>>,
    in_flight: bool,
    next: u64,
}

impl Line {
    fn add(&mut self, range: &Range<u64>, piece: u64) {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min(start + piece);
            self.waiting.push_back(start..end);
            start = end;
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

    fn completed(&mut self, desk: &mut Desk<'_>) {
        self.in_flight = false;
        self.pump(desk);
    }

    fn is_idle(&self) -> bool {
        !self.in_flight && self.waiting.is_empty()
    }
}

/// Approach one: a discard for each block, and the block is free when it is done.
#[derive(Debug)]
pub(super) struct PerBlock {
    block: u64,
    line: Line,
}

impl PerBlock {
    pub(super) fn new(block: u64) -> PerBlock {
        PerBlock {
            block,
            line: Line::default(),
        }
    }
}

impl Policy for PerBlock {
    fn nature(&self) -> Nature {
        Nature {
            deleter_waits: true,
            ..Nature::default()
        }
    }

    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        ranges
            .iter()
            .for_each(|range| self.line.add(range, self.block));
        self.line.pump(desk);
    }

    fn discarded(&mut self, _: u64, desk: &mut Desk<'_>) {
        self.line.completed(desk);
    }

    fn is_settled(&self) -> bool {
        self.line.is_idle()
    }
}

/// Approach two: neighbours that are freed one after the other become one discard, and what is
/// shorter than a minimum is never discarded.
#[derive(Debug)]
pub(super) struct Coalesce {
    at_least: u64,
    line: Line,
}

impl Coalesce {
    pub(super) fn new(at_least: u64) -> Coalesce {
        Coalesce {
            at_least,
            line: Line::default(),
        }
    }
}

impl Policy for Coalesce {
    fn nature(&self) -> Nature {
        Nature {
            deleter_waits: true,
            ..Nature::default()
        }
    }

    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        for range in ranges {
            match range.end - range.start >= self.at_least {
                true => self.line.add(range, desk.limits.max_bytes),
                false => desk.order(Order::Release(range.clone())),
            }
        }
        self.line.pump(desk);
    }

    fn discarded(&mut self, _: u64, desk: &mut Desk<'_>) {
        self.line.completed(desk);
    }

    fn is_settled(&self) -> bool {
        self.line.is_idle()
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
        Nature::default()
    }

    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        self.outbox.add(ranges);
        desk.release(ranges);
        if !std::mem::replace(&mut self.is_awake, true) {
            desk.order(Order::WakeAt(desk.now + self.period));
        }
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
