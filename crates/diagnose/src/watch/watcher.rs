//! Makes updates: reads statistics and events, and looks at threads.

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use linux::SysRoot;
use linux::pressure::Pressure;
use storage::counter;
use storage::disks::{Disks, Place};
use storage::stack::Pending;

use super::target::{Targets, present};
use super::update::{Blocked, Debt, DeviceUpdate, Update, Waiting, Work, name};
use crate::why::observe::{Device, Did, Observation, cpu_s, monotonic_s};
use crate::why::sampler::{Deleted, Sample, Sampler};
use crate::why::senders::senders;
use crate::why::trace::Trace;
use crate::why::tracer::Tracer;
use crate::why::{Cause, Missing, SenderWork, Subject, Victim, join};

/// Share of one processor that looking at threads may take.
const BUDGET: f64 = 0.01;

/// The same while a discard is in flight: a stall is short, and each thread must be looked at in it.
const BUDGET_IN_DISCARDS: f64 = 0.05;

/// Whether discards slow a device down is judged by so many seconds.
const WINDOW_S: f64 = 10.0;

/// Devices and mounts are listed again so often.
const RENEWED: Duration = Duration::from_secs(5);

/// Mounts are surveyed again so often, even if neither they nor the devices have changed: a layer's
/// table may have.
const SURVEYED: Duration = Duration::from_secs(60);

/// Events that were read so shortly ago are not read again, in seconds.
const READ_S: f64 = 0.02;

/// At most so many blocked processes are in an update.
const MOST_BLOCKED: usize = 50;

/// Watches devices, and the whole machine's threads.
#[derive(Debug)]
pub struct Watcher {
    sys: SysRoot,
    named: bool,
    devices: Vec<Device>,
    tracer: Option<Tracer>,
    sampler: Sampler,
    /// The window that waits are explained by.
    window: Observation,
    pending: Vec<(Place, Pending)>,
    /// Subvolumes that were freed and whose discards have not come yet, by mount point.
    deleted: BTreeMap<String, Deleted>,
    /// The table of mounts that both come from.
    mounts: String,
    surveyed: Instant,
    pressure: Option<Pressure>,
    missing: Vec<Missing>,
    began_s: f64,
    last_s: f64,
    last_cpu_s: f64,
    /// When events were read, and when it looked last.
    read_s: f64,
    looked_s: f64,
    renewed: Instant,
}

impl Watcher {
    /// Begins to watch.
    pub fn begin(sys: SysRoot, disks: Disks, watched: &Targets) -> Watcher {
        let now_s = monotonic_s();
        let mut missing = Vec::new();
        let tracer = Tracer::sparing(now_s);
        let tracer = tracer.map_err(|lack| missing.push(lack)).ok();
        let names = watched.devices.iter().map(|info| info.name.clone());
        let there = names.filter_map(|name| Some((disks.numbered(&name)?, name)));
        let mut devices = Vec::new();
        Device::renew(&mut devices, &sys, there.collect(), now_s);
        let mut watcher = Watcher {
            named: watched.named,
            devices,
            tracer,
            sampler: Sampler::new(sys.clone(), Subject::All, disks.clone()).light(),
            window: Observation {
                disks,
                ..Observation::default()
            },
            pending: Vec::new(),
            deleted: BTreeMap::new(),
            mounts: String::new(),
            surveyed: Instant::now(),
            pressure: Pressure::io(&sys),
            missing,
            began_s: now_s,
            last_s: now_s,
            last_cpu_s: cpu_s(),
            read_s: now_s,
            looked_s: now_s,
            renewed: Instant::now(),
            sys,
        };
        watcher.survey();
        watcher
    }

