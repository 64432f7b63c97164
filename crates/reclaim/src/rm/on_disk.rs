//! Finds out how many bytes of a file are really on the disk.
//!
//! `st_blocks` also counts blocks that exist in memory alone: data not yet written, and space that
//! XFS reserves for a file that grows. No discard ever comes for those. They are written or given
//! back within minutes. So of the small files only those that changed lately are asked where their
//! extents are. Even of these only some are asked, because the kernel writes files in the order in
//! which they changed.
//!
//! Nor does a discard come while another process has the file open. `/proc` shows open files, and a
//! lease shows it for the files that are asked anyway.
//!
//! A wrong guess costs time and no data: the volume waits for discards that don't come.

use std::ffi::CStr;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use linux::files::extents_within;
use linux::opened::OpenFiles;
use rustix::fs::{Mode, OFlags, ResolveFlags, Stat};

use super::places::frees;
use crate::directory;
use crate::volume::LARGE;

/// How long after a change a small file may differ from the disk. XFS gives back what it reserved
/// after 300 s (`speculative_prealloc_lifetime`). The kernel writes data after some 35 s
/// (`dirty_expire_centisecs`, and one round of its writer).
const LATELY: Duration = Duration::from_secs(330);

/// Files that changed within so many seconds of each other count as written together.
const TOGETHER_S: i64 = 1;

/// One in this many is asked all the same, because `fsync` writes files in another order.
const ONE_OF: u32 = 64;

/// The list of open files is used for at least this long, and for this many times as long as
/// reading it took.
const LIST_HOLDS: Duration = Duration::from_secs(1);
const LIST_HOLDS_TIMES: u32 = 100;

/// The discards that follow when a name is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExpectedDiscards {
    /// So many bytes, soon after.
    Now(u64),
    /// So many bytes, when another process closes the file: this one, if it is known.
    OnClose(u64, Option<u32>),
}

impl ExpectedDiscards {
    /// Returns the bytes for which discards come when this name is removed.
    pub(super) fn now(self) -> u64 {
        match self {
            ExpectedDiscards::Now(bytes) => bytes,
            ExpectedDiscards::OnClose(..) => 0,
        }
    }
}

/// Finds out how many bytes files hold on the disk, with as few looks as possible.
#[derive(Debug, Default)]
pub(super) struct OnDisk {
    open: Option<(Instant, OpenFiles)>,
    written: Written,
}

impl OnDisk {
    /// Returns the discards to expect of the file `name` in the open directory `at`.
    pub(super) fn of(&mut self, at: BorrowedFd<'_>, name: &CStr, stat: &Stat) -> ExpectedDiscards {
        let bytes = frees(stat);
        if bytes == 0 {
            return ExpectedDiscards::Now(0);
        }
        if let Some(process) = self.open_files().process(stat) {
            return ExpectedDiscards::OnClose(bytes, Some(process));
        }
        if bytes < LARGE && (!is_fresh(stat) || !self.written.must_ask(stat)) {
            return ExpectedDiscards::Now(self.written.guess(stat));
        }
        // A file that may not be read counts with its blocks.
        let Some(file) = open(at, name) else {
            return ExpectedDiscards::Now(bytes);
        };
        // A mapping, a loop device and the like keep it, too.
        if linux::files::open_elsewhere(&file).is_ok_and(|open| open) {
            return ExpectedDiscards::OnClose(bytes, None);
        }
        let Some(found) = extents(&file) else {
            return ExpectedDiscards::Now(bytes);
        };
        match found {
            Found::Inline => self.written.learn_inline(stat),
            Found::OnDisk(found) => self.written.learn(stat, found >= bytes),
        }
        ExpectedDiscards::Now(found.on_disk().min(bytes))
    }

    /// Returns the files that processes have open, as of a moment ago.
    pub(super) fn open_files(&mut self) -> &OpenFiles {
        let now = Instant::now();
        let known = self.open.take().filter(|(until, _)| now < *until);
        let (_, files) = self.open.insert(known.unwrap_or_else(|| {
            let files = OpenFiles::now();
            let took = now.elapsed();
            (now + LIST_HOLDS.max(took * LIST_HOLDS_TIMES), files)
        }));
        files
    }
}

/// Which of the files that changed lately are on the disk, by when they changed.
#[derive(Debug, Default)]
struct Written {
    /// The file system that this holds for.
    device: u64,
    /// The latest change of a file that is.
    until: Option<i64>,
    /// The earliest change of one that isn't.
    not_from: Option<i64>,
    /// Files that were not asked since the last that was.
    skipped: u32,
    /// The longest file whose data had no place of their own, in bytes.
    inline: i64,
}

impl Written {
    /// Whether a file must be asked; otherwise it counts as on the disk.
    fn must_ask(&mut self, stat: &Stat) -> bool {
        if self.device != stat.st_dev {
            *self = Written {
                device: stat.st_dev,
                ..Written::default()
            };
        }
        let is_known = self
            .until
            .is_some_and(|until| stat.st_ctime <= until + TOGETHER_S)
            && self.not_from.is_none_or(|from| stat.st_ctime < from);
        self.skipped += 1;
        let asks = !is_known || self.skipped >= ONE_OF;
        if asks {
            self.skipped = 0;
        }
        asks
    }

