//! The work: the space that is to be freed.

use crate::debt::DebtMode;

/// The size of a block group in which btrfs keeps data, as a rule, in bytes.
pub const GROUP: u64 = 1 << 30;

/// The size of the smallest one, in bytes. A second discard is never shorter.
pub const SMALLEST_GROUP: u64 = 8 << 20;

/// The space that is to be freed, as far as it is known beforehand.
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
    /// Creates the work of `bytes` bytes in `extents` extents (at least 1). The file system sends
    /// discards of at most 4 GiB when it commits.
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

    /// Returns the bytes of a usual discard if nobody cuts the extents: at least 1.
    pub(crate) fn whole(&self) -> u64 {
        let mean = self.bytes.div_ceil(self.extents.max(1));
        mean.min(self.unit).max(self.smallest())
    }

    /// Returns the bytes of the smallest piece.
    pub(crate) fn smallest(&self) -> u64 {
        self.granularity.max(1)
    }
}
