//! The files that a run writes: opened before any work, so that a path that
//! can't be written is known at once, and emptied only when nothing refuses the
//! run any more.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use timeline::Verdict;
use timeline::record::RecordWriter;

use crate::exit::Error;

/// A file that will be written. Until then what it held before stays; and if it
/// comes to nothing, a file that wasn't there before is gone again.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    /// `None` once something is written to it.
    file: Option<File>,
    created: bool,
}

impl Output {
    /// Opens a file for writing and changes nothing in it.
    pub(crate) fn open(path: &Path) -> Result<Output, Error> {
        let open = |new: bool| {
            let mut options = OpenOptions::new();
            options.write(true).create(true).create_new(new).open(path)
        };
        let (file, created) = match open(true) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (open(false), false),
            opened => (opened, true),
        };
        Ok(Output {
            path: path.to_path_buf(),
            file: Some(file.map_err(|source| Error::OutputOpen {
                path: path.to_path_buf(),
                source,
            })?),
            created,
        })
    }

    /// Whether both are one regular file, in which each would destroy the other.
    pub(crate) fn is_same(&self, other: &Output) -> bool {
        let identity = |output: &Output| {
            let metadata = output.file.as_ref()?.metadata().ok()?;
            metadata.is_file().then(|| (metadata.dev(), metadata.ino()))
        };
        identity(self).is_some_and(|own| identity(other) == Some(own))
    }

    /// Empties the file and begins a record in it.
    pub(crate) fn record(mut self) -> Result<RecordWriter<File>, Error> {
        let compressed = self.path.extension().is_some_and(|e| e == "zst");
        self.emptied()
            .and_then(|file| {
                if compressed {
                    RecordWriter::compressed(file)
                } else {
                    Ok(RecordWriter::new(file))
                }
            })
            .map_err(|source| self.failed(source))
    }

    /// Replaces what the file holds by a verdict.
    pub(crate) fn verdict(mut self, verdict: &Verdict) -> Result<(), Error> {
        self.emptied()
            .and_then(|file| write_verdict(file, verdict))
            .map_err(|source| self.failed(source))
    }

    fn emptied(&mut self) -> io::Result<File> {
        let file = self.file.take().ok_or(io::ErrorKind::NotFound)?;
        // A pipe or a terminal can't be emptied and needn't be.
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(file)
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::OutputWrite {
            path: self.path.clone(),
            source,
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.created && self.file.is_some() {
            // An empty file too many is no harm worth an error.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Writes a verdict as JSON, with a line end.
pub(crate) fn write_verdict(mut to: impl Write, verdict: &Verdict) -> io::Result<()> {
    let text = serde_json::to_string_pretty(verdict)?;
    to.write_all(text.as_bytes())?;
    to.write_all(b"\n")?;
    to.flush()
}