    /// Returns the bytes on the disk that a file is estimated to hold without asking it.
    fn guess(&self, stat: &Stat) -> u64 {
        match self.device == stat.st_dev && stat.st_size <= self.inline {
            true => 0,
            false => frees(stat),
        }
    }

    /// Learns that the data of a file lie in the inode or in a tree (btrfs, up to 2 KiB). No
    /// discard comes for them, written or not. That shows nothing about other files.
    fn learn_inline(&mut self, stat: &Stat) {
        self.inline = self.inline.max(stat.st_size);
    }

    /// Learns whether a file is wholly on the disk.
    fn learn(&mut self, stat: &Stat, whole: bool) {
        let changed = stat.st_ctime;
        match whole {
            true => self.until = self.until.max(Some(changed)),
            false => {
                let from = self.not_from.map_or(changed, |from| from.min(changed));
                self.not_from = Some(from);
            }
        }
    }
}

/// Returns how many of the `bytes` that a file holds are on the disk: all where that is unknown.
pub(super) fn of_name(at: BorrowedFd<'_>, name: &CStr, bytes: u64) -> u64 {
    open(at, name).map_or(bytes, |file| of_file(&file, bytes))
}

/// As [`of_name`], of an open file.
pub(super) fn of_file(file: &File, bytes: u64) -> u64 {
    extents(file).map_or(bytes, |found| found.on_disk().min(bytes))
}

fn open(at: BorrowedFd<'_>, name: &CStr) -> Option<File> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    let file = rustix::fs::openat2(at, name, flags, Mode::empty(), resolve).ok()?;
    Some(File::from(file))
}

/// Returns whether a file changed lately, by its ctime, which no program can set.
fn is_fresh(stat: &Stat) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let changed = Duration::from_secs(u64::try_from(stat.st_ctime).unwrap_or(0));
    now.is_ok_and(|now| now.saturating_sub(changed) < LATELY)
}

/// The extents of a file, as far as discards come for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// All its data lie in the inode or in the file system's tree.
    Inline,
    /// So many bytes of it have a place on the disk that no other file has.
    OnDisk(u64),
}

impl Found {
    fn on_disk(self) -> u64 {
        match self {
            Found::Inline => 0,
            Found::OnDisk(bytes) => bytes,
        }
    }
}

fn extents(file: &File) -> Option<Found> {
    // The kernel refuses offsets that no file can have.
    let extents = extents_within(file, 0, i64::MAX as u64).ok()?;
    if !extents.is_empty() && extents.iter().all(|extent| extent.inline) {
        return Some(Found::Inline);
    }
    // XFS sends none for what was never written.
    let skips = extents.iter().any(|extent| extent.unwritten)
        && directory::kind(file) == Some(directory::XFS);
    let owned = extents
        .iter()
        .filter(|e| e.on_disk && !e.shared && !(skips && e.unwritten));
    Some(Found::OnDisk(owned.map(|extent| extent.length).sum()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that was changed at that second.
    fn changed(second: i64) -> Stat {
        let directory = tempfile::tempdir().unwrap();
        let mut stat = rustix::fs::stat(directory.path()).unwrap();
        stat.st_ctime = second;
        stat
    }

    #[test]
    fn one_file_in_many_is_asked_where_all_are_written() {
        let mut written = Written::default();
        let mut asked = 0;
        for number in 0..1000 {
            // Ten seconds of files.
            let stat = changed(number / 100);
            if written.must_ask(&stat) {
                asked += 1;
                written.learn(&stat, true);
            }
        }
        assert!((10..=30).contains(&asked), "{asked}");
    }

    #[test]
    fn every_file_is_asked_that_changed_after_one_that_is_not_written() {
        let mut written = Written::default();
        for (second, whole) in [(10, true), (30, false)] {
            assert!(written.must_ask(&changed(second)), "{second}");
            written.learn(&changed(second), whole);
        }
        for (second, asks) in [(9, false), (11, false), (20, true), (30, true), (40, true)] {
            assert_eq!(written.must_ask(&changed(second)), asks, "{second}");
        }
        // A later file that somebody has synced tells nothing of those before it.
        written.learn(&changed(40), true);
        assert!(written.must_ask(&changed(35)));
        assert!(!written.must_ask(&changed(20)));
    }

    #[test]
    fn a_file_within_the_tree_makes_no_other_be_asked() {
        let mut written = Written::default();
        let sized = |second, bytes| {
            let mut stat = changed(second);
            (stat.st_mode, stat.st_nlink) = (0o100_644, 1);
            (stat.st_size, stat.st_blocks) = (bytes, 8);
            stat
        };
        // On one device, as all of `changed` are.
        let (short, long) = (sized(10, 900), sized(10, 3000));
        assert!(written.must_ask(&short));
        written.learn_inline(&short);
        assert!(
            written.must_ask(&long),
            "nothing is known of those on the disk"
        );
        written.learn(&long, true);
        assert!(!written.must_ask(&long));
        assert_eq!((written.guess(&short), written.guess(&long)), (0, 4096));
        let mut elsewhere = short;
        elsewhere.st_dev = !0;
        assert_eq!(written.guess(&elsewhere), 4096);
    }
}
