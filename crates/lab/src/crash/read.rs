//! A log that was written, without its data.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::ops::Range;
use std::path::Path;

use crate::error::LabError;

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// Data arrived for a range; they are in the log from this byte on.
    Wrote {
        /// First byte on the drive.
        at: u64,
        /// How many.
        len: u64,
        /// Where they are in the log.
        data: u64,
    },
    /// A range was discarded or zeroed.
    Zeroed {
        /// First byte on the drive.
        at: u64,
        /// How many.
        len: u64,
    },
    /// A flush was done.
    Flushed {
        /// The number of writes and discards, from the first on, that it covers.
        covers: u64,
    },
    /// A workload's mark.
    Mark(String),
}

/// A drive's log.
#[derive(Debug)]
pub struct Recorded {
    /// The drive's size in bytes.
    pub size: u64,
    /// Its sectors' size in bytes.
    pub sector: u32,
    /// Everything that was recorded, in order.
    pub records: Vec<What>,
    pub(super) file: File,
}

impl Recorded {
    /// Reads a log. A last record that isn't whole is left out: the drive may be writing it.
    ///
    /// # Errors
    /// If it can't be read or is no log.
    pub fn open(path: &Path) -> Result<Recorded, LabError> {
        let open = || -> io::Result<Recorded> {
            let file = File::open(path)?;
            let mut from = BufReader::with_capacity(1 << 16, file.try_clone()?);
            let mut magic = [0; 8];
            from.read_exact(&mut magic)?;
            if magic != *MAGIC {
                return Err(io::Error::other("this is no log of a simulated drive"));
            }
            let (size, sector) = (number(&mut from)?, number(&mut from)?);
            let end = file.metadata()?.len();
            Ok(Recorded {
                size,
                sector: u32::try_from(sector).map_err(io::Error::other)?,
                records: records(&mut from, end)?,
                file,
            })
        };
        open().map_err(LabError::io("cannot read the log", path))
    }

    /// How many writes and discards it has.
    pub fn changes(&self) -> usize {
        let changes = self.records.iter().filter(|what| what.is_change());
        changes.count()
    }
}

impl What {
    pub(super) fn is_change(&self) -> bool {
        matches!(self, What::Wrote { .. } | What::Zeroed { .. })
    }
}

fn records(from: &mut BufReader<File>, end: u64) -> io::Result<Vec<What>> {
    let mut records = Vec::new();
    let mut place = from.stream_position()?;
    loop {
        let mut kind = [0];
        let head = from
            .read_exact(&mut kind)
            .and_then(|()| Ok((number(from)?, number(from)?)));
        let (at, len) = match head {
            Ok(head) => head,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(records),
            Err(error) => return Err(error),
        };
        let data = place + 17;
        let follows = if matches!(kind[0], WRITE | MARK) {
            len
        } else {
            0
        };
        place = data.saturating_add(follows);
        if place > end {
            return Ok(records);
        }
        records.push(match kind[0] {
            WRITE => What::Wrote { at, len, data },
            ZEROS => What::Zeroed { at, len },
            FLUSH => What::Flushed { covers: at },
            MARK => {
                let mut text = vec![0; len as usize];
                from.read_exact(&mut text)?;
                What::Mark(String::from_utf8_lossy(&text).into_owned())
            }
            other => {
                let why = format!("its record at byte {} is of kind {other}", data - 17);
                return Err(io::Error::other(why));
            }
        });
        if kind[0] == WRITE {
            from.seek_relative(len as i64)?;
        }
    }
}

fn number(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

// The log of a drive: its records, written as they come.
//
// The file begins with [`MAGIC`], the drive's size and its sector size. Each record is a byte for
// its kind, two numbers of 64 bits, little-endian, and the data of a write or the text of a mark.

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
