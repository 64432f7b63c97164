//! Intervals in memory: one column per figure, so that eight hours at 100 ms
//! with four actors take some fifty megabytes.

use std::collections::BTreeMap;

use super::{ActorInterval, DeviceInterval, Interval};
use crate::absence::Absent;

/// All intervals of a record, in order of time.
///
/// Every column of every actor and device has one entry per interval.
#[derive(Debug, Clone, Default)]
pub struct Intervals {
    /// Start of each interval, in seconds since the record's zero.
    pub at_s: Vec<f64>,
    /// Measured length of each interval, in seconds.
    pub seconds: Vec<f32>,
    /// Bytes handed over to be freed in each interval.
    pub freed_bytes: Vec<u64>,
    /// The intervals in a part of which trimbench itself did not run.
    pub absent: BTreeMap<usize, Absent>,
    /// One per actor of the head.
    pub actors: Vec<ActorColumns>,
    /// One per device of the head.
    pub devices: Vec<DeviceColumns>,
}

/// One actor's columns. Latencies are in microseconds; NaN where there is none.
#[derive(Debug, Clone, Default)]
#[allow(
    missing_docs,
    reason = "each column is the field of ActorInterval of that name"
)]
pub struct ActorColumns {
    /// Whether the actor ran in the interval.
    pub running: Vec<bool>,
    pub ops: Vec<u32>,
    pub errors: Vec<u32>,
    pub bytes: Vec<u64>,
    pub p50_us: Vec<f32>,
    pub p99_us: Vec<f32>,
    pub max_us: Vec<f32>,
    pub oldest_us: Vec<f32>,
    /// Share of the interval, 0 to 1, that its threads waited for a processor; NaN where
    /// nobody looked.
    pub cpu_wait: Vec<f32>,
}

/// One device's columns.
#[derive(Debug, Clone, Default)]
#[allow(
    missing_docs,
    reason = "each column is the field of DeviceInterval of that name"
)]
pub struct DeviceColumns {
    pub reads: Vec<u32>,
    pub read_bytes: Vec<u64>,
    pub read_ms: Vec<u32>,
    pub writes: Vec<u32>,
    pub write_bytes: Vec<u64>,
    pub write_ms: Vec<u32>,
    pub discards: Vec<u32>,
    pub discard_bytes: Vec<u64>,
    pub discard_ms: Vec<u32>,
    pub in_flight: Vec<u32>,
}

impl Intervals {
    /// Empty columns for so many actors and devices.
    pub fn new(actors: usize, devices: usize) -> Self {
        Intervals {
            actors: vec![ActorColumns::default(); actors],
            devices: vec![DeviceColumns::default(); devices],
            ..Intervals::default()
        }
    }

    /// Number of intervals.
    pub fn len(&self) -> usize {
        self.at_s.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.at_s.is_empty()
    }

    /// When the last interval ends, in seconds since the record's zero; 0 when there is none.
    pub fn end_s(&self) -> f64 {
        match (self.at_s.last(), self.seconds.last()) {
            (Some(at), Some(&seconds)) => at + f64::from(seconds),
            _ => 0.0,
        }
    }

    /// Adds one interval. Actors and devices missing from it count as idle.
    pub fn push(&mut self, interval: &Interval) {
        self.at_s.push(interval.at_s);
        self.seconds.push(interval.seconds as f32);
        self.freed_bytes.push(interval.freed_bytes);
        if let Some(absent) = interval.absent {
            self.absent.insert(self.at_s.len() - 1, absent);
        }
        for (i, columns) in self.actors.iter_mut().enumerate() {
            columns.push(interval.actors.get(i).copied().flatten());
            let share = interval.cpu_wait.get(i).copied().flatten();
            columns.cpu_wait.push(or_nan(share));
        }
        for (i, columns) in self.devices.iter_mut().enumerate() {
            columns.push(interval.devices.get(i).copied().unwrap_or_default());
        }
    }
}

impl ActorColumns {
    fn push(&mut self, row: Option<ActorInterval>) {
        self.running.push(row.is_some());
        let row = row.unwrap_or_default();
        self.ops.push(clamp(row.ops));
        self.errors.push(clamp(row.errors));
        self.bytes.push(row.bytes);
        self.p50_us.push(or_nan(row.p50_us));
        self.p99_us.push(or_nan(row.p99_us));
        self.max_us.push(or_nan(row.max_us));
        self.oldest_us.push(or_nan(row.oldest_us));
    }

    /// Replaces one interval, which there must be.
    pub(super) fn set(&mut self, i: usize, row: Option<ActorInterval>) {
        self.running[i] = row.is_some();
        let row = row.unwrap_or_default();
        self.ops[i] = clamp(row.ops);
        self.errors[i] = clamp(row.errors);
        self.bytes[i] = row.bytes;
        self.p50_us[i] = or_nan(row.p50_us);
        self.p99_us[i] = or_nan(row.p99_us);
        self.max_us[i] = or_nan(row.max_us);
        self.oldest_us[i] = or_nan(row.oldest_us);
    }
}

impl DeviceColumns {
    fn push(&mut self, row: DeviceInterval) {
        self.reads.push(clamp(row.reads));
        self.read_bytes.push(row.read_bytes);
        self.read_ms.push(clamp(row.read_ms));
        self.writes.push(clamp(row.writes));
        self.write_bytes.push(row.write_bytes);
        self.write_ms.push(clamp(row.write_ms));
        self.discards.push(clamp(row.discards));
        self.discard_bytes.push(row.discard_bytes);
        self.discard_ms.push(clamp(row.discard_ms));
        self.in_flight.push(clamp(row.in_flight));
    }
}

fn or_nan(told: Option<f64>) -> f32 {
    told.map_or(f32::NAN, |told| told as f32)
}

/// Four thousand million operations do not fit into an interval; an absurd file's figure is cut.
fn clamp(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
