//! How near a drive comes to its card: the round trip through FUSE and the loop driver, measured.
//!
//! The loop driver, FUSE and waking up add to each read a time that the model doesn't include. It
//! depends on the machine, and on the number in flight. The server takes it off the time of reads
//! (`device/tuning.rs`). To begin with, and to measure the rest, a new drive is read for a moment
//! at each queue depth. The rates are kept beside those of the card, for readers of a result.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::control::{self, Order};
use crate::error::LabError;
use crate::lab::Lab;
use crate::place::Place;
use crate::spec::Spec;

mod looks;
mod reads;

pub(crate) use looks::Looks;
use reads::{Reads, counted};

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
    /// The depth whose rate is farthest below the card's.
    pub fn farthest(&self) -> Option<AtDepth> {
        let with_share = self.depths.iter().filter(|at| at.share().is_some());
        with_share
            .min_by(|a, b| {
                a.share()
                    .unwrap_or(1.0)
                    .total_cmp(&b.share().unwrap_or(1.0))
            })
            .copied()
    }

    /// How many times slower than the card the drive would have to be to reach its rate at every
    /// depth, in whole numbers. `None` if it does already, within a tenth. `slower`: how many times
    /// slower it is.
    pub fn enough(&self, slower: f64) -> Option<f64> {
        let share = self.farthest().and_then(|at| at.share())?;
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
        let t500 = trip(vec![at(1, 12_000.0, 13_000.0), at(32, 100e3, 415e3)]);
        assert_eq!(t500.enough(1.0), Some(5.0));
        assert_eq!(t500.farthest().map(|at| at.depth), Some(32));
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
