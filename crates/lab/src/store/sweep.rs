//! Giving back what was discarded: a thread's work.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, seek};
use rustix::io::Errno;

use super::Store;

/// The most that is punched out at once: who writes there waits meanwhile, and
/// so may the thread that keeps the drive's time.
const PIECE: u64 = 1 << 20;

impl Store {
    /// Punches out what was freed, until [`Store::close`]: a thread's work.
    pub(crate) fn sweep(&self) {
        let mut over = self.lock();
        while !over.closed {
            let Some(first) = over.freed.first() else {
                // Only the pattern still needs looking at.
                self.overlaid
                    .store(!over.patterned.is_empty(), Ordering::Release);
                over = self.work.wait(over).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let piece = first.start..first.end.min(first.start + PIECE);
            over.punching = Some(piece.clone());
            drop(over);
            let done = self.give_back(&piece);
            over = self.lock();
            over.punching = None;
            self.punched.notify_all();
            if done {
                over.freed.remove(piece);
                // Who waited for the piece goes on, and whoever needs this processor: else
                // the drive's time is kept up to 4 ms late, and reads wait as long.
                drop(over);
                std::thread::yield_now();
                over = self.lock();
            } else {
                // A store that can do neither keeps reading as zeros.
                over = self.work.wait(over).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Punches out all that was freed and isn't yet, before the file is left to others.
    pub(crate) fn finish(&self) {
        let mut over = self.lock();
        while let Some(first) = over.freed.first() {
            let done = self.give_back(&first);
            over.freed.remove(first);
            if !done {
                return;
            }
        }
    }

    /// Ends [`Store::sweep`].
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.work.notify_all();
    }

    /// Punches out a range; whether it reads as zeros now.
    fn give_back(&self, range: &Range<u64>) -> bool {
        punch(&self.file, range).is_ok() || self.overwrite_with_zeros(range).is_ok()
    }

    fn overwrite_with_zeros(&self, range: &Range<u64>) -> io::Result<()> {
        let zeros = [0; 1 << 16];
        let mut at = range.start;
        while at < range.end {
            let len = (range.end - at).min(zeros.len() as u64);
            self.file.write_all_at(&zeros[..len as usize], at)?;
            at += len;
        }
        Ok(())
    }
}

/// Makes a range of a file read as zeros and take no space.
pub(crate) fn punch(file: &File, range: &Range<u64>) -> rustix::io::Result<()> {
    fallocate(
        file,
        FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        range.start,
        range.end - range.start,
    )
}

// Accounts for the space that the data take, and for its limit.

const PAGE: u64 = 4096;

/// How long freed space may take to be had again.
const FREEING: Duration = Duration::from_secs(5);

impl Store {
    /// Bytes of memory or disk space it takes now.
    pub(crate) fn allocated(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * 512)
    }

    /// Writes that failed because the store was full.
    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Whether a range may be written: it is there already, or there is room.
    pub(super) fn make_room(&self, range: &Range<u64>) -> io::Result<()> {
        let Some(limit) = self.limit else {
            return Ok(());
        };
        let len = in_pages(range);
        if self.allocated.fetch_add(len, Ordering::Relaxed) + len <= limit {
            return Ok(());
        }
        // The counter counts overwriting too, and nothing that was freed.
        let now = self.count()?;
        if now + len <= limit
            || self.is_allocated(range)
            || self.is_freed(limit.saturating_sub(len))?
        {
            self.allocated.fetch_add(len, Ordering::Relaxed);
            return Ok(());
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(Errno::NOSPC.into())
    }

    /// Waits until discarded space is given back, as long as more than `most` is allocated: a drive
    /// that has acknowledged a discard has that space.
    fn is_freed(&self, most: u64) -> io::Result<bool> {
        let began = Instant::now();
        let mut over = self.lock();
        loop {
            // Also what was given back before this had the lock.
            if self.count()? <= most {
                return Ok(true);
            }
            let patience = FREEING.saturating_sub(began.elapsed());
            if over.freed.is_empty() || patience.is_zero() {
                return Ok(false);
            }
            let waited = self.punched.wait_timeout(over, patience);
            over = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Asks how much is allocated, and remembers that.
    pub(super) fn count(&self) -> io::Result<u64> {
        let now = self.allocated()?;
        self.allocated.store(now, Ordering::Relaxed);
        Ok(now)
    }

    fn is_allocated(&self, range: &Range<u64>) -> bool {
        let hole = seek(&self.file, SeekFrom::Hole(range.start));
        hole.is_ok_and(|hole| hole >= range.end)
    }
}

/// Returns the most bytes that a range can take: every page that it touches.
fn in_pages(range: &Range<u64>) -> u64 {
    range.end.next_multiple_of(PAGE) - range.start / PAGE * PAGE
}
