//! Observes the devices, the canary, the foreground and the free space.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use linux::presence::Witness;
use linux::pressure::Pressure;
use linux::stats::StatsError;
use load::Sampler;
use pace::{Discards, Feedback, Others, Space};
use record::absence::Absent;
use ssd::Time;

use super::canary::Canary;
use super::counters::{CanaryIo, DeviceCounters};

/// Everything that is measured while something is freed.
#[derive(Debug)]
pub(super) struct Monitor {
    pub(super) counters: DeviceCounters,
    canary: Option<Canary>,
    pub(super) waits: Waits,
    pub(super) absences: Absences,
    /// A protected control group.
    group: Option<Group>,
    /// The foreground's I/O at the last look.
    pub(super) others: Option<Others>,
}

impl Monitor {
    /// Begins.
    pub(super) fn new(
        counters: DeviceCounters,
        canary: Option<Canary>,
        group: Option<Group>,
        paced: bool,
    ) -> Monitor {
        Monitor {
            counters,
            canary,
            waits: Waits::default(),
            absences: match paced {
                true => Absences::watch(),
                false => Absences::default(),
            },
            group,
            others: None,
        }
    }

    /// Reads the canary, and returns what happened since the last look. The counters are those of
    /// their last reading.
    pub(super) fn look(&mut self, now: Time, paced: bool) -> Feedback<'_> {
        let absent = self.absences.spoil_this_look();
        let (canary, own) = match &mut self.canary {
            Some(canary) if absent => (&[][..], canary.leave_out(now)),
            Some(canary) => canary.observe(now, &mut self.waits),
            None => (&[][..], CanaryIo::default()),
        };
        let seen = paced && self.counters.has_devices();
        self.others = seen.then(|| self.counters.others(own));
        Feedback {
            now,
            discards: self.counters.discards(),
            flushes: self.counters.flushes(),
            canary,
            others: self.others,
            pressure: self.group.as_mut().and_then(Group::waited),
            deleters_beside: self.counters.deleters_beside(),
            absent,
            ..Feedback::default()
        }
    }

    /// Returns the name of the protected control group.
    pub(super) fn protected(&self) -> Option<String> {
        self.group.as_ref().map(|group| group.name().to_owned())
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
        self.counters.discards()
    }

    /// Returns how much longer than usual the canary's slowest recent read took.
    pub(super) fn added_latency(&self) -> Option<Duration> {
        self.canary.as_ref().map(|_| self.waits.added_lately())
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

// Spans in which this process did not run: which looks of a throttle they spoil.

/// The look after an absence is left out, and the next one: the first may have read its counters
/// before the absence, and then the second has what happened meanwhile.
const LOOKS: u8 = 2;

/// Watches whether this process runs.
#[derive(Debug, Default)]
pub(super) struct Absences {
    /// Where something is measured.
    witness: Option<Witness>,
    all: Vec<Absent>,
    /// The number of looks that are still to be left out.
    looks: u8,
}

impl Absences {
    /// Begins to watch. If no thread can be started, it sees no absence.
    pub(super) fn watch() -> Absences {
        Absences {
            witness: Witness::start().ok(),
            ..Absences::default()
        }
    }

    /// Whether the look that is being made is to be left out.
    pub(super) fn spoil_this_look(&mut self) -> bool {
        self.note();
        let spoilt = self.looks > 0;
        self.looks = self.looks.saturating_sub(1);
        spoilt
    }

    /// How long this process has been away so far, in seconds.
    pub(super) fn seconds(&mut self) -> f64 {
        self.note();
        self.all.iter().map(|absent| absent.seconds).sum()
    }

    /// All of them.
    pub(super) fn take(&mut self) -> Vec<Absent> {
        self.note();
        std::mem::take(&mut self.all)
    }

    fn note(&mut self) {
        let found = self.witness.as_ref().map_or(Vec::new(), Witness::take);
        if !found.is_empty() {
            self.looks = LOOKS;
        }
        self.all.extend(found);
    }
}

// The latencies of the canary's reads.

/// The latencies of the canary's reads, before anything was freed and since.
#[derive(Debug)]
pub(super) struct Waits {
    before: Histogram<u64>,
    since: Histogram<u64>,
    begun: bool,
    /// The usual wait: the lower of the two medians, because most reads meet no discard, in
    /// nanoseconds. Taken with each batch, for it is asked for at every look.
    usual: u64,
    /// The slowest of the last two batches, in nanoseconds.
    lately: [u64; 2],
}

impl Default for Waits {
    fn default() -> Waits {
        Waits {
            before: Sampler::histogram(),
            since: Sampler::histogram(),
            begun: false,
            usual: 0,
            lately: [0; 2],
        }
    }
}

impl Waits {
    /// Notes that from now on something is freed.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    pub(super) fn has_begun(&self) -> bool {
        self.begun
    }

    pub(super) fn add(&mut self, waits: &Histogram<u64>) {
        let to = if self.begun {
            &mut self.since
        } else {
            &mut self.before
        };
        // Both have the same bounds.
        let _ = to.add(waits);
        self.lately = [self.lately[1], waits.max()];
        let medians = [&self.before, &self.since]
            .into_iter()
            .filter(|histogram| !histogram.is_empty())
            .map(|histogram| histogram.value_at_quantile(0.5));
        self.usual = medians.min().unwrap_or(0);
    }

    /// Returns how much longer than usual the slowest recent read took.
    pub(super) fn added_lately(&self) -> Duration {
        let most = self.lately[0].max(self.lately[1]);
        Duration::from_nanos(most.saturating_sub(self.usual))
    }
}

