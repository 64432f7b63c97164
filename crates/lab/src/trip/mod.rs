//! How near a drive comes to its card: the round trip through FUSE and the loop driver, measured.
//!
//! The loop driver, FUSE and waking up add to each read a time that the model doesn't include. It
//! depends on the machine, and on the number in flight. The server takes it off the time of reads
//! (`device/tuning.rs`). To begin with, and to measure the rest, a new drive is read for a moment
//! at each queue depth. The rates are kept beside those of the card, for readers of a result.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{fs, io};

use load::{Actor, ActorSpec, Blocks, Clock, LoadError, LoopKind, Op, Region, Work};
use serde::{Deserialize, Serialize};

use crate::control::{self, Order};
use crate::device::{Answer, Counted, Device};
use crate::error::LabError;
use crate::lab::Lab;
use crate::place::Place;
use crate::spec::Spec;

/// The depths that are measured.
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Before reads are counted, the server looks so often at how long they take.
const LOOKS: usize = 3;

/// A drive whose reads take longer is off by no more than some percent without a correction.
const LONG: Duration = Duration::from_millis(1);

/// One whose reads take longer isn't measured: it would take seconds and show nothing.
const LONGEST_READ: Duration = Duration::from_millis(20);

/// No reader takes longer to be woken up and to submit its next read, unless something else uses the
/// processors. Where a tenth of a read's time is more, that counts.
const LONGEST_SIDE: Duration = Duration::from_micros(15);

/// Nearer than that is near enough. A share below it is measured twice, for another process may
/// have slowed the reads down.
const NEAR: f64 = 0.95;

/// Only a share below this is a reason to slow the drive down.
const FAR: f64 = 0.9;

/// The default depth of a run's reader: no deeper is judged.
const USED: u32 = 8;

/// The share of the rates measured here that a slower drive may need.
const SAFE: f64 = 0.9;

/// How near a drive comes to its card.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Trip {
    /// Time that a single read takes longer than the model knows, in microseconds: the round trip.
    pub added_us: f64,
    /// By queue depth.
    pub depths: Vec<AtDepth>,
}

/// Reads of 4 KiB with a number of them in flight.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AtDepth {
    /// The number of reads in flight.
    pub depth: u32,
    /// Reads a second, measured on the device.
    pub reads_per_s: f64,
    /// Reads a second by the card, slowed down as the drive is; `None` if the card's reads take no
    /// time.
    pub card_per_s: Option<f64>,
}

impl AtDepth {
    /// The share of the card's rate; `None` if that has no limit.
    pub fn share(&self) -> Option<f64> {
        self.card_per_s.map(|card| self.reads_per_s / card)
    }
}

impl Trip {
    /// How many times slower than the card the drive may have to be to reach its rate at the depths
    /// that runs use, in whole numbers. `None` if it does already, within a tenth. `slower`: how
    /// many times slower it is.
    pub fn enough(&self, slower: f64) -> Option<f64> {
        let used = self.depths.iter().filter(|at| at.depth <= USED);
        let share = used.filter_map(AtDepth::share).min_by(f64::total_cmp)?;
        (share < FAR).then(|| (slower / share / SAFE).ceil())
    }
}

impl Lab {
    /// Measures how near a drive comes to its card, and corrects its head start. The drive is read
    /// for up to a second. `None`: it wasn't measured, because another process uses it, or because
    /// its reads are so slow that the way adds next to nothing.
    ///
    /// # Errors
    /// If there is no such drive, or it can't be read.
    pub fn measure_trip(&self, name: &str) -> Result<Option<Trip>, LabError> {
        let place = self.place(name)?;
        let spec = place.read_spec()?;
        let devices = place.devices();
        match devices.first() {
            Some(device) => measure(&place, &spec, device),
            None => Ok(None),
        }
    }
}

/// The last measurement, if the figures for reads are still the same.
pub(crate) fn last(place: &Place) -> Option<Trip> {
    serde_json::from_slice(&fs::read(place.trip()).ok()?).ok()
}

