//! The steps of a worker, one after the other, drawn from a seed.

use std::fmt;
use std::ops::Range;

use fastrand::Rng;

pub(super) const SECTOR: u64 = 512;
/// The longest read or write in bytes: several of the kernel's requests.
const LONGEST: u64 = 2 << 20;

/// Everything a block device can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    ReadDirect,
    ReadBuffered,
    WriteDirect,
    WriteBuffered,
    Flush,
    Discard,
    /// Zeros, the space kept (`BLKZEROOUT`).
    ZeroOut,
    /// Zeros, the space freed (`fallocate` with `PUNCH_HOLE`).
    Punch,
}

/// How often each is done.
const WEIGHTS: [(What, u32); 8] = [
    (What::ReadDirect, 25),
    (What::ReadBuffered, 15),
    (What::WriteDirect, 25),
    (What::WriteBuffered, 12),
    (What::Flush, 3),
    (What::Discard, 12),
    (What::ZeroOut, 4),
    (What::Punch, 4),
];

/// One thing done by one worker. The number also names the data of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) number: u64,
    pub(super) what: What,
    pub(super) range: Range<u64>,
}

impl Step {
    /// The next of a worker who owns this region.
    pub(super) fn draw(rng: &mut Rng, number: u64, region: &Range<u64>) -> Step {
        let total = WEIGHTS.iter().map(|(_, weight)| weight).sum();
        let mut drawn = rng.u32(0..total);
        let (what, _) = WEIGHTS
            .into_iter()
            .find(|&(_, weight)| {
                let here = drawn < weight;
                drawn = drawn.wrapping_sub(weight);
                here
            })
            .unwrap();
        let unit = match what {
            What::ReadBuffered | What::WriteBuffered => 1,
            _ => SECTOR,
        };
        let range = match what {
            What::Flush => region.start..region.start,
            _ => place(rng, region, unit),
        };
        Step {
            number,
            what,
            range,
        }
    }

    pub(super) fn touches(&self, place: &Range<u64>) -> bool {
        self.range.start < place.end && place.start < self.range.end
    }

    pub(super) fn writes(&self) -> bool {
        matches!(self.what, What::WriteDirect | What::WriteBuffered)
    }

    /// Fills in the data of a write, always the same for the same step.
    pub(super) fn data(&self, seed: u64, into: &mut [u8]) {
        Rng::with_seed(seed ^ self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).fill(into);
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.what {
            What::ReadDirect => "read",
            What::ReadBuffered => "read, buffered",
            What::WriteDirect => "write",
            What::WriteBuffered => "write, buffered",
            What::Flush => "flush",
            What::Discard => "discard",
            What::ZeroOut => "zero out",
            What::Punch => "punch",
        };
        let (start, len) = (self.range.start, self.range.end - self.range.start);
        write!(f, "#{} {what} {start}+{len}", self.number)
    }
}

/// Somewhere in a region, in whole units; half of the places on whole pages, and
/// lengths of every order of magnitude.
pub(super) fn place(rng: &mut Rng, region: &Range<u64>, unit: u64) -> Range<u64> {
    let unit = if rng.bool() { 4096 } else { unit };
    let orders = (LONGEST / unit).ilog2();
    let most = unit << rng.u32(0..=orders);
    let len = rng.u64(1..=most / unit) * unit;
    let last = region.end - len;
    let start = region.start + rng.u64(0..=(last - region.start) / unit) * unit;
    start..start + len
}
