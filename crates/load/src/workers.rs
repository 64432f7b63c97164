//! The threads and programs that do a run's work, as they begin, for a watcher outside of the run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use record::{Part, PhaseName};

use crate::meter::Meter;

/// Those that do the work of one actor or of one deletion. It grows while they begin, and keeps
/// those that have ended. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Workers(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    /// Of those that keep operations in flight in a queue.
    meters: Vec<Arc<Meter>>,
    threads: Vec<u32>,
    programs: Vec<u32>,
}

impl Workers {
    /// Those of an actor whose one thread keeps operations in flight in a queue.
    pub(crate) fn of_queue(meters: &[Arc<Meter>]) -> Workers {
        Workers(Arc::new(Mutex::new(Entries {
            meters: meters.to_vec(),
            ..Entries::default()
        })))
    }

    /// Whether it keeps operations in flight in a queue and has none there now: then a wait for the
    /// queue is no wait for storage.
    pub fn has_idle_queue(&self) -> bool {
        let meters = self.entries().meters.clone();
        let none = meters.iter().all(|meter| meter.in_flight().0 == 0);
        !meters.is_empty() && none
    }

    /// The thread that calls this is one of them.
    pub fn join(&self) {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        self.entries().threads.push(id.unsigned_abs());
    }

    /// A process that was started for the work is one of them, with its descendants.
    pub fn add_program(&self, pid: u32) {
        self.entries().programs.push(pid);
    }

    /// Whether a thread is one of them.
    pub fn has(&self, thread: u32) -> bool {
        self.entries().threads.contains(&thread)
    }

    /// The ids of the threads in the order in which they began, without the first `known`.
    pub fn threads(&self, known: usize) -> Vec<u32> {
        rest(&self.entries().threads, known)
    }

    /// The processes in the order in which they began, without the first `known`.
    pub fn programs(&self, known: usize) -> Vec<u32> {
        rest(&self.entries().programs, known)
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rest<T: Clone>(all: &[T], known: usize) -> Vec<T> {
    all.get(known..).unwrap_or_default().to_vec()
}

/// The actors of a run with their threads, and its phases. The run adds to it; clones share it.
#[derive(Debug, Clone, Default)]
pub struct RunWorkers(Arc<Mutex<Run>>);

#[derive(Debug, Default)]
struct Run {
    named: Vec<NamedWorkers>,
    phases: Vec<Began>,
}

/// One source of work in a run. Several deletions of a run are a member each, of one name.
#[derive(Debug, Clone)]
pub struct NamedWorkers {
    /// Its name: an actor's, or one of those in [`record::waits`].
    pub name: String,
    /// Its threads and programs.
    pub workers: Workers,
}

/// A phase that began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Began {
    /// When, on the monotonic clock (`CLOCK_MONOTONIC`), in seconds.
    pub monotonic_s: f64,
    /// The phase.
    pub name: PhaseName,
    /// Its part.
    pub part: Part,
}

impl RunWorkers {
    /// The named in the order in which they came, without the first `known`.
    pub fn named(&self, known: usize) -> Vec<NamedWorkers> {
        rest(&self.run().named, known)
    }

    /// The phases in order of time, without the first `known`.
    pub fn phases(&self, known: usize) -> Vec<Began> {
        rest(&self.run().phases, known)
    }

    /// Adds a member.
    pub fn add(&self, name: &str, workers: &Workers) {
        self.run().named.push(NamedWorkers {
            name: name.to_owned(),
            workers: workers.clone(),
        });
    }

    /// Adds a phase, which begins after those that it has.
    pub fn begin(&self, phase: Began) {
        self.run().phases.push(phase);
    }

    fn run(&self) -> MutexGuard<'_, Run> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use record::waits::DELETER;

    use super::*;

    #[test]
    fn members_are_those_that_joined_in_their_order() {
        let workers = Workers::default();
        let other = workers.clone();
        std::thread::spawn(move || other.join()).join().unwrap();
        workers.join();
        workers.add_program(7);
        let all = workers.threads(0);
        assert_eq!(all.len(), 2);
        assert_ne!(all[0], all[1]);
        assert_eq!(workers.threads(1), all[1..]);
        assert!(workers.threads(3).is_empty());
        assert!(workers.has(all[1]) && !workers.has(7));
        assert_eq!(workers.programs(0), [7]);
        // It has no queue.
        assert!(!workers.has_idle_queue());
    }

    #[test]
    fn whoever_asks_again_gets_what_is_new() {
        let workers = RunWorkers::default();
        let run = workers.clone();
        run.add("reader", &Workers::default());
        assert_eq!(workers.named(0)[0].name, "reader");
        run.add(DELETER, &Workers::default());
        let fresh = workers.named(1);
        assert_eq!((fresh.len(), fresh[0].name.as_str()), (1, DELETER));
        assert!(workers.named(5).is_empty() && workers.phases(0).is_empty());
    }
}
