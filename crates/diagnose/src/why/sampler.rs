//! Looks at threads again and again, for a bounded share of a processor.
//!
//! A thread that is looked at stands for the time since the last look at it. So the sums are right
//! on average, however many threads there are: with more of them each is looked at less often.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use linux::SysRoot;
use linux::tasks::{self, Call, State, Thread};
use serde::{Deserialize, Serialize};
use storage::disks::{Disks, Place as Below};

mod given;

use super::Subject;
use super::frames::{Place, place};

/// The longest time that one look stands for, in seconds: what happened before is not known.
const LONGEST_S: f64 = 1.0;

/// So many threads are asked for their call as well while they sleep.
const FEW: usize = 500;

/// A light sampler asks a sleeping thread for its call at one look in so many.
const RARELY: u32 = 8;

/// Listing the threads takes at most one part in so many of the time; of a light sampler in twice
/// as many.
const LISTING: u32 = 200;

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
}

impl Sample {
    /// Whether the thread waits for storage, or for a lock that is not a program's own.
    pub fn waits(&self) -> bool {
        let call = self.call.and_then(Call::name);
        let by_design = self.place == Place::Lock && matches!(call, Some("flock" | "fcntl"));
        !matches!(self.place, Place::Sleep | Place::Running) && !by_design
    }
}

/// A thread that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Looked {
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
    pub threads: Vec<Looked>,
    /// Stacks, each once; the first is the empty one.
    pub stacks: Vec<Vec<String>>,
    /// File systems and devices that threads waited for.
    pub places: Vec<Below>,
    /// Whether stacks could not be read.
    pub without_stacks: bool,
    /// Turns that ended before every thread was looked at.
    pub partial_turns: u64,
    /// All turns.
    pub turns: u64,
}

#[derive(Debug)]
struct Known {
    index: usize,
    looked_s: f64,
    blocked: bool,
    /// Since when it was blocked at each look, on the clock of the looks.
    waits_since_s: Option<f64>,
    looks: u32,
}

/// The sampler.
#[derive(Debug)]
pub struct Sampler {
    sys: SysRoot,
    subject: Subject,
    disks: Disks,
    known: HashMap<Thread, Known>,
    /// The order in which threads are looked at, and where the next turn begins.
    order: Vec<Thread>,
    next: usize,
    listed: Option<Instant>,
    listing: Duration,
    stacks: HashMap<Vec<String>, usize>,
    /// By device number.
    below: HashMap<linux::mounts::DeviceNumber, Option<usize>>,
    /// Threads that slept for storage when they were looked at last.
    asleep: HashSet<Thread>,
    /// The kernel's threads, where they are left out.
    kernel: HashSet<Thread>,
    /// Whether it looks at programs alone, and seldom asks those that sleep for their call.
    light: bool,
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
            order: Vec::new(),
            next: 0,
            listed: None,
            listing: Duration::ZERO,
            stacks: HashMap::from([(Vec::new(), 0)]),
            below: HashMap::new(),
            asleep: HashSet::new(),
            kernel: HashSet::new(),
            light: false,
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

    /// Looks at as many threads as `budget` allows; blocked ones first.
    pub fn turn(&mut self, now_s: f64, budget: Duration) {
        let clock = Spent::begin();
        self.list(now_s);
        self.found.turns += 1;
        let blocked: Vec<Thread> = {
            let all = self.known.iter();
            let mut blocked: Vec<(f64, Thread)> = all
                .filter(|(_, known)| known.blocked)
                .map(|(thread, known)| (known.looked_s, *thread))
                .collect();
            // Those that waited longest for a look.
            blocked.sort_by(|a, b| a.0.total_cmp(&b.0));
            blocked.into_iter().map(|(_, thread)| thread).collect()
        };
        // Half of the turn is for threads that were not blocked: or they would never be seen to be.
        let mut done = HashSet::new();
        for thread in blocked {
            if clock.is_over(budget / 2) && !done.is_empty() {
                break;
            }
            self.look(thread, now_s);
            done.insert(thread);
        }
        let count = self.order.len();
        for step in 0..count {
            let thread = self.order[(self.next + step) % count];
            if !done.contains(&thread) {
                self.look(thread, now_s);
            }
            if clock.is_over(budget) {
                self.next = (self.next + step + 1) % count;
                self.found.partial_turns += u64::from(step + 1 < count);
                break;
            }
        }
        if self.found.samples.len() > self.most {
            thin(&mut self.found.samples);
        }
    }

