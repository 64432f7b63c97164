//! Observes how much a guard would catch, by scans that remember the size of each file. Changes
//! nothing.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::GuardOptions;
use super::error::GuardError;
use super::place::open_directory;
use super::scan::{Rules, visit};

/// A pause between two scans, in scans.
const REST: u32 = 10;
const NAP: Duration = Duration::from_millis(100);

/// Files that were deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deleted {
    /// The number of files.
    pub files: u64,
    /// Their allocated bytes when they were last seen.
    pub bytes: u64,
}

/// The space that programs freed below a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Watched {
    /// The length of the watch, in seconds.
    pub seconds: f64,
    /// Deleted files that a guard would have freed.
    pub large: Deleted,
    /// Deleted files that are too small for a guard.
    pub small: Deleted,
    /// Bytes freed by truncation and by holes.
    pub truncated_bytes: u64,
}

/// Watches for a time which space is freed below a directory, or until `stop` is set. It misses a
/// file that was made and deleted between two scans.
///
/// # Errors
/// If the directory can't be opened.
pub fn watch(
    path: &Path,
    options: &GuardOptions,
    length: Duration,
    stop: &AtomicBool,
) -> Result<Watched, GuardError> {
    let directory = open_directory(path)?;
    let stat = rustix::fs::fstat(&directory).map_err(|errno| GuardError::Io {
        action: "examine",
        path: path.into(),
        source: errno.into(),
    })?;
    let rules = Rules {
        min_bytes: options.min_bytes,
        owner: (!options.any_owner).then_some(stat.st_uid),
        device: stat.st_dev,
    };
    let began = Instant::now();
    let goes_on = || !stop.load(Ordering::Relaxed);
    let mut watched = Watched::default();
    let mut before = look(directory.as_fd(), &rules, &goes_on);
    let mut over = false;
    while goes_on() && !over {
        let scan = Instant::now();
        over = began.elapsed() >= length;
        let now = look(directory.as_fd(), &rules, &goes_on);
        if goes_on() {
            compare(&before, &now, &rules, &mut watched);
            before = now;
        }
        let next = Instant::now() + options.scan_every.max(scan.elapsed() * REST);
        while !over && goes_on() && Instant::now() < next && began.elapsed() < length {
            std::thread::sleep(NAP);
        }
    }
    watched.seconds = began.elapsed().as_secs_f64();
    Ok(watched)
}

/// Allocated bytes by inode, and whether the file may have a second name.
type Seen = HashMap<u64, (u64, bool)>;

fn look(directory: BorrowedFd<'_>, rules: &Rules, goes_on: &dyn Fn() -> bool) -> Seen {
    let mut seen = HashMap::new();
    visit(directory, rules.device, goes_on, &mut |at, name| {
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        if let Ok(stat) = rustix::fs::statat(at, name, flags) {
            let bytes = u64::try_from(stat.st_blocks).unwrap_or(0) * 512;
            seen.insert(stat.st_ino, (bytes, rules.of(&stat).is_some()));
        }
    });
    seen
}

/// Adds what was freed between two scans.
fn compare(before: &Seen, now: &Seen, rules: &Rules, watched: &mut Watched) {
    for (inode, &(bytes, may)) in before {
        match now.get(inode) {
            Some(&(left, _)) => watched.truncated_bytes += bytes.saturating_sub(left),
            None => {
                let kind = match may && bytes >= rules.min_bytes {
                    true => &mut watched.large,
                    false => &mut watched.small,
                };
                kind.files += 1;
                kind.bytes += bytes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_freed_is_told_apart() {
        let rules = Rules {
            min_bytes: 100,
            owner: None,
            device: 0,
        };
        let before = HashMap::from([
            (1, (500, true)),
            (2, (50, true)),
            (3, (700, false)),
            (4, (80, true)),
            (5, (90, true)),
        ]);
        let now = HashMap::from([(4, (30, true)), (5, (95, true)), (6, (1000, true))]);
        let mut watched = Watched::default();
        compare(&before, &now, &rules, &mut watched);
        let deleted = |files, bytes| Deleted { files, bytes };
        assert_eq!(watched.large, deleted(1, 500));
        assert_eq!(watched.small, deleted(2, 750));
        assert_eq!(watched.truncated_bytes, 50);
    }
}
