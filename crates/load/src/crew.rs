//! The threads and programs of an actor or a deletion, as they begin.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::meter::Meter;

/// Those that do the work of one actor or of one deletion. It grows while they begin, and keeps
/// those that have ended. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Crew(Arc<Mutex<Members>>);

#[derive(Debug, Default)]
struct Members {
    /// Of those that keep operations in flight in a queue.
    meters: Vec<Arc<Meter>>,
    threads: Vec<u32>,
    programs: Vec<u32>,
}

impl Crew {
    /// Those of an actor whose one thread keeps operations in flight in a queue.
    pub(crate) fn of_queue(meters: &[Arc<Meter>]) -> Crew {
        Crew(Arc::new(Mutex::new(Members {
            meters: meters.to_vec(),
            ..Members::default()
        })))
    }

    /// Whether it keeps operations in flight in a queue and has none there now: then a wait for the
    /// queue is no wait for storage.
    pub fn has_idle_queue(&self) -> bool {
        let meters = self.members().meters.clone();
        let none = meters.iter().all(|meter| meter.in_flight().0 == 0);
        !meters.is_empty() && none
    }

    /// The thread that calls this is one of them.
    pub fn join(&self) {
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        self.members().threads.push(id.unsigned_abs());
    }

    /// A process that was started for the work is one of them, with its descendants.
    pub fn add_program(&self, pid: u32) {
        self.members().programs.push(pid);
    }

    /// Whether a thread is one of them.
    pub fn has(&self, thread: u32) -> bool {
        self.members().threads.contains(&thread)
    }

    /// The ids of the threads in the order in which they began, without the first `known`.
    pub fn threads(&self, known: usize) -> Vec<u32> {
        rest(&self.members().threads, known)
    }

    /// The processes in the order in which they began, without the first `known`.
    pub fn programs(&self, known: usize) -> Vec<u32> {
        rest(&self.members().programs, known)
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rest(all: &[u32], known: usize) -> Vec<u32> {
    all.get(known..).unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_those_that_joined_in_their_order() {
        let crew = Crew::default();
        let other = crew.clone();
        std::thread::spawn(move || other.join()).join().unwrap();
        crew.join();
        crew.add_program(7);
        let all = crew.threads(0);
        assert_eq!(all.len(), 2);
        assert_ne!(all[0], all[1]);
        assert_eq!(crew.threads(1), all[1..]);
        assert!(crew.threads(3).is_empty());
        assert!(crew.has(all[1]) && !crew.has(7));
        assert_eq!(crew.programs(0), [7]);
        // It has no queue.
        assert!(!crew.has_idle_queue());
    }
}
