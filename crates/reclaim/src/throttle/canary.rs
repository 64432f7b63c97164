//! The canary: a few dozen small direct reads each second on the same file system.
//!
//! It measures the wait of a foreground that doesn't wait for an answer before it reads on.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use linux::files::Aligned;
use linux::presence::RunQueue;
use load::{Actor, ActorSpec, Blocks, Clock, Engine, LoadError, LoopKind, Region, Sampler, Work};
use pace::Canary as Read;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use ssd::Time;

use super::counters::CanaryIo;
use super::monitor::Waits;
use super::setup::Pacing;

/// Reads each second. They are few enough to slow down no other I/O.
const RATE: f64 = 40.0;

/// Reads in flight at most; later ones wait, and their wait counts.
const DEPTH: u32 = 8;

/// The bytes of its file. It is small: writing it is a load of its own, and a read waits behind
/// discards wherever it lies.
const BYTES: u64 = 1 << 20;

/// Reads that waited for a processor for this share of their time, and for at least this long, show
/// nothing about the drive.
const OWN: f64 = 0.5;
const OWN_AT_LEAST: Duration = Duration::from_millis(1);

/// How long to wait for its last reads at the end.
const GRACE: Duration = Duration::from_millis(500);

/// Why there is no canary.
#[derive(Debug, thiserror::Error)]
pub(super) enum CanaryError {
    #[error("its file can't be made: {0}")]
    File(io::Error),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("it can't be put into the control group {group}: {1}", group = record::units::names::shown(_0))]
    Group(PathBuf, io::Error),
}

/// Reads all the time.
#[derive(Debug)]
pub(super) struct Canary {
    actor: Actor,
    sampler: Sampler,
    clock: Clock,
    own: CanaryIo,
    /// Latencies that were counted and not yet returned.
    counted: Option<Histogram<u64>>,
    last: Option<Time>,
    reads: Vec<Read>,
    cpu: Cpu,
}

/// How long the canary's thread waits for a processor.
#[derive(Debug)]
struct Cpu {
    queue: Option<RunQueue>,
    before: Duration,
}

impl Cpu {
    /// Watches the canary's own thread. With several threads of an engine without a queue it
    /// watches none, because any of them may have read.
    fn of(actor: &Actor) -> Cpu {
        let queue = match actor.workers().threads(0)[..] {
            [one] if actor.engine() != Engine::Sync => RunQueue::of_thread(one).ok(),
            _ => None,
        };
        let before = queue.as_ref().and_then(RunQueue::waited);
        Cpu {
            queue,
            before: before.unwrap_or_default(),
        }
    }

    /// Since the last call.
    fn waited(&mut self) -> Duration {
        let now = self.queue.as_ref().and_then(RunQueue::waited);
        let now = now.unwrap_or(self.before);
        now.saturating_sub(std::mem::replace(&mut self.before, now))
    }
}

impl Canary {
    /// Starts reading a file that is open for direct reads.
    pub(super) fn start(file: Arc<File>, pacing: &Pacing) -> Result<Canary, CanaryError> {
        let group = pacing.canary_group.as_ref();
        let found = file.metadata().map_err(CanaryError::File)?;
        // A device's length isn't told there.
        let len = match found.file_type().is_block_device() {
            true => BYTES,
            false => found.len().min(BYTES),
        };
        // While this lives, threads that are started are in the group.
        let _visit = group
            .map(|group| {
                linux::cgroup::visit(group)
                    .map_err(|error| CanaryError::Group(group.clone(), error))
            })
            .transpose()?;
        // A few dozen readings a second are not worth the 50 ms of a calibration.
        let clock = Clock::without_calibration();
        let spec = ActorSpec {
            name: "canary".to_owned(),
            work: Work::Blocks(Blocks {
                target: Some(Region {
                    file,
                    start: 0,
                    len,
                }),
                ..Blocks::READS
            }),
            arrival: LoopKind::Open {
                rate_per_s: pacing.reads_per_s.unwrap_or(RATE),
                poisson: true,
                depth: DEPTH,
            },
            seed: u64::from(std::process::id()),
        };
        let actor = Actor::start(spec, clock)?;
        let sampler = Sampler::new(actor.series()[0].meter.clone());
        let cpu = Cpu::of(&actor);
        Ok(Canary {
            actor,
            sampler,
            clock,
            own: CanaryIo::default(),
            counted: None,
            last: Some(Time::ZERO),
            reads: Vec::new(),
            cpu,
        })
    }

    /// Returns the reads that completed since the last time, and all that the canary has done so
    /// far. Adds the reads' latencies to `waits`.
    pub(super) fn observe(&mut self, now: Time, waits: &mut Waits) -> (&[Read], CanaryIo) {
        self.reads.clear();
        let waited = self.cpu.waited();
        self.count_own(self.clock.now());
        if let Some(response) = self.counted.take()
            && !is_own_wait(waited, total(&response))
        {
            waits.add(&response);
            spread(&response, self.last, now, &mut self.reads);
        }
        self.last = Some(now);
        (&self.reads, self.own)
    }

    /// Returns how many reads have completed so far.
    pub(super) fn reads(&mut self) -> u64 {
        self.count_own(self.clock.now());
        self.own.ops
    }

    /// Counts the reads since the last time as the canary's own, and keeps their latencies.
    fn count_own(&mut self, at: load::Nanos) {
        let sample = self.sampler.sample(at);
        if sample.interval.ops == 0 {
            return;
        }
        let response = self.counted.get_or_insert_with(Sampler::histogram);
        sample.add_response_to(response);
        let mut service = Sampler::histogram();
        sample.add_service_to(&mut service);
        self.own.ops += sample.interval.ops;
        self.own.wait += total(&service);
    }

