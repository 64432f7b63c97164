//! Looks at threads again and again, for a bounded share of a processor.
//!
//! A thread that is looked at stands for the time since the last look at it. So the sums are right
//! on average, however many threads there are: with more of them each is looked at less often. A
//! thread that has not run since an earlier look is where it was, and costs little.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

use linux::SysRoot;
use linux::tasks::{Call, Processors, RunsFile, State, Thread};
use serde::{Deserialize, Serialize};
use storage::disks::{Disks, Place as Below};

mod below;
mod cleaner;
mod listing;

use super::Subject;
use super::frames::{Place, is_elsewhere};
use below::{Late, Memory, is_of_call};
use cleaner::Cleaners;
pub use cleaner::Deleted;
use listing::{Listing, Spent};

/// The longest time that one look stands for, in seconds: what happened before is not known.
const LONGEST_S: f64 = 1.0;

/// A thread that was blocked or ran is looked at in each turn for so long, in seconds: it may wait often,
/// and only briefly. A new one is, too.
const OF_LATE_S: f64 = 30.0;

/// The first look at one that was not stands for so long at most, in seconds: it ran until then.
const FIRST_S: f64 = 0.1;

/// So many threads are asked for their call as well while they sleep.
const FEW: usize = 500;

/// A light sampler asks a sleeping thread for its call at one look in so many.
const RARELY: u32 = 8;

/// Of so many threads at most the file of how long they have run is held open: half of the
/// descriptors that a process usually has.
const MOST_OPEN: usize = 500;

/// Returns a random time around a period, for the next look. At a fixed step, looks at a program that works
/// on a timer would see it wait always, or never.
pub fn around(period: Duration) -> Duration {
    period.mul_f64(0.5 + fastrand::f64())
}

/// One look at one thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When, on the monotonic clock in seconds; the same for all threads of a turn.
    pub at_s: f64,
    /// The time that it stands for, in seconds.
    pub stands_for_s: f64,
    /// The thread: an index into [`Sampled::threads`].
    pub thread: usize,
    /// Where it waited.
    pub place: Place,
    /// The stack: an index into [`Sampled::stacks`].
    pub stack: usize,
    /// The call that it was in.
    pub call: Option<Call>,
    /// The file system or device that it waited for: an index into [`Sampled::places`].
    pub below: Option<usize>,
    /// Whether it waited at one place, and a look that came too late has not found out at which. So
    /// no device's discards can be blamed for it.
    #[serde(default)]
    pub nowhere: bool,
}

impl Sample {
    /// Whether the thread waits for storage, or for a lock that is not a program's own.
    pub fn waits(&self) -> bool {
        !matches!(self.place, Place::Sleep | Place::Running) && !self.waits_for_program()
    }

    /// Whether it waits for a lock on a file, which another program holds by design.
    pub fn waits_for_program(&self) -> bool {
        let call = self.call.and_then(Call::name);
        self.place == Place::Lock && matches!(call, Some("flock" | "fcntl"))
    }
}

/// A thread that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampledThread {
    /// Its numbers.
    pub thread: Thread,
    /// Its name.
    pub comm: String,
    /// Whether it is the kernel's.
    pub kernel: bool,
}

/// All that was seen.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sampled {
    /// The looks, in order of time.
    pub samples: Vec<Sample>,
    /// The threads.
    pub threads: Vec<SampledThread>,
    /// Stacks, each once; the first is the empty one.
    pub stacks: Vec<Vec<String>>,
    /// File systems and devices that threads waited for.
    pub places: Vec<Below>,
    /// Deleted subvolumes, by the mount point of a btrfs whose cleaner was seen to free some.
    #[serde(default)]
    pub deleted: BTreeMap<String, Deleted>,
    /// Whether stacks could not be read.
    pub without_stacks: bool,
    /// Turns that ended before every thread was looked at.
    pub partial_turns: u64,
    /// All turns.
    pub turns: u64,
}

