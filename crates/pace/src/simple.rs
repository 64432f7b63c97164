//! Controllers without feedback, to compare with.

use std::time::Duration;

use ssd::Time;

use crate::advice::{Advice, Why};

/// Chunk and sleep: what slowrm does.
#[derive(Debug, Clone)]
pub(crate) struct Fixed {
    pub(crate) chunk: u64,
    pub(crate) sleep: Duration,
    freed: u64,
    /// When the next may follow, once something was freed.
    due: Time,
}

impl Fixed {
    pub(crate) fn new(chunk: u64, sleep: Duration) -> Fixed {
        Fixed {
            chunk: chunk.max(1),
            sleep,
            freed: 0,
            due: Time::ZERO,
        }
    }

    pub(crate) fn advise(&mut self, now: Time, freed: u64) -> Advice {
        if freed > self.freed {
            self.freed = freed;
            self.due = now + self.sleep;
        }
        if now < self.due {
            return Advice::wait(self.due.since(now), self.chunk, Why::Holding);
        }
        Advice::free(self.chunk, self.chunk, Why::Holding)
    }
}

/// So many bytes for each second, in pieces.
#[derive(Debug, Clone)]
pub(crate) struct Rate {
    pub(crate) bytes_per_s: f64,
    pub(crate) piece: u64,
    start: Option<(Time, u64)>,
}

impl Rate {
    pub(crate) fn new(bytes_per_s: f64, piece: u64) -> Rate {
        let bytes_per_s = if bytes_per_s > 1.0 { bytes_per_s } else { 1.0 };
        Rate {
            bytes_per_s,
            piece: piece.max(1),
            start: None,
        }
    }

    /// Changes the rate from now on.
    pub(crate) fn set(&mut self, now: Time, freed: u64, bytes_per_s: f64, piece: u64) {
        if (bytes_per_s / self.bytes_per_s - 1.0).abs() > 0.01 || piece != self.piece {
            // What is owed to the old rate is kept.
            let ahead = self
                .start
                .map_or(Duration::ZERO, |start| self.due(start, freed).since(now));
            *self = Rate::new(bytes_per_s, piece);
            self.start = Some((now + ahead, freed));
        }
    }

    /// When the next piece is due.
    fn due(&self, (start, freed_before): (Time, u64), freed: u64) -> Time {
        let freed = freed.saturating_sub(freed_before) as f64;
        start + Duration::from_secs_f64((freed / self.bytes_per_s).min(1e9))
    }

    pub(crate) fn advise(&mut self, now: Time, freed: u64, why: Why) -> Advice {
        let start = *self.start.get_or_insert((now, freed));
        let due = self.due(start, freed);
        if now < due {
            return Advice::wait(due.since(now), self.piece, why);
        }
        // Time that wasn't used isn't caught up with by more than a piece.
        if now.since(due).as_secs_f64() * self.bytes_per_s > self.piece as f64 {
            self.start = Some((now, freed));
        }
        Advice::free(self.piece, self.piece, why)
    }
}
