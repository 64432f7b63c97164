//! The log of a drive: its records, written as they come.
//!
//! The file begins with [`MAGIC`], the drive's size and its sector size. Each record is a byte for
//! its kind, two numbers of 64 bits, little-endian, and the data of a write or the text of a mark.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;

pub(super) const MAGIC: &[u8; 8] = b"tb-log/1";
pub(super) const WRITE: u8 = b'W';
pub(super) const ZEROS: u8 = b'Z';
pub(super) const FLUSH: u8 = b'F';
pub(super) const MARK: u8 = b'M';

/// A log that is being written.
#[derive(Debug)]
pub(crate) struct Log {
    file: BufWriter<File>,
    /// Writes and discards so far.
    changes: u64,
    /// Bytes that it may still take.
    left: u64,
    /// Records that there was no room for.
    refused: u64,
}

impl Log {
    /// Makes a log of a drive of `size` bytes. The log takes at most `most` bytes.
    ///
    /// # Errors
    /// If the file can't be made, or is there already.
    pub(crate) fn create(path: &Path, size: u64, sector: u32, most: u64) -> io::Result<Log> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create_new(path)?);
        file.write_all(MAGIC)?;
        file.write_all(&size.to_le_bytes())?;
        file.write_all(&u64::from(sector).to_le_bytes())?;
        Ok(Log {
            file,
            changes: 0,
            left: most,
            refused: 0,
        })
    }

    /// Data arrived.
    pub(crate) fn wrote(&mut self, at: u64, data: &[u8]) -> io::Result<()> {
        self.record(WRITE, at, data.len() as u64, data)?;
        self.changes += 1;
        Ok(())
    }

    /// A range reads as zeros from now on.
    pub(crate) fn zeroed(&mut self, range: &Range<u64>) -> io::Result<()> {
        self.record(ZEROS, range.start, range.end - range.start, &[])?;
        self.changes += 1;
        Ok(())
    }

    /// A flush arrives; the number is for [`Log::flushed`].
    pub(crate) fn begin_flush(&self) -> u64 {
        self.changes
    }

    /// Records a flush that is done, and covers the first `covers` writes and discards.
    pub(crate) fn flushed(&mut self, covers: u64) -> io::Result<()> {
        self.record(FLUSH, covers, 0, &[])
    }

    /// Records a point that a workload has reached. Afterwards the file holds all records up to
    /// here.
    pub(crate) fn mark(&mut self, text: &str) -> io::Result<()> {
        self.record(MARK, 0, text.len() as u64, text.as_bytes())?;
        self.file.flush()
    }

    /// The number of records that there was no room for. Writes among them have failed.
    pub(crate) fn refused(&self) -> u64 {
        self.refused
    }

    fn record(&mut self, what: u8, at: u64, len: u64, data: &[u8]) -> io::Result<()> {
        let takes = 17 + data.len() as u64;
        let Some(left) = self.left.checked_sub(takes) else {
            // Smaller ones that came later would make a log with gaps.
            self.left = 0;
            self.refused += 1;
            let full = io::Error::new(io::ErrorKind::StorageFull, "the drive's log is full");
            return Err(full);
        };
        self.left = left;
        self.file.write_all(&[what])?;
        self.file.write_all(&at.to_le_bytes())?;
        self.file.write_all(&len.to_le_bytes())?;
        self.file.write_all(data)
    }
}
