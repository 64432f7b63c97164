//! `overwrite-fsync`, `overwrite-fdatasync`: what a database does with its pages.
//!
//! A random block of a file that was written before is overwritten and made
//! durable; one operation is both. Each operation in flight has a file of its
//! own, written and synced before the operations begin, so that none of them
//! makes the file longer. (btrfs puts every block in a new place all the same,
//! and frees the old one.) Blocks smaller than a page are read first, where
//! the page isn't in the cache.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::Advice;

use super::data::Data;
use super::durable::Flush;
use super::folder::Folder;
use super::{Kind, ONE_AFTER_THE_OTHER, Prepared, Stopwatch, Task, TaskSpec};
use crate::error::LoadError;
use crate::pattern::{Pattern, PatternKind, scramble};

/// Overwrite, then fsync.
pub static FSYNC: Kind = Kind {
    name: "overwrite-fsync",
    about: "overwrites a random block of a file and fsyncs it, as a table is changed",
    series: &["overwrite-fsync"],
    default_block_bytes: 4 << 10,
    default_size_bytes: 256 << 20,
    default_arrival: ONE_AFTER_THE_OTHER,
    start: |spec, lane, seed, stop| Overwrite::start(spec, lane, seed, Flush::Fsync, stop),
};

/// Overwrite, then fdatasync.
pub(super) static FDATASYNC: Kind = Kind {
    name: "overwrite-fdatasync",
    about: "overwrites a random block of a file and fdatasyncs it, as a table is changed",
    series: &["overwrite-fdatasync"],
    default_block_bytes: 4 << 10,
    default_size_bytes: 256 << 20,
    default_arrival: ONE_AFTER_THE_OTHER,
    start: |spec, lane, seed, stop| Overwrite::start(spec, lane, seed, Flush::Fdatasync, stop),
};

/// Bytes per write while the file is made.
const PIECE: usize = 1 << 20;

/// Bytes of it that wait to be written back, at most, so that it can be
/// stopped soon on a slow drive; a multiple of a piece.
const DIRTY: u64 = 64 << 20;

struct Overwrite {
    file: File,
    flush: Flush,
    data: Data,
    pattern: Pattern,
}

impl Overwrite {
    fn start(spec: &TaskSpec, lane: u32, seed: u64, flush: Flush, stop: &AtomicBool) -> Prepared {
        let block = u64::from(spec.block_bytes);
        let Some(pattern) = Pattern::new(PatternKind::Random, 0, spec.size_bytes, block, seed)
        else {
            return Err(LoadError::Spec {
                actor: spec.kind.name.to_owned(),
                what: format!("{} bytes of file hold no block", spec.size_bytes),
            });
        };
        let folder = Folder::open(&spec.dir)?;
        let name = format!("table-{lane}");
        let file = folder
            .create(&name)
            .map_err(|error| folder.failed(&name, "create it", error))?;
        let filled = fill(&file, spec.size_bytes, scramble(seed), stop);
        let filled = filled.map_err(|(written_bytes, error)| match error.raw_os_error() {
            Some(libc::ENOSPC) => LoadError::NoSpace {
                path: spec.dir.join(&name),
                written_bytes,
                len_bytes: spec.size_bytes,
            },
            _ => folder.failed(&name, "write to it", error),
        })?;
        if !filled {
            return Err(LoadError::Stopped);
        }
        folder
            .fsync()
            .map_err(|error| folder.failed(&name, "sync its directory", error))?;
        Ok(Box::new(Overwrite {
            file,
            flush,
            data: Data::new(spec.block_bytes as usize, seed),
            pattern,
        }))
    }
}

/// Writes the whole file and makes it durable, unless it is asked to stop; returns whether it did.
/// An error carries the progress so far. A failure tells how far it came.
fn fill(file: &File, len: u64, seed: u64, stop: &AtomicBool) -> Result<bool, (u64, io::Error)> {
    let mut data = Data::new(PIECE, seed);
    let mut written = 0;
    while written < len {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let left = usize::try_from(len - written).unwrap_or(PIECE);
        let piece = &data.bytes()[..left.min(PIECE)];
        file.write_all_at(piece, written)
            .map_err(|error| (written, error))?;
        written += piece.len() as u64;
        if written.is_multiple_of(DIRTY) {
            Flush::Fdatasync
                .flush(file)
                .map_err(|error| (written, error))?;
        }
        data.renew();
    }
    Flush::Fsync.flush(file).map_err(|error| (written, error))?;
    // A cache filled by large writes holds large folios, and overwriting 4 KiB
    // in one of those was seen to take some tens of microseconds longer (ext4,
    // one machine). Nobody's table has just been written in one go, so begin
    // without (fio does, too). It's advice: where it is refused, that is all
    // that is lost.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
    Ok(true)
}

impl Task for Overwrite {
    fn operate(&mut self, watch: &mut Stopwatch<'_>) -> io::Result<()> {
        let offset = self.pattern.next_offset();
        watch.time(0, || {
            self.file.write_all_at(self.data.bytes(), offset)?;
            self.flush.flush(&self.file)
        })?;
        self.data.renew();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_filled_to_the_byte() {
        let file = tempfile::tempfile().expect("temporary file");
        let len = 2 * PIECE as u64 + 100;
        let stop = AtomicBool::new(false);
        assert!(fill(&file, len, 1, &stop).expect("fills"));
        assert_eq!(file.metadata().expect("metadata").len(), len);
        let mut tail = [0; 200];
        file.read_exact_at(&mut tail, len - 200).expect("reads");
        assert!(tail.iter().filter(|&&byte| byte == 0).count() < 20);
    }

    #[test]
    fn one_that_is_told_to_stop_writes_no_further() {
        let dir = tempfile::tempdir().expect("directory");
        let spec = TaskSpec {
            kind: &FSYNC,
            dir: dir.path().to_owned(),
            block_bytes: 4096,
            size_bytes: 1 << 40,
        };
        let told = (FSYNC.start)(&spec, 0, 1, &AtomicBool::new(true));
        assert!(matches!(told, Err(LoadError::Stopped)));
        let file = std::fs::metadata(dir.path().join("table-0")).expect("metadata");
        assert_eq!(file.len(), 0);
    }
}
