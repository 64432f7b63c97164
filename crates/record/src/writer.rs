//! Writing a record, plain or compressed, so that a killed run leaves a readable one.

use std::io::{self, BufWriter, Write};

use zstd::stream::write::Encoder;

use super::Line;

/// Compression level: the fastest that still takes the repeated field names away.
const ZSTD_LEVEL: i32 = 3;

/// Writes one [`Line`] per line.
///
/// Lines that were [flushed](RecordWriter::flush) survive a kill; flush about
/// once a second. Call [`finish`](RecordWriter::finish) at the end, which returns the
/// last errors.
#[derive(Debug)]
pub struct RecordWriter<W: Write> {
    /// `None` only once finished.
    sink: Option<Sink<W>>,
    /// The line in the making, kept to be used again.
    line: Vec<u8>,
}

#[allow(clippy::large_enum_variant, reason = "there is one per run")]
enum Sink<W: Write> {
    Plain(BufWriter<W>),
    Zstd(Encoder<'static, BufWriter<W>>),
}

impl<W: Write> std::fmt::Debug for Sink<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Sink::Plain(_) => "Plain",
            Sink::Zstd(_) => "Zstd",
        })
    }
}

impl<W: Write> RecordWriter<W> {
    /// Writes plain JSON Lines.
    pub fn new(to: W) -> Self {
        RecordWriter {
            sink: Some(Sink::Plain(BufWriter::new(to))),
            line: Vec::new(),
        }
    }

    /// Writes JSON Lines compressed with zstd. Each flush ends a block, so that
    /// everything before it can be read although the frame has no end yet.
    ///
    /// # Errors
    /// If the compressor can't be made (out of memory).
    pub fn compressed(to: W) -> io::Result<Self> {
        let mut encoder = Encoder::new(BufWriter::new(to), ZSTD_LEVEL)?;
        // A flipped bit would otherwise be read as another figure.
        encoder.include_checksum(true)?;
        Ok(RecordWriter {
            sink: Some(Sink::Zstd(encoder)),
            line: Vec::new(),
        })
    }

    /// Writes one line.
    ///
    /// # Errors
    /// If it can't be written, or was already finished.
    pub fn write(&mut self, line: &Line) -> io::Result<()> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)?;
        self.line.push(b'\n');
        match self.sink.as_mut() {
            Some(Sink::Plain(to)) => to.write_all(&self.line),
            Some(Sink::Zstd(to)) => to.write_all(&self.line),
            None => Err(io::Error::other("the record is already finished")),
        }
    }

    /// Hands everything so far to the file: what a kill can't take back.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn flush(&mut self) -> io::Result<()> {
        match self.sink.as_mut() {
            Some(Sink::Plain(to)) => to.flush(),
            Some(Sink::Zstd(to)) => to.flush(),
            None => Ok(()),
        }
    }

    /// Ends the file and gives back what it was written to.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn finish(mut self) -> io::Result<W> {
        let plain = match self.sink.take() {
            Some(Sink::Plain(to)) => to,
            Some(Sink::Zstd(to)) => to.finish()?,
            None => return Err(io::Error::other("the record is already finished")),
        };
        plain.into_inner().map_err(|e| e.into_error())
    }
}

impl<W: Write> Drop for RecordWriter<W> {
    fn drop(&mut self) {
        // Only on the way out of an error: keep what there is, the error itself is reported.
        let _ = self.flush();
    }
}
