//! Reading a record, also that of a run that was killed.

use std::io::{self, BufRead, BufReader, Read};

use super::{Line, PushError, RunRecord, form};

/// How every zstd frame begins.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// How every file of gzip begins.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Longest line that is read, in bytes. The longest real ones are waits, a megabyte.
const MAX_LINE: u64 = 16 << 20;

/// Why a file isn't a readable record.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file can't be read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// There is nothing in it.
    #[error("is empty: not a record, or its run was stopped before anything was written")]
    Empty,
    /// Its first line isn't a record's head.
    #[error("is not a record of trimbench: its first line is not a head ({0})")]
    NotARecord(String),
    /// A line isn't JSON of a known kind.
    #[error("line {line} cannot be understood: {why}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// Why.
        why: String,
    },
    /// A line doesn't fit to those before.
    #[error("line {line} does not fit: {why}")]
    Unfit {
        /// Its number, from 1.
        line: u64,
        /// Why.
        why: PushError,
    },
}

/// Reads records.
#[derive(Debug, Clone, Copy)]
pub struct RecordReader;

impl RecordReader {
    /// Reads a whole record, plain or compressed (its first bytes decide, not
    /// its name). A last line or a compressed frame that breaks off is an
    /// interrupted run: what came before it is the record, and its `end` is `None`.
    ///
    /// # Errors
    /// If it can't be read or isn't a record; the message is made to follow
    /// the file's name.
    pub fn read(from: impl Read) -> Result<RunRecord, ReadError> {
        read_lines(BufReader::new(content(from)?))
    }
}

/// Returns the content of a text that is plain, or compressed with zstd or gzip. Its first bytes
/// decide.
///
/// # Errors
/// If its begin can't be read.
pub fn content<'r>(mut from: impl Read + 'r) -> io::Result<Box<dyn Read + 'r>> {
    let mut start = Vec::with_capacity(ZSTD_MAGIC.len());
    from.by_ref()
        .take(ZSTD_MAGIC.len() as u64)
        .read_to_end(&mut start)?;
    let (is_zstd, is_gzip) = (start == ZSTD_MAGIC, start.starts_with(&GZIP_MAGIC));
    let all = io::Cursor::new(start).chain(from);
    Ok(match (is_zstd, is_gzip) {
        (true, _) => Box::new(zstd::stream::read::Decoder::new(all)?),
        (_, true) => Box::new(flate2::read::MultiGzDecoder::new(all)),
        _ => Box::new(all),
    })
}

fn read_lines(mut from: impl BufRead) -> Result<RunRecord, ReadError> {
    let mut record: Option<RunRecord> = None;
    let mut text = Vec::new();
    for number in 1_u64.. {
        text.clear();
        let ended = match from.by_ref().take(MAX_LINE).read_until(b'\n', &mut text) {
            Ok(n) => n == 0,
            // The frame of a killed run has no end; the line read so far may be whole.
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => text.is_empty(),
            Err(e) => return Err(e.into()),
        };
        if ended {
            break;
        }
        let whole = text.last() == Some(&b'\n');
        if !whole && text.len() as u64 == MAX_LINE {
            let why = format!("it is longer than {MAX_LINE} bytes");
            return Err(match record {
                Some(_) => ReadError::Line { line: number, why },
                None => ReadError::NotARecord(why),
            });
        }
        let line: Result<Line, _> = serde_json::from_slice(&text);
        match (&mut record, line) {
            (None, Ok(Line::Head(head))) => {
                let new = RunRecord::new(*head);
                record = Some(new.map_err(|why| ReadError::Unfit { line: number, why })?);
            }
            (None, Ok(_)) => {
                return Err(ReadError::NotARecord(
                    "it is another kind of line".to_owned(),
                ));
            }
            (None, Err(e)) => return Err(not_a_head(&text, &e)),
            (Some(record), Ok(line)) => {
                record
                    .push(&line)
                    .map_err(|why| ReadError::Unfit { line: number, why })?;
            }
            // Broken off in the middle of a line: an interrupted run.
            (Some(_), Err(_)) if !whole => break,
            (Some(_), Err(_)) if text.iter().all(u8::is_ascii_whitespace) => {}
            (Some(_), Err(e)) => {
                return Err(ReadError::Line {
                    line: number,
                    why: e.to_string(),
                });
            }
        }
    }
    record.ok_or(ReadError::Empty)
}

/// A first line that isn't our head: another version's, or no record at all?
fn not_a_head(text: &[u8], error: &serde_json::Error) -> ReadError {
    if let Some(why) = form::refusal(text, super::RUN_SCHEMA) {
        let why = PushError::Schema(why);
        return ReadError::Unfit { line: 1, why };
    }
    let head = serde_json::from_slice::<serde_json::Value>(text).ok();
    match head.as_ref().and_then(|head| head.get("schema")?.as_str()) {
        Some(schema) if schema != super::RUN_SCHEMA => {
            ReadError::NotARecord(format!("its schema is '{schema}'"))
        }
        _ => ReadError::NotARecord(error.to_string()),
    }
}
