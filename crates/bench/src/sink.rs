//! Where the record goes while it is made.
//!
//! Writing happens in a thread of its own: the record may lie on the very disk
//! that stalls, and the thread that samples must not stall with it.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use timeline::record::{Line, RecordWriter};

/// A record's file, being written.
#[derive(Debug)]
pub(crate) struct Sink {
    lines: Sender<Message>,
    writer: JoinHandle<io::Result<()>>,
}

enum Message {
    Line(Box<Line>),
    Flush,
}

impl Sink {
    /// Starts writing.
    pub(crate) fn start<W: Write + Send + 'static>(writer: RecordWriter<W>) -> io::Result<Sink> {
        let (lines, inbox) = channel();
        let writer = std::thread::Builder::new()
            .name("record".into())
            .spawn(move || write_all(writer, &inbox))?;
        Ok(Sink { lines, writer })
    }

    /// Adds a line. Never waits; what went wrong is told by [`Sink::finish`].
    pub(crate) fn line(&self, line: Line) {
        // The receiver is gone only after a write failed; finish tells of it.
        let _ = self.lines.send(Message::Line(Box::new(line)));
    }

    /// Asks that what was added so far be written out.
    pub(crate) fn flush(&self) {
        let _ = self.lines.send(Message::Flush);
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The first write that failed.
    pub(crate) fn finish(self) -> io::Result<()> {
        drop(self.lines);
        self.writer
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the writing thread panicked")))
    }
}

fn write_all<W: Write>(mut writer: RecordWriter<W>, inbox: &Receiver<Message>) -> io::Result<()> {
    for message in inbox {
        match message {
            Message::Line(line) => writer.write(&line)?,
            Message::Flush => writer.flush()?,
        }
    }
    writer.finish()?;
    Ok(())
}
