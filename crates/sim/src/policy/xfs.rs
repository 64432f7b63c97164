//! XFS mounted with `discard`.

use std::ops::Range;
use std::time::Duration;

use ssd::Time;

use super::outbox::{Outbox, Shape};
use super::{Desk, Limits, Order, Policy};

/// Discards that are handed to the kernel at once: as many as there may ever be.
const AT_ONCE: usize = 4096;

/// After the log's checkpoint all extents go to the kernel at once, without anybody waiting. Its
/// writeback throttling (`wbt`) lets some be in flight on each drive, and fewer once reads have
/// waited. An extent is busy, so it can't be allocated, until its discard is done.
#[derive(Debug)]
pub(super) struct XfsOnline {
    depth: usize,
    throttled: usize,
    after: Duration,
    /// When the present burst began.
    began: Option<Time>,
    is_throttled: bool,
    outbox: Outbox,
}

impl XfsOnline {
    /// `depth` in flight, and `throttled` from `after` on.
    pub(super) fn new(
        depth: usize,
        throttled: usize,
        after: Duration,
        limits: Limits,
    ) -> XfsOnline {
        XfsOnline {
            depth,
            throttled,
            after,
            began: None,
            is_throttled: false,
            outbox: Outbox::new(Shape::single(AT_ONCE, limits.max_bytes)),
        }
    }

    /// Throttles when the burst has lasted, and readers were there to notice.
    fn throttle(&mut self, desk: &mut Desk<'_>) {
        let began = self.began.unwrap_or(desk.now);
        let is_due = desk.now.since(began) >= self.after && desk.seen.reads.ops > 0;
        if is_due && !self.is_throttled {
            self.is_throttled = true;
            desk.order(Order::Throttle(self.throttled));
        }
    }
}

impl Policy for XfsOnline {
    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        if self.began.is_none() {
            self.began = Some(desk.now);
            self.is_throttled = false;
            desk.order(Order::Throttle(self.depth));
        }
        self.outbox.add(ranges);
        self.outbox.pump(desk);
    }

    fn discarded(&mut self, tag: u64, desk: &mut Desk<'_>) {
        self.outbox.go_on(tag, desk);
        if self.outbox.is_idle() {
            self.began = None;
        }
        self.throttle(desk);
    }

    fn is_settled(&self) -> bool {
        self.outbox.is_idle()
    }
}
