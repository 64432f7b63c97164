//! Finding dead drives and taking them down.

use std::io::ErrorKind;

use crate::down::{self, Down};
use crate::error::LabError;
use crate::lab::Lab;
use crate::lock;
use crate::place::Place;

/// A dead drive that was found.
#[derive(Debug)]
pub struct Swept {
    /// Its name.
    pub name: String,
    /// Whether it was ready once. If so, its server was killed; otherwise the process that made it.
    pub was_made: bool,
    /// Whether it is down now.
    pub outcome: Result<(), LabError>,
}

impl Lab {
    /// Takes down every drive that is dead: its server has died, or it was never made to its end. A
    /// drive that works, that hangs, or that a process is making or taking down isn't touched.
    ///
    /// The guardians do that at once. This is for the case that they were killed as well.
    ///
    /// # Errors
    /// If the drives can't be listed.
    pub fn sweep(&self) -> Result<Vec<Swept>, LabError> {
        let names = self.names()?;
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let root = lock::directory(self.root());
        // Nobody makes a directory now, so one without a hold isn't a new one.
        let root = root.map_err(LabError::io("cannot lock", self.root()))?;
        let mut swept = Vec::new();
        let mut held = Vec::new();
        for name in names {
            let place = self.new_place(&name)?;
            match lock::lock_if_free(&place.hold()) {
                Ok(Some(hold)) if place.is_dead() => held.push((place, hold)),
                Err(error)
                    if error.kind() == ErrorKind::NotFound
                        && place.is_there()
                        && place.server_pid().is_none() =>
                {
                    swept.push(take_down(&place));
                }
                _ => {}
            }
        }
        drop(root);
        swept.extend(held.iter().map(|(place, _hold)| take_down(place)));
        Ok(swept)
    }
}

fn take_down(place: &Place) -> Swept {
    Swept {
        name: place.name(),
        was_made: place.is_made(),
        outcome: down::take_down(place, Down::ByForce, down::SOON),
    }
}
