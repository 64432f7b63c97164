//! Where the record goes while it is made.
//!
//! Writing happens in a thread of its own: the record may lie on the very disk
//! that stalls, and the thread that samples must not stall with it.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use record::{Line, RecordWriter};

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

    /// Adds a line. Never waits; [`Sink::finish`] returns any error.
    pub(crate) fn line(&self, line: Line) {
        // The receiver is gone only after a write failed; finish tells of it.
        let _ = self.lines.send(Message::Line(Box::new(line)));
    }

    /// Asks that what was added so far be written out.
    pub(crate) fn flush(&self) {
        let _ = self.lines.send(Message::Flush);
    }

    /// Whether a write has failed: nothing more is written then, and
    /// [`Sink::finish`] tells why.
    pub(crate) fn has_failed(&self) -> bool {
        // While lines can still come the thread ends for no other reason.
        self.writer.is_finished()
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
    // What it writes to may keep something back as well.
    writer.finish()?.flush()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use record::{Event, EventKind};

    use super::*;

    fn line() -> Line {
        Line::Event(Event {
            at_s: 0.0,
            kind: EventKind::Warning,
            detail: Some("a line".into()),
        })
    }

    /// A disk that is full; or one on which that shows only when all is to be on it.
    struct Full {
        only_at_flush: bool,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.only_at_flush {
                return Ok(bytes.len());
            }
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn the_last_block_is_not_lost_in_silence() {
        for only_at_flush in [false, true] {
            let sink = Sink::start(RecordWriter::new(Full { only_at_flush })).unwrap();
            // Less than a buffer: nothing is written before the end.
            sink.line(line());
            let error = sink.finish().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        }
    }

    #[test]
    fn a_failure_is_known_before_the_end() {
        let full = Full {
            only_at_flush: false,
        };
        let sink = Sink::start(RecordWriter::new(full)).unwrap();
        assert!(!sink.has_failed());
        sink.line(line());
        sink.flush();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !sink.has_failed() {
            assert!(Instant::now() < deadline, "the failure doesn't show");
            std::thread::sleep(Duration::from_millis(1));
        }
        sink.finish().unwrap_err();
    }
}
