//! Which threads are there, found out for little.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use linux::tasks::{self, Call, Thread};

use super::{MOST_OPEN, Sample, Sampler};
use crate::why::Subject;
use crate::why::frames::Place;

/// Listing the threads takes at most one part in so many of the time; of a light sampler in twice
/// as many.
const PART: u32 = 300;

/// The threads of the last list.
#[derive(Debug)]
pub(super) struct Listing {
    listed: Option<Instant>,
    took: Duration,
    processes: HashMap<u32, Process>,
    /// Processes beside the subject's.
    followed: Vec<u32>,
    most_open: usize,
}

/// A process, its links ([`tasks::thread_links`]) and its threads.
#[derive(Debug)]
struct Process {
    links: u64,
    threads: Vec<Thread>,
}

impl Default for Listing {
    fn default() -> Listing {
        use rustix::process::{Resource, getrlimit};
        let limit = getrlimit(Resource::Nofile).current;
        let limit = limit.and_then(|most| usize::try_from(most).ok());
        Listing {
            listed: None,
            took: Duration::ZERO,
            processes: HashMap::new(),
            followed: Vec::new(),
            most_open: limit.map_or(MOST_OPEN, |most| MOST_OPEN.min(most / 2)),
        }
    }
}

impl Listing {
    /// Lists the subject's threads if that is due. `None`: it is not, or they are the same.
    ///
    /// The threads of a process are listed again only if their number has changed, or one of them
    /// was seen to have ended. `is_kernel`: a thread of the kernel, which is alone in its process.
    pub(super) fn renew(
        &mut self,
        subject: &Subject,
        light: bool,
        is_kernel: &dyn Fn(Thread) -> bool,
    ) -> Option<Vec<Thread>> {
        let pause = self.took * PART * (1 + u32::from(light));
        if self.listed.is_some_and(|at| at.elapsed() < pause) {
            return None;
        }
        self.listed = Some(Instant::now());
        let clock = Spent::begin();
        let own = std::process::id();
        let mut pids = match subject {
            Subject::All => tasks::processes(),
            Subject::Process(pid) => vec![*pid],
            Subject::Family(pid) => tasks::family(*pid),
            Subject::Group(directory) => tasks::of_cgroup(directory),
        };
        for pid in &self.followed {
            if !pids.contains(pid) {
                pids.push(*pid);
            }
        }
        let mut earlier = std::mem::take(&mut self.processes);
        let mut changed = false;
        let mut threads = Vec::new();
        for pid in pids.into_iter().filter(|pid| *pid != own) {
            let known = earlier.remove(&pid);
            let first = Thread { pid, tid: pid };
            let same =
                |one: &Process| is_kernel(first) || tasks::thread_links(pid) == Some(one.links);
            let process = match known.filter(same) {
                Some(known) => known,
                None => {
                    changed = true;
                    // Before the list: a thread that begins meanwhile makes them differ next time.
                    let Some(links) = tasks::thread_links(pid) else {
                        continue;
                    };
                    Process {
                        links,
                        threads: tasks::threads(pid),
                    }
                }
            };
            threads.extend_from_slice(&process.threads);
            self.processes.insert(pid, process);
        }
        self.took = clock.spent();
        (changed || !earlier.is_empty()).then_some(threads)
    }

    /// Lists these as well from now on.
    pub(super) fn follow(&mut self, processes: Vec<u32>) {
        if !processes.is_empty() {
            self.followed.extend(processes);
            self.listed = None;
        }
    }

    /// The last list took longer, with what was made of it, on a processor.
    pub(super) fn set_duration(&mut self, took: Duration) {
        self.took = took;
    }

    /// A thread of a process has ended: another one may have come.
    pub(super) fn forget(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// So many threads may have the file of how long they have run held open.
    pub(super) fn most_open(&self) -> usize {
        self.most_open
    }
}

// The time that a turn has taken.

/// Time on a processor: on a busy machine far more passes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spent {
    began: Instant,
    before: Duration,
}

impl Spent {
    /// Begins to count.
    pub(super) fn begin() -> Spent {
        Spent {
            began: Instant::now(),
            before: Spent::now(),
        }
    }

    fn now() -> Duration {
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(used.tv_sec.max(0) as u64, used.tv_nsec.max(0) as u32)
    }

    /// Returns the time that this thread has used since.
    pub(super) fn spent(self) -> Duration {
        Spent::now().saturating_sub(self.before)
    }

    /// Whether a budget is used up; or ten times as much has passed, so that no turn is very long.
    pub(super) fn is_over(self, budget: Duration) -> bool {
        self.spent() > budget || self.began.elapsed() > budget * 10
    }
}

// Looks at threads whose list is known.

/// At most so many of them have a look in a turn; the others have the next.
const MOST: usize = 64;

