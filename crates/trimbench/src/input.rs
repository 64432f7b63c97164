//! Records, from wherever they come: a file, plain or compressed, or standard input.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use formats::Kind;
use record::RunRecord;
use record::units::names;
use record::{ReadError, RecordReader};
use rustix::fs::{Mode, OFlags};

use crate::exit::{Error, usage};
use crate::record_output;

/// A record that was read.
#[derive(Debug)]
pub(crate) struct Input {
    /// Its name: the path, as it was given.
    pub(crate) name: String,
    /// The record.
    pub(crate) record: RunRecord,
}

impl Input {
    /// A slowed drive's record as that of the drive it stands for.
    pub(crate) fn in_drives_time(self) -> Result<Input, Error> {
        let record = record_output::in_drives_time(self.record)
            .map_err(|why| usage(format!("{}: {why}", self.name)))?;
        Ok(Input { record, ..self })
    }

    /// Whether its drive's time was stretched, also if by how much isn't known.
    pub(crate) fn is_slowed(&self) -> bool {
        let slower = record::as_drive::slower(&self.record.head.devices);
        !matches!(slower, Ok(None))
    }
}

/// A file that can't be used.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {why}")]
pub(crate) struct InputError {
    name: String,
    #[source]
    why: Unusable,
}

/// Why a file isn't one that can be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    /// It can't be read at all.
    #[error("can't be read: {0}")]
    Unreadable(#[source] io::Error),
    /// A directory where a file is needed.
    #[error("is a directory; `trimbench import` makes a record of what iostat and fio left in one")]
    Directory,
    /// A pipe that would be waited for in vain.
    #[error("is a pipe without a writer; give a file, or - for standard input")]
    IdlePipe,
    /// Something that isn't a file: a device, a socket.
    #[error("is neither a file nor a pipe")]
    NotAFile,
    /// A damaged record, or another version's.
    #[error(transparent)]
    Record(#[from] ReadError),
    /// A file of another kind.
    #[error("is not a record of trimbench: it looks like {}{}", .0, advice(*.0))]
    Another(Kind),
}

impl InputError {
    /// Returns the error of a text with this name.
    fn of(name: &str, why: Unusable) -> InputError {
        InputError {
            name: name.to_owned(),
            why,
        }
    }

    /// Returns the error of a text that can't be read.
    pub(crate) fn unreadable(name: &str, source: io::Error) -> InputError {
        InputError::of(name, Unusable::Unreadable(source))
    }
}

/// How a file that is no record becomes one.
fn advice(kind: Kind) -> &'static str {
    match kind {
        Kind::FioJobs | Kind::Unknown | Kind::Record | Kind::Compressed | Kind::Foreign(_) => "",
        _ => "; `trimbench import` makes a record of it",
    }
}

/// Reads a record; `-` is standard input. One whose run was killed is read as
/// far as it goes and has no `end`.
pub(crate) fn read(path: &Path) -> Result<Input, Error> {
    let name = name(path);
    Ok(of(&name, open(path)?)?)
}

/// The name of a record's file without what the names of all records end in.
pub(crate) fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let mut name = name.to_string_lossy().into_owned();
    for ending in [".zst", ".gz", ".jsonl", ".json"] {
        if let Some(rest) = name.strip_suffix(ending).filter(|rest| !rest.is_empty()) {
            name = rest.to_owned();
        }
    }
    name
}

/// The name of a path in messages.
pub(crate) fn name(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => names::shown(path),
    }
}

/// Reads a record from an open text with this name.
pub(crate) fn of(name: &str, mut from: impl Read) -> Result<Input, InputError> {
    let begin = begin(name, &mut from)?;
    let all = io::Cursor::new(&begin).chain(from);
    let record = RecordReader::read(all).map_err(|error| match error {
        ReadError::Io(source) => InputError::unreadable(name, source),
        error => match (&error, formats::sniff(&inside(&begin))) {
            (ReadError::NotARecord(_), kind) if !matches!(kind, Kind::Unknown | Kind::Record) => {
                InputError::of(name, Unusable::Another(kind))
            }
            _ => InputError::of(name, Unusable::Record(error)),
        },
    })?;
    Ok(Input {
        name: name.to_owned(),
        record,
    })
}

/// As much of a text as is needed to tell what it is.
pub(crate) fn begin(name: &str, from: &mut impl Read) -> Result<Vec<u8>, InputError> {
    let mut begin = Vec::new();
    let read = from.take(formats::ENOUGH as u64).read_to_end(&mut begin);
    read.map_err(|source| InputError::unreadable(name, source))?;
    Ok(begin)
}

/// Decompresses the begin of a text that may be compressed.
pub(crate) fn inside(begin: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    if let Ok(content) = record::content(begin) {
        // It ends where the begin does, in the middle of a frame.
        let _ = content.take(formats::ENOUGH as u64).read_to_end(&mut text);
    }
    text
}

/// Opens a file or a pipe that another process writes to; `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>, InputError> {
    if path.as_os_str() == "-" {
        return Ok(Box::new(io::stdin().lock()));
    }
    let name = name(path);
    let failed = |source: io::Error| InputError::unreadable(&name, source);
    let unusable = |why| Err(InputError::of(&name, why));
    // A pipe without a writer would be waited for without end.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| failed(e.into()))?;
    let mut file = File::from(file);
    let kind = file.metadata().map_err(failed)?.file_type();
    if kind.is_dir() {
        return unusable(Unusable::Directory);
    }
    if kind.is_file() {
        return Ok(Box::new(file));
    }
    if !kind.is_fifo() {
        return unusable(Unusable::NotAFile);
    }
    let mut first = [0];
    let got = match file.read(&mut first) {
        Ok(0) => return unusable(Unusable::IdlePipe),
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => 0,
        Err(e) => return Err(failed(e)),
    };
    rustix::fs::fcntl_setfl(&file, OFlags::empty()).map_err(|e| failed(e.into()))?;
    let begin = io::Cursor::new(first).take(got as u64);
    Ok(Box::new(begin.chain(file)))
}