    /// Leaves out all reads that were meant to begin before now, because this process was away.
    /// Returns all that the canary has done so far.
    pub(super) fn leave_out(&mut self, now: Time) -> CanaryIo {
        let at = self.clock.now();
        self.actor.leave_out_before(at);
        self.count_own(at);
        self.counted = None;
        self.last = Some(now);
        self.own
    }

    /// Forgets all reads so far: from now on time and reads count from zero.
    pub(super) fn restart(&mut self) {
        self.leave_out(Time::ZERO);
        self.own = CanaryIo::default();
    }

    /// Ends it, and closes its file.
    pub(super) fn end(self) {
        self.actor.finish(GRACE);
    }
}

/// Whether reads that took so long in all rather waited for a processor.
fn is_own_wait(waited: Duration, all: Duration) -> bool {
    waited >= OWN_AT_LEAST && waited >= all.mul_f64(OWN)
}

/// The sum of all latencies.
fn total(histogram: &Histogram<u64>) -> Duration {
    let ns = |value: &hdrhistogram::iterators::IterationValue<u64>| {
        value.value_iterated_to() * value.count_at_value()
    };
    Duration::from_nanos(histogram.iter_recorded().map(|value| ns(&value)).sum())
}

/// Single reads of a histogram. When each was meant to start isn't kept: the
/// slowest began first, and they are spread over the time in which they ended.
fn spread(histogram: &Histogram<u64>, last: Option<Time>, now: Time, reads: &mut Vec<Read>) {
    for value in histogram.iter_recorded() {
        let latency = Duration::from_nanos(value.value_iterated_to());
        for _ in 0..value.count_at_value() {
            reads.push(Read {
                intended: now,
                latency,
            });
        }
    }
    reads.reverse();
    let begin = last.unwrap_or(now);
    let step = now.since(begin).as_secs_f64() / reads.len().max(1) as f64;
    for (i, read) in reads.iter_mut().enumerate() {
        let at = begin.as_secs_f64() + step * (i + 1) as f64;
        read.intended = Time::from_secs_f64(at - read.latency.as_secs_f64());
    }
}

/// A file of random bytes without a name, open for direct reads. Its space comes free when it is
/// closed.
pub(super) fn make(on: BorrowedFd<'_>) -> Result<File, CanaryError> {
    nameless_filled(on).map_err(CanaryError::File)
}

/// One with random content, as the canary reads it.
pub(crate) fn nameless_filled(on: BorrowedFd<'_>) -> io::Result<File> {
    let file = nameless(on)?;
    let mut buffer = Aligned::new(BYTES as usize);
    let bytes = buffer.get(BYTES as usize);
    fastrand::Rng::new().fill(bytes);
    file.write_all_at(bytes, 0)?;
    file.sync_all()?;
    Ok(file)
}

/// An empty one.
pub(crate) fn nameless(on: BorrowedFd<'_>) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::openat(on, c".", flags | OFlags::TMPFILE, mode) {
        Ok(fd) => return Ok(File::from(fd)),
        // Not every file system has files without names.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let name = format!(".trimbench-canary-{:08x}", fastrand::u32(..));
    let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let opened: Result<OwnedFd, Errno> = rustix::fs::openat(on, &name, flags, mode);
    if !matches!(opened, Err(Errno::EXIST)) {
        // The file may have been made before direct I/O was refused.
        let _ = rustix::fs::unlinkat(on.as_fd(), &name, AtFlags::empty());
    }
    Ok(File::from(opened?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_began_first() {
        let mut histogram = Sampler::histogram();
        for ms in [1, 30, 2] {
            histogram.record(ms * 1_000_000).unwrap();
        }
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut reads = Vec::new();
        spread(&histogram, Some(at(100)), at(160), &mut reads);
        let ms: Vec<u128> = reads.iter().map(|read| read.latency.as_millis()).collect();
        assert_eq!(ms, [30, 2, 1]);
        assert!(reads.is_sorted_by_key(|read| read.intended));
        assert!(reads[0].intended.since(at(89)) < Duration::from_millis(3));
        assert!((total(&histogram).as_secs_f64() - 0.033).abs() < 0.001);
    }

    #[test]
    fn a_read_that_waited_for_a_processor_is_not_the_drives() {
        let us = Duration::from_micros;
        assert!(is_own_wait(us(9_000), us(10_000)));
        assert!(
            !is_own_wait(us(4_000), us(10_000)),
            "most of it was the drive's"
        );
        assert!(!is_own_wait(us(150), us(200)), "it makes no difference");
    }

    #[test]
    fn reads_a_file_that_has_no_name() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let on = File::open(directory.path()).unwrap();
        let file = match make(on.as_fd()) {
            Ok(file) => file,
            Err(_) => return testkit::gate::skip("need direct I/O in /var/tmp"),
        };
        let mut canary = Canary::start(Arc::new(file), &Pacing::new(pace::Policy::Burst)).unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let mut waits = Waits::default();
        let mut seen = 0;
        let mut now = 0;
        while seen < 5 {
            std::thread::sleep(Duration::from_millis(20));
            now += 20_000_000;
            let (reads, own) = canary.observe(Time::from_nanos(now), &mut waits);
            seen += reads.len() as u64;
            // On a busy machine some may be this machine's.
            assert!(own.ops >= seen);
            assert!(seen == 0 || own.wait > Duration::ZERO);
        }
        canary.end();
    }
}
