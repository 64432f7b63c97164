//! The discards of a deletion, from where the files lie.

use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use linux::files::{self, Caching, FileError, FileExtent};
use linux::trim::FreeSpace;
use record::units::names::shown;
use ssd::Card;
use storage::stack::Stack;

use super::{Cuts, Forecast, Most, count, extents, joined};

/// Why a deletion can't be forecast.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum DeletionError {
    #[error(
        "cannot examine {}: {source}; name files and directories that you may read",
        shown(path)
    )]
    Path { path: PathBuf, source: io::Error },
    #[error(transparent)]
    File(#[from] FileError),
    #[error(
        "{} is on another file system than {}; name paths of one",
        shown(other),
        shown(first)
    )]
    TwoSystems { first: PathBuf, other: PathBuf },
}

/// Forecasts the deletion of files and whole directories of the file system of a stack. A file
/// with names elsewhere frees nothing, nor do extents that are shared with other files.
///
/// # Errors
/// When a path can't be read or is on another file system than the first.
pub fn if_deleted(
    paths: &[PathBuf],
    stack: &Stack,
    card: Option<&Card>,
) -> Result<Forecast, DeletionError> {
    let Some(first) = paths.first() else {
        return Ok(Forecast::default());
    };
    let device = metadata(first)?.dev();
    let mut walk = Walk {
        device,
        seen: HashMap::new(),
        files: Vec::new(),
    };
    for path in paths {
        if metadata(path)?.dev() != device {
            return Err(DeletionError::TwoSystems {
                first: first.clone(),
                other: path.clone(),
            });
        }
        walk.add(path)?;
    }
    let fs = stack.file_system.as_ref();
    let skips_unwritten = fs.is_some_and(|fs| fs.rules().skips_unwritten());
    let cuts = Cuts::of(stack, fs.map(|fs| fs.sends).unwrap_or_default());
    // Without a journal each call that unlinks sends its own discards.
    let by_file = fs.is_some_and(|fs| fs.rules().is_ext() && !fs.journal);
    let mut found: Vec<Vec<Range<u64>>> = Vec::new();
    let mut unwritten_bytes = 0;
    for path in &walk.files {
        let file = files::open_read(path, Caching::Buffered)?;
        let mut extents = files::extents_within(&file, 0, u64::MAX)?;
        // Data that are still to be written have no place yet.
        if extents
            .iter()
            .any(|extent| !extent.on_disk && !extent.inline)
        {
            let failed = |source: rustix::io::Errno| DeletionError::Path {
                path: path.clone(),
                source: source.into(),
            };
            rustix::fs::fdatasync(&file).map_err(failed)?;
            extents = files::extents_within(&file, 0, u64::MAX)?;
        }
        let freed = extents
            .iter()
            .filter(|extent| extent.on_disk && !extent.shared);
        let (unsent, freed): (Vec<&FileExtent>, Vec<_>) =
            freed.partition(|extent| extent.unwritten && skips_unwritten);
        unwritten_bytes += unsent.iter().map(|extent| extent.length).sum::<u64>();
        let range = |extent: &FileExtent| extent.physical..extent.physical + extent.length;
        found.push(freed.into_iter().map(range).collect());
    }
    let kernel = linux::host::kernel_version();
    let again = fs.is_some_and(|fs| fs.rules().discards_again(kernel, fs.journal));
    // Where free space is discarded again, neighbours are one if the same commit frees them.
    let together = requests(found.clone(), by_file);
    let usual = count(together.clone(), cuts, card);
    let (mut sent, mut most) = (usual.clone(), None);
    if again {
        let free = free_behind(first, &together).unwrap_or_default();
        let free = joined(sorted([free, found.concat()].concat()));
        let reach = |ranges: Vec<Range<u64>>| {
            let ranges = ranges.into_iter();
            let ranges = ranges.map(|range| reaching(range, &free, cuts.group));
            count(ranges, cuts, card)
        };
        sent = reach(together);
        let apart = reach(requests(found, true));
        most = (apart.commands > sent.commands).then(|| Most {
            commands: apart.commands,
            again_bytes: apart.bytes.saturating_sub(usual.bytes),
            stall_s: apart.time.map(|cost| cost.stall_s),
        });
    }
    let kept_files = (walk.seen.len() - walk.files.len()) as u64;
    Ok(Forecast {
        bytes: usual.bytes,
        again_bytes: sent.bytes.saturating_sub(usual.bytes),
        most,
        unwritten_bytes,
        kept_files,
        ..sent
    })
}