#[derive(Debug)]
struct Known {
    looked: SampledThread,
    /// Its place in [`Sampled::threads`], once a look since the last drain is kept.
    index: Option<usize>,
    /// The file of how long it has run, held open.
    runs: Option<RunsFile>,
    /// How long it had run at an earlier look, and the sample, if any: the same until it runs again.
    seen: Option<((u64, u64), Option<Sample>)>,
    looked_s: f64,
    /// Whether it is among those that come first.
    queued: bool,
    /// When it was seen blocked or running last.
    awake_s: f64,
    looks: u32,
}

/// The sampler.
#[derive(Debug)]
pub struct Sampler {
    sys: SysRoot,
    subject: Subject,
    disks: Disks,
    known: HashMap<Thread, Known>,
    /// How many of them have that file held open.
    open: usize,
    /// The order in which threads are looked at, and where the next turn begins.
    order: Vec<Thread>,
    next: usize,
    listing: Listing,
    /// Threads that were blocked or ran of late, the oldest look first.
    first: VecDeque<Thread>,
    /// Since when threads were blocked at each look, on the clock of the looks.
    waiting: HashMap<Thread, f64>,
    stacks: HashMap<Vec<String>, usize>,
    /// By device number.
    below: HashMap<linux::mounts::DeviceNumber, Option<usize>>,
    /// By process: when its open files were asked for, and the only place that they are at.
    open_at: HashMap<u32, (f64, below::Open)>,
    /// By thread that waits: its call with a path, and the place that it named.
    named: HashMap<Thread, (Call, Option<usize>)>,
    memory: Memory,
    cleaners: Cleaners,
    /// Threads that slept for storage when they were looked at last.
    asleep: HashSet<Thread>,
    /// The kernel's threads, where they are left out.
    kernel: HashSet<Thread>,
    /// Whether it looks at programs alone, and seldom asks those that sleep for their call.
    light: bool,
    /// The processors that it may run on.
    processors: Option<Processors>,
    /// The processor that it keeps off, and one on which it met a thread in this turn. A thread that does
    /// not run because the sampler does looks as if it did not wait.
    avoided: Option<usize>,
    met_on: Option<usize>,
    found: Sampled,
    /// More samples than this are thinned out.
    most: usize,
}

impl Sampler {
    /// One that has looked at nothing yet.
    pub fn new(sys: SysRoot, subject: Subject, disks: Disks) -> Sampler {
        let found = Sampled {
            stacks: vec![Vec::new()],
            ..Sampled::default()
        };
        Sampler {
            sys,
            subject,
            disks,
            known: HashMap::new(),
            open: 0,
            order: Vec::new(),
            next: 0,
            listing: Listing::default(),
            first: VecDeque::new(),
            waiting: HashMap::new(),
            stacks: HashMap::from([(Vec::new(), 0)]),
            below: HashMap::new(),
            open_at: HashMap::new(),
            named: HashMap::new(),
            memory: Memory::default(),
            cleaners: Cleaners::default(),
            asleep: HashSet::new(),
            kernel: HashSet::new(),
            light: false,
            processors: Processors::allowed(),
            avoided: None,
            met_on: None,
            found,
            most: 1 << 20,
        }
    }

    /// One that leaves out the kernel's threads and seldom asks sleeping ones for their call, for
    /// a third of the work.
    pub fn light(self) -> Sampler {
        Sampler {
            light: true,
            ..self
        }
    }

