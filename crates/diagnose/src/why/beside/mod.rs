//! Watches the threads of a run while it goes on: who of its actors waits in what?
//!
//! The list of threads is known, so each of them has a look every ten milliseconds. A wait in a
//! discard of its own may be shorter than that. So the length of such a wait comes from the events
//! of the discards that the thread sent, from the queue to their end.

mod conclude;
mod ledger;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use linux::SysRoot;
use linux::mounts::DeviceNumber;
use linux::tasks::{self, Thread};
use load::Workers;
use load::workers::{NamedWorkers, RunWorkers};
use record::{RunRecord, Waits};
use storage::disks::Disks;

use super::observe::{Device, monotonic_s};
use super::sampler::Sampler;
use super::trace::Trace;
use super::tracer::Tracer;
use super::{Missing, Subject};
use ledger::{Ledger, Sent, Window};

/// Each thread is looked at so often.
const PERIOD: Duration = Duration::from_millis(10);

/// Looks become sums so often.
const FOLD: Duration = Duration::from_millis(250);

/// Statistics are read so often, where there are no events.
const STATISTICS: Duration = Duration::from_millis(100);

/// Listing the threads of programs takes at most one part in so many of the time.
const LISTING: u32 = 20;

/// Watching under way. Dropping it ends it.
#[derive(Debug)]
pub struct RunObserver {
    stop: Arc<AtomicBool>,
    /// `None` only once it was joined, or where it can't be started.
    thread: Option<JoinHandle<Found>>,
    failure: Option<Missing>,
}

/// All that was found.
#[derive(Debug)]
struct Found {
    ledger: Ledger,
    devices: Vec<(DeviceNumber, String)>,
    missing: Vec<Missing>,
    lost: u64,
    cpu_share: f64,
}

impl RunObserver {
    /// Begins to watch who stands in a run's `workers`, as they begin. `devices`: the kernel names of
    /// the target's devices.
    pub fn begin(sys: SysRoot, devices: &[String], workers: RunWorkers) -> RunObserver {
        let stop = Arc::new(AtomicBool::new(false));
        let watcher = Watcher::begin(sys, devices, workers);
        let own = stop.clone();
        let thread = std::thread::Builder::new().name("why".into());
        let started = thread.spawn(move || watcher.watch(&own));
        let (thread, failure) = match started {
            Ok(thread) => (Some(thread), None),
            Err(error) => (None, Some(no_thread(&error.to_string()))),
        };
        RunObserver {
            stop,
            thread,
            failure,
        }
    }

    /// Ends it and draws the conclusions. `record`: the run so far, with its device statistics.
    /// `zero_s`: the record's zero on the monotonic clock, in seconds.
    pub fn finish(mut self, record: &RunRecord, zero_s: f64) -> Waits {
        self.stop.store(true, Ordering::Relaxed);
        let joined = self.thread.take().and_then(|thread| thread.join().ok());
        match joined {
            Some(found) => conclude::waits(found, record, zero_s),
            None => {
                let failed = self.failure.take();
                let missing = failed.unwrap_or_else(|| no_thread("it ended by a panic"));
                conclude::nothing(&missing)
            }
        }
    }
}

impl Drop for RunObserver {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its instance of tracefs goes with it.
            let _ = thread.join();
        }
    }
}

fn no_thread(why: &str) -> Missing {
    Missing {
        what: "who waits in what".to_owned(),
        why: format!("the thread that watches can't be used: {why}"),
    }
}

/// The thread's own state.
struct Watcher {
    disks: Disks,
    numbers: Vec<(DeviceNumber, String)>,
    workers: RunWorkers,
    /// Each with how many of its threads and programs are known.
    members: Vec<(NamedWorkers, usize, usize)>,
    sampler: Sampler,
    tracer: Option<Tracer>,
    /// Read where there is no tracer.
    devices: Vec<Device>,
    devices_read: Option<Instant>,
    ledger: Ledger,
    /// The threads that are there.
    threads: Vec<Thread>,
    /// The programs that may be, each with its actor.
    programs: Vec<(u32, usize)>,
    listed: Option<Instant>,
    listing: Duration,
    missing: Vec<Missing>,
    lost: u64,
    without_stacks: bool,
}

impl Watcher {
    fn begin(sys: SysRoot, devices: &[String], workers: RunWorkers) -> Watcher {
        let now_s = monotonic_s();
        let disks = Disks::now(&sys);
        let mut numbers: Vec<(DeviceNumber, String)> = devices
            .iter()
            .filter_map(|name| Some((disks.numbered(name)?, name.clone())))
            .collect();
        numbers.sort();
        numbers.dedup_by_key(|one| one.0);
        let mut missing = Vec::new();
        let tracer = Tracer::of_discards(now_s);
        let tracer = tracer.map_err(|lack| missing.push(lack)).ok();
        let devices = match tracer {
            Some(_) => Vec::new(),
            None => numbers
                .iter()
                .filter_map(|(number, name)| Device::open(&sys, *number, name, now_s))
                .collect(),
        };
        let subject = Subject::Process(std::process::id());
        Watcher {
            sampler: Sampler::new(sys, subject, disks.clone()),
            disks,
            numbers,
            workers,
            members: Vec::new(),
            tracer,
            devices,
            devices_read: None,
            ledger: Ledger::new(now_s),
            threads: Vec::new(),
            programs: Vec::new(),
            listed: None,
            listing: Duration::ZERO,
            missing,
            lost: 0,
            without_stacks: false,
        }
    }