/// See [`Lab::measure_trip`].
pub(crate) fn measure(place: &Place, spec: &Spec, device: &Path) -> Result<Option<Trip>, LabError> {
    let card = spec.card()?;
    let read = &card.figures().read;
    let latency = read.latency.mul_f64(spec.slower);
    let reads = Reads::of(device, latency)?;
    if latency > LONGEST_READ || reads.is_busy()? {
        return Ok(None);
    }
    let tune = |side| control::ask(place, &Order::Tune(side));
    let mut trip = Trip::default();
    let at_depth = |depth, looks: usize| -> Result<AtDepth, LabError> {
        let seen = reads.at(depth, looks, || tune(None).map(drop))?;
        let outside = (f64::from(depth) - seen.in_flight) / seen.per_s;
        let longest = LONGEST_SIDE.max(latency / 10).as_nanos() as u64;
        tune(Some((depth, longest.min((outside * 1e9) as u64))))?;
        let rate = read.per_s(depth.into()) / spec.slower;
        Ok(AtDepth {
            depth,
            reads_per_s: seen.per_s,
            card_per_s: rate.is_finite().then_some(rate),
        })
    };
    // It begins with what an earlier look took off; and the first reads after a pause take longer.
    let first = at_depth(1, 0)?;
    let should = first.card_per_s.map_or(0.0, |rate| 1.0 / rate);
    trip.added_us = (1.0 / first.reads_per_s - should).max(0.0) * 1e6;
    for depth in DEPTHS {
        if latency < LONG {
            // For the time on the reader's side, which counts from the next reads on.
            at_depth(depth, LOOKS)?;
        }
        let mut at = at_depth(depth, LOOKS)?;
        if at.share().is_some_and(|share| share < NEAR) {
            let second = at_depth(depth, LOOKS)?;
            at.reads_per_s = at.reads_per_s.max(second.reads_per_s);
        }
        trip.depths.push(at);
    }
    control::ask(place, &Order::ResetStats)?;
    let text = serde_json::to_vec(&trip).map_err(std::io::Error::from);
    text.and_then(|text| fs::write(place.trip(), text))
        .map_err(LabError::io("cannot write", place.trip()))?;
    Ok(Some(trip))
}

// When the server looks at how long reads take in the kernel.

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

// Reads of a block device at a queue depth, counted by the kernel.

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
struct Seen {
    per_s: f64,
    /// How many were at the drive on average: some are still, or again, the reader's.
    in_flight: f64,
}

/// Random reads of a device.
struct Reads {
    device: PathBuf,
    region: Region,
    clock: Clock,
    latency: Duration,
}

impl Reads {
    /// `latency`: how long one takes, about.
    fn of(device: &Path, latency: Duration) -> Result<Reads, LabError> {
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
    fn is_busy(&self) -> Result<bool, LabError> {
        let before = self.counted()?;
        sleep(QUIET);
        Ok(self.counted()? != before)
    }

    /// Measures reads of 4 KiB with `depth` in flight. `look` lets the server look at how long they
    /// take, so many times; what it learns holds for the reads that are counted.
    fn at(
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
fn counted(device: &Path) -> io::Result<Counted> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(depth: u32, reads_per_s: f64, card_per_s: f64) -> AtDepth {
        AtDepth {
            depth,
            reads_per_s,
            card_per_s: Some(card_per_s),
        }
    }

    #[test]
    fn the_slow_down_that_is_enough_leaves_room_below_the_measured_rates() {
        let trip = |depths| Trip {
            added_us: 40.0,
            depths,
        };
        assert_eq!(trip(vec![at(1, 97.0, 100.0)]).enough(1.0), None);
        let t500 = trip(vec![at(1, 12_000.0, 13_000.0), at(8, 25e3, 104e3)]);
        assert_eq!(t500.enough(1.0), Some(5.0));
        // Runs don't read at these depths.
        let deep = vec![at(4, 39e3, 40e3), at(16, 90e3, 208e3), at(32, 100e3, 415e3)];
        assert_eq!(trip(deep).enough(1.0), None);
        // It is twice as slow already.
        assert_eq!(trip(vec![at(8, 80e3, 100e3)]).enough(2.0), Some(3.0));
        let ideal = AtDepth {
            card_per_s: None,
            ..at(8, 90e3, 0.0)
        };
        assert_eq!(trip(vec![ideal]).enough(1.0), None);
        let slow = trip(vec![at(1, 91.0, 100.0), at(8, 1200.0, 1000.0)]);
        assert_eq!(
            slow.enough(30.0),
            None,
            "noise is no reason for an even slower drive"
        );
    }
}