    /// Looks at as many threads as `budget` allows; those that were awake of late first.
    pub fn turn(&mut self, now_s: f64, budget: Duration) {
        let clock = Spent::begin();
        self.list(now_s);
        self.memory.begin_turn();
        self.found.turns += 1;
        // A quarter of the turn is for the others: or they would never be seen awake.
        for count in 0..self.first.len() {
            if clock.is_over(budget * 3 / 4) && count > 0 {
                break;
            }
            let Some(thread) = self.first.pop_front() else {
                break;
            };
            if let Some(known) = self.known.get_mut(&thread) {
                known.queued = false;
                self.look_once(thread, now_s);
            }
        }
        let count = self.order.len();
        for step in 0..count {
            let thread = self.order[(self.next + step) % count];
            self.look_once(thread, now_s);
            if clock.is_over(budget) {
                self.next = (self.next + step + 1) % count;
                self.found.partial_turns += u64::from(step + 1 < count);
                break;
            }
        }
        if self.found.samples.len() > self.most {
            thin(&mut self.found.samples);
        }
        self.move_off();
    }

    /// Moves to another processor than that of a thread that it met.
    fn move_off(&mut self) {
        let met_on = self.met_on.take();
        if let (Some(processor), Some(processors)) = (met_on, &self.processors)
            && met_on != self.avoided
        {
            processors.avoid(processor);
            self.avoided = met_on;
        }
    }

    /// All that was seen.
    pub fn finish(mut self) -> Sampled {
        self.cleaners.finish();
        self.drain()
    }

    /// Takes out what was seen since the last call, and looks on.
    pub fn drain(&mut self) -> Sampled {
        let fresh = Sampled {
            stacks: vec![Vec::new()],
            places: self.found.places.clone(),
            ..Sampled::default()
        };
        for looked in &self.found.threads {
            if let Some(known) = self.known.get_mut(&looked.thread) {
                known.index = None;
            }
        }
        for known in self.known.values_mut() {
            known.seen = None;
        }
        self.stacks = HashMap::from([(Vec::new(), 0)]);
        let last_s = self.found.samples.last().map(|one| one.at_s);
        self.found.deleted = self.cleaners.drain(last_s);
        std::mem::replace(&mut self.found, fresh)
    }

    /// Takes the devices that are there now, and looks again what is mounted on them.
    pub fn renew(&mut self, disks: Disks) {
        self.disks = disks;
        self.below.clear();
        self.open_at.clear();
        self.named.clear();
        // Places of looks that are not drained yet stay; a list that has grown long goes with them.
        if self.found.samples.is_empty() {
            self.found.places.clear();
        }
    }

    /// Looks at these processes as well from now on.
    pub fn follow(&mut self, processes: Vec<u32>) {
        self.listing.follow(processes);
    }

    /// Lists the threads again, if that is due.
    fn list(&mut self, now_s: f64) {
        let (kernel, known) = (&self.kernel, &self.known);
        let is_kernel = |thread: Thread| {
            let looked = known.get(&thread).map(|known| &known.looked);
            kernel.contains(&thread) || looked.is_some_and(|looked| looked.kernel)
        };
        let clock = Spent::begin();
        let Some(threads) = self.listing.renew(&self.subject, self.light, &is_kernel) else {
            return;
        };
        self.forget_others(&threads);
        for thread in &threads {
            if !self.known.contains_key(thread) && !self.kernel.contains(thread) {
                self.add_thread(*thread, now_s);
            }
        }
        self.order = threads;
        self.order.retain(|thread| self.known.contains_key(thread));
        self.listing.set_duration(clock.spent());
    }

    /// A thread that is new.
    fn add_thread(&mut self, thread: Thread, now_s: f64) {
        let Some(stat) = thread.stat() else { return };
        if stat.kernel && self.light {
            self.kernel.insert(thread);
            return;
        }
        // Those of the first list come in their order: few of them are at work.
        let appeared = !self.order.is_empty();
        let known = Known {
            looked: SampledThread {
                thread,
                comm: stat.comm,
                kernel: stat.kernel,
            },
            index: None,
            runs: (self.open < self.listing.most_open())
                .then(|| thread.runs_file())
                .flatten(),
            seen: None,
            looked_s: now_s,
            queued: appeared,
            awake_s: if appeared { now_s } else { f64::NEG_INFINITY },
            looks: 0,
        };
        self.open += usize::from(known.runs.is_some());
        self.known.insert(thread, known);
        if appeared {
            self.first.push_back(thread);
        }
    }

