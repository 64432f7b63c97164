//! f2fs mounted with `discard`.

use std::ops::Range;
use std::time::Duration;

use ssd::Time;
use ssd::extents::{Order as By, Short};

use super::outbox::{Outbox, Shape};
use super::{Desk, Limits, Policy};

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
