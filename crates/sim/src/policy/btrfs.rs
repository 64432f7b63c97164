//! btrfs mounted with `discard=async`.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use ssd::Time;

use super::outbox::{Outbox, Shape};
use super::{Desk, Limits, Policy};

/// Freed space waits for reuse, then is discarded in small pieces at a limited rate
/// (`/sys/fs/btrfs/UUID/discard/`).
#[derive(Debug)]
pub(super) struct BtrfsAsync {
    delay: Duration,
    /// Pieces a second; not limited at 0.
    iops: u64,
    /// KiB a second; not limited at 0.
    kbps: u64,
    outbox: Outbox,
    /// Freed, and when its wait is over.
    waiting: VecDeque<(Time, Vec<Range<u64>>)>,
    is_awake: bool,
    cancelled: u64,
}

impl BtrfsAsync {
    /// `piece`: most bytes in a discard.
    pub(super) fn new(
        delay: Duration,
        iops: u64,
        kbps: u64,
        piece: u64,
        limits: Limits,
    ) -> BtrfsAsync {
        let piece = piece.min(limits.max_bytes);
        BtrfsAsync {
            delay,
            iops,
            kbps,
            outbox: Outbox::new(Shape::single(1, piece)),
            waiting: VecDeque::new(),
            is_awake: false,
            cancelled: 0,
        }
    }

    /// The pause after a piece of so many bytes (`btrfs_discard_calc_delay`).
    fn pause(&self, bytes: u64) -> Duration {
        let by = |per_s: u64, amount: f64| match per_s {
            0 => 0.0,
            _ => amount / per_s as f64,
        };
        let iops = by(self.iops, 1.0);
        let kbps = by(self.kbps.saturating_mul(1024), bytes as f64);
        Duration::from_secs_f64(iops.max(kbps).clamp(0.001, 10.0))
    }
}

impl Policy for BtrfsAsync {
    fn freed(&mut self, ranges: &[Range<u64>], desk: &mut Desk<'_>) {
        desk.release(ranges);
        let due = desk.now + self.delay;
        self.waiting.push_back((due, ranges.to_vec()));
        desk.wake(&mut self.is_awake, due);
    }

    fn allocated(&mut self, range: &Range<u64>) {
        self.outbox.cancel(range);
        for (_, ranges) in &mut self.waiting {
            self.cancelled += remove_from(ranges, range);
        }
    }

    fn discarded(&mut self, tag: u64, _: &mut Desk<'_>) {
        self.outbox.completed(tag);
    }

    fn woken(&mut self, desk: &mut Desk<'_>) {
        self.is_awake = false;
        while let Some((due, _)) = self.waiting.front()
            && *due <= desk.now
            && let Some((_, ranges)) = self.waiting.pop_front()
        {
            self.outbox.add(&ranges);
        }
        let sent = self.outbox.send(desk);
        let next = match (self.outbox.is_idle(), self.waiting.front()) {
            (true, None) => None,
            (true, Some((due, _))) => Some(*due),
            // One that has not completed holds the next one up.
            (false, _) => Some(desk.now + self.pause(sent.unwrap_or(0))),
        };
        if let Some(at) = next {
            desk.wake(&mut self.is_awake, at);
        }
    }

    fn is_settled(&self) -> bool {
        self.waiting.is_empty() && self.outbox.is_idle()
    }

    fn cancelled_bytes(&self) -> u64 {
        self.cancelled + self.outbox.cancelled_bytes()
    }
}

/// Takes a range out of some others; returns how many bytes were there.
fn remove_from(ranges: &mut Vec<Range<u64>>, out: &Range<u64>) -> u64 {
    let mut removed = 0;
    let mut behind = Vec::new();
    ranges.retain_mut(|range| {
        let (start, end) = (range.start.max(out.start), range.end.min(out.end));
        if start >= end {
            return true;
        }
        removed += end - start;
        if end < range.end {
            behind.push(end..range.end);
        }
        range.end = start;
        !range.is_empty()
    });
    ranges.append(&mut behind);
    removed
}
