//! Stores the data: sparse, in memory or in a file.
//!
//! The kernel's own sparse files do the work (a `memfd`, or a file that the user names). They keep
//! all that was written, give back all that was punched out, and need no lock of ours. Two kinds of
//! ranges lie over the file: space that was mapped beforehand and holds a pattern, and space that
//! was discarded and isn't punched out yet.
//!
//! A discard is answered at the *model's* time, while freeing 128 MiB of pages takes milliseconds.
//! So a thread of its own punches them out afterwards.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rustix::fs::{
    FlockOperation, MemfdFlags, SeekFrom, XattrFlags, flock, fsetxattr, getxattr, memfd_create,
    seek,
};
use rustix::io::Errno;
use ssd::extents::Extents;

mod pattern;
mod sweep;
#[cfg(test)]
mod tests;
mod undo;

use pattern::pattern;
pub(crate) use sweep::punch;
use undo::{BLOCK, Undo};

/// The name of a store in memory, where the kernel lists open files.
pub(crate) const NAME: &str = "trimbench-lab";

/// The data of one drive.
#[derive(Debug)]
pub(crate) struct Store {
    file: File,
    size: u64,
    /// Most bytes that may be allocated; `None`: as many as there are, which
    /// no write needs to be counted for.
    limit: Option<u64>,
    /// About how many bytes are allocated; asked anew when it nears the limit.
    allocated: AtomicU64,
    /// Writes that there was no room for.
    refused: AtomicU64,
    over: Mutex<Overlay>,
    /// Whether `over` holds anything; otherwise no thread needs its lock.
    overlaid: AtomicBool,
    work: Condvar,
    /// `punching` is over.
    punched: Condvar,
    /// Of a drive with a volatile cache: what a power cut takes back.
    undo: Option<Mutex<Undo>>,
}

/// The ranges that lie over the file. The two kinds never overlap.
#[derive(Debug, Default)]
struct Overlay {
    /// Mapped beforehand and not touched since: reads as [`pattern`].
    patterned: Extents,
    /// Reads as zeros; to be punched out.
    freed: Extents,
    /// The part of `freed` that is being punched out now, and must not be written.
    punching: Option<Range<u64>>,
    closed: bool,
}

/// The ranges that lay over a part of the file.
#[derive(Debug, Default)]
struct Covers {
    patterned: Vec<Range<u64>>,
    freed: Vec<Range<u64>>,
}

impl Store {
    /// Makes a store of `size` bytes in memory, or in `file`, which is made if it doesn't exist.
    /// `limit`: the most bytes that it may take. `volatile`: whether a power cut takes back all
    /// that wasn't flushed.
    ///
    /// # Errors
    /// The system's error, or another drive's data in the file.
    pub(crate) fn new(
        file: Option<(&Path, Content)>,
        size: u64,
        limit: u64,
        volatile: bool,
    ) -> io::Result<Store> {
        let file = match file {
            Some((path, content)) => open_file(path, content)?,
            None => File::from(memfd_create(NAME, MemfdFlags::CLOEXEC)?),
        };
        file.set_len(size)?;
        Ok(Store {
            file,
            size,
            limit: (limit < size).then_some(limit),
            allocated: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            over: Mutex::default(),
            overlaid: AtomicBool::new(false),
            work: Condvar::new(),
            punched: Condvar::new(),
            undo: volatile.then(Mutex::default),
        })
    }

    /// Ranges that hold data, of a file that was kept.
    pub(crate) fn data(&self) -> io::Result<Vec<Range<u64>>> {
        let mut ranges = Vec::new();
        let mut at = 0;
        while at < self.size {
            at = match seek(&self.file, SeekFrom::Data(at)) {
                Ok(data) => data,
                Err(Errno::NXIO) => break,
                Err(error) => return Err(error.into()),
            };
            let end = seek(&self.file, SeekFrom::Hole(at))?.min(self.size);
            ranges.push(at..end);
            at = end;
        }
        Ok(ranges)
    }

    /// Makes a range read as the pattern until it is written or discarded.
    pub(crate) fn premap(&self, range: Range<u64>) {
        let mut over = self.lock();
        over.freed.remove(range.clone());
        over.patterned.insert(range);
        self.overlaid.store(true, Ordering::Release);
    }

    /// Reads a range that begins at `at`.
    pub(crate) fn read(&self, at: u64, into: &mut [u8]) -> io::Result<()> {
        let range = at..at + into.len() as u64;
        if !self.overlaid.load(Ordering::Acquire) {
            return self.file.read_exact_at(into, at);
        }
        // Before the read: what is punched out after this reads as zeros in
        // either case, and whoever writes meanwhile has no claim to be read.
        let over = self.lock();
        let whole = over.patterned.covers(range.clone());
        let freed: Vec<_> = over.freed.within(range.clone()).collect();
        let patterned: Vec<_> = over.patterned.within(range).collect();
        drop(over);
        let place = |part: &Range<u64>| (part.start - at) as usize..(part.end - at) as usize;
        if !whole {
            self.file.read_exact_at(into, at)?;
        }
        for part in &freed {
            into[place(part)].fill(0);
        }
        for part in &patterned {
            pattern(part.start, &mut into[place(part)]);
        }
        Ok(())
    }

