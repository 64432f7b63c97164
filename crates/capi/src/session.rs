//! A throttle for as long as a program frees, and a new one after a pause.
//!
//! A program may delete something every few hours. A throttle compares readers with what they did
//! before its first piece, so that it is of no use after a pause.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use pace::{Goal, Policy, Work};
use reclaim::throttle::{Pacing, Purpose, Setup, Stack, Throttle};
use reclaim::{ReclaimError, silent};

/// After so long without a call the next begins anew.
const PAUSE: Duration = Duration::from_secs(1);

/// A program's deletions on one file system.
#[derive(Debug)]
pub(crate) struct Session {
    on: File,
    stack: Stack,
    goal: Goal,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    throttle: Throttle,
    called: Instant,
}

impl Session {
    /// A session on the file system of a directory.
    ///
    /// # Errors
    /// If the directory can't be opened, or its devices aren't known.
    pub(crate) fn open(path: PathBuf, goal: Goal) -> Result<Session, ReclaimError> {
        let on = File::open(&path).map_err(|source| ReclaimError::Io {
            action: "open",
            path,
            source,
        })?;
        let stack = Stack::at(on.as_fd())?;
        Ok(Session {
            on,
            stack,
            goal,
            running: None,
        })
    }

    /// Waits until something may be freed, of so many bytes; returns how many may be.
    ///
    /// # Errors
    /// As [`Throttle::grant`].
    pub(crate) fn wait(&mut self, bytes: u64) -> Result<u64, ReclaimError> {
        if bytes == 0 {
            return Ok(0);
        }
        let advice = self.throttle(bytes)?.grant(bytes, &mut silent)?;
        self.called();
        Ok(advice.allow.min(bytes))
    }

    /// The same without waiting: 0 where nothing may be freed now.
    ///
    /// # Errors
    /// As [`Throttle::try_grant`].
    pub(crate) fn try_now(&mut self, bytes: u64) -> Result<u64, ReclaimError> {
        if bytes == 0 {
            return Ok(0);
        }
        let advice = self.throttle(bytes)?.try_grant(bytes)?;
        self.called();
        Ok(advice.map_or(0, |advice| advice.allow.min(bytes)))
    }

    /// Reports that so many bytes were freed, and has the file system send their discards.
    ///
    /// # Errors
    /// As [`Throttle::commit_freed`].
    pub(crate) fn done(&mut self, bytes: u64) -> Result<(), ReclaimError> {
        // However long the program took to free what was granted: that is no pause.
        let mut running = match self.running.take() {
            Some(running) => running,
            None => self.start(bytes)?,
        };
        running.throttle.freed(bytes, 0);
        let committed = running.throttle.commit_freed(&mut silent);
        self.running = Some(running);
        self.called();
        committed
    }

    /// Changes the goal.
    pub(crate) fn set_goal(&mut self, goal: Goal) {
        self.goal = goal;
        self.running = None;
    }

    /// Bytes that were freed and aren't discarded yet, as of the last call.
    pub(crate) fn backlog(&self) -> u64 {
        let running = self.running.as_ref();
        running.map_or(0, |running| running.throttle.state().debt)
    }

    fn called(&mut self) {
        if let Some(running) = &mut self.running {
            running.called = Instant::now();
        }
    }

    /// The throttle that runs, or a new one.
    fn throttle(&mut self, bytes: u64) -> Result<&mut Throttle, ReclaimError> {
        let running = self.running.take();
        let running = match running.filter(|running| running.called.elapsed() < PAUSE) {
            Some(running) => running,
            None => self.start(bytes)?,
        };
        Ok(&mut self.running.insert(running).throttle)
    }

    fn start(&self, bytes: u64) -> Result<Running, ReclaimError> {
        let setup = Setup {
            on: self.on.as_fd(),
            stack: &self.stack,
            purpose: Purpose::Delete,
            // In how many extents isn't known.
            work: &self.stack.shape(&Work::new(bytes, 1)),
            pacing: &Pacing::new(Policy::Adaptive(self.goal)),
        };
        let throttle = Throttle::start(&setup, &mut silent)?;
        Ok(Running {
            throttle,
            called: Instant::now(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_piece_is_no_pause_and_a_pause_begins_anew() {
        let place = tempfile::tempdir().unwrap();
        let mut session = Session::open(place.path().to_owned(), Goal::default()).unwrap();
        let age = |session: &mut Session| {
            let running = session.running.as_mut().unwrap();
            running.called = running.called.checked_sub(PAUSE * 2).unwrap();
        };
        let freed = |session: &Session| session.running.as_ref().unwrap().throttle.freed_bytes();
        let may = session.wait(5000).unwrap();
        age(&mut session);
        session.done(may).unwrap();
        assert_eq!(freed(&session), may);
        session.wait(5000).unwrap();
        assert_eq!(freed(&session), may, "right after it goes on");
        age(&mut session);
        session.wait(5000).unwrap();
        assert_eq!(freed(&session), 0, "after a pause it begins anew");
    }
}
