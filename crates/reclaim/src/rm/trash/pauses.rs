//! Pauses after the blocks that a trash itself frees.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use crate::event::{Listener, Progress, Reporter, report};

/// The shortest pause that other I/O would notice, and the longest.
const NOTICED: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// The pauses after each of the last, small discards, in which the foreground gets the drive.
pub(crate) struct Pauses<'a> {
    each: Duration,
    /// The listener has ended the deletion.
    stopped: bool,
    progress: Progress,
    listener: &'a mut Listener<'a>,
}

impl<'a> Pauses<'a> {
    /// None, until their length is set.
    pub(crate) fn new(progress: Progress, listener: &'a mut Listener<'a>) -> Pauses<'a> {
        Pauses {
            each: Duration::ZERO,
            stopped: false,
            progress,
            listener,
        }
    }

    /// How long each is from now on.
    pub(crate) fn set(&mut self, each: Duration) {
        self.each = each.min(LONGEST);
    }

    /// Commits the changes of a directory and pauses, unless the pause is too short to matter.
    /// After the listener has ended the deletion there is no pause: all that is left is small.
    pub(super) fn after(&mut self, directory: impl AsFd) {
        if self.stopped || self.each < NOTICED {
            return;
        }
        let _ = crate::directory::reopen(directory).and_then(rustix::fs::fsync);
        let until = Instant::now() + self.each;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if report(self.listener, self.progress).is_err() {
                self.stopped = true;
                return;
            }
            std::thread::sleep(left.min(Reporter::EVERY));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Reply};

    /// A listener that ends the deletion after this many events.
    fn patience(mut left: u32) -> impl FnMut(Event<'_>) -> Reply {
        move |_| match left.checked_sub(1) {
            None => Reply::Stop,
            Some(less) => {
                left = less;
                Reply::Yes
            }
        }
    }

    #[test]
    fn after_a_stop_there_are_no_more_pauses() {
        let directory = tempfile::tempdir().unwrap();
        let directory = std::fs::File::open(directory.path()).unwrap();
        let mut patience = patience(2);
        let mut pauses = Pauses::new(Progress::default(), &mut patience);
        pauses.set(LONGEST);
        pauses.after(&directory);
        assert!(pauses.stopped);
        pauses.set(LONGEST);
        pauses.after(&directory);
    }

    #[test]
    fn a_pause_that_nobody_notices_is_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let directory = std::fs::File::open(directory.path()).unwrap();
        // It would be stopped at its first look.
        let mut patience = patience(0);
        let mut pauses = Pauses::new(Progress::default(), &mut patience);
        pauses.set(NOTICED / 2);
        pauses.after(&directory);
        assert!(!pauses.stopped);
    }
}
