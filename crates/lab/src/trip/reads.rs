//! Reads of a block device at a queue depth, counted by the kernel.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use load::{Actor, ActorSpec, Blocks, Clock, LoadError, LoopKind, Op, Region, Work};

use crate::device::Counted;
use crate::error::LabError;

/// The time for which reads run before anything is learned from them, at least.
const BEFORE: Duration = Duration::from_millis(6);
/// The number of reads between two looks, which is enough for the server to learn from.
const BETWEEN_LOOKS: u32 = 330;
/// The time between two looks at most: slower drives need no correction.
const LONGEST_LOOK: Duration = Duration::from_millis(60);
/// The time for which they are counted, at least. The kernel counts their time in milliseconds.
const COUNTED: Duration = Duration::from_millis(60);
/// The time for which no other process may use the device.
const QUIET: Duration = Duration::from_millis(12);
/// The number of reads that are counted, at least.
const ENOUGH: u32 = 40;
/// Reads end within milliseconds, unless the drive hangs.
const GRACE: Duration = Duration::from_secs(2);

/// The result of reads at a depth.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) per_s: f64,
    /// How many were at the drive on average: some are still, or again, the reader's.
    pub(super) in_flight: f64,
}

/// Random reads of a device.
pub(super) struct Reads {
    device: PathBuf,
    region: Region,
    clock: Clock,
    latency: Duration,
}

impl Reads {
    /// `latency`: how long one takes, about.
    pub(super) fn of(device: &Path, latency: Duration) -> Result<Reads, LabError> {
        let file = load::target::open(device, Op::Read, true).map_err(failed(device))?;
        let sectors = fs::read_to_string(sys(device).join("size"))
            .and_then(|text| text.trim().parse::<u64>().map_err(io::Error::other))
            .map_err(LabError::io("cannot tell the size of", device))?;
        Ok(Reads {
            device: device.to_owned(),
            region: Region {
                file: Arc::new(file),
                start: 0,
                len: sectors * 512,
            },
            clock: Clock::without_calibration(),
            latency,
        })
    }

    /// Whether another process reads or writes the device now.
    pub(super) fn is_busy(&self) -> Result<bool, LabError> {
        let before = self.counted()?;
        sleep(QUIET);
        Ok(self.counted()? != before)
    }

    /// Measures reads of 4 KiB with `depth` in flight. `look` lets the server look at how long they
    /// take, so many times; what it learns holds for the reads that are counted.
    pub(super) fn at(
        &self,
        depth: u32,
        looks: usize,
        look: impl Fn() -> Result<(), LabError>,
    ) -> Result<Seen, LabError> {
        let spec = ActorSpec {
            name: "trip".to_owned(),
            work: Work::Blocks(Blocks {
                target: Some(self.region.clone()),
                ..Blocks::READS
            }),
            arrival: LoopKind::Closed { depth },
            seed: 1,
        };
        let actor = Actor::start(spec, self.clock).map_err(failed(&self.device))?;
        sleep(BEFORE.max(self.latency));
        for number in 0..looks {
            if number > 0 {
                sleep(LONGEST_LOOK.min(self.latency * BETWEEN_LOOKS / depth));
            }
            look()?;
        }
        let (before, began) = (self.counted()?, Instant::now());
        sleep(COUNTED.max(self.latency * ENOUGH / depth));
        let (now, span) = (self.counted()?, began.elapsed().as_secs_f64());
        actor.finish(GRACE);
        let in_flight = (now.read_time - before.read_time).as_secs_f64() / span;
        Ok(Seen {
            per_s: ((now.reads - before.reads) as f64 / span).max(1.0),
            in_flight: in_flight.clamp(0.5, depth.into()),
        })
    }

    fn counted(&self) -> Result<Counted, LabError> {
        counted(&self.device).map_err(LabError::io("cannot read the statistics of", &self.device))
    }
}

/// The kernel's counts of a block device.
pub(super) fn counted(device: &Path) -> io::Result<Counted> {
    let text = fs::read_to_string(sys(device).join("stat"))?;
    let counts = linux::stats::Counters::parse(text.as_bytes());
    let counts = counts.ok_or_else(|| io::Error::other("it isn't understood"))?;
    Ok(Counted {
        reads: counts.reads,
        read_time: Duration::from_millis(counts.read_ms),
        others: counts.writes + counts.discards + counts.flushes,
    })
}

fn sys(device: &Path) -> PathBuf {
    Path::new("/sys/block").join(device.file_name().unwrap_or_default())
}

fn failed(device: &Path) -> impl FnOnce(LoadError) -> LabError {
    let failed = LabError::io("cannot read", device);
    |error| failed(io::Error::other(error))
}