    /// All that was seen.
    pub fn finish(self) -> Sampled {
        self.found
    }

    /// Takes out what was seen since the last call, and looks on.
    pub fn drain(&mut self) -> Sampled {
        let mut fresh = Sampled {
            stacks: vec![Vec::new()],
            places: self.found.places.clone(),
            ..Sampled::default()
        };
        for known in self.known.values_mut() {
            fresh.threads.push(self.found.threads[known.index].clone());
            known.index = fresh.threads.len() - 1;
        }
        self.stacks = HashMap::from([(Vec::new(), 0)]);
        std::mem::replace(&mut self.found, fresh)
    }

    /// Takes the devices that are there now, and looks again what is mounted on them.
    pub fn renew(&mut self, disks: Disks) {
        self.disks = disks;
        self.below.clear();
        // Places of looks that are not drained yet stay; a list that has grown long goes with them.
        if self.found.samples.is_empty() {
            self.found.places.clear();
        }
    }

    /// Lists the threads again, if that is due.
    fn list(&mut self, now_s: f64) {
        let due = self
            .listed
            .is_none_or(|at| at.elapsed() >= self.listing * LISTING * (1 + u32::from(self.light)));
        if !due {
            return;
        }
        let (began, clock) = (Instant::now(), Spent::begin());
        let own = std::process::id();
        let processes = match &self.subject {
            Subject::All => tasks::processes(),
            Subject::Process(pid) => vec![*pid],
            Subject::Family(pid) => tasks::family(*pid),
            Subject::Group(directory) => tasks::of_cgroup(directory),
        };
        let threads = processes
            .into_iter()
            .filter(|pid| *pid != own)
            .flat_map(tasks::threads);
        let threads: Vec<Thread> = threads.collect();
        let there: HashSet<Thread> = threads.iter().copied().collect();
        self.asleep.retain(|thread| there.contains(thread));
        self.kernel.retain(|thread| there.contains(thread));
        self.known.retain(|thread, _| there.contains(thread));
        for thread in &threads {
            if !self.known.contains_key(thread) && !self.kernel.contains(thread) {
                self.meet(*thread, now_s);
            }
        }
        self.order = threads;
        self.order.retain(|thread| self.known.contains_key(thread));
        self.listing = clock.spent();
        self.listed = Some(began);
    }

    /// A thread that is new.
    fn meet(&mut self, thread: Thread, now_s: f64) {
        let Some(stat) = thread.stat() else { return };
        if stat.kernel && self.light {
            self.kernel.insert(thread);
            return;
        }
        self.found.threads.push(Looked {
            thread,
            comm: stat.comm,
            kernel: stat.kernel,
        });
        let known = Known {
            index: self.found.threads.len() - 1,
            looked_s: now_s,
            blocked: false,
            waits_since_s: None,
            looks: 0,
        };
        self.known.insert(thread, known);
    }