    /// Looks at a thread, unless this turn has; one that was awake of late comes sooner in the next.
    fn look_once(&mut self, thread: Thread, now_s: f64) {
        let known = self.known.get(&thread);
        if known.is_none_or(|known| known.looked_s == now_s && known.looks > 0) {
            return;
        }
        let awake = self.look(thread, now_s);
        let Some(known) = self.known.get_mut(&thread) else {
            return;
        };
        if awake {
            known.awake_s = now_s;
        }
        if !known.queued && now_s - known.awake_s < OF_LATE_S {
            known.queued = true;
            self.first.push_back(thread);
        }
    }

    /// Looks at a thread. Returns whether it is blocked or runs.
    fn look(&mut self, thread: Thread, now_s: f64) -> bool {
        let few = self.order.len() <= FEW;
        let Some(known) = self.known.get_mut(&thread) else {
            return false;
        };
        let runs = match &known.runs {
            Some(file) => file.read(),
            None => thread.runs_file().and_then(|file| file.read()),
        };
        let stands_for_s = (now_s - known.looked_s).clamp(0.0, LONGEST_S);
        let again = |one: &Sample| Sample {
            at_s: now_s,
            stands_for_s,
            ..one.clone()
        };
        let seen = known
            .seen
            .as_ref()
            .filter(|(before, _)| Some(*before) == runs);
        let seen = seen.map(|(_, sample)| sample.as_ref().map(again));
        if let Some(asleep) = &seen
            && asleep.as_ref().is_none_or(|one| one.place == Place::Sleep)
        {
            known.looked_s = now_s;
            known.looks = known.looks.wrapping_add(1);
            self.found.samples.extend(asleep.clone());
            return false;
        }
        let Some(stat) = thread.stat() else {
            // It has ended; the next list is without it.
            self.known.remove(&thread);
            self.end_wait(thread);
            self.listing.forget(thread.pid);
            return false;
        };
        known.looked_s = now_s;
        known.looks = known.looks.wrapping_add(1);
        let (looks, light, kernel) = (known.looks, self.light, known.looked.kernel);
        let was_awake = now_s - known.awake_s < OF_LATE_S;
        let is_awake = matches!(stat.state, State::Running | State::Blocked);
        if is_awake && stat.processor == Some(Processors::current()) {
            self.met_on = stat.processor;
        }
        // A program that has started another by execve has its name.
        if known.looked.comm != stat.comm && !stat.kernel {
            known.looked.comm = stat.comm;
            if let Some(index) = known.index {
                self.found.threads[index]
                    .comm
                    .clone_from(&known.looked.comm);
            }
        }
        let was_asleep = self.asleep.remove(&thread);
        if stat.state == State::Other || stat.state == State::Sleeping && kernel {
            known.seen = runs.map(|runs| (runs, None));
            self.end_wait(thread);
            return false;
        }
        let mut sample = Sample {
            at_s: now_s,
            stands_for_s,
            thread: self.index(thread),
            place: Place::Running,
            stack: 0,
            call: None,
            below: None,
            nowhere: false,
        };
        let mut lasts = false;
        match stat.state {
            State::Running | State::Other => {}
            State::Sleeping => {
                sample.place = Place::Sleep;
                let asked = few && (!light || was_asleep || looks.is_multiple_of(RARELY));
                let call = asked.then(|| thread.call()).flatten();
                let call = call.filter(|call| call.may_sleep_for_storage());
                if let Some(call) = call.filter(|call| !self.awaits_requests(thread, call, now_s)) {
                    self.asleep.insert(thread);
                    sample.call = Some(call);
                    self.waits(thread, &mut sample);
                } else {
                    // Later it may be asked.
                    lasts = asked || !few;
                }
            }
            State::Blocked => match seen.flatten() {
                Some(again) => {
                    sample = again;
                    self.look_at_cleaner(&mut sample);
                }
                None => {
                    if !was_awake {
                        sample.stands_for_s = stands_for_s.min(FIRST_S);
                    }
                    sample.call = thread.call();
                    self.waits(thread, &mut sample);
                    let stack = &self.found.stacks[sample.stack];
                    if sample.place == Place::Sleep
                        && !is_elsewhere(stack.iter().map(String::as_str))
                    {
                        // Blocked, in a place that no table has. Or it went on before its stack was read.
                        sample.place = Place::Io;
                        sample.nowhere = sample.below.is_none() && !stack.is_empty();
                    }
                    // A path that came too late is asked for again, and the cleaner does other work.
                    let is_late = sample.nowhere && sample.call.and_then(Call::file_name).is_some();
                    lasts = !is_late && !matches!(sample.place, Place::Cleaner | Place::Quotas);
                }
            },
        }
        if lasts && let Some(known) = self.known.get_mut(&thread) {
            known.seen = runs.map(|runs| (runs, Some(sample.clone())));
        }
        if sample.waits() {
            self.waiting.entry(thread).or_insert(now_s);
        } else {
            self.end_wait(thread);
        }
        let awake = match stat.state {
            State::Running => true,
            State::Blocked => sample.place != Place::Sleep,
            State::Sleeping | State::Other => false,
        };
        self.found.samples.push(sample);
        awake
    }

