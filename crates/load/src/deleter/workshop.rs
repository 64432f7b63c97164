//! Parts that the continuous deleters share: a time to end, fresh data to write, files made and
//! dropped, and patience with a full disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

use super::progress::{Call, Progress};
use super::refuse;
use super::victim::STAT_BLOCK;
use crate::error::LoadError;
use crate::fill::incompressible;

/// Bytes per write.
pub(super) const WRITE: u64 = 1 << 20;

/// Waits after a failure: the first, doubled by each that follows, up to the last.
const PATIENCE: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(3)];

/// Of one thread, while it makes and drops.
#[derive(Debug)]
pub(super) struct Workshop<'a> {
    progress: &'a Progress,
    call: Call<'a>,
    until: Instant,
    /// Where in the stream of data the next write is, and the stream's seed.
    at: u64,
    seed: u64,
    buffer: Vec<u8>,
    patience: Duration,
}

impl<'a> Workshop<'a> {
    /// Open for so long from now.
    pub(super) fn new(
        progress: &'a Progress,
        call: Call<'a>,
        run_for: Duration,
        seed: u64,
    ) -> Workshop<'a> {
        let now = Instant::now();
        // What no clock can count to is without end.
        let far = Duration::from_secs(100 * 365 * 86_400);
        Workshop {
            progress,
            call,
            until: now + run_for.min(far),
            at: 0,
            seed,
            buffer: vec![0; WRITE as usize],
            patience: PATIENCE[0],
        }
    }

    /// Whether its time isn't over, and nobody asked it to stop.
    pub(super) fn is_open(&self) -> bool {
        !self.is_stopped() && Instant::now() < self.until
    }

    /// Whether it was asked to stop.
    pub(super) fn is_stopped(&self) -> bool {
        self.progress.stopping()
    }

    /// Sleeps, at most until it closes.
    pub(super) fn pause(&self, length: Duration) {
        let left = self.until.saturating_duration_since(Instant::now());
        self.progress.pause(length.min(left));
    }

    /// Makes a new file: `work` writes it. Gives its allocated bytes.
    ///
    /// `None` when it isn't to be used: the workshop has closed meanwhile, or
    /// something failed, which is counted, and waited for, since a full disk
    /// may have room again. Nothing is left of the file then.
    pub(super) fn make(
        &mut self,
        path: &Path,
        work: impl FnOnce(&mut Self, &File) -> io::Result<()>,
    ) -> Option<u64> {
        let open = || File::options().write(true).create_new(true).open(path);
        let file = match self.call.make(0, open) {
            Ok(file) => file,
            Err(error) => {
                self.failed(path, "create it", &error);
                return None;
            }
        };
        let worked = work(self, &file);
        drop(file);
        // Once it is closed: XFS has space reserved behind what is being written until then.
        let stat = path.symlink_metadata();
        let allocated = stat.map_or(0, |stat| stat.blocks() * STAT_BLOCK);
        match worked {
            Ok(()) if self.is_open() => {
                self.patience = PATIENCE[0];
                return Some(allocated);
            }
            Ok(()) => self.remove(path, allocated),
            Err(error) => {
                self.remove(path, allocated);
                self.failed(path, "write it", &error);
            }
        }
        None
    }

    /// Writes what fits into one write, incompressible data that was never
    /// written before, at `offset` of a file that shall have `len` bytes; gives its end.
    pub(super) fn write(&mut self, file: &File, offset: u64, len: u64) -> io::Result<u64> {
        let bytes = WRITE.min(len - offset);
        let data = &mut self.buffer[..bytes as usize];
        incompressible(self.seed, self.at, data);
        self.at += bytes;
        self.call.make(0, || file.write_all_at(data, offset))?;
        self.progress.add_written(bytes);
        Ok(offset + bytes)
    }

    /// A call that may block and frees nothing.
    pub(super) fn call<T>(&self, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.call.make(0, call)
    }

    /// Unlinks a file, which frees so many bytes.
    pub(super) fn remove(&self, path: &Path, bytes: u64) {
        self.call.unlink(path, bytes);
    }

    /// Counts a failure, and waits before anything else is tried.
    pub(super) fn failed(&mut self, path: &Path, what: &str, error: &io::Error) {
        self.progress.fail(path, what, error);
        self.pause(self.patience);
        self.patience = (self.patience * 2).min(PATIENCE[1]);
    }
}

/// Files of no bytes, or no time to make them in, are refused.
pub(super) fn check(file_bytes: u64, run_for: Duration) -> Result<(), LoadError> {
    if file_bytes == 0 {
        return Err(refuse("files of 0 bytes free nothing: give a file size"));
    }
    if run_for.is_zero() {
        return Err(refuse("it would go on for 0 s: give how long"));
    }
    Ok(())
}