    fn look(&mut self, thread: Thread, now_s: f64) {
        if !self.known.contains_key(&thread) {
            return;
        }
        let Some(stat) = thread.stat() else {
            // It has ended; the next list is without it.
            self.known.remove(&thread);
            return;
        };
        let few = self.order.len() <= FEW;
        let Some(known) = self.known.get_mut(&thread) else {
            return;
        };
        let stands_for_s = (now_s - known.looked_s).clamp(0.0, LONGEST_S);
        known.looked_s = now_s;
        known.blocked = stat.state == State::Blocked;
        known.looks = known.looks.wrapping_add(1);
        let (looks, light) = (known.looks, self.light);
        let was_asleep = self.asleep.remove(&thread);
        let index = known.index;
        // A program that has started another by execve has its name.
        let looked = &mut self.found.threads[index];
        if looked.comm != stat.comm && !stat.kernel {
            looked.comm = stat.comm;
        }
        let kernel = looked.kernel;
        let mut sample = Sample {
            at_s: now_s,
            stands_for_s,
            thread: index,
            place: Place::Running,
            stack: 0,
            call: None,
            below: None,
        };
        match stat.state {
            State::Running => {}
            State::Other => return,
            State::Sleeping if kernel => return,
            State::Sleeping => {
                sample.place = Place::Sleep;
                let asked = few && (!light || was_asleep || looks.is_multiple_of(RARELY));
                let call = asked.then(|| thread.call()).flatten();
                let call = call.filter(|call| call.may_sleep_for_storage());
                // A server that waits for its clients in its ring does not wait for storage.
                let idle = |call: &Call| {
                    call.name() == Some("io_uring_enter")
                        && thread.ring_in_flight(call.first) == Some(0)
                };
                if let Some(call) = call.filter(|call| !idle(call)) {
                    self.asleep.insert(thread);
                    sample.call = Some(call);
                    self.waits(thread, &mut sample);
                }
            }
            State::Blocked => {
                sample.call = thread.call();
                self.waits(thread, &mut sample);
                if sample.place == Place::Sleep {
                    // Blocked, in a place that no table has.
                    sample.place = Place::Io;
                }
            }
        }
        self.note_wait(thread, &sample);
        self.found.samples.push(sample);
    }

    /// Notes since when a thread waits for storage or a lock of the kernel.
    fn note_wait(&mut self, thread: Thread, sample: &Sample) {
        let Some(known) = self.known.get_mut(&thread) else {
            return;
        };
        known.waits_since_s = match sample.waits() {
            true => known.waits_since_s.or(Some(sample.at_s)),
            false => None,
        };
    }

    /// The longest time for which a thread has been blocked at each look so far, in seconds.
    pub fn blocked_for_s(&self, now_s: f64) -> f64 {
        let all = self.known.values();
        let all = all.filter_map(|known| known.waits_since_s);
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
        sample.place = place(stack.iter().map(String::as_str));
        sample.stack = match self.stacks.get(&stack) {
            Some(index) => *index,
            None => {
                self.found.stacks.push(stack.clone());
                let index = self.found.stacks.len() - 1;
                self.stacks.insert(stack, index);
                index
            }
        };
        sample.below = self.below(thread, sample.call);
    }

    /// The file system or device that a call works on.
    fn below(&mut self, thread: Thread, call: Option<Call>) -> Option<usize> {
        let path = match call {
            Some(call) if call.has_descriptor() => thread.descriptor(call.first),
            // A path that it was given is most often below the working directory; not certain.
            _ => return None,
        };
        self.below_path(path)
    }

    fn below_path(&mut self, path: PathBuf) -> Option<usize> {
        let number = tasks::device_of(&path)?;
        if let Some(known) = self.below.get(&number) {
            return *known;
        }
        let found = self.disks.place(&self.sys, &path, number);
        let index = found.map(|place| {
            let same = self.found.places.iter().position(|one| *one == place);
            same.unwrap_or_else(|| {
                self.found.places.push(place);
                self.found.places.len() - 1
            })
        });
        self.below.insert(number, index);
        index
    }
}

/// Time on a processor: on a busy machine far more passes.
#[derive(Debug, Clone, Copy)]
struct Spent {
    began: Instant,
    before: Duration,
}

impl Spent {
    fn begin() -> Spent {
        Spent {
            began: Instant::now(),
            before: Spent::now(),
        }
    }

    fn now() -> Duration {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(used.tv_sec.max(0) as u64, used.tv_nsec.max(0) as u32)
    }

    fn spent(self) -> Duration {
        Spent::now().saturating_sub(self.before)
    }

