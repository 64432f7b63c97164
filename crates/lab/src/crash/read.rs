//! A log that was written, without its data.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek};
use std::path::Path;

use super::log::{FLUSH, MAGIC, MARK, WRITE, ZEROS};
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
