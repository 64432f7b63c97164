//! A file freed on a mount without discards, to be trimmed afterwards.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::path::Path;

use linux::files::{self, FileError};

/// Why a file was not freed.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum FreeError {
    #[error(transparent)]
    Extents(#[from] FileError),
    #[error("{path}: can't remove it: {source}")]
    Remove { path: String, source: io::Error },
}

/// Removes a file, waits for the commit, and tells which bytes of the file system it
/// took, from the first to the last.
///
/// # Errors
/// When the file system doesn't tell, or the file can't be removed.
pub fn free(path: &Path) -> Result<Range<u64>, FreeError> {
    let remove = |source| FreeError::Remove {
        path: path.display().to_string(),
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
    let directory = path.parent().unwrap_or(Path::new("/"));
    files::syncfs(directory)?;
    Ok(first.unwrap_or(0)..last.unwrap_or(0))
}
