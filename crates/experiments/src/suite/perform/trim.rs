//! Trimming a file system that files were removed from.

use std::ffi::OsString;

use super::Turn;
use super::removal::Freed;
use crate::Error;
use crate::suite::log::Figures;
use crate::suite::step::Step;

impl Turn<'_> {
    /// Trims with the system's `fstrim` or with trimbench's. Where the mount sends no discards,
    /// files are written and removed just before, so that there is something to trim: just these,
    /// because what earlier steps left is trimmed before.
    pub(super) fn trim(&mut self, step: Step) -> Result<Figures, Error> {
        if !self.now.cell.mounting.discards() {
            self.without_files()?;
            self.mount_anew()?;
            self.fstrim(Step::Fstrim)?;
            self.with_files()?;
        }
        self.without_files()?;
        self.mount_anew()?;
        self.fstrim(step)
    }

    /// Mounts the file system anew: ext4 remembers until then what it has trimmed.
    fn mount_anew(&mut self) -> Result<(), Error> {
        let cell = self.now.cell;
        self.stage.unmount()?;
        self.stage.mount(cell.kind.name(), cell.mounting.options)?;
        self.settle()
    }

    fn fstrim(&mut self, step: Step) -> Result<Figures, Error> {
        let mut words: Vec<OsString> = match step {
            Step::FstrimTrimbench => vec![self.trimbench.into(), "fstrim".into(), "--quiet".into()],
            _ => vec!["fstrim".into()],
        };
        words.push(self.stage.mount_point().into());
        let before = self.stage.counters()?;
        let mut freed = Freed::since(&before);
        let seconds = self.program(&words)?;
        freed.look(self.stage.counters()?.discards);
        // XFS returns while its last discards are still in flight.
        self.wait_until_quiet(&mut freed)?;
        Ok(Figures {
            freed_s: freed.last_s,
            ..self.figures(seconds, &before)?
        })
    }
}