    /// Looks once. Returns whether a discard is in flight.
    pub fn look(&mut self) -> bool {
        let now_s = monotonic_s();
        let since = Duration::from_secs_f64((now_s - self.looked_s).clamp(0.0, 1.0));
        self.looked_s = now_s;
        let mut discarding = false;
        if let Some(tracer) = &mut self.tracer {
            if now_s - self.read_s >= READ_S {
                self.read_s = now_s;
                tracer.read(now_s, &self.window.disks);
                // A deletion may be over before the next list of processes.
                self.sampler.notice(&tracer.programs(), now_s);
            }
            discarding = tracer.is_discarding(now_s);
        }
        let budget = match discarding {
            true => BUDGET_IN_DISCARDS,
            false => BUDGET,
        };
        self.sampler.read_deleted(&self.window.mounted, now_s);
        self.sampler.turn(now_s, since.mul_f64(budget));
        discarding
    }

    /// All that has happened since the last update.
    pub fn update(&mut self) -> Update {
        if self.renewed.elapsed() >= RENEWED {
            self.renew();
        }
        let now_s = monotonic_s();
        let seconds = (now_s - self.last_s).max(1e-6);
        let devices = self.devices.iter_mut();
        let statistics = devices.map(|device| {
            let gone = Did {
                at_s: now_s,
                seconds,
                ..Did::default()
            };
            device.since_last(now_s).unwrap_or(gone)
        });
        let statistics: Vec<Did> = statistics.collect();
        self.read_s = now_s;
        let numbers = self.devices.iter().map(|device| device.number);
        let piece = match &mut self.tracer {
            Some(tracer) => tracer.drain(now_s, &self.window.disks),
            None => Trace::by_statistics(numbers.zip(statistics.chunks(1))),
        };
        self.add_to_window(&piece, &statistics, now_s);
        let devices = self.devices.iter().zip(&statistics);
        let devices = devices.map(|(device, did)| self.device(device, did, &piece));
        let mut update = Update::of(now_s - self.began_s, seconds, devices.collect());
        update.devices.sort_by(|a, b| a.device.cmp(&b.device));
        update.unix_s = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64());
        for (at, found) in &self.window.sampled.deleted {
            self.deleted.entry(at.clone()).or_default().join(found);
        }
        update.senders = self.senders(&piece);
        // A commit discards at once all that was freed before it.
        for named in update.senders.iter().filter_map(|one| one.deleted.as_ref()) {
            let all = self.deleted.values_mut();
            all.for_each(|one| one.forget(&named.freed));
        }
        update.blocked = self.blocked();
        update.pressure = self.pressure(seconds);
        update.debts = self.debts();
        update.lost_events = piece.lost;
        update.missing = self.missing();
        let cpu_s = cpu_s();
        update.cpu_s = cpu_s - self.last_cpu_s;
        (self.last_s, self.last_cpu_s) = (now_s, cpu_s);
        update
    }

    /// Lists devices and mounts again.
    fn renew(&mut self) {
        self.renewed = Instant::now();
        let earlier = std::mem::replace(&mut self.window.disks, Disks::now(&self.sys));
        if earlier != self.window.disks {
            self.mounts.clear();
        }
        self.sampler.renew(self.window.disks.clone());
        if !self.named {
            let there = present(&self.sys, &self.window.disks);
            Device::renew(&mut self.devices, &self.sys, there, monotonic_s());
        }
        for device in &mut self.devices {
            device.counts = counter::counts(&self.sys, &device.name);
        }
        self.survey();
    }

    /// Finds out what is mounted on which devices, if either has changed.
    fn survey(&mut self) {
        let mounts = self.sys.text("/proc/self/mountinfo").unwrap_or_default();
        let fresh = self.surveyed.elapsed() < SURVEYED && !mounts.is_empty();
        if fresh && mounts == self.mounts {
            return;
        }
        (self.mounts, self.surveyed) = (mounts, Instant::now());
        self.window.mounted = self.window.disks.mounted(&self.sys);
        self.pending = self.window.disks.pending(&self.sys);
    }

    /// Adds a stretch to the window, and forgets what is too old for it.
    fn add_to_window(&mut self, piece: &Trace, statistics: &[Did], now_s: f64) {
        let window = &mut self.window;
        let from_s = now_s - WINDOW_S;
        window.from_s = self.last_s;
        window.to_s = now_s;
        for (device, did) in self.devices.iter().zip(statistics) {
            let all = window.devices.entry(device.number).or_default();
            all.retain(|one| one.at_s >= from_s);
            all.push(did.clone());
        }
        let discards = &mut window.trace.discards;
        for spans in discards.values_mut() {
            spans.forget_before(from_s);
        }
        for (number, spans) in &piece.discards {
            let known = discards.entry(*number).or_default();
            *known = std::mem::take(known).with(spans);
        }
        let devices = &self.devices;
        window
            .devices
            .retain(|number, _| devices.iter().any(|one| one.number == *number));
        window.sampled = self.sampler.drain();
        window.trace.own.clone_from(&piece.own);
        window.trace.senders.clone_from(&piece.senders);
    }

    fn device(&self, device: &Device, did: &Did, piece: &Trace) -> DeviceUpdate {
        let spans = piece.discards.get(&device.number);
        let covered_s = spans.map_or(0.0, |spans| spans.covered(self.last_s, did.at_s));
        let mut update = DeviceUpdate::by_statistics(
            device.name.clone(),
            &did.work,
            did.flushes,
            did.seconds,
            (covered_s / did.seconds.max(1e-6)).clamp(0.0, 1.0),
        );
        if !piece.statistics_only {
            let took_s = piece.took_s.get(&device.number).cloned();
            update.discards_took_s = Some(took_s.unwrap_or_default());
        }
        if !device.counts {
            update.counts = false;
            let mine = piece.senders.iter();
            let mine = mine.filter(|sender| sender.device == device.number);
            let (discards, bytes, wait_s) = mine.fold((0, 0, 0.0), |sum, one| {
                (
                    sum.0 + one.discards,
                    sum.1 + one.bytes,
                    sum.2 + one.in_drive_s,
                )
            });
            update.discards = Work::of(discards, bytes, (wait_s * 1e3) as u64, did.seconds);
        }
        update
    }

    /// The senders to the devices that are watched.
    fn senders(&self, piece: &Trace) -> Vec<SenderWork> {
        let watched = |one: &SenderWork| {
            let mut devices = self.devices.iter();
            devices.any(|device| device.name == one.device)
        };
        let Observation {
            disks,
            mounted,
            sampled,
            ..
        } = &self.window;
        let all = senders(piece, disks, mounted, &self.deleted, &sampled.threads).into_iter();
        all.filter(watched).collect()
    }

    /// The processes that were blocked on the devices that are watched, and those of which it isn't
    /// known where they waited most.
    fn blocked(&self) -> Vec<Blocked> {
        let window = &self.window;
        if window.trace.own.is_empty() && !window.sampled.samples.iter().any(Sample::waits) {
            return Vec::new();
        }
        let watched = |victim: &Victim| {
            let on = |name: &String| self.devices.iter().any(|device| device.name == *name);
            let mut waits = victim.waits.iter().filter(|wait| wait.cause.is_blocked());
            let longest = waits.clone().next();
            longest.is_some_and(|wait| wait.devices.is_empty())
                || waits.any(|wait| wait.devices.iter().any(on))
        };
        let all = join::waits(&self.window, &Subject::All).into_iter();
        let mut all: Vec<Blocked> = all
            .filter(|victim| !self.named || watched(victim))
            .filter_map(blocked)
            .collect();
        all.sort_by(Blocked::order);
        all.truncate(MOST_BLOCKED);
        all
    }

    fn pressure(&mut self, seconds: f64) -> Option<Waiting> {
        let now = Pressure::io(&self.sys)?;
        let before = self.pressure.replace(now)?;
        let share = |now: u64, before: u64| {
            (now.saturating_sub(before) as f64 / 1e6 / seconds).clamp(0.0, 1.0)
        };
        Some(Waiting {
            some: share(now.some_us, before.some_us),
            full: share(now.full_us, before.full_us),
        })
    }

    /// The debts of the file systems on the devices that are watched.
    fn debts(&self) -> Vec<Debt> {
        let disks = &self.window.disks;
        let watched = |(place, _): &&(Place, Pending)| {
            let mut devices = self.devices.iter();
            !self.named || devices.any(|device| place.devices.contains(&device.number))
        };
        let debt = |(place, pending): &(Place, Pending)| {
            let pending = pending.now(&self.sys)?;
            Some(Debt {
                mount: place.at.clone(),
                devices: place.devices.iter().map(|one| disks.name(*one)).collect(),
                bytes: pending.bytes,
                commands: pending.commands,
                per_s: pending.per_s,
                takes_s: pending.takes_s,
            })
        };
        self.pending
            .iter()
            .filter(watched)
            .filter_map(debt)
            .collect()
    }

    fn missing(&self) -> Vec<Missing> {
        let mut all = self.missing.clone();
        all.extend(self.tracer.as_ref().and_then(Tracer::leaves_out));
        if self.window.sampled.without_stacks {
            all.push(Missing::stacks());
        }
        if self.devices.is_empty() {
            all.push(Missing {
                what: "devices".to_owned(),
                why: "no device here takes discards; name one".to_owned(),
            });
        }
        let silent = self.devices.iter().filter(|device| !device.counts);
        all.extend(silent.map(|device| Missing {
            what: format!("the reads and writes of {}", device.name),
            why: format!(
                "its counters are switched off; switch them on with: \
                 echo 1 > /sys/class/block/{}/queue/iostats",
                device.name
            ),
        }));
        all
    }
}

