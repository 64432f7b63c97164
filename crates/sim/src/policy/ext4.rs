//! ext4 mounted with `discard`.

use std::ops::Range;

use super::outbox::{Outbox, Shape};
use super::{Desk, Limits, Policy};

/// After the journal's commit one kernel thread sends a discard for each free extent, at most one
/// block group, one in flight (Linux 5.15 and later: `ext4_discard_work`). Freed space may be
/// allocated at once; the thread takes a range out of the free space while it discards it.
#[derive(Debug)]
pub(super) struct Ext4Online {
    outbox: Outbox,
}

impl Ext4Online {
    /// `piece`: most bytes in a discard.
    pub(super) fn new(piece: u64, limits: Limits) -> Ext4Online {
        let piece = piece.min(limits.max_bytes);
        Ext4Online {
            outbox: Outbox::new(Shape::single(1, piece)),
        }
    }
}

impl Policy for Ext4Online {
    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        desk.release(ranges);
        self.outbox.add(ranges);
        self.outbox.pump(desk);
    }

    fn allocated(&mut self, range: &Range<u64>) {
        self.outbox.cancel(range);
    }

    fn discarded(&mut self, tag: u64, desk: &mut Desk<'_>) {
        self.outbox.go_on(tag, desk);
    }

    fn is_settled(&self) -> bool {
        self.outbox.is_idle()
    }

    fn cancelled_bytes(&self) -> u64 {
        self.outbox.cancelled_bytes()
    }
}