    fn watch(mut self, stop: &AtomicBool) -> Found {
        let began_s = monotonic_s();
        let mut next = Instant::now();
        let mut folded = Instant::now();
        while !stop.load(Ordering::Relaxed) {
            self.look();
            if folded.elapsed() >= FOLD {
                folded = Instant::now();
                self.fold();
            }
            next += PERIOD;
            match next.checked_duration_since(Instant::now()) {
                Some(rest) => std::thread::sleep(rest),
                // It was late, and makes up for nothing.
                None => next = Instant::now(),
            }
        }
        self.fold();
        self.ledger.end();
        if self.without_stacks {
            self.missing.push(Missing::stacks());
        }
        Found {
            ledger: self.ledger,
            devices: self.numbers,
            missing: self.missing,
            lost: self.lost,
            cpu_share: thread_cpu_s() / (monotonic_s() - began_s).max(1e-9),
        }
    }

    /// Looks at each thread.
    fn look(&mut self) {
        self.add_members();
        self.list_programs();
        let members = &self.members;
        let idle = |thread: Thread| {
            // The number of one that has ended may be used again.
            let mut latest = members.iter().rev().map(|one| &one.0.workers);
            let own = latest.find(|workers| workers.has(thread.tid));
            own.is_some_and(Workers::has_idle_queue)
        };
        let ended = self.sampler.look_at(&self.threads, monotonic_s(), &idle);
        if !ended.is_empty() {
            self.threads.retain(|thread| !ended.contains(thread));
        }
        if self.tracer.is_none()
            && self
                .devices_read
                .is_none_or(|at| at.elapsed() >= STATISTICS)
        {
            self.devices_read = Some(Instant::now());
            let now_s = monotonic_s();
            self.devices
                .iter_mut()
                .for_each(|device| device.read(now_s));
        }
    }

    /// Adds the threads and programs that have begun since the last time.
    fn add_members(&mut self) {
        let pid = std::process::id();
        let fresh = self.workers.named(self.members.len());
        self.members
            .extend(fresh.into_iter().map(|one| (one, 0, 0)));
        for (member, threads, programs) in &mut self.members {
            for tid in member.workers.threads(*threads) {
                *threads += 1;
                let actor = self.ledger.actor(&member.name);
                self.ledger.assign(tid, actor);
                self.threads.push(Thread { pid, tid });
            }
            for pid in member.workers.programs(*programs) {
                *programs += 1;
                let actor = self.ledger.actor(&member.name);
                // What it discards before it is listed is its own, too.
                self.ledger.assign(pid, actor);
                self.programs.push((pid, actor));
                self.listed = None;
            }
        }
    }

    /// Lists the threads of programs again, if that is due.
    fn list_programs(&mut self) {
        let due = |at: Instant| at.elapsed() >= self.listing * LISTING;
        if self.programs.is_empty() || !self.listed.is_none_or(due) {
            return;
        }
        let began = Instant::now();
        for (pid, actor) in std::mem::take(&mut self.programs) {
            let family = tasks::family(pid);
            let all: Vec<Thread> = family.into_iter().flat_map(tasks::threads).collect();
            if all.is_empty() {
                // It has ended.
                continue;
            }
            self.programs.push((pid, actor));
            for thread in all {
                if !self.threads.contains(&thread) {
                    self.ledger.assign(thread.tid, actor);
                    self.threads.push(thread);
                }
            }
        }
        self.listing = began.elapsed();
        self.listed = Some(began);
    }

    /// Adds the looks and events since the last time to the sums.
    fn fold(&mut self) {
        let now_s = monotonic_s();
        let sampled = self.sampler.drain();
        self.without_stacks |= sampled.without_stacks;
        let devices = self.devices.iter();
        let mut piece = match &mut self.tracer {
            Some(tracer) => tracer.drain(now_s, &self.disks),
            None => Trace::by_statistics(devices.map(|one| (one.number, &one.did[..]))),
        };
        self.devices.iter_mut().for_each(|one| one.did.clear());
        self.lost += piece.lost;
        let sent = piece.senders.iter().map(|one| Sent {
            thread: one.pid,
            reason: one.reason,
            discards: one.discards,
            at_s: one.first_s,
        });
        let sent = sent.collect();
        let numbers = self.numbers.iter().map(|one| one.0);
        let discards = numbers.filter_map(|one| Some((one, piece.discards.remove(&one)?)));
        let discards = discards.collect();
        // The first is the ledger's own.
        let known = self.ledger.phases.len() - 1;
        self.ledger.begin(self.workers.phases(known));
        self.ledger.fold(Window {
            sampled,
            own: piece.own,
            sent,
            discards,
            to_s: now_s,
        });
    }
}

fn thread_cpu_s() -> f64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}