    /// A thread does not wait, or has ended.
    fn end_wait(&mut self, thread: Thread) {
        self.waiting.remove(&thread);
        self.named.remove(&thread);
    }

    /// The place of a thread in [`Sampled::threads`]; its process' first thread is there before it.
    fn index(&mut self, thread: Thread) -> usize {
        let first = Thread {
            tid: thread.pid,
            ..thread
        };
        for one in [first, thread] {
            if let Some(known) = self.known.get_mut(&one)
                && known.index.is_none()
            {
                known.index = Some(self.found.threads.len());
                self.found.threads.push(known.looked.clone());
            }
        }
        let known = self.known.get(&thread);
        known.and_then(|known| known.index).unwrap_or_default()
    }

    /// The longest time for which a thread has been blocked at each look so far, in seconds.
    pub fn blocked_for_s(&self, now_s: f64) -> f64 {
        let all = self.waiting.values();
        all.map(|since| now_s - since).fold(0.0, f64::max)
    }

    /// Finds out where a blocked thread waits.
    fn waits(&mut self, thread: Thread, sample: &mut Sample) {
        let stack = match thread.stack() {
            Ok(stack) => stack,
            Err(_) => {
                self.found.without_stacks = true;
                thread.wait_channel().into_iter().collect()
            }
        };
        sample.place = self.place_of(thread, sample, &stack);
        sample.stack = match self.stacks.get(&stack) {
            Some(index) => *index,
            None => {
                self.found.stacks.push(stack.clone());
                let index = self.found.stacks.len() - 1;
                self.stacks.insert(stack, index);
                index
            }
        };
        match self.below(thread, sample.call, sample.at_s) {
            Ok(below) => sample.below = below,
            Err(Late) => sample.nowhere = true,
        }
        // It was in a call when its stack was read, and not when the call was.
        let stack = &self.found.stacks[sample.stack];
        sample.nowhere |= sample.call.is_none() && stack.iter().any(|one| is_of_call(one));
        self.look_at_cleaner(sample);
    }
}

/// Drops every second sample of each thread, and lets the others stand for twice the time.
fn thin(samples: &mut Vec<Sample>) {
    let mut keep: HashMap<usize, bool> = HashMap::new();
    samples.retain_mut(|sample| {
        let next = keep.entry(sample.thread).or_insert(false);
        *next = !*next;
        sample.stands_for_s *= 2.0;
        *next
    });
}

#[cfg(test)]
mod tests;
