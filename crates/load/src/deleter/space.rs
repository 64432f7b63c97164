//! How much a file system's free space has grown.

use std::path::{Path, PathBuf};

use crate::error::LoadError;

/// The free space of a file system at some moment, to compare with.
#[derive(Debug, Clone)]
pub struct FreeSpace {
    dir: PathBuf,
    free_bytes: u64,
}

impl FreeSpace {
    /// The free space now of the file system that holds `dir`.
    ///
    /// # Errors
    /// [`LoadError::File`] when the kernel doesn't tell it.
    pub fn of(dir: &Path) -> Result<FreeSpace, LoadError> {
        let free_bytes = free(dir).map_err(|errno| LoadError::File {
            path: dir.to_owned(),
            what: "get its free space",
            source: errno.into(),
        })?;
        Ok(FreeSpace {
            dir: dir.to_owned(),
            free_bytes,
        })
    }

    /// Bytes by which the free space has grown since; 0 if it shrank or is unknown. btrfs counts
    /// what was freed when it commits, the others at once.
    pub fn freed_bytes(&self) -> u64 {
        let now = free(&self.dir).unwrap_or(self.free_bytes);
        now.saturating_sub(self.free_bytes)
    }
}

/// The free space, root's reserve included. ext4 reports to other users that a full file system has
/// nothing available until that reserve is free.
fn free(dir: &Path) -> rustix::io::Result<u64> {
    let stat = rustix::fs::statvfs(dir)?;
    let unit = match stat.f_frsize {
        0 => stat.f_bsize,
        unit => unit,
    };
    Ok(stat.f_bfree.saturating_mul(unit))
}