    /// Whether a budget is used up; or ten times as much has passed, so that no turn is very long.
    fn is_over(self, budget: Duration) -> bool {
        self.spent() > budget || self.began.elapsed() > budget * 10
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
mod tests {
    use super::*;

    #[test]
    fn a_process_that_runs_and_one_that_sleeps_are_told_apart() {
        let mut child = std::process::Command::new("sh")
            .args(["-c", "sleep 60 & while :; do :; done"])
            .spawn()
            .unwrap();
        let subject = Subject::Family(child.id());
        let mut sampler = Sampler::new(SysRoot::host(), subject, Disks::default());
        let seconds = |found: &Sampled, name: &str, place: Place| -> f64 {
            let all = found.samples.iter();
            all.filter(|s| s.place == place && found.threads[s.thread].comm == name)
                .map(|s| s.stands_for_s)
                .sum()
        };
        let began = Instant::now();
        // A busy machine gives them little time at first.
        let both = |found: &Sampled| {
            seconds(found, "sh", Place::Running) > 0.2
                && seconds(found, "sleep", Place::Sleep) > 0.2
        };
        while !both(&sampler.found) && began.elapsed() < Duration::from_secs(20) {
            sampler.turn(began.elapsed().as_secs_f64(), Duration::from_millis(5));
            std::thread::sleep(Duration::from_millis(20));
        }
        for pid in tasks::family(child.id()).into_iter().rev() {
            let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        child.wait().unwrap();
        let found = sampler.finish();
        assert!(both(&found), "{found:?}");
        assert_eq!(seconds(&found, "sleep", Place::Running), 0.0);
    }

    #[test]
    fn processes_that_end_between_two_looks_are_no_trouble() {
        let sleeps = |seconds: &str| {
            let command = |_| std::process::Command::new("sleep").arg(seconds).spawn();
            (0..8).map(command).collect::<Result<Vec<_>, _>>().unwrap()
        };
        let mut all = sleeps("60");
        let subject = Subject::Family(std::process::id());
        let mut sampler = Sampler::new(SysRoot::host(), subject, Disks::default());
        // It leaves out this process itself, and knows its children.
        sampler.turn(0.0, Duration::from_secs(1));
        for child in &mut all {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // No new list is due for that long: each of them is looked for.
        sampler.listed = Some(Instant::now());
        sampler.listing = Duration::from_secs(1);
        sampler.turn(0.1, Duration::from_secs(1));
        let knows = |pid: u32| sampler.known.keys().any(|thread| thread.pid == pid);
        assert!(!all.iter().any(|child| knows(child.id())), "{sampler:?}");
    }

    #[test]
    fn drained_looks_keep_their_threads() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let subject = Subject::Family(child.id());
        let mut sampler = Sampler::new(SysRoot::host(), subject, Disks::default());
        let mut turn = |at: u32| {
            sampler.turn(f64::from(at) / 10.0, Duration::from_millis(5));
            let found = sampler.drain();
            assert_eq!(found.threads.len(), 1, "{found:?}");
            found.samples.iter().map(|s| s.stands_for_s).sum::<f64>()
        };
        // The name of a program that has just been started may still be that of the shell.
        let sums: Vec<f64> = (0..5).map(&mut turn).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(sums[0], 0.0);
        assert!(
            (sums[1..].iter().sum::<f64>() - 0.4).abs() < 1e-9,
            "{sums:?}"
        );
    }

    #[test]
    fn thinning_keeps_the_time() {
        let sample = |thread, at| Sample {
            at_s: f64::from(at),
            stands_for_s: 1.0,
            thread,
            place: Place::Io,
            stack: 0,
            call: None,
            below: None,
        };
        let mut all: Vec<Sample> = (0..100)
            .flat_map(|at| [sample(0, at), sample(1, at)])
            .collect();
        thin(&mut all);
        assert_eq!(all.len(), 100);
        assert_eq!(all.iter().map(|s| s.stands_for_s).sum::<f64>(), 200.0);
    }
}
