//! Writing the data: a few threads, each with a mebibyte in flight.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::data::incompressible;
use super::layout::Layout;
use super::{FillSpec, Shared, no_space};
use crate::error::LoadError;
use crate::ring::Area;

/// Bytes per write, and writes in flight: together more than a drive needs to be busy.
const CHUNK: u64 = 1 << 20;
const THREADS: usize = 4;

/// Direct I/O's lengths are a multiple of this on any device of today.
const ALIGNMENT: u64 = 4096;

/// Writes all of the layout's data, or stops; gives notes.
pub(super) fn all(
    spec: &FillSpec,
    layout: &Layout,
    shared: &Shared,
) -> Result<Vec<String>, LoadError> {
    let mut notes = Vec::new();
    let direct = spec.direct.then(|| open_direct(spec)).and_then(|opened| {
        let note =
            |error| format!("written through the page cache: direct I/O isn't possible ({error})");
        opened.map_err(|error| notes.push(note(error))).ok()
    });
    let work = Work {
        spec,
        layout,
        shared,
        direct,
        next: AtomicU64::new(0),
        failed: AtomicBool::new(false),
    };
    let results: Vec<io::Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| work.run())).collect();
        let panicked = || Err(io::Error::other("a writing thread panicked"));
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| panicked()))
            .collect()
    });
    for result in results {
        result.map_err(|error| match error.raw_os_error() {
            Some(libc::ENOSPC) => no_space(spec, shared.written()),
            _ => LoadError::file(&spec.path, "write to it")(error),
        })?;
    }
    Ok(notes)
}

struct Work<'a> {
    spec: &'a FillSpec,
    layout: &'a Layout,
    shared: &'a Shared,
    direct: Option<File>,
    /// First byte of data that nobody has taken.
    next: AtomicU64,
    failed: AtomicBool,
}

impl Work<'_> {
    fn run(&self) -> io::Result<()> {
        let memory = Area::new(CHUNK as usize)?;
        // SAFETY: just made, and used by this thread alone.
        let buffer = unsafe { memory.bytes_mut(0, CHUNK as usize) };
        while !self.shared.stopping() && !self.failed.load(Ordering::Relaxed) {
            let start = self.next.fetch_add(CHUNK, Ordering::Relaxed);
            if start >= self.spec.len {
                return Ok(());
            }
            incompressible(self.spec.seed, start, buffer);
            let mut taken = 0;
            for stretch in self.layout.stretches(start..start + CHUNK) {
                let len = stretch.len as usize;
                if let Err(error) = self.write(buffer, taken..taken + len, stretch.offset) {
                    self.failed.store(true, Ordering::Relaxed);
                    return Err(error);
                }
                taken += len;
                self.shared
                    .written_bytes
                    .fetch_add(stretch.len, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn write(&self, buffer: &[u8], part: std::ops::Range<usize>, offset: u64) -> io::Result<()> {
        if let Some(direct) = &self.direct {
            // The end of the file may be inside of a block: the whole block is
            // written, and the file cut afterwards.
            let end = part.end.next_multiple_of(ALIGNMENT as usize);
            match direct.write_all_at(&buffer[part.start..end.min(buffer.len())], offset) {
                // A device with larger blocks, or a stretch that isn't aligned.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                done => return done,
            }
        }
        self.spec.file.write_all_at(&buffer[part], offset)
    }
}

/// The same file once more, past the page cache.
fn open_direct(spec: &FillSpec) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(format!("/proc/self/fd/{}", spec.file.as_raw_fd()))
}