// The waits of a protected control group.

/// The time between two looks. The kernel adds up all processors' counters for each.
const PRESSURE_EVERY: Duration = Duration::from_millis(50);

/// A control group whose waits for I/O the goal limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protected {
    /// The name by which it was given.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
}

/// Looks from time to time how long the tasks of a control group have waited for I/O.
#[derive(Debug)]
pub(super) struct Group {
    of: Protected,
    at: Option<Instant>,
    waited: Option<Duration>,
}

impl Group {
    pub(super) fn new(of: Protected) -> Group {
        Group {
            of,
            at: None,
            waited: None,
        }
    }

    /// Returns the name by which it was given.
    pub(super) fn name(&self) -> &str {
        &self.of.name
    }

    /// Returns how long they have waited; `None` if the group is gone.
    pub(super) fn waited(&mut self) -> Option<Duration> {
        if self.at.is_none_or(|at| at.elapsed() >= PRESSURE_EVERY) {
            self.at = Some(Instant::now());
            let found = Pressure::of_group(&self.of.directory).ok();
            self.waited = found.map(|found| Duration::from_micros(found.some_us));
        }
        self.waited
    }
}

// How full the file system is: a full disk relaxes the goal.

/// The time between two looks at the file system.
const SPACE_EVERY: Duration = Duration::from_millis(250);

/// Looks at a file system's free space from time to time.
#[derive(Debug, Clone, Default)]
pub(super) struct SpaceWatch {
    /// Freeing gives the file system space.
    pub(super) matters: bool,
    /// The free space when it was last looked at.
    pub(super) last: Option<Space>,
    at: Option<Instant>,
}

impl SpaceWatch {
    /// Begins. `matters`: what is freed gives the file system space; otherwise nothing is looked
    /// at.
    pub(super) fn new(matters: bool) -> SpaceWatch {
        SpaceWatch {
            matters,
            ..SpaceWatch::default()
        }
    }

    /// Looks at the file system of an open directory if it is time.
    pub(super) fn look(&mut self, on: impl AsFd) {
        if !self.matters || self.at.is_some_and(|at| at.elapsed() < SPACE_EVERY) {
            return;
        }
        self.at = Some(Instant::now());
        self.last = rustix::fs::fstatvfs(on).ok().map(|stat| Space {
            free: stat.f_bavail.saturating_mul(stat.f_frsize),
            size: stat.f_blocks.saturating_mul(stat.f_frsize),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_latency_is_the_slowest_of_the_last_two_batches_less_the_usual() {
        let mut waits = Waits::default();
        let batch = |values: &[u64]| {
            let mut batch = Sampler::histogram();
            for us in values {
                batch.record(us * 1000).unwrap();
            }
            batch
        };
        let near = |span: Duration, ms: f64| (span.as_secs_f64() * 1e3 - ms).abs() < 0.02;
        waits.add(&batch(&[100, 100, 100]));
        waits.begin();
        waits.add(&batch(&[100, 2100, 5100]));
        assert!(near(waits.added_lately(), 5.0));
        waits.add(&batch(&[100]));
        waits.add(&batch(&[100]));
        assert!(near(waits.added_lately(), 0.0), "it is over");
    }
}
