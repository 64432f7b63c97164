//! The files that a run writes. They are opened before any work, so a path that can't be
//! written is reported at once. They are emptied when nothing refuses the run any more.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use judge::Verdict;
use record::RecordWriter;
use record::RunRecord;
use record::units::names;

use crate::console::Stream;
use crate::exit::{Error, usage};

/// Refuses standard output for the result of a dry run, which has none.
///
/// # Errors
/// A usage error that names the option.
pub(crate) fn refuse_dry(dry_run: bool, option: &str, file: Option<&Path>) -> Result<(), Error> {
    match dry_run && file == Some(Path::new("-")) {
        true => Err(usage(format!(
            "{option} -: a dry run measures nothing, so it has no result to print; leave \
             {option} or --dry-run out"
        ))),
        false => Ok(()),
    }
}

/// A file that will be written. Its old content stays until then. If nothing is written, a file
/// that didn't exist before is removed.
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
            file: Some(file.map_err(Error::unopened(path))?),
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

    /// Whether it is this regular file.
    pub(crate) fn is(&self, path: &Path) -> bool {
        let own = self.file.as_ref().and_then(|file| file.metadata().ok());
        is_same_file(own, path)
    }

    /// Replaces what the file holds by a record.
    pub(crate) fn whole_record(self, record: &RunRecord) -> Result<(), Error> {
        let path = self.path.clone();
        let mut writer = self.record()?;
        let mut written = record.lines().try_for_each(|line| writer.write(&line));
        if written.is_ok() {
            written = writer.finish().map(drop);
        }
        written.map_err(Error::unwritten(&path))
    }

    /// Empties the file and begins a record in it.
    pub(crate) fn record(mut self) -> Result<RecordWriter<File>, Error> {
        let compressed = self.path.extension().is_some_and(|e| e == "zst");
        let file = self.emptied();
        let writer = file.and_then(|file| match compressed {
            true => RecordWriter::compressed(file),
            false => Ok(RecordWriter::new(file)),
        });
        writer.map_err(Error::unwritten(&self.path))
    }

    /// Replaces what the file holds by a verdict.
    pub(crate) fn verdict(mut self, verdict: &Verdict) -> Result<(), Error> {
        let file = self.emptied();
        let written = file.and_then(|file| write_verdict(file, verdict));
        written.map_err(Error::unwritten(&self.path))
    }

    fn emptied(&mut self) -> io::Result<File> {
        let file = self.file.take().ok_or(io::ErrorKind::NotFound)?;
        // A pipe or a terminal can't be emptied and needn't be.
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        Ok(file)
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
    to.write_all(report::json::verdict(verdict)?.as_bytes())?;
    to.flush()
}

/// Shows a result: as text, and in a file as JSON. On standard output JSON takes the text's place.
pub(crate) fn present(
    result: &impl serde::Serialize,
    json: Option<Sink>,
    to: Stream,
    text: impl FnOnce() -> String,
) -> Result<(), Error> {
    let value = serde_json::to_value(result).unwrap_or_default();
    match json {
        Some(json) if json.is_standard() => Stream::Out.json(&value),
        json => {
            to.print(&text());
            json.map_or(Ok(()), |json| json.json(&value))?;
        }
    }
    Ok(())
}

/// Makes a directory, unless it is there.
pub(crate) fn make_directory(path: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(path).map_err(Error::unopened(path))
}

/// Where text goes: to standard output or into a file, piece by piece.
#[derive(Debug)]
pub(crate) struct Sink {
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    Standard,
    /// A file in which nothing was changed yet.
    Untouched(Output),
    File(File),
}

impl Sink {
    /// Standard output.
    pub(crate) fn standard() -> Sink {
        Sink {
            path: "standard output".into(),
            to: To::Standard,
        }
    }

    /// Standard output for `-`, else a file.
    pub(crate) fn open(path: &Path) -> Result<Sink, Error> {
        match path.as_os_str() == "-" {
            true => Ok(Sink::standard()),
            false => Sink::file(path),
        }
    }

    /// As [`open`](Sink::open), if a place is named.
    pub(crate) fn named(path: &Option<PathBuf>) -> Result<Option<Sink>, Error> {
        path.as_deref().map(Sink::open).transpose()
    }

    /// Returns where text for people goes: to standard output, unless one of these has it.
    pub(crate) fn people<'s>(sinks: impl IntoIterator<Item = &'s Sink>) -> Stream {
        match sinks.into_iter().any(Sink::is_standard) {
            true => Stream::Err,
            false => Stream::Out,
        }
    }

    /// Writes a JSON document, with a line end.
    pub(crate) fn json(mut self, value: &serde_json::Value) -> Result<(), Error> {
        let text = match self.is_standard() {
            true => names::harmless_json(&format!("{value}\n")),
            false => format!("{value}\n"),
        };
        self.write(|to| to.write_all(text.as_bytes()))
    }

    /// A file, which keeps what it holds until something is written.
    pub(crate) fn file(path: &Path) -> Result<Sink, Error> {
        Ok(Sink {
            path: path.to_path_buf(),
            to: To::Untouched(Output::open(path)?),
        })
    }

    /// Whether it is standard output.
    pub(crate) fn is_standard(&self) -> bool {
        matches!(self.to, To::Standard)
    }

    /// Whether it is this regular file.
    pub(crate) fn is(&self, path: &Path) -> bool {
        match &self.to {
            To::Standard => false,
            To::Untouched(output) => output.is(path),
            To::File(file) => is_same_file(file.metadata().ok(), path),
        }
    }

    /// Writes a piece of text. Standard output that nobody reads any more is no error.
    pub(crate) fn write(
        &mut self,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        if let To::Untouched(output) = &mut self.to {
            let file = output.emptied().map_err(Error::unwritten(&self.path))?;
            self.to = To::File(file);
        }
        let written = match &mut self.to {
            To::File(file) => pour(file, text),
            _ => match pour(io::stdout().lock(), text) {
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                written => written,
            },
        };
        written.map_err(Error::unwritten(&self.path))
    }
}

fn is_same_file(own: Option<Metadata>, path: &Path) -> bool {
    let other = std::fs::metadata(path).ok();
    matches!((own, other), (Some(a), Some(b))
        if a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

fn pour(to: impl Write, text: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut to = io::BufWriter::with_capacity(1 << 16, to);
    text(&mut to)?;
    to.flush()
}
