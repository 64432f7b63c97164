//! Pauses after the blocks that a trash itself frees.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use crate::watch::{Progress, Watch};

/// The shortest pause that other I/O would notice, and the longest.
const FELT: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(2);

/// The time between two calls of the watch.
const LOOK: Duration = Duration::from_millis(50);

/// The pauses after each of the last, small discards, in which the foreground gets the drive.
pub(crate) struct Rests<'a> {
    each: Duration,
    /// The watch has ended the deletion.
    stopped: bool,
    progress: Progress,
    watch: &'a mut dyn Watch,
}

impl<'a> Rests<'a> {
    /// None, until their length is set.
    pub(crate) fn new(progress: Progress, watch: &'a mut dyn Watch) -> Rests<'a> {
        Rests {
            each: Duration::ZERO,
            stopped: false,
            progress,
            watch,
        }
    }

    /// How long each is from now on.
    pub(crate) fn set(&mut self, each: Duration) {
        self.each = each.min(LONGEST);
    }

    /// Commits the changes of a directory and pauses, unless the pause is too short to matter.
    /// After the watch has ended the deletion there is no pause: all that is left is small.
    pub(super) fn after(&mut self, directory: impl AsFd) {
        if self.stopped || self.each < FELT {
            return;
        }
        // It may be open as a path alone.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(open) = rustix::fs::openat(directory, c".", flags, Mode::empty()) {
            let _ = rustix::fs::fsync(open);
        }
        let until = Instant::now() + self.each;
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if self.watch.tick(&self.progress).is_break() {
                self.stopped = true;
                return;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;

    /// Ends the deletion after this many calls.
    struct Patience(u32);

    impl Watch for Patience {
        fn tick(&mut self, _: &Progress) -> ControlFlow<()> {
            match self.0.checked_sub(1) {
                None => ControlFlow::Break(()),
                Some(left) => {
                    self.0 = left;
                    ControlFlow::Continue(())
                }
            }
        }
    }

    #[test]
    fn whoever_has_had_enough_waits_for_none_that_follows() {
        let directory = tempfile::tempdir().unwrap();
        let directory = std::fs::File::open(directory.path()).unwrap();
        let mut patience = Patience(2);
        let mut rests = Rests::new(Progress::default(), &mut patience);
        rests.set(LONGEST);
        rests.after(&directory);
        assert!(rests.stopped);
        rests.set(LONGEST);
        rests.after(&directory);
    }

    #[test]
    fn what_nobody_notices_is_no_rest() {
        let directory = tempfile::tempdir().unwrap();
        let directory = std::fs::File::open(directory.path()).unwrap();
        // It would be stopped at its first look.
        let mut patience = Patience(0);
        let mut rests = Rests::new(Progress::default(), &mut patience);
        rests.set(FELT / 2);
        rests.after(&directory);
        assert!(!rests.stopped);
    }
}
