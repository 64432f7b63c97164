//! Trimming a file system that files were removed from.

use std::ffi::OsString;

use super::Turn;
use crate::log::Figures;
use crate::programs::Trouble;
use crate::step::Step;

impl Turn<'_> {
    /// Trims with the system's `fstrim` or with trimbench's. Where the mount sends no discards,
    /// files were written and removed just before, so that there is something to trim.
    pub(super) fn trim(&mut self, step: Step) -> Result<Figures, Trouble> {
        let cell = self.now.cell;
        if !cell.mounting.discards() {
            self.with_files()?;
        }
        self.without_files()?;
        // ext4 remembers what it has trimmed until it is unmounted.
        self.stage.unmount()?;
        self.stage.mount(cell.kind.name(), cell.mounting.options)?;
        self.settle()?;
        let mut words: Vec<OsString> = match step {
            Step::FstrimTrimbench => vec![
                self.programs.trimbench.clone().into(),
                "fstrim".into(),
                "--quiet".into(),
            ],
            _ => vec!["fstrim".into()],
        };
        words.push(self.stage.mount_point().into());
        self.timed(&words)
    }
}
