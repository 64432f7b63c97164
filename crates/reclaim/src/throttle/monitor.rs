//! Observes the devices, the canary and the foreground.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use linux::SysRoot;
use linux::files::Aligned;
use linux::presence::Witness;
use linux::stats::StatsError;
use linux::vm::{Traffic, Vmstat};
use load::Sampler;
use pace::{Discards, Feedback, Io, Others};
use record::absence::Absent;
use ssd::Time;

use super::canary::Canary;
use super::counters::{CanaryIo, DeviceCounters};
use super::group::Group;

/// Everything that is measured while something is freed.
#[derive(Debug)]
pub(super) struct Monitor {
    pub(super) counters: DeviceCounters,
    /// Where the devices' counters are off.
    uncounted: Option<Uncounted>,
    canary: Option<Canary>,
    pub(super) waits: Waits,
    pub(super) absences: Absences,
    /// A protected control group.
    group: Option<Group>,
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
        group: Option<Group>,
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
            group,
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

// Recognises discards of devices whose counters are off.
//
// The discards are done when reads take no longer than usual. Their number and size stay unknown.
// Freed bytes count as discarded once some reads in a row are as quick as before. The time until
// then counts as the time of their discards.

const BLOCK: usize = 4096;

/// The number of consecutive reads that must be quick.
const QUICK: u32 = 3;

/// Discards are sent within this time of the call that makes them come.
const SENT: Duration = Duration::from_millis(2);

/// A read is slow if it takes more than this many times the usual, and [`HELD_MORE`] more.
const HELD: u32 = 3;

const HELD_MORE: Duration = Duration::from_micros(200);

/// The time between two looks at the reads and writes of the whole machine. The kernel adds up all
/// processors' counters for each look.
const TRAFFIC_EVERY: Duration = Duration::from_millis(10);

/// Reads to learn what is usual.
const LEARN: usize = 9;

/// Recognises by its own reads when discards are done.
#[derive(Debug)]
pub(super) struct Uncounted {
    file: Arc<File>,
    buffer: Aligned,
    usual: Duration,
    reads: u64,
    discards: Discards,
    quick: u32,
    /// When the last call returned that may send discards.
    called: Instant,
    vmstat: Option<Vmstat>,
    before: Traffic,
    traffic: Traffic,
    asked: Option<Instant>,
}

impl Uncounted {
    /// Starts with reads of this file, which is open for direct reads, to learn their usual time.
    ///
    /// # Errors
    /// If the file can't be read.
    pub(super) fn new(file: Arc<File>) -> io::Result<Uncounted> {
        let vmstat = Vmstat::open(&SysRoot::host()).ok();
        let before = vmstat.as_ref().and_then(Vmstat::read).unwrap_or_default();
        let mut uncounted = Uncounted {
            file,
            buffer: Aligned::new(BLOCK),
            usual: Duration::ZERO,
            reads: 0,
            discards: Discards::default(),
            quick: 0,
            called: Instant::now(),
            vmstat,
            before,
            traffic: before,
            asked: None,
        };
        let mut waits = Vec::with_capacity(LEARN);
        for _ in 0..LEARN {
            waits.push(uncounted.read()?);
        }
        waits.sort();
        uncounted.usual = waits[LEARN / 2];
        Ok(uncounted)
    }

    /// Notes that a call has returned that frees or commits: its discards begin.
    pub(super) fn called(&mut self) {
        self.called = Instant::now();
        self.quick = 0;
    }

    /// Returns the discards as of the last call of [`discards`](Self::discards).
    pub(super) fn last(&self) -> Discards {
        self.discards
    }

    /// Returns the discards so far, if `freed` bytes were freed for which discards come.
    pub(super) fn discards(&mut self, freed: u64) -> Discards {
        while self.discards.bytes < freed {
            let Ok(wait) = self.read() else { break };
            if wait > self.usual * HELD + HELD_MORE {
                self.quick = 0;
                break;
            }
            self.quick += 1;
            if self.quick >= QUICK {
                if self.called.elapsed() >= SENT {
                    self.discards.bytes = freed;
                    self.discards.commands += 1;
                }
                break;
            }
        }
        self.discards
    }

    /// Returns the I/O of other processes on any disk, or `None` where the kernel doesn't show it.
    /// It counts reads as writes: reads of another disk would otherwise suggest that discards on
    /// this one slow down no reader.
    pub(super) fn others(&mut self, canary: CanaryIo) -> Option<Others> {
        let vmstat = self.vmstat.as_ref()?;
        if self.asked.is_none_or(|at| at.elapsed() >= TRAFFIC_EVERY) {
            self.asked = Some(Instant::now());
            self.traffic = vmstat.read()?;
        }
        let bytes = self.traffic.read - self.before.read.min(self.traffic.read);
        let written = self.traffic.written - self.before.written.min(self.traffic.written);
        let own = self.reads + canary.ops;
        let all = (bytes + written) / BLOCK as u64;
        Some(Others {
            reads: Io::default(),
            writes: all.saturating_sub(own),
        })
    }

    fn read(&mut self) -> io::Result<Duration> {
        let blocks = (self.file.metadata()?.len() / BLOCK as u64).max(1);
        let at = fastrand::u64(..blocks) * BLOCK as u64;
        let began = Instant::now();
        self.file.read_at(self.buffer.get(BLOCK), at)?;
        self.reads += 1;
        Ok(began.elapsed())
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
