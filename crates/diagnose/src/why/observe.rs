//! Watches while something waits: the kernel's events, the threads and the devices' statistics.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use linux::SysRoot;
use linux::mounts::DeviceNumber;
use linux::stats::{Counters, DeviceStats};
use record::DeviceInterval;
use record::Origin;
use serde::{Deserialize, Serialize};
use storage::counter;
use storage::disks::{Disks, Place};

use super::follow::{Follower, Server};
use super::sampler::{Sampled, Sampler, around};
use super::trace::Trace;
use super::tracer::Tracer;
use super::{Missing, Subject};

/// Statistics are read so often.
const STATISTICS: Duration = Duration::from_millis(100);

/// Share of one processor that looking at threads may take.
const BUDGET: f64 = 0.01;

/// The least time that a turn may take: or a slow machine would look at nothing.
const LEAST: Duration = Duration::from_micros(150);

/// One device's work in a stretch of time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Did {
    /// The stretch's end, on the monotonic clock in seconds.
    pub at_s: f64,
    /// Its length in seconds.
    pub seconds: f64,
    /// The work.
    pub work: DeviceInterval,
    /// Flushes, and the sum of their waits in milliseconds.
    pub flushes: (u64, u64),
}

/// All that was observed.
#[derive(Debug, Default)]
pub struct Observation {
    /// Whose it is.
    pub origin: Origin,
    /// When it began, on the monotonic clock in seconds.
    pub from_s: f64,
    /// When it ended.
    pub to_s: f64,
    /// The events.
    pub trace: Trace,
    /// The threads.
    pub sampled: Sampled,
    /// The devices' work, by whole device.
    pub devices: HashMap<DeviceNumber, Vec<Did>>,
    /// The devices' names.
    pub disks: Disks,
    /// The devices under each mounted file system.
    pub mounted: Vec<Place>,
    /// Processes that were watched because the subject may wait for them.
    pub servers: Vec<Server>,
    /// Share of one processor that observing took.
    pub cpu_share: f64,
    /// The pause between two looks at a thread, in seconds, where there is time for all.
    pub period_s: f64,
    /// Facts that could not be found out.
    pub missing: Vec<Missing>,
}

/// An observation under way.
#[derive(Debug)]
pub struct Observer {
    sys: SysRoot,
    disks: Disks,
    tracer: Option<Tracer>,
    devices: Vec<Device>,
    devices_read: Option<Instant>,
    from_s: f64,
    period: Duration,
    missing: Vec<Missing>,
    before_cpu_s: f64,
    mounted: Vec<Place>,
}

/// A device whose statistics are read.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) number: DeviceNumber,
    pub(crate) name: String,
    /// Whether it keeps counters.
    pub(crate) counts: bool,
    stats: DeviceStats,
    last: (f64, Counters),
    /// Its work since the list was last emptied.
    pub(super) did: Vec<Did>,
}

impl Device {
    pub(super) fn open(
        sys: &SysRoot,
        number: DeviceNumber,
        name: &str,
        now_s: f64,
    ) -> Option<Device> {
        let stats = DeviceStats::open(sys, name).ok()?;
        let last = (now_s, stats.read().ok()?);
        Some(Device {
            number,
            name: name.to_owned(),
            counts: counter::counts(sys, name),
            stats,
            last,
            did: Vec::new(),
        })
    }

    /// Opens those that are there and not in a list, and drops those that are gone.
    pub(crate) fn renew(
        all: &mut Vec<Device>,
        sys: &SysRoot,
        there: Vec<(DeviceNumber, String)>,
        now_s: f64,
    ) {
        let is = |device: &Device, (number, name): &(DeviceNumber, String)| {
            device.number == *number && device.name == *name
        };
        all.retain(|device| there.iter().any(|one| is(device, one)));
        for one in &there {
            if !all.iter().any(|device| is(device, one)) {
                all.extend(Device::open(sys, one.0, &one.1, now_s));
            }
        }
    }