fn blocked(victim: Victim) -> Option<Blocked> {
    let waits = victim.waits.iter().filter(|wait| wait.cause.is_blocked());
    let main = victim.longest_cause(Cause::is_blocked);
    let longest = waits.clone().find(|wait| Some(wait.cause) == main)?;
    let seconds = waits.clone().map(|wait| wait.seconds).sum();
    Some(Blocked {
        pid: victim.pid,
        program: victim.name.clone(),
        seconds,
        looks: victim.looks_for(seconds, victim.traced_s),
        discards_s: victim.discards_s,
        cause: longest.cause,
        place: longest.place,
        causes: waits.fold(BTreeMap::new(), |mut sums, wait| {
            *sums.entry(name(wait.cause, wait.place)).or_default() += wait.seconds;
            sums
        }),
        call: longest.call,
        at: longest.at.clone(),
        suspects: longest.suspects.clone(),
        deleted: longest.deleted.clone(),
        function: longest.stack.first().cloned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::Wait;
    use crate::why::frames;

    #[test]
    fn looks_that_stand_for_a_wait_are_counted_unless_events_show_it() {
        let one = |looks, traced_s| {
            let wait = Wait {
                cause: Cause::Commit,
                place: frames::Place::Commit,
                call: None,
                at: None,
                devices: Vec::new(),
                suspects: Vec::new(),
                deleted: None,
                seconds: 1.0,
                stack: Vec::new(),
            };
            let victim = Victim {
                pid: 7,
                name: "vim".to_owned(),
                seconds: 1.0,
                blocked_s: 1.0,
                discards_s: 0.0,
                waits: vec![wait],
                threads: vec![7],
                looks,
                traced_s,
            };
            blocked(victim).unwrap().looks
        };
        assert_eq!((one(1, 0.0), one(9, 0.0)), (1.0, 9.0));
        assert!(one(1, 0.2) < 1.0);
        assert_eq!((one(1, 0.95), one(0, 1.0)), (f64::INFINITY, f64::INFINITY));
    }
}
