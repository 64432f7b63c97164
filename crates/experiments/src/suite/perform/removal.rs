//! Removing the files of a cell, and what syncs and discards take afterwards.

use std::ffi::OsString;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use linux::stats::Counters;

use super::Turn;
use crate::Error;
use crate::suite::log::Figures;
use crate::suite::step::Step;

/// For so long discards of a removal are waited for, where they come with a commit.
const DISCARDS: Duration = Duration::from_secs(600);

/// A removal is over when no discard has come for so many seconds, commits or not.
const IDLE_S: f64 = 0.6;

/// How often a commit is forced meanwhile.
const LOOK: Duration = Duration::from_millis(50);

/// Where they come much later, nobody waits for them.
const LATE: Duration = Duration::from_secs(2);

impl Turn<'_> {
    /// Removes the files in one of the three ways, then syncs twice.
    pub(super) fn removal(&mut self, step: Step) -> Result<Figures, Error> {
        self.with_files()?;
        let before = self.stage.counters()?;
        let mut freed = Freed::since(&before);
        self.remove(step)?;
        let seconds = freed.elapsed_s();
        freed.look(self.stage.counters()?.discards);
        let first_sync_s = self.sync()?;
        freed.look(self.stage.counters()?.discards);
        let second_sync_s = self.sync()?;
        self.wait_for_discards(&mut freed)?;
        Ok(Figures {
            first_sync_s: Some(first_sync_s),
            second_sync_s: Some(second_sync_s),
            freed_s: freed.last_s,
            ..self.figures(seconds, &before)?
        })
    }

    /// Waits until the discards of a removal are over.
    fn wait_for_discards(&mut self, freed: &mut Freed) -> Result<(), Error> {
        let cell = self.now.cell;
        // XFS frees after the call, and discards with the commit after that.
        let commits = cell.mounting.discards() && cell.kind.rules().frees_in_background();
        while commits
            && freed
                .last_s
                .is_none_or(|last_s| freed.elapsed_s() < last_s + IDLE_S)
        {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Stopped);
            }
            self.sync()?;
            freed.look(self.stage.counters()?.discards);
            // Space that was never written sends none.
            if freed.last_s.is_none() && freed.elapsed_s() > 4.0 * IDLE_S {
                break;
            }
            std::thread::sleep(LOOK);
        }
        self.wait_until_quiet(freed)
    }

    /// Waits until no discard is in flight and none has come for a while.
    pub(super) fn wait_until_quiet(&self, freed: &mut Freed) -> Result<(), Error> {
        let at_most = match self.now.cell.mounting.is_late() {
            true => LATE,
            false => DISCARDS,
        };
        self.stage
            .settle(at_most, self.stop, |now| freed.look(now.discards))
    }

    fn remove(&mut self, step: Step) -> Result<(), Error> {
        self.files = false;
        let paths = self.paths();
        let program: Vec<OsString> = match step {
            Step::RmTrimbench => {
                let trimbench = self.trimbench.into();
                vec![trimbench, "rm".into(), "-f".into(), "--quiet".into()]
            }
            _ => vec!["rm".into(), "-f".into()],
        };
        let at_once = if step == Step::RmEach {
            1
        } else {
            paths.len().max(1)
        };
        for paths in paths.chunks(at_once) {
            let mut words = program.clone();
            words.extend(paths.iter().map(OsString::from));
            self.program(&words)?;
        }
        Ok(())
    }

    /// Removes the files, if they are there, without a figure.
    pub(super) fn without_files(&mut self) -> Result<(), Error> {
        self.remove(Step::Rm)?;
        self.sync()?;
        self.sync()?;
        self.settle()
    }
}

/// When the last discard of a removal or a trim was seen.
pub(super) struct Freed {
    began: Instant,
    discards: u64,
    /// Seconds from the beginning to the last discard; `None` without any.
    pub(super) last_s: Option<f64>,
}

impl Freed {
    /// It begins now, with these counters.
    pub(super) fn since(before: &Counters) -> Freed {
        Freed {
            began: Instant::now(),
            discards: before.discards,
            last_s: None,
        }
    }

    fn elapsed_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    /// Notes the count of discards that the device has completed by now.
    pub(super) fn look(&mut self, discards: u64) {
        if discards != self.discards {
            self.discards = discards;
            self.last_s = Some(self.elapsed_s());
        }
    }
}

// Trimming a file system that files were removed from.

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
