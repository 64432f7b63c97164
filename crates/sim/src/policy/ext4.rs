//! ext4 mounted with `discard`.

use std::ops::Range;

use super::outbox::{Outbox, Shape};
use super::{Desk, Nature, Policy};

/// A block group of ext4 in bytes: its discards are no larger.
pub(super) const GROUP: u64 = 128 << 20;

/// After the journal's commit one kernel thread sends a discard for each free extent, at most one
/// block group, one in flight (Linux 5.15 and later: `ext4_discard_work`). Freed space may be
/// allocated at once; the thread takes a range out of the free space while it discards it.
#[derive(Debug)]
pub(super) struct Ext4Online {
    piece: u64,
    outbox: Option<Outbox>,
}

impl Ext4Online {
    pub(super) fn new(piece: u64) -> Ext4Online {
        Ext4Online {
            piece,
            outbox: None,
        }
    }

    fn outbox(&mut self, desk: &Desk<'_>) -> &mut Outbox {
        let piece = self.piece.min(desk.limits.max_bytes);
        self.outbox
            .get_or_insert_with(|| Outbox::new(Shape::single(1, piece)))
    }
}

impl Policy for Ext4Online {
    fn nature(&self) -> Nature {
        Nature {
            commits: true,
            ..Nature::default()
        }
    }

    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        desk.release(ranges);
        let outbox = self.outbox(desk);
        outbox.add(ranges);
        outbox.pump(desk);
    }

    fn allocated(&mut self, range: &Range<u64>) {
        if let Some(outbox) = &mut self.outbox {
            outbox.cancel(range);
        }
    }

    fn discarded(&mut self, tag: u64, desk: &mut Desk<'_>) {
        let outbox = self.outbox(desk);
        outbox.completed(tag);
        outbox.pump(desk);
    }

    fn is_settled(&self) -> bool {
        self.outbox.as_ref().is_none_or(Outbox::is_idle)
    }

    fn cancelled_bytes(&self) -> u64 {
        self.outbox.as_ref().map_or(0, Outbox::cancelled_bytes)
    }
}
