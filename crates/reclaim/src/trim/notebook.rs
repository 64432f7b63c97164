//! Notes how far a trim came, so that an interrupted one can be resumed.

use std::io;
use std::time::{Duration, Instant};

use super::TrimError;
use super::last::is_met;
use super::state::{Cursor, Left, State, Turn};
use crate::ReclaimError;
use crate::event::{Event, Listener};
use crate::throttle::Summary;

/// How often the position is noted: often at first, then ever less often.
const FIRST_NOTE: Duration = Duration::from_millis(200);
const NOTE_EVERY: Duration = Duration::from_secs(5);

/// The note of one trim.
#[derive(Debug)]
pub(super) struct Notebook {
    /// The note's file; `None` where nothing can be noted.
    cursor: Option<Cursor>,
    /// The lock on the file system's trim, kept to the end.
    _turn: Option<Turn>,
    /// Whether the last note was written.
    noted: bool,
    last: Instant,
    every: Duration,
}

impl Notebook {
    /// Opens the note of a file system, or goes without where there can't be one. Returns it with the state
    /// of an interrupted trim if that is to be resumed.
    ///
    /// # Errors
    /// [`ReclaimError::Io`] if the state can't be read. `Ok(None)` if another process trims the file
    /// system now.
    pub(super) fn open(
        cursor: Result<Cursor, &'static str>,
        resume: bool,
        listener: &mut Listener<'_>,
    ) -> Result<Option<(Notebook, Option<State>)>, TrimError> {
        let turn = match cursor.as_ref().map(Cursor::turn) {
            Ok(Ok(None)) => return Ok(None),
            Ok(Ok(turn)) => Ok(turn),
            Ok(Err(error)) => Err(error.to_string()),
            Err(why) => Err((*why).to_owned()),
        };
        if let Err(why) = &turn {
            listener(Event::Note(&format_args!(
                "how far it comes can't be kept ({why}): an interrupted trim begins anew"
            )));
        }
        let cursor = cursor.ok().filter(|_| turn.is_ok());
        let state = match (&cursor, resume) {
            (Some(cursor), true) => match cursor.read()? {
                Left::Here(state) => Some(state),
                Left::Nothing => None,
                Left::Outdated(why) => {
                    listener(Event::Note(&format_args!("{why}: it begins anew")));
                    None
                }
            },
            _ => None,
        };
        let notebook = Notebook {
            cursor,
            _turn: turn.ok().flatten(),
            noted: false,
            last: Instant::now(),
            every: FIRST_NOTE,
        };
        Ok(Some((notebook, state)))
    }

    /// Notes how far the trim came, if it is time or `now`. On a disk that is full or read-only it
    /// goes on without a note.
    pub(super) fn note(&mut self, now: bool, position: u64, trimmed: u64) {
        let due = self.last.elapsed() >= self.every;
        if let Some(cursor) = self.cursor.as_ref().filter(|_| now || due) {
            self.noted = cursor.write(position, trimmed).is_ok();
            if !now {
                self.every = (self.every * 2).min(NOTE_EVERY);
            }
            self.last = Instant::now();
        }
    }

    /// Returns whether the last note is on the disk.
    pub(super) fn is_noted(&self) -> bool {
        self.cursor.is_some() && self.noted
    }

    /// Keeps what was trimmed, for figures.
    pub(super) fn keep(&self, bytes: u64, summary: &Summary) -> io::Result<()> {
        let last = self.cursor.as_ref().and_then(|cursor| cursor.last.as_ref());
        let met = is_met(&summary.goals);
        last.map_or(Ok(()), |last| last.keep(bytes, summary.elapsed, met))
    }

    /// Removes the note, because the trim is done. Returns why it stays, if it does.
    pub(super) fn remove(&self) -> Option<ReclaimError> {
        self.cursor.as_ref()?.remove().err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reply;

    #[test]
    fn a_trim_without_a_note_says_why() {
        let mut notes = Vec::new();
        let opened = Notebook::open(Err("no device is known below it"), true, &mut |event| {
            if let Event::Note(note) = event {
                notes.push(note.to_string());
            }
            Reply::Yes
        });
        let (notebook, state) = opened.unwrap().unwrap();
        assert!(state.is_none() && !notebook.is_noted());
        assert_eq!(
            notes,
            [
                "how far it comes can't be kept (no device is known below it): an interrupted trim begins anew"
            ]
        );
    }
}
