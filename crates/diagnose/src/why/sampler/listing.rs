//! Which threads are there, found out for little.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use linux::tasks::{self, Thread};

use super::MOST_OPEN;
use crate::why::Subject;

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

    /// So many threads may have their state held open.
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
