//! The files that a run writes: opened before any work, so that a path that
//! can't be written is known at once.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use timeline::Verdict;
use timeline::record::RecordWriter;

use crate::exit::Error;

/// A file that will be written. Until then what it held before stays.
#[derive(Debug)]
pub(crate) struct Output {
    path: PathBuf,
    file: File,
}

impl Output {
    /// Opens a file for writing and changes nothing in it.
    pub(crate) fn open(path: &Path) -> Result<Output, Error> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(|source| Error::Output {
                path: path.to_path_buf(),
                source,
            })?;
        Ok(Output {
            path: path.to_path_buf(),
            file,
        })
    }

    /// Empties the file and begins a record in it.
    pub(crate) fn record(self) -> Result<RecordWriter<File>, Error> {
        let compressed = self.path.extension().is_some_and(|e| e == "zst");
        let path = self.path.clone();
        self.emptied()
            .and_then(|file| {
                if compressed {
                    RecordWriter::compressed(file)
                } else {
                    Ok(RecordWriter::new(file))
                }
            })
            .map_err(|source| Error::Output { path, source })
    }

    /// Replaces what the file holds by a verdict.
    pub(crate) fn verdict(self, verdict: &Verdict) -> Result<(), Error> {
        let path = self.path.clone();
        self.emptied()
            .and_then(|file| write_verdict(file, verdict))
            .map_err(|source| Error::Output { path, source })
    }

    fn emptied(self) -> io::Result<File> {
        // A pipe or a terminal can't be emptied and needn't be.
        if self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        Ok(self.file)
    }
}

/// Writes a verdict as JSON, with a line end.
pub(crate) fn write_verdict(mut to: impl Write, verdict: &Verdict) -> io::Result<()> {
    let text = serde_json::to_string_pretty(verdict)?;
    to.write_all(text.as_bytes())?;
    to.write_all(b"\n")?;
    to.flush()
}
