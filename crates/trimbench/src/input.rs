//! Records, from wherever they come: a file, plain or compressed, or standard input.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use formats::Kind;
use record::RunRecord;
use record::units::names;
use record::{ReadError, RecordReader};
use report::seconds::Seconds;
use rustix::fs::{Mode, OFlags};

use crate::exit::Error;
use crate::verdicts;

/// A record that was read.
#[derive(Debug)]
pub(crate) struct Input {
    /// Its name: the path, as it was given.
    pub(crate) name: String,
    /// The record.
    pub(crate) record: RunRecord,
    /// Latencies second by second, which a record leaves in its file.
    pub(crate) seconds: Seconds,
}

impl Input {
    /// A slowed drive's record as that of the drive it stands for.
    pub(crate) fn in_drives_time(self) -> Result<Input, Error> {
        let slower = record::as_drive::slower(&self.record.head.devices);
        let record = verdicts::in_drives_time(self.record)
            .map_err(|why| Error::Usage(format!("{}: {why}", self.name)))?;
        let seconds = match slower {
            Ok(Some(slower)) if !slower.converted => self.seconds.as_drive(slower.times),
            _ => self.seconds,
        };
        Ok(Input {
            record,
            seconds,
            ..self
        })
    }

    /// Whether its drive's time was stretched, also if by how much isn't known.
    pub(crate) fn is_slowed(&self) -> bool {
        !matches!(
            record::as_drive::slower(&self.record.head.devices),
            Ok(None)
        )
    }
}

/// Why a file isn't one that can be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    /// It can't be read at all.
    #[error("{name}: can't be read: {source}")]
    Unreadable {
        /// The text as it was given.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// A directory where a file is needed.
    #[error(
        "{name}: is a directory; `trimbench import` makes a record of what iostat and fio left in one"
    )]
    Directory {
        /// The text as it was given.
        name: String,
    },
    /// A pipe that would be waited for in vain.
    #[error("{name}: is a pipe without a writer; give a file, or - for standard input")]
    IdlePipe {
        /// The text as it was given.
        name: String,
    },
    /// Something that isn't a file: a device, a socket.
    #[error("{name}: is neither a file nor a pipe")]
    NotAFile {
        /// The text as it was given.
        name: String,
    },
    /// A damaged record, or another version's.
    #[error("{name}: {source}")]
    Record {
        /// The text as it was given.
        name: String,
        /// The fault of it.
        source: ReadError,
    },
    /// A file of another kind.
    #[error("{name}: is not a record of trimbench: it looks like {kind}{}", advice(*.kind))]
    Another {
        /// The text as it was given.
        name: String,
        /// The kind of file.
        kind: Kind,
    },
}

/// How a file that is no record becomes one.
fn advice(kind: Kind) -> &'static str {
    match kind {
        Kind::FioJobs => "; `trimbench run --set fio=FILE` runs it",
        Kind::Unknown | Kind::Record | Kind::Compressed | Kind::Foreign(_) => "",
        _ => "; `trimbench import` makes a record of it",
    }
}

/// Reads a record; `-` is standard input. One whose run was killed is read as
/// far as it goes and has no `end`.
pub(crate) fn read(path: &Path) -> Result<Input, Error> {
    let name = name(path);
    Ok(of(&name, open(path)?)?)
}

/// The name of a path in messages.
pub(crate) fn name(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => names::shown(path),
    }
}

fn of(name: &str, mut from: impl Read) -> Result<Input, InputError> {
    let begin = begin(name, &mut from)?;
    let mut seconds = Seconds::new();
    let all = io::Cursor::new(&begin).chain(from);
    let read = RecordReader::read_with(all, |line| seconds.push(line));
    match read {
        Ok(record) => Ok(Input {
            name: name.to_owned(),
            record,
            seconds,
        }),
        Err(ReadError::Io(source)) => Err(InputError::Unreadable {
            name: name.to_owned(),
            source,
        }),
        Err(source) => Err(match (&source, formats::sniff(&inside(begin))) {
            (ReadError::NotARecord(_), kind) if !matches!(kind, Kind::Unknown | Kind::Record) => {
                InputError::Another {
                    name: name.to_owned(),
                    kind,
                }
            }
            _ => InputError::Record {
                name: name.to_owned(),
                source,
            },
        }),
    }
}

/// As much of a text as is needed to tell what it is.
pub(crate) fn begin(name: &str, from: &mut impl Read) -> Result<Vec<u8>, InputError> {
    let mut begin = Vec::new();
    let read = from.take(formats::ENOUGH as u64).read_to_end(&mut begin);
    read.map_err(|source| InputError::Unreadable {
        name: name.to_owned(),
        source,
    })?;
    Ok(begin)
}

/// Decompresses the begin of a text that may be compressed.
fn inside(begin: Vec<u8>) -> Vec<u8> {
    if formats::sniff(&begin) != Kind::Compressed {
        return begin;
    }
    let mut text = Vec::new();
    if let Ok(decoder) = decompressed(begin, io::empty()) {
        // It ends where the begin does, in the middle of a frame.
        let _ = decoder.take(formats::ENOUGH as u64).read_to_end(&mut text);
    }
    text
}

/// Returns the content of a text compressed with zstd or gzip, of which the begin was read.
pub(crate) fn decompressed(begin: Vec<u8>, rest: impl Read + 'static) -> io::Result<Box<dyn Read>> {
    let gzip = begin.starts_with(&[0x1f, 0x8b]);
    let all = io::Cursor::new(begin).chain(rest);
    Ok(match gzip {
        true => Box::new(flate2::read::MultiGzDecoder::new(all)),
        false => Box::new(zstd::stream::read::Decoder::new(all)?),
    })
}

/// Opens a file or a pipe that another process writes to; `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, InputError> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let name = name(path);
    let failed = |source: io::Error| InputError::Unreadable {
        name: name.clone(),
        source,
    };
    // A pipe without a writer would be waited for without end.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| failed(e.into()))?;
    let mut file = File::from(file);
    let kind = file.metadata().map_err(failed)?.file_type();
    if kind.is_dir() {
        return Err(InputError::Directory { name });
    }
    if kind.is_file() {
        return Ok(Box::new(file));
    }
    if !kind.is_fifo() {
        return Err(InputError::NotAFile { name });
    }
    let mut first = [0];
    let got = match file.read(&mut first) {
        Ok(0) => return Err(InputError::IdlePipe { name }),
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
        Err(e) => return Err(failed(e)),
    };
    rustix::fs::fcntl_setfl(&file, OFlags::empty()).map_err(|e| failed(e.into()))?;
    Ok(Box::new(
        io::Cursor::new(first).take(got as u64).chain(file),
    ))
}
