//! `append-fsync`, `append-fdatasync`: what a database does with its log.
//!
//! A block is written at the end of a file and made durable; one operation is
//! both, for an application waits for both. Each operation in flight has a
//! file of its own. A file that has reached its full size is written over from
//! its beginning and never cut: an actor that frees nothing sends no discards
//! of its own. From then on its operations are overwrites, which file systems
//! often do faster than growing a file, so let the size last for the run.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::data::Data;
use super::durable::Flush;
use super::folder::Folder;
use super::{Kind, ONE_AFTER_THE_OTHER, Prepared, Stopwatch, Task, TaskSpec};

/// Append, then fsync.
pub(super) static FSYNC: Kind = Kind {
    name: "append-fsync",
    about: "appends a block to a file and fsyncs it, as a log is written",
    series: &["append-fsync"],
    default_block_bytes: 4 << 10,
    default_size_bytes: 1 << 30,
    default_arrival: ONE_AFTER_THE_OTHER,
    start: |spec, lane, seed, _| Append::start(spec, lane, seed, Flush::Fsync),
};

/// Append, then fdatasync.
pub(super) static FDATASYNC: Kind = Kind {
    name: "append-fdatasync",
    about: "appends a block to a file and fdatasyncs it, as a log is written",
    series: &["append-fdatasync"],
    default_block_bytes: 4 << 10,
    default_size_bytes: 1 << 30,
    default_arrival: ONE_AFTER_THE_OTHER,
    start: |spec, lane, seed, _| Append::start(spec, lane, seed, Flush::Fdatasync),
};

struct Append {
    file: File,
    flush: Flush,
    data: Data,
    /// Where the next block goes.
    offset: u64,
    size_bytes: u64,
}

impl Append {
    fn start(spec: &TaskSpec, lane: u32, seed: u64, flush: Flush) -> Prepared {
        let folder = Folder::open(&spec.dir)?;
        let name = format!("log-{lane}");
        let file = folder
            .create(&name)
            .map_err(|error| folder.failed(&name, "create it", error))?;
        // The first operation mustn't wait for the file's name, too.
        folder
            .fsync()
            .map_err(|error| folder.failed(&name, "sync its directory", error))?;
        Ok(Box::new(Append {
            file,
            flush,
            data: Data::new(spec.block_bytes as usize, seed),
            offset: 0,
            size_bytes: spec.size_bytes,
        }))
    }
}

impl Task for Append {
    fn operate(&mut self, watch: &mut Stopwatch<'_>) -> io::Result<()> {
        // After a failure the same block is tried again.
        watch.time(0, || {
            self.file.write_all_at(self.data.bytes(), self.offset)?;
            self.flush.flush(&self.file)
        })?;
        let block = self.data.bytes().len() as u64;
        self.offset = next(self.offset, block, self.size_bytes);
        self.data.renew();
        Ok(())
    }
}

/// The block after this one, or the first where another wouldn't fit.
fn next(offset: u64, block: u64, size: u64) -> u64 {
    let end = offset + block;
    if end + block <= size { end } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_written_over_from_its_beginning() {
        let mut offset = 0;
        let mut seen = vec![offset];
        for _ in 0..4 {
            offset = next(offset, 4096, 3 * 4096 + 100);
            seen.push(offset);
        }
        assert_eq!(seen, [0, 4096, 8192, 0, 4096]);
        assert_eq!(next(0, 4096, 4096), 0);
    }
}
