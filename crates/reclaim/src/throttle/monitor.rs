//! Observes the devices, the canary and the foreground.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use linux::stats::StatsError;
use pace::{Discards, Feedback, Others};
use ssd::Time;

use super::absences::Absences;
use super::canary::Canary;
use super::counters::{CanaryIo, DeviceCounters};
use super::uncounted::Uncounted;
use super::waits::Waits;

/// Everything that is measured while something is freed.
#[derive(Debug)]
pub(super) struct Monitor {
    pub(super) counters: DeviceCounters,
    /// Where the devices' counters are off.
    uncounted: Option<Uncounted>,
    canary: Option<Canary>,
    pub(super) waits: Waits,
    pub(super) absences: Absences,
    /// The foreground's I/O at the last look.
    pub(super) others: Option<Others>,
}

impl Monitor {
    /// Begins. `uncounted`: the file by whose reads discards are recognised, where the devices'
    /// counters are off.
    pub(super) fn new(
        counters: DeviceCounters,
        canary: Option<Canary>,
        uncounted: Option<Arc<File>>,
        paced: bool,
    ) -> Monitor {
        Monitor {
            counters,
            uncounted: uncounted.and_then(|file| Uncounted::new(file).ok()),
            canary,
            waits: Waits::default(),
            absences: match paced {
                true => Absences::watch(),
                false => Absences::default(),
            },
            others: None,
        }
    }

    /// Reads the canary, and returns what happened since the last look. The counters are those of
    /// their last reading. `due`: bytes freed for which discards come.
    pub(super) fn look(&mut self, now: Time, due: u64, paced: bool) -> Feedback<'_> {
        let absent = self.absences.spoil_this_look();
        let (canary, own) = match &mut self.canary {
            Some(canary) if absent => (&[][..], canary.leave_out(now)),
            Some(canary) => canary.observe(now, &mut self.waits),
            None => (&[][..], CanaryIo::default()),
        };
        let (discards, others) = match &mut self.uncounted {
            Some(uncounted) => (uncounted.discards(due), uncounted.others(own)),
            None => {
                let others = paced.then(|| self.counters.others(own));
                (self.counters.discards(), others)
            }
        };
        self.others = others;
        Feedback {
            now,
            discards,
            flushes: self.counters.flushes(),
            canary,
            others,
            deleters_beside: self.counters.deleters_beside(),
            absent,
            ..Feedback::default()
        }
    }

    /// Returns whether anything but the canary has read since the beginning.
    pub(super) fn has_foreign_reads(&mut self) -> Result<bool, StatsError> {
        self.counters.read()?;
        let own = self.canary.as_mut().map_or(0, Canary::reads);
        Ok(self.counters.reads() > own)
    }

    /// Forgets all that was observed so far.
    pub(super) fn restart(&mut self) -> Result<(), StatsError> {
        if let Some(canary) = &mut self.canary {
            canary.restart();
        }
        self.counters.restart()
    }

    /// Returns the discards since the beginning, as they were last read.
    pub(super) fn discards(&self) -> Discards {
        match &self.uncounted {
            Some(uncounted) => uncounted.last(),
            None => self.counters.discards(),
        }
    }

    /// Returns whether the devices count discards.
    pub(super) fn is_counted(&self) -> bool {
        self.uncounted.is_none()
    }

    /// Returns how much longer than usual the canary's slowest recent read took.
    pub(super) fn added_latency(&self) -> Option<Duration> {
        self.canary.as_ref().map(|_| self.waits.added_lately())
    }

    /// A call has returned that may have sent discards.
    pub(super) fn called(&mut self) {
        if let Some(uncounted) = &mut self.uncounted {
            uncounted.called();
        }
    }
}

impl Drop for Monitor {
    /// However the deletion ends, the canary keeps no file of the file system open.
    fn drop(&mut self) {
        if let Some(canary) = self.canary.take() {
            canary.end();
        }
    }
}