/// Joins neighbours among the ranges of all files, or, if `by_file`, among those of each.
fn requests(mut files: Vec<Vec<Range<u64>>>, by_file: bool) -> Vec<Range<u64>> {
    if !by_file {
        files = vec![files.concat()];
    }
    let in_order = |ranges| joined(sorted(ranges));
    files.into_iter().flat_map(in_order).collect()
}

fn sorted(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    ranges
}

/// The free extents of a file system from the first of some ranges on, as far as it tells.
fn free_behind(path: &Path, ranges: &[Range<u64>]) -> Option<Vec<Range<u64>>> {
    let first = ranges.iter().map(|range| range.start).min()?;
    let free = FreeSpace::open(&File::open(path).ok()?)?;
    extents(free, &(first..u64::MAX)).ok()
}

/// A range that goes on to the end of the free space behind it in its block group. `free`: joined,
/// with the range in it.
fn reaching(range: Range<u64>, free: &[Range<u64>], group: Option<u64>) -> Range<u64> {
    let behind = free.partition_point(|free| free.end < range.end);
    let group = group.map_or(u64::MAX, |group| range.end.next_multiple_of(group));
    let end = free.get(behind).map_or(range.end, |free| free.end);
    range.start..end.min(group).max(range.end)
}

fn metadata(path: &Path) -> Result<Metadata, DeletionError> {
    fs::symlink_metadata(path).map_err(|source| DeletionError::Path {
        path: path.to_owned(),
        source,
    })
}

/// The regular files whose last names are among those deleted.
struct Walk {
    device: u64,
    /// How many names of a file were met.
    seen: HashMap<u64, u64>,
    files: Vec<PathBuf>,
}

impl Walk {
    fn add(&mut self, top: &Path) -> Result<(), DeletionError> {
        let mut left = vec![top.to_owned()];
        while let Some(path) = left.pop() {
            let found = metadata(&path)?;
            // What is mounted inside is not deleted.
            if found.dev() != self.device {
                continue;
            }
            if found.is_dir() {
                let failed = |source| DeletionError::Path {
                    path: path.clone(),
                    source,
                };
                for entry in fs::read_dir(&path).map_err(failed)? {
                    left.push(entry.map_err(failed)?.path());
                }
            } else if found.is_file() {
                let seen = self.seen.entry(found.ino()).or_default();
                *seen += 1;
                if *seen == found.nlink() {
                    self.files.push(path);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_counts_once_its_last_name_is_deleted() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("d")).unwrap();
        fs::write(at("d/one"), [1; 9000]).unwrap();
        fs::hard_link(at("d/one"), at("d/two")).unwrap();
        fs::write(at("d/kept"), [1; 9000]).unwrap();
        fs::hard_link(at("d/kept"), at("outside")).unwrap();
        std::os::unix::fs::symlink("/", at("d/link")).unwrap();
        let device = metadata(root.path()).unwrap().dev();
        let mut walk = Walk {
            device,
            seen: HashMap::new(),
            files: Vec::new(),
        };
        walk.add(&at("d")).unwrap();
        assert_eq!(walk.files.len(), 1, "{:?}", walk.files);
        walk.add(&at("outside")).unwrap();
        assert_eq!(walk.files.len(), 2);
    }

    #[test]
    fn each_file_sends_its_own_discards_where_there_is_no_journal() {
        let files = || vec![vec![8..12, 0..4], vec![4..8], vec![]];
        assert_eq!(requests(files(), false), vec![0..12]);
        assert_eq!(requests(files(), true), [0..4, 8..12, 4..8]);
    }

    #[test]
    fn a_discard_goes_on_to_the_next_used_block_of_its_group() {
        let reached = |range| reaching(range, &[0..30, 40..120], Some(100));
        assert_eq!(reached(10..12), 10..30);
        assert_eq!(reached(29..30), 29..30);
        assert_eq!(reached(50..60), 50..100);
        // The rest of the group behind is reached by the part that lies there.
        assert_eq!(reached(90..100), 90..100);
        assert_eq!(reached(90..110), 90..120);
        // Where nothing is known to be free.
        assert_eq!(reaching(130..140, &[], Some(100)), 130..140);
    }

    #[test]
    fn paths_of_two_file_systems_and_missing_ones_are_refused() {
        let stack = Stack::unknown(Path::new("/"));
        let refused = |paths: &[&str]| {
            let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
            if_deleted(&paths, &stack, None).unwrap_err().to_string()
        };
        assert!(refused(&["/proc/version", "/dev/null"]).contains("another file system"));
        assert!(refused(&["/no/such"]).contains("/no/such"));
        assert_eq!(if_deleted(&[], &stack, None).unwrap(), Forecast::default());
    }
}