    /// Bytes of the drive.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Writes a range that begins at `at`.
    ///
    /// # Errors
    /// `ENOSPC` where the store's limit is reached; otherwise the file's error.
    pub(crate) fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        let range = at..at + data.len() as u64;
        self.make_room(&range)?;
        // Held until the data are there, so that nobody keeps half of them.
        let _undo = match &self.undo {
            Some(undo) => Some(self.keep_earlier(undo, &range)?),
            None => None,
        };
        let covers = self.uncover(&range);
        let written = self.file.write_all_at(data, at);
        if let Err(error) = &written {
            self.cover_again(covers);
            if matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::OutOfMemory
            ) {
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
        written
    }

    /// Makes a range read as zeros; its memory or disk space is freed soon. The part behind the
    /// drive's end is left out.
    pub(crate) fn free(&self, range: Range<u64>) {
        let range = range.start..range.end.min(self.size);
        if let Some(undo) = &self.undo {
            lock(undo).forget(&range);
        }
        let mut over = self.lock();
        over.patterned.remove(range.clone());
        over.freed.insert(range);
        self.overlaid.store(true, Ordering::Release);
        drop(over);
        self.work.notify_one();
    }

    /// A flush begins; the number is for [`Store::flushed`].
    pub(crate) fn begin_flush(&self) -> u64 {
        let undo = self.undo.as_ref();
        undo.map_or(0, |undo| lock(undo).begin_flush())
    }

    /// A flush is done; `false`: it isn't, for the power was cut since it began.
    pub(crate) fn flushed(&self, flush: u64) -> bool {
        let undo = self.undo.as_ref();
        undo.is_none_or(|undo| lock(undo).flushed(flush))
    }

    /// Takes back every write that no flush covers, if the cache is volatile.
    pub(crate) fn cut_power(&self) -> io::Result<()> {
        let Some(undo) = &self.undo else {
            return Ok(());
        };
        let mut undo = lock(undo);
        for (block, data) in undo.cut() {
            let range = block..block + data.len() as u64;
            self.uncover(&range);
            self.file.write_all_at(&data, block)?;
        }
        self.count()?;
        Ok(())
    }

    /// Keeps what a write is about to overwrite.
    fn keep_earlier<'a>(
        &self,
        undo: &'a Mutex<Undo>,
        range: &Range<u64>,
    ) -> io::Result<MutexGuard<'a, Undo>> {
        let mut undo = lock(undo);
        for block in undo.wanted(range) {
            let mut data = [0; BLOCK as usize];
            self.read(block, &mut data)?;
            undo.keep(block, &data);
        }
        Ok(undo)
    }

    fn lock(&self) -> MutexGuard<'_, Overlay> {
        lock(&self.over)
    }

    /// Removes all that lies over the range, before a write. Returns it.
    fn uncover(&self, range: &Range<u64>) -> Covers {
        if !self.overlaid.load(Ordering::Acquire) {
            return Covers::default();
        }
        let mut over = self.lock();
        while over
            .punching
            .as_ref()
            .is_some_and(|piece| piece.start < range.end && range.start < piece.end)
        {
            let waited = self.punched.wait(over);
            over = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let covers = Covers {
            patterned: over.patterned.within(range.clone()).collect(),
            freed: over.freed.within(range.clone()).collect(),
        };
        over.freed.remove(range.clone());
        over.patterned.remove(range.clone());
        covers
    }

    /// After a write that failed: what was discarded doesn't come back with it.
    fn cover_again(&self, covers: Covers) {
        let mut over = self.lock();
        over.patterned.extend(covers.patterned);
        over.freed.extend(covers.freed);
        self.overlaid.store(true, Ordering::Release);
        drop(over);
        self.work.notify_one();
    }
}

/// The handling of a file's earlier contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Empty,
    Keep,
}

/// The attribute of a file that says that it holds a drive's data.
const OURS: &str = "user.trimbench.lab";

/// Returns whether a file holds something that isn't a drive's data. Where the file system has no
/// extended attributes, that can't be found out, and the contents count as foreign.
pub(crate) fn is_foreign(path: &Path) -> bool {
    let holds = path.metadata().is_ok_and(|found| found.len() > 0);
    let mut value = [0; 16];
    holds && getxattr(path, OURS, &mut value[..]).is_err()
}

/// Whether a drive has a file as its store now.
pub(crate) fn is_in_use(path: &Path) -> bool {
    let locked = File::open(path).map(|file| flock(&file, FlockOperation::NonBlockingLockShared));
    matches!(locked, Ok(Err(Errno::WOULDBLOCK)))
}

/// Opens a file for this store alone.
fn open_file(path: &Path, content: Content) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|errno| match errno {
        Errno::WOULDBLOCK => io::Error::new(
            io::ErrorKind::ResourceBusy,
            "another drive's data are in it; choose another file",
        ),
        errno => errno.into(),
    })?;
    if content == Content::Empty {
        file.set_len(0)?;
    }
    // Without it the file needs --force the next time.
    let _ = fsetxattr(&file, OURS, b"1", XattrFlags::empty());
    Ok(file)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic ends one answer, not the drive: nothing is left half changed.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
