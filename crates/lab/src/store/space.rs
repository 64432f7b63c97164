//! Accounts for the space that the data take, and for its limit.

use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use super::Store;

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
