//! A copy under way: of one moment, while the data change.
//!
//! A change of a chunk that isn't copied yet copies it first. So changes wait for one chunk at most,
//! and the copy has the contents of each chunk at the moment when it began.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::{Condvar, Mutex, PoisonError};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use ssd::extents::Extents;

use super::lock;

/// Bytes that are copied at once, and for which a change may have to wait. Stores of tests are small.
const CHUNK: u64 = if cfg!(test) { 4096 } else { 256 << 10 };

/// A copy of a file that changes.
#[derive(Debug)]
pub(crate) struct Copy {
    to: File,
    size: u64,
    progress: Mutex<Progress>,
    /// A chunk is copied.
    copied: Condvar,
}

#[derive(Debug)]
struct Progress {
    /// Not copied yet.
    left: Extents,
    /// Being copied now.
    busy: Vec<Range<u64>>,
    /// The copy's own error, after which nothing is copied any more.
    failed: Option<io::Error>,
}

impl Copy {
    /// A copy into an empty file of this size, of which nothing is copied yet.
    pub(super) fn new(to: File, size: u64) -> Copy {
        Copy {
            to,
            size,
            progress: Mutex::new(Progress {
                left: Extents::from(0..size),
                busy: Vec::new(),
                failed: None,
            }),
            copied: Condvar::new(),
        }
    }

    /// Nothing is to be copied: the file shares the data already.
    pub(super) fn skip_all(&self) {
        lock(&self.progress).left.clear();
    }

    /// Returns when every chunk of a range is copied, or the copy has failed: then the range may
    /// change.
    pub(super) fn preserve(&self, from: &File, range: &Range<u64>) {
        let overlaps = |busy: &Range<u64>| busy.start < range.end && range.start < busy.end;
        let mut progress = lock(&self.progress);
        loop {
            if let Some(left) = progress.left.within(range.clone()).next() {
                let start = left.start - left.start % CHUNK;
                let chunk = start..(start + CHUNK).min(self.size);
                progress.left.remove(chunk.clone());
                progress.busy.push(chunk.clone());
                drop(progress);
                let copied = self.copy(from, &chunk);
                progress = lock(&self.progress);
                progress.busy.retain(|busy| *busy != chunk);
                if let Err(error) = copied {
                    progress.left.clear();
                    progress.failed.get_or_insert(error);
                }
                self.copied.notify_all();
            } else if progress.busy.iter().any(overlaps) {
                let waited = self.copied.wait(progress);
                progress = waited.unwrap_or_else(PoisonError::into_inner);
            } else {
                return;
            }
        }
    }

    /// Copies everything that isn't copied yet.
    ///
    /// # Errors
    /// If a chunk can't be read or written, in whichever thread.
    pub(super) fn finish(&self, from: &File) -> io::Result<()> {
        loop {
            let Some(first) = lock(&self.progress).left.first() else {
                break;
            };
            // What is a hole now was one when the copy began: it is preserved before it changes.
            let data = match seek(from, SeekFrom::Data(first.start)) {
                Ok(data) => data,
                Err(Errno::NXIO) => self.size,
                Err(error) => return Err(error.into()),
            };
            let data = data - data % CHUNK;
            lock(&self.progress).left.remove(first.start..data);
            self.preserve(from, &(data..(data + CHUNK).min(self.size)));
        }
        self.preserve(from, &(0..self.size));
        match lock(&self.progress).failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// The file, once it is whole.
    pub(crate) fn file(&self) -> &File {
        &self.to
    }

    /// Copies a chunk, unless it is a hole.
    fn copy(&self, from: &File, chunk: &Range<u64>) -> io::Result<()> {
        match seek(from, SeekFrom::Data(chunk.start)) {
            Ok(data) if data < chunk.end => {}
            Ok(_) | Err(Errno::NXIO) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let mut buffer = vec![0; (chunk.end - chunk.start) as usize];
        from.read_exact_at(&mut buffer, chunk.start)?;
        self.to.write_all_at(&buffer, chunk.start)
    }
}

// The contents of space that was mapped beforehand.

/// Fills a range that begins at `at`. Every 8 bytes contain their own place, so that a test finds
/// data that moved.
pub(super) fn pattern(at: u64, into: &mut [u8]) {
    // Up to the first whole word: nothing, for sectors begin with one.
    let head = (at.next_multiple_of(8) - at).min(into.len() as u64) as usize;
    let (head, words) = into.split_at_mut(head);
    let skipped = (at % 8) as usize;
    head.copy_from_slice(&word(at)[skipped..skipped + head.len()]);
    let first = at + head.len() as u64;
    for (i, chunk) in words.chunks_mut(8).enumerate() {
        let word = word(first + i as u64 * 8);
        match <&mut [u8; 8]>::try_from(&mut *chunk) {
            Ok(whole) => *whole = word,
            Err(_) => chunk.copy_from_slice(&word[..chunk.len()]),
        }
    }
}

/// The word that a place lies in.
fn word(place: u64) -> [u8; 8] {
    ((place & !7) ^ 0x7472_696d_0000_0000).to_le_bytes() // "trim"
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn file(size: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size).unwrap();
        file
    }

    #[test]
    fn holds_what_each_chunk_held_when_it_began() {
        let size = 16 * CHUNK;
        let from = file(size);
        from.write_all_at(&vec![1; 3 * CHUNK as usize], 2 * CHUNK)
            .unwrap();
        let copy = Copy::new(file(size), size);
        // Written while it is copied: over data, over a hole, over the edge of a chunk.
        thread::scope(|scope| {
            for at in [2 * CHUNK, 9 * CHUNK, 5 * CHUNK - 10] {
                scope.spawn({
                    let (copy, from) = (&copy, &from);
                    move || {
                        copy.preserve(from, &(at..at + 20));
                        from.write_all_at(&[2; 20], at).unwrap();
                    }
                });
            }
            copy.finish(&from).unwrap();
        });
        let mut bytes = vec![9; size as usize];
        copy.file().read_exact_at(&mut bytes, 0).unwrap();
        let ones = 2 * CHUNK as usize..5 * CHUNK as usize;
        assert!((0..size as usize).all(|at| bytes[at] == u8::from(ones.contains(&at))));
    }

    #[test]
    fn a_copy_that_fails_keeps_nobody_waiting() {
        let from = file(4 * CHUNK);
        from.write_all_at(&[1; 10], 0).unwrap();
        // Opened for reading only.
        let to = tempfile::NamedTempFile::new().unwrap();
        let copy = Copy::new(File::open(to.path()).unwrap(), 4 * CHUNK);
        copy.preserve(&from, &(0..10));
        copy.preserve(&from, &(0..4 * CHUNK));
        copy.finish(&from).unwrap_err();
    }

    #[test]
    fn every_byte_depends_on_its_place_alone() {
        for at in 4096..4112 {
            for len in 0..40 {
                let mut bytes = vec![1; len];
                pattern(at, &mut bytes);
                for (place, byte) in (at..).zip(bytes) {
                    assert_eq!(byte, word(place)[(place % 8) as usize], "{at}+{len}");
                }
            }
        }
    }
}
