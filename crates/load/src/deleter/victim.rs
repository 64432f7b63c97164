//! A file to be deleted, and what that frees.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

use super::refuse;
use crate::error::LoadError;

/// `st_blocks` counts in these, whatever the file system's block size (stat(2)).
pub(super) const STAT_BLOCK: u64 = 512;

/// A file to be deleted.
#[derive(Debug)]
pub(super) struct Victim {
    pub(super) path: PathBuf,
    /// Allocated bytes that go with this name.
    pub(super) bytes: u64,
}

impl Victim {
    /// Looks at every file, in order.
    pub(super) fn look_at_all(paths: Vec<PathBuf>) -> Result<Vec<Victim>, LoadError> {
        if paths.is_empty() {
            return Err(refuse("there is no file to delete"));
        }
        // Names seen per inode: its space goes with the last of them.
        let mut names: HashMap<(u64, u64), u64> = HashMap::new();
        let look = |path: PathBuf| {
            let stat = path.symlink_metadata();
            let stat = stat.map_err(LoadError::file(&path, "look at it"))?;
            let seen = names.entry((stat.dev(), stat.ino())).or_default();
            *seen += 1;
            let last_name = *seen >= stat.nlink() || stat.is_dir();
            let bytes = if last_name {
                stat.blocks() * STAT_BLOCK
            } else {
                0
            };
            Ok(Victim { path, bytes })
        };
        paths.into_iter().map(look).collect()
    }

    /// Opens it for cutting, and gives its length.
    pub(super) fn open(&self) -> Result<(File, u64), Failed> {
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&self.path)
            .map_err(|error| ("open it", error))?;
        let stat = file.metadata().map_err(|error| ("look at it", error))?;
        Ok((file, stat.len()))
    }

    /// Allocated bytes in so many of its bytes: blocks are taken as spread
    /// evenly over the file.
    pub(super) fn allocated_in(&self, bytes: u64, of_len: u64) -> u64 {
        let share = u128::from(self.bytes) * u128::from(bytes) / u128::from(of_len.max(1));
        (share as u64).min(self.bytes)
    }
}

/// The failed call, as the words after "can't", and its error.
pub(super) type Failed = (&'static str, std::io::Error);
