//! Giving back what was discarded: a thread's work.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use rustix::fs::{FallocateFlags, fallocate};

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

    /// Punches out a range, which a snapshot may have to copy first; whether it reads as zeros now.
    fn give_back(&self, range: &Range<u64>) -> bool {
        self.preserve(range);
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
