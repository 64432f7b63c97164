//! Files freed where unlink(2) alone wouldn't show all that it costs.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use linux::btrfs;
use linux::files::{self, FileError};
use units::names;

/// Commits after the deletion's own, for the block groups that it emptied and for those
/// that were not removed in time; and how long removing them is waited for.
const ROUNDS: usize = 4;
const CLEANING: Duration = Duration::from_millis(50);

/// Why a file was not freed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FreeError {
    #[error(transparent)]
    Extents(#[from] FileError),
    #[error("{path}: can't remove it: {source}")]
    Remove { path: String, source: io::Error },
    #[error("{path}: can't commit it: {source}")]
    Commit { path: String, source: io::Error },
}

/// Removes a file of btrfs, and forces all discards that follow from it.
///
/// btrfs discards block groups that became empty a second time. Without this call that
/// comes up to a minute later, after the measurement.
///
/// # Errors
/// When the file can't be removed, or it isn't btrfs.
pub fn free_with_groups(path: &Path) -> Result<(), FreeError> {
    let parent = parent(path);
    let failed = |source| FreeError::Commit {
        path: names::shown(parent),
        source,
    };
    let directory = File::open(parent).map_err(failed)?;
    // What can't be waited for isn't removed.
    btrfs::sync_and_clean(&directory).map_err(failed)?;
    fs::remove_file(path).map_err(|source| FreeError::Remove {
        path: names::shown(path),
        source,
    })?;
    btrfs::sync_and_clean(&directory).map_err(failed)?;
    for _ in 0..ROUNDS {
        std::thread::sleep(CLEANING);
        btrfs::sync_and_clean(&directory).map_err(failed)?;
    }
    Ok(())
}

/// The directory that a path's last name is in.
fn parent(path: &Path) -> &Path {
    let named = |parent: &&Path| !parent.as_os_str().is_empty();
    path.parent().filter(named).unwrap_or(Path::new("."))
}

/// Removes a file, waits for the commit, and tells which bytes of the file system it
/// took, from the first to the last.
///
/// # Errors
/// When the file system doesn't tell, or the file can't be removed.
pub fn free(path: &Path) -> Result<Range<u64>, FreeError> {
    let remove = |source| FreeError::Remove {
        path: names::shown(path),
        source,
    };
    let file = File::open(path).map_err(remove)?;
    let length = file.metadata().map_err(remove)?.len();
    file.sync_data().map_err(remove)?;
    let mut extents = files::extents_within(&file, 0, length)?;
    extents.retain(|extent| extent.on_disk);
    let first = extents.iter().map(|extent| extent.physical).min();
    let last = extents
        .iter()
        .map(|extent| extent.physical + extent.length)
        .max();
    drop(file);
    fs::remove_file(path).map_err(remove)?;
    files::syncfs(parent(path))?;
    Ok(first.unwrap_or(0)..last.unwrap_or(0))
}
