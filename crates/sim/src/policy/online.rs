//! File systems mounted with `discard`: XFS, f2fs, ext4, and btrfs with `discard=sync`.

use std::ops::Range;
use std::time::Duration;

use ssd::Time;
use ssd::extents::{Order as By, Short};

use super::outbox::{Outbox, Shape};
use super::{Desk, Limits, Nature, Order, Policy};

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

// f2fs mounted with `discard`.

/// Requests in a round.
const ROUND: usize = 8;

/// Pauses after a round: when something was sent, when others use the drive, and when there was
/// nothing to send.
const SHORT_PAUSE: Duration = Duration::from_millis(50);

const BUSY_PAUSE: Duration = Duration::from_millis(500);

const LONG_PAUSE: Duration = Duration::from_secs(60);

/// The drive counts as idle after so long without other I/O.
const IDLE: Duration = Duration::from_secs(5);

/// Above this share of the volume in use nothing waits for an idle drive.
const URGENT: f64 = 0.80;

/// A thread sends rounds of eight discards while nobody else uses the drive, or when the volume is
/// more than 80 % full (`issue_discard_thread`).
#[derive(Debug)]
pub(super) struct F2fs {
    outbox: Outbox,
    is_awake: bool,
}

impl F2fs {
    /// `at_least`: bytes in the shortest range that it sends.
    pub(super) fn new(at_least: u64, limits: Limits) -> F2fs {
        F2fs {
            outbox: Outbox::new(Shape {
                depth: ROUND,
                ranges: 1,
                piece: limits.max_bytes,
                at_least,
                order: By::Longest,
                short: Short::Wait,
            }),
            is_awake: false,
        }
    }
}

impl Policy for F2fs {
    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        desk.release(ranges);
        self.outbox.add(ranges);
        desk.wake(&mut self.is_awake, desk.now + SHORT_PAUSE);
    }

    fn allocated(&mut self, range: &Range<u64>) {
        self.outbox.cancel(range);
    }

    fn discarded(&mut self, tag: u64, _: &mut Desk<'_>) {
        self.outbox.completed(tag);
    }

    fn woken(&mut self, desk: &mut Desk<'_>) {
        self.is_awake = false;
        let used = 1.0 - desk.volume.free_bytes() as f64 / desk.volume.bytes().max(1) as f64;
        let last = desk.seen.last_foreground;
        let is_idle = last == Time::ZERO || desk.now.since(last) >= IDLE;
        let pause = if is_idle || used > URGENT {
            let sent = (0..ROUND).map_while(|_| self.outbox.send(desk)).count();
            match sent {
                0 => LONG_PAUSE,
                _ => SHORT_PAUSE,
            }
        } else {
            BUSY_PAUSE
        };
        if !self.outbox.is_settled() {
            desk.wake(&mut self.is_awake, desk.now + pause);
        }
    }

    fn is_settled(&self) -> bool {
        self.outbox.is_settled()
    }

    fn cancelled_bytes(&self) -> u64 {
        self.outbox.cancelled_bytes()
    }
}

// ext4 mounted with `discard`, and btrfs with `discard=sync`: one discard in flight.

/// ext4: after the journal's commit one kernel thread sends a discard for each free extent, at most
/// one block group (Linux 5.15 and later: `ext4_discard_work`). Freed space may be allocated at
/// once; the thread takes a range out of the free space while it discards it.
///
/// btrfs: inside the transaction's commit, pieces of at most 1 GiB; whoever syncs waits for the
/// commit.
#[derive(Debug)]
pub(super) struct Online {
    outbox: Outbox,
    is_btrfs: bool,
}

/// The largest piece of `discard=sync`.
const SYNC_PIECE: u64 = 1 << 30;

impl Online {
    /// `piece`: most bytes in a discard.
    pub(super) fn ext4(piece: u64, limits: Limits) -> Online {
        Online {
            outbox: Outbox::new(Shape::single(1, piece.min(limits.max_bytes))),
            is_btrfs: false,
        }
    }

    pub(super) fn btrfs(limits: Limits) -> Online {
        Online {
            is_btrfs: true,
            ..Online::ext4(SYNC_PIECE, limits)
        }
    }
}

impl Policy for Online {
    fn nature(&self) -> Nature {
        Nature {
            commit_waits: self.is_btrfs,
            ..Nature::default()
        }
    }

    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        if !self.is_btrfs {
            desk.release(ranges);
        }
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
