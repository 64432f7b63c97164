//! A flight recorder: keeps what happened in the last minutes, for waits that can't be repeated.
//!
//! | module | question it answers |
//! |---|---|
//! | [`ring`] | how are the last minutes kept in bounded memory? |
//! | [`recording`] | how does it become an [`Observation`](super::Observation) of another process? |
//! | [`server`] | where does the recorder run, and how is it asked? |
//!
//! The recorder uses the sampler and the tracer of `why`, and draws no conclusions itself.

pub mod recording;
pub mod ring;
pub mod server;

#[cfg(test)]
mod tests;

use std::io::{self, Write};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use linux::SysRoot;
use linux::mounts::DeviceNumber;
use storage::disks::Disks;

use super::observe::{Device, Did, cpu_s, monotonic_s};
use super::sampler::{Sampler, around};
use super::trace::Trace;
use super::tracer::Tracer;
use super::{Missing, Subject};
use recording::Head;
use ring::{Looks, Piece, Ring, Work};

/// So long it remembers.
pub const KEPT: Duration = Duration::from_secs(15 * 60);

/// A thread that was blocked for so long makes it look more often, in seconds.
const LONG_S: f64 = 1.0;

/// The pause between two looks while nothing is blocked for long, and then.
const SELDOM: Duration = Duration::from_millis(250);
const OFTEN: Duration = Duration::from_millis(25);

/// Share of one processor that looking at threads may take, besides listing them.
const BUDGET: (f64, f64) = (0.002, 0.003);

/// The least time that a turn may take: or a slow machine would look at nothing.
const LEAST: Duration = Duration::from_micros(60);

/// The length of a piece of the devices' work, and of the looks at threads.
const WORK: Duration = Duration::from_secs(1);
const LOOKS: Duration = Duration::from_secs(5);

/// Statistics and events are read so often.
const STATISTICS: Duration = Duration::from_millis(250);

/// Devices and mounts are listed again so often.
const RENEWED: Duration = Duration::from_secs(10);

/// The recorder.
#[derive(Debug)]
pub struct Recorder {
    sys: SysRoot,
    disks: Disks,
    tracer: Option<Tracer>,
    sampler: Sampler,
    devices: Vec<Device>,
    ring: Ring,
    missing: Vec<Missing>,
    without_stacks: bool,
    /// Threads were blocked for long at the last look.
    awake: bool,
    work_from: (Instant, f64),
    looks_from: (Instant, f64),
    statistics: Instant,
    renewed: Instant,
    began: (f64, f64),
}

impl Recorder {
    /// Begins to record.
    pub fn begin(sys: SysRoot) -> Recorder {
        let (now, now_s) = (Instant::now(), monotonic_s());
        let disks = Disks::now(&sys);
        let mut missing = Vec::new();
        let tracer = Tracer::sparing(now_s);
        let tracer = tracer.map_err(|lack| missing.push(lack)).ok();
        let mut recorder = Recorder {
            tracer,
            sampler: Sampler::new(sys.clone(), Subject::All, disks.clone()).light(),
            devices: Vec::new(),
            ring: Ring::new(KEPT.as_secs_f64(), now_s),
            missing,
            without_stacks: false,
            awake: false,
            work_from: (now, now_s),
            looks_from: (now, now_s),
            statistics: now,
            renewed: now,
            began: (now_s, cpu_s()),
            disks,
            sys,
        };
        recorder.open_devices(now_s);
        recorder
    }

    /// Looks once. Returns how long to wait until the next look.
    pub fn look(&mut self) -> Duration {
        let (began, now_s) = (Instant::now(), monotonic_s());
        let (pause, share) = match self.awake {
            true => (OFTEN, BUDGET.1),
            false => (SELDOM, BUDGET.0),
        };
        self.sampler.turn(now_s, pause.mul_f64(share).max(LEAST));
        if self.statistics.elapsed() >= STATISTICS {
            self.statistics = began;
            if let Some(tracer) = &mut self.tracer {
                tracer.read(now_s, &self.disks);
            }
            self.devices
                .iter_mut()
                .for_each(|device| device.read(now_s));
        }
        self.awake = self.sampler.blocked_for_s(now_s) >= LONG_S;
        if self.work_from.0.elapsed() >= WORK {
            self.push_work();
        }
        if self.looks_from.0.elapsed() >= LOOKS {
            self.push_looks();
        }
        if self.renewed.elapsed() >= RENEWED {
            self.renew(now_s);
        }
        around(pause).saturating_sub(began.elapsed())
    }

    /// Writes all that it has kept since a moment, on the monotonic clock in seconds.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write(&mut self, from_s: f64, to: &mut dyn Write) -> io::Result<()> {
        self.push_work();
        self.push_looks();
        let now_s = monotonic_s();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut missing = self.missing.clone();
        if self.without_stacks {
            missing.push(Missing::stacks());
        }
        let head = Head {
            schema: recording::SCHEMA.to_owned(),
            version: record::form::VERSION.to_owned(),
            origin: self.disks.origin(&self.sys),
            unix_s: unix.map_or(0.0, |since| since.as_secs_f64()),
            now_s,
            complete_s: self.ring.complete_s(),
            disks: self.disks.list(),
            mounted: self.disks.mounted(&self.sys),
            cpu_share: (cpu_s() - self.began.1) / (now_s - self.began.0).max(1e-9),
            period_s: SELDOM.as_secs_f64(),
            missing,
        };
        recording::write(&head, self.ring.since(from_s), to)
    }

    fn push_work(&mut self) {
        let now_s = monotonic_s();
        let from_s = std::mem::replace(&mut self.work_from, (Instant::now(), now_s)).1;
        let devices = self.devices.iter_mut();
        let devices: Vec<(DeviceNumber, Vec<Did>)> = devices
            .map(|device| (device.number, std::mem::take(&mut device.did)))
            .collect();
        let trace = match &mut self.tracer {
            Some(tracer) => tracer.drain(now_s, &self.disks),
            None => Trace::by_statistics(devices.iter().map(|one| (one.0, &one.1[..]))),
        };
        let work = Work::new((from_s, now_s), trace, devices);
        self.ring.push(Piece::Work(work));
    }

    fn push_looks(&mut self) {
        let now_s = monotonic_s();
        let from_s = std::mem::replace(&mut self.looks_from, (Instant::now(), now_s)).1;
        let looks = Looks::new((from_s, now_s), self.sampler.drain());
        self.without_stacks |= looks.sampled.without_stacks;
        if !looks.sampled.samples.is_empty() {
            self.ring.push(Piece::Looks(looks));
        }
    }

    /// Lists devices again.
    fn renew(&mut self, now_s: f64) {
        self.renewed = Instant::now();
        let there = Disks::now(&self.sys);
        self.sampler.renew(there.clone());
        let earlier = std::mem::replace(&mut self.disks, there);
        self.open_devices(now_s);
        // Their numbers are in what is kept.
        self.disks.remember(&earlier);
    }

    fn open_devices(&mut self, now_s: f64) {
        let there = self.disks.with_discard(&self.sys);
        Device::renew(&mut self.devices, &self.sys, there, now_s);
    }
}
