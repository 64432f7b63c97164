//! Second discards: btrfs discards block groups whole that have become empty, whatever was
//! discarded in them before.

use crate::work::{GROUP, SMALLEST_GROUP, Work};

/// The bytes freed, and those of them discarded a second time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SecondDiscards {
    /// So many bytes are assumed to come a second time before any did; `None` where none can.
    assumed: Option<u64>,
    bytes: u64,
    freed: u64,
    /// Bytes of the last piece: its groups come with the next commit.
    last: u64,
}

impl SecondDiscards {
    pub(crate) fn new(work: &Work) -> SecondDiscards {
        let assumed = (work.bytes / 8).min(4 * GROUP);
        SecondDiscards {
            assumed: work.discards_twice.then_some(assumed),
            bytes: 0,
            freed: 0,
            last: 0,
        }
    }

    /// Returns how many bytes were discarded a second time so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Takes in bytes that paid no debt. Returns how many of them count as own, discarded a second
    /// time. `freed`: bytes freed so far.
    pub(crate) fn observe(&mut self, bytes: u64, freed: u64) -> u64 {
        if self.assumed.is_none() || bytes < SMALLEST_GROUP {
            return 0;
        }
        let twice = bytes.min(freed.saturating_sub(self.bytes));
        self.bytes += twice;
        twice
    }

    /// Takes in how many bytes were freed so far.
    pub(crate) fn freed(&mut self, freed: u64) {
        self.freed = freed;
    }

    /// Takes in that a piece of so many bytes was acknowledged.
    pub(crate) fn landed(&mut self, bytes: u64) {
        self.last = bytes;
    }

    /// Returns how many times each byte is discarded, on average: 1 to 2.
    pub(crate) fn times(&self) -> f64 {
        let assumed = self.assumed.unwrap_or(0);
        let freed = self.freed.saturating_sub(self.last).max(self.bytes);
        1.0 + (self.bytes + assumed) as f64 / (freed + assumed).max(1) as f64
    }
}