    /// The work since the last call; `None` if the device is gone.
    pub(crate) fn since_last(&mut self, now_s: f64) -> Option<Did> {
        let counters = self.stats.read().ok()?;
        let (last_s, last) = std::mem::replace(&mut self.last, (now_s, counters));
        Some(Did {
            at_s: now_s,
            seconds: now_s - last_s,
            work: counters.since(&last),
            flushes: counters.flushes_since(&last),
        })
    }

    pub(super) fn read(&mut self, now_s: f64) {
        let did = self.since_last(now_s);
        self.did.extend(did);
    }
}

impl Observer {
    /// Begins to trace; threads are looked at `rate` times a second.
    pub fn begin(sys: SysRoot, rate: f64) -> Observer {
        let disks = Disks::now(&sys);
        let mut missing = Vec::new();
        let now_s = monotonic_s();
        let tracer = Tracer::begin(now_s).map_err(|lack| missing.push(lack)).ok();
        let mut devices = Vec::new();
        Device::renew(&mut devices, &sys, disks.with_discard(&sys), now_s);
        if devices.is_empty() {
            missing.push(Missing {
                what: "the devices' statistics".to_owned(),
                why: "no device here takes discards".to_owned(),
            });
        }
        Observer {
            mounted: disks.mounted(&sys),
            disks,
            tracer,
            devices,
            devices_read: None,
            from_s: now_s,
            period: Duration::from_secs_f64(1.0 / rate.clamp(1.0, 1000.0)),
            missing,
            before_cpu_s: cpu_s(),
            sys,
        }
    }

    /// Looks at the subject's threads until `over` says so.
    pub fn watch(mut self, subject: Subject, over: &mut dyn FnMut() -> bool) -> Observation {
        let mut follower = Follower::of(&subject);
        let mut sampler = Sampler::new(self.sys.clone(), subject, self.disks.clone());
        let budget = self.period.mul_f64(BUDGET).max(LEAST);
        let mut next = Instant::now();
        while !over() {
            sampler.follow(follower.turn());
            let now_s = monotonic_s();
            sampler.read_deleted(&self.mounted, now_s);
            sampler.turn(now_s, budget);
            self.read();
            next += around(self.period);
            match next.checked_duration_since(Instant::now()) {
                Some(rest) => std::thread::sleep(rest),
                // It was late, and makes up for nothing.
                None => next = Instant::now(),
            }
        }
        let (servers, unknown) = follower.finish();
        self.missing.extend(unknown);
        Observation {
            servers,
            ..self.finish(sampler.finish())
        }
    }

    fn read(&mut self) {
        if let Some(tracer) = &mut self.tracer {
            tracer.read(monotonic_s(), &self.disks);
        }
        if self
            .devices_read
            .is_none_or(|at| at.elapsed() >= STATISTICS)
        {
            self.devices_read = Some(Instant::now());
            self.read_devices();
        }
    }

    fn read_devices(&mut self) {
        let now_s = monotonic_s();
        for device in &mut self.devices {
            device.read(now_s);
        }
    }

    fn finish(mut self, sampled: Sampled) -> Observation {
        self.read_devices();
        let to_s = monotonic_s();
        let devices = self.devices.iter();
        let trace = match self.tracer {
            Some(tracer) => tracer.finish(to_s, &self.disks),
            None => Trace::by_statistics(devices.map(|one| (one.number, &one.did[..]))),
        };
        if sampled.without_stacks {
            self.missing.push(Missing::stacks());
        }
        let devices = self
            .devices
            .into_iter()
            .map(|device| (device.number, device.did));
        let length_s = (to_s - self.from_s).max(1e-9);
        let mut mounted = self.disks.mounted(&self.sys);
        self.mounted.retain(|one| !mounted.contains(one));
        mounted.extend(self.mounted);
        Observation {
            origin: self.disks.origin(&self.sys),
            from_s: self.from_s,
            to_s,
            trace,
            sampled,
            devices: devices.collect(),
            mounted,
            servers: Vec::new(),
            disks: self.disks,
            cpu_share: (cpu_s() - self.before_cpu_s) / length_s,
            period_s: self.period.as_secs_f64(),
            missing: self.missing,
        }
    }
}

/// The monotonic clock, in seconds: that of the events.
pub fn monotonic_s() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

/// The time on a processor that this process has used, in seconds.
pub(crate) fn cpu_s() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
