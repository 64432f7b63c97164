//! When the server looks at how long reads take in the kernel.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::counted;
use crate::device::{Answer, Device};
use crate::place::Place;

/// Between two looks while nobody reads the drive.
const SELDOM: Duration = Duration::from_millis(400);
/// Between two looks while it is read.
const OFTEN: Duration = Duration::from_millis(40);

/// The server's looks.
#[derive(Debug)]
pub(crate) struct Looks {
    /// The drive's loop device, once it was found.
    device: Option<PathBuf>,
    last: Instant,
    /// Whether the drive was read between the last two.
    often: bool,
}

impl Looks {
    pub(crate) fn new() -> Looks {
        Looks {
            device: None,
            last: Instant::now(),
            often: false,
        }
    }

    /// Returns the time from one look to the next.
    pub(crate) fn every(&self) -> Duration {
        if self.often { OFTEN } else { SELDOM }
    }

    /// Looks, if it is time for it.
    pub(crate) fn keep<A: Answer>(&mut self, device: &Device<A>, place: &Place) {
        if self.last.elapsed() >= self.every() {
            self.look(device, place);
        }
    }

    /// Lets the model know how long reads take in the kernel.
    pub(crate) fn look<A: Answer>(&mut self, device: &Device<A>, place: &Place) {
        self.last = Instant::now();
        // Only the kernel's lists are read: the server must never touch its own file.
        if !self.often {
            self.device = place.devices().into_iter().next();
        }
        let counted = self.device.as_ref().and_then(|found| counted(found).ok());
        self.often = counted.is_some_and(|counted| device.tune(counted));
    }
}