impl Sampler {
    /// Looks from now on at those of these threads that are alone in a process that no list has yet.
    pub fn notice(&mut self, threads: &[u32], now_s: f64) {
        for &tid in threads {
            let own = Thread { pid: tid, tid };
            let is_known =
                self.kernel.contains(&own) || self.known.keys().any(|one| one.tid == tid);
            if is_known || tasks::name_of_process(tid).is_some() {
                continue;
            }
            self.add_thread(own, now_s);
            if self.known.contains_key(&own) {
                self.order.push(own);
            }
        }
    }

    /// Looks at these threads and at no others, whatever the subject is. Of many, each turn looks
    /// at some. One that waits for its queue and is `idle` sleeps. Returns those that have ended.
    pub fn look_at(
        &mut self,
        threads: &[Thread],
        now_s: f64,
        idle: &dyn Fn(Thread) -> bool,
    ) -> Vec<Thread> {
        if self.order != threads {
            self.forget_others(threads);
            self.order = threads.to_vec();
            self.next = 0;
        }
        self.memory.begin_turn();
        self.found.turns += 1;
        let count = self.order.len();
        let mut ended = Vec::new();
        for step in 0..count.min(MOST) {
            let thread = self.order[(self.next + step) % count];
            if !self.known.contains_key(&thread) {
                self.add_thread(thread, now_s);
            }
            let before = self.found.samples.len();
            self.look(thread, now_s);
            let sample = self.found.samples[before..].first_mut();
            if let Some(sample) = sample.filter(|one| waits_for_queue(one)) {
                sample.place = Place::Io;
                if idle(thread) {
                    sample.place = Place::Sleep;
                    sample.call = None;
                }
            }
            if !self.known.contains_key(&thread) {
                ended.push(thread);
            }
        }
        if count > MOST {
            self.next = (self.next + MOST) % count;
            self.found.partial_turns += 1;
        }
        ended
    }

    /// Forgets all threads but these.
    pub(super) fn forget_others(&mut self, threads: &[Thread]) {
        let there: HashSet<Thread> = threads.iter().copied().collect();
        self.asleep.retain(|thread| there.contains(thread));
        self.kernel.retain(|thread| there.contains(thread));
        self.known.retain(|thread, _| there.contains(thread));
        self.waiting.retain(|thread, _| there.contains(thread));
        self.named.retain(|thread, _| there.contains(thread));
        self.open = self.known.values().filter(|one| one.runs.is_some()).count();
    }
}

fn waits_for_queue(sample: &Sample) -> bool {
    let call = sample.call.and_then(Call::name);
    matches!(sample.place, Place::Io | Place::Completions)
        && matches!(call, Some("io_uring_enter" | "io_getevents"))
}

#[cfg(test)]
mod tests {
    use linux::SysRoot;
    use storage::disks::Disks;

    use super::*;
    use crate::why::Subject;

    #[test]
    fn a_process_that_is_noticed_has_looks_before_the_next_list() {
        let mut sampler = Sampler::new(SysRoot::host(), Subject::All, Disks::default()).light();
        sampler.turn(0.0, Duration::from_secs(1));
        // The next list is ten minutes away.
        sampler.listing.set_duration(Duration::from_secs(1));
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id();
        let mut is_seen = |noticed: &[u32], now_s| {
            sampler.notice(noticed, now_s);
            sampler.turn(now_s, Duration::from_secs(1));
            let mut all = sampler.found.threads.iter();
            all.any(|one| one.thread.pid == pid)
        };
        let unnoticed = is_seen(&[], 0.1);
        let noticed = is_seen(&[pid, pid], 0.2);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!unnoticed && noticed);
        assert_eq!(sampler.order.iter().filter(|one| one.pid == pid).count(), 1);
    }

    #[test]
    fn threads_of_this_process_are_looked_at_until_they_end() {
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let (tell, told) = std::sync::mpsc::channel();
        let own = std::process::id();
        let sleeper = std::thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get())
                .unwrap();
            let _ = ended.recv();
        });
        let thread = Thread {
            pid: own,
            tid: told.recv().unwrap().unsigned_abs(),
        };
        let subject = Subject::Process(own);
        let mut sampler = Sampler::new(SysRoot::host(), subject, Disks::default());
        for turn in 0..50 {
            // It takes a moment to fall asleep.
            std::thread::sleep(std::time::Duration::from_millis(1));
            let now_s = 1.0 + f64::from(turn) / 100.0;
            assert!(sampler.look_at(&[thread], now_s, &|_| true).is_empty());
        }
        end.send(()).unwrap();
        sleeper.join().unwrap();
        // The kernel may take a moment to bury it.
        while sampler.look_at(&[thread], 2.0, &|_| true).is_empty() {
            std::thread::yield_now();
        }
        let found = sampler.finish();
        let asleep = found.samples.iter().filter(|one| one.place == Place::Sleep);
        assert!(asleep.count() >= 40, "{found:?}");
        assert!(found.threads.iter().all(|one| one.thread == thread));
    }
}
