//! What is to be freed.

use crate::debt::DebtMode;

/// What btrfs keeps data in, as a rule: a block group of so many bytes.
pub const GROUP: u64 = 1 << 30;

/// The smallest one: fewer bytes aren't one that is discarded a second time.
pub const SMALLEST_GROUP: u64 = 8 << 20;

/// What is to be freed, as far as it is known beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// How many bytes.
    pub bytes: u64,
    /// How many extents they lie in; where it isn't known, the fewest there can
    /// be. Each costs a discard of its own at least.
    pub extents: u64,
    /// The largest discard that will be sent, in bytes: the least of the file
    /// system's unit (ext4: 128 MiB, a block group), `discard_max_bytes` and
    /// 4 GiB. At least 1.
    pub unit: u64,
    /// The shortest piece that is worth freeing by itself, in bytes: the
    /// device's granularity or the file system's, whichever is more. At least 1.
    pub granularity: u64,
    /// When the file system sends the discards.
    pub mode: DebtMode,
    /// Whether what is freed may be discarded once more, soon after: btrfs discards
    /// whole block groups that have become empty, whatever was discarded in them.
    pub discards_twice: bool,
}

impl Work {
    /// So many bytes in so many extents (at least 1), on a file system that
    /// sends discards of at most 4 GiB when it commits.
    pub fn new(bytes: u64, extents: u64) -> Work {
        Work {
            bytes,
            extents: extents.max(1),
            unit: 4 << 30,
            granularity: 4096,
            mode: DebtMode::Commit,
            discards_twice: false,
        }
    }

    /// The bytes of a usual discard if nobody cuts the extents: at least 1.
    pub(crate) fn whole(&self) -> u64 {
        let mean = self.bytes.div_ceil(self.extents.max(1));
        mean.min(self.unit).max(self.smallest())
    }

    /// The smallest piece.
    pub(crate) fn smallest(&self) -> u64 {
        self.granularity.max(1)
    }
}
