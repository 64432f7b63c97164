//! The free extents of a file system, and how much the looks at them may have missed.
//!
//! An extent that was used and freed again between two looks looks as if it had been free all the
//! time, and the device doesn't learn of it. XFS counts the blocks that it frees (`freeb` of
//! `/sys/fs/xfs/DEVICE/stats/stats`, Linux ≥ 4.4). If that grows by more than the looks saw, so much
//! may have been used unseen. ext4 remembers for each block group whether anything was freed since
//! it was trimmed (`EXT4_GROUP_INFO_WAS_TRIMMED`), so asking it for all groups costs little.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use linux::trim::FreeSpace;
use ssd::extents::Extents;
use storage::FileSystem;
use storage::layout::Layout;

use super::pick::Cuts;
use crate::trim::Survey;

/// Reads the free extents of one file system.
#[derive(Debug)]
pub(super) struct Looker {
    directory: Arc<File>,
    pub(super) cuts: Cuts,
    pub(super) size: u64,
    pub(super) block: u64,
    counted: Option<PathBuf>,
}

/// The result of one look.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) free: Extents,
    /// Blocks freed since the file system was mounted, modulo 2³².
    pub(super) freed_blocks: Option<u32>,
}

/// Why the free extents of a file system can't be read.
#[derive(Debug)]
pub(super) enum Unlisted {
    /// It is another file system than ext4 or XFS.
    Kind,
    /// The kernel doesn't list them.
    Kernel,
}

impl Looker {
    pub(super) fn of(survey: &Survey, fs: FileSystem) -> Result<Looker, Unlisted> {
        let directory = Arc::clone(&survey.directory);
        let (group, first) = match survey.fs.layout {
            Layout::Groups { group, first } => (group, first),
            Layout::Allocation { group } => (group, 0),
            _ => return Err(Unlisted::Kind),
        };
        let cuts = Cuts {
            group,
            first,
            remembered: fs.is_ext(),
            reach: fs.trim_reach(linux::host::kernel_version()),
        };
        if FreeSpace::open(&directory).is_none() {
            return Err(Unlisted::Kernel);
        }
        let stat = rustix::fs::fstatvfs(&directory).map_err(|_| Unlisted::Kernel)?;
        let counted = survey
            .device()
            .filter(|_| fs == FileSystem::Xfs)
            .map(|device| Path::new("/sys/fs/xfs").join(device).join("stats/stats"))
            .filter(|path| path.exists());
        Ok(Looker {
            directory,
            cuts,
            size: stat.f_blocks.saturating_mul(stat.f_frsize),
            block: stat.f_bsize.max(1),
            counted,
        })
    }

    /// Whether the kernel remembers itself what is trimmed.
    pub(super) fn is_remembered(&self) -> bool {
        self.cuts.remembered
    }

    /// The root of the file system.
    pub(super) fn directory(&self) -> &File {
        &self.directory
    }

    /// Returns an identity of this mount of the file system; `None` where there is none.
    pub(super) fn mount(&self, uuid: Option<&str>) -> Option<String> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let inode = self.counted.as_ref()?.metadata().ok()?.ino();
        Some(format!("{} {inode} {}", boot.trim(), uuid?))
    }

    /// Looks at all that is free.
    pub(super) fn look(&self) -> std::io::Result<Look> {
        let gone = || std::io::Error::other("the kernel no longer lists the free extents");
        let mut found = FreeSpace::open(&self.directory).ok_or_else(gone)?;
        let mut free = Extents::new();
        let mut at = 0;
        while let Some(extent) = found.behind(at)? {
            at = extent.end;
            free.insert(extent);
        }
        Ok(Look {
            free,
            freed_blocks: self.freed_blocks(),
        })
    }

    fn freed_blocks(&self) -> Option<u32> {
        let text = std::fs::read_to_string(self.counted.as_ref()?).ok()?;
        freed_blocks(&text)
    }
}

/// The last figure of the line `extent_alloc` (`fs/xfs/xfs_stats.h`: allocx, allocb, freex, freeb).
fn freed_blocks(text: &str) -> Option<u32> {
    let line = text
        .lines()
        .find(|line| line.starts_with("extent_alloc "))?;
    line.split_whitespace().nth(4)?.parse().ok()
}

/// How many bytes may have been used and freed again unseen, since looks began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hidden {
    last: Option<u32>,
    /// Freed bytes that were counted and not seen. If something is freed during a look, it is seen
    /// and counted at different times, so this can be below zero for a while.
    bytes: i64,
}

impl Hidden {
    pub(super) fn noted(last: Option<u32>, bytes: i64) -> Hidden {
        Hidden { last, bytes }
    }

    pub(super) fn noting(self) -> (Option<u32>, i64) {
        (self.last, self.bytes)
    }

    /// A look saw so many bytes newly freed.
    pub(super) fn saw(&mut self, freed: u64, blocks: Option<u32>, block: u64) {
        let before = std::mem::replace(&mut self.last, blocks);
        if let (Some(before), Some(now)) = (before, blocks) {
            let counted = u64::from(now.wrapping_sub(before)).saturating_mul(block);
            let more = counted as i128 - i128::from(freed);
            let sum = i128::from(self.bytes) + more;
            self.bytes = sum.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
        }
    }

    /// Bytes that may have been used unseen.
    pub(super) fn bytes(self) -> u64 {
        u64::try_from(self.bytes).unwrap_or(0)
    }

    /// Clears the account, because everything is pending.
    pub(super) fn settle(&mut self) {
        self.bytes = self.bytes.min(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xfs_counts_what_it_frees() {
        let text = "extent_alloc 21 55792 13 39408\nabt 0 0 0 0\n";
        assert_eq!(freed_blocks(text), Some(39408));
        assert_eq!(freed_blocks("abt 0 0 0 0\n"), None);
        assert_eq!(freed_blocks("extent_alloc 21 55792 13 x\n"), None);
    }

    #[test]
    fn what_was_freed_and_not_seen_is_hidden() {
        let mut hidden = Hidden::default();
        hidden.saw(0, Some(u32::MAX), 4096);
        hidden.saw(8192, Some(1), 4096);
        assert_eq!(hidden.bytes(), 0);
        // Within a look: counted later than seen, or earlier.
        hidden.saw(4096, Some(1), 4096);
        assert_eq!(hidden.bytes(), 0);
        hidden.saw(0, Some(4), 4096);
        assert_eq!(hidden.bytes(), 8192);
        hidden.settle();
        assert_eq!(hidden.bytes(), 0);
    }

    #[test]
    fn without_a_count_nothing_is_known_to_be_hidden() {
        let mut hidden = Hidden::default();
        hidden.saw(4096, None, 4096);
        assert_eq!(hidden, Hidden::default());
    }
}
