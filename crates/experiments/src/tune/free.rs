//! Files freed where unlink(2) alone wouldn't show all that it costs.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use linux::btrfs;
use linux::files;
use record::units::names;

use crate::Error;

/// Commits after the deletion's own, for the block groups that it emptied and for those
/// that were not removed in time; and how long removing them is waited for.
const ROUNDS: usize = 4;
const CLEANING: Duration = Duration::from_millis(50);

/// Removes a file of btrfs, and forces all discards that follow from it.
///
/// btrfs discards block groups that became empty a second time. Without this call that
/// comes up to a minute later, after the measurement.
///
/// # Errors
/// When the file can't be removed, or it isn't btrfs.
pub fn free_with_groups(path: &Path) -> Result<(), Error> {
    let parent = files::directory_of(path);
    let failed = failed("commit", parent);
    let directory = File::open(parent).map_err(&failed)?;
    // What can't be waited for isn't removed.
    btrfs::sync_and_clean(&directory).map_err(&failed)?;
    fs::remove_file(path).map_err(self::failed("remove", path))?;
    btrfs::sync_and_clean(&directory).map_err(&failed)?;
    for _ in 0..ROUNDS {
        std::thread::sleep(CLEANING);
        btrfs::sync_and_clean(&directory).map_err(&failed)?;
    }
    Ok(())
}

/// Why a file was not freed: what could not be done, and with what.
fn failed(what: &str, path: &Path) -> impl Fn(io::Error) -> Error {
    Error::of(format!("{}: can't {what} it", names::shown(path)))
}

/// Removes a file, waits for the commit, and tells which bytes of the file system it
/// took, from the first to the last.
///
/// # Errors
/// When the file system doesn't tell, or the file can't be removed.
pub fn free(path: &Path) -> Result<Range<u64>, Error> {
    let failed = failed("remove", path);
    let file = File::open(path).map_err(&failed)?;
    let length = file.metadata().map_err(&failed)?.len();
    file.sync_data().map_err(&failed)?;
    let mut extents = files::extents_within(&file, 0, length).map_err(Error::failed)?;
    extents.retain(|extent| extent.on_disk);
    let first = extents.iter().map(|extent| extent.physical).min();
    let last = extents
        .iter()
        .map(|extent| extent.physical + extent.length)
        .max();
    drop(file);
    fs::remove_file(path).map_err(&failed)?;
    files::syncfs(files::directory_of(path)).map_err(Error::failed)?;
    Ok(first.unwrap_or(0)..last.unwrap_or(0))
}
