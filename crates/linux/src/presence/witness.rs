//! A thread that does nothing but nap, so that it knows when this process was away.
//!
//! Every other thread may be in a call that takes as long as a drive likes. This one does nothing
//! that could take long, so that each of its turns takes as long as its nap, unless the process
//! doesn't run.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use record::absence::{Absent, Nap, Readings, absence};
use rustix::mm::MlockAllFlags;

use super::{RunQueue, Stolen, major_faults};
use crate::SysRoot;
use crate::clock::suspended;

/// How long each nap is.
const NAP: Duration = Duration::from_millis(20);

/// A turn that is later than this is perhaps an absence.
const OVERDUE: Duration = Duration::from_millis(50);

/// Another thread waits for an overdue witness no longer than this: the witness may have no
/// processor where that thread has one.
const LONGEST: Duration = Duration::from_millis(500);

/// The kernel counts every interrupt of the machine for `/proc/stat`, so the witness reads it no
/// more often than this.
const STOLEN_EVERY: Duration = Duration::from_secs(1);

/// Naps until it is dropped.
#[derive(Debug)]
pub struct Witness(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    since: Instant,
    /// When the last turn ended, in nanoseconds.
    turned: AtomicU64,
    /// The hypervisor's share so far, in nanoseconds.
    stolen: AtomicU64,
    /// Absences that nobody has asked for yet.
    found: Mutex<Vec<Absent>>,
    stop: AtomicBool,
}

impl Witness {
    /// Begins to nap.
    ///
    /// # Errors
    /// If there can be no more threads.
    pub fn start() -> io::Result<Witness> {
        let shared = Arc::new(Shared {
            since: Instant::now(),
            turned: AtomicU64::new(0),
            stolen: AtomicU64::new(0),
            found: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        keep_memory();
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name("witness".to_owned());
        thread.spawn(move || Turns::new().go_on(&own))?;
        Ok(Witness(shared))
    }

    /// Absences since the last call. If the calling thread is back before the witness is, it
    /// waits for the witness.
    pub fn take(&self) -> Vec<Absent> {
        let asked = Instant::now();
        while self.0.is_overdue() && asked.elapsed() < LONGEST {
            thread::sleep(Duration::from_millis(1));
        }
        std::mem::take(&mut *self.0.found())
    }

    /// How long the hypervisor has kept processors from this machine, added up over them, as
    /// read about a second ago.
    pub fn stolen(&self) -> Duration {
        Duration::from_nanos(self.0.stolen.load(Ordering::Relaxed))
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn is_overdue(&self) -> bool {
        let now = nanos(self.since.elapsed());
        let since = now.saturating_sub(self.turned.load(Ordering::Acquire));
        Duration::from_nanos(since) > NAP + OVERDUE
    }

    fn found(&self) -> MutexGuard<'_, Vec<Absent>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The witness' own state.
struct Turns {
    queue: Option<RunQueue>,
    stolen: Option<Stolen>,
    stolen_s: f64,
    looked: Instant,
    /// When the last turn ended, and what was read then.
    last: Instant,
    before: Readings,
}

impl Turns {
    fn new() -> Turns {
        let stolen = Stolen::open(&SysRoot::host()).ok();
        let mut turns = Turns {
            queue: RunQueue::own().ok(),
            stolen_s: stolen.as_ref().and_then(Stolen::seconds).unwrap_or(0.0),
            stolen,
            looked: Instant::now(),
            last: Instant::now(),
            before: Readings::default(),
        };
        turns.before = turns.read();
        turns
    }

    fn go_on(mut self, shared: &Shared) {
        while !shared.stop.load(Ordering::Relaxed) {
            thread::sleep(NAP);
            if let Some(absent) = self.turn() {
                shared.found().push(absent);
            }
            let stolen = Duration::try_from_secs_f64(self.stolen_s).unwrap_or_default();
            shared.stolen.store(nanos(stolen), Ordering::Relaxed);
            shared
                .turned
                .store(nanos(shared.since.elapsed()), Ordering::Release);
        }
    }

    /// Ends a turn. From the end of one to the end of the next all time is looked at.
    fn turn(&mut self) -> Option<Absent> {
        if self.looked.elapsed() >= STOLEN_EVERY {
            self.look_at_stolen();
        }
        let now = Instant::now();
        let nap = Nap {
            asked_s: NAP.as_secs_f64(),
            took_s: now.duration_since(self.last).as_secs_f64(),
        };
        let mut read = self.read();
        let mut found = absence(nap, &read.since(&self.before));
        if found.is_some() {
            self.look_at_stolen();
            read.stolen_s = self.stolen_s;
            found = absence(nap, &read.since(&self.before));
        }
        (self.last, self.before) = (now, read);
        found
    }

    fn look_at_stolen(&mut self) {
        self.looked = Instant::now();
        let now = self.stolen.as_ref().and_then(Stolen::seconds);
        self.stolen_s = now.unwrap_or(self.stolen_s);
    }

    fn read(&self) -> Readings {
        let waited = self.queue.as_ref().and_then(RunQueue::waited);
        Readings {
            waited_s: waited.unwrap_or_default().as_secs_f64(),
            stolen_s: self.stolen_s,
            suspended_s: suspended().as_secs_f64(),
            faults: major_faults(),
        }
    }
}

/// Keeps what this process has used of its memory from being reclaimed, where that is allowed. A
/// stopped process loses it first, and reading it back would look like a wait for a drive.
fn keep_memory() {
    let _ = rustix::mm::mlockall(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT);
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use record::absence::Cause;

    use super::*;

    /// A busy machine can make it miss its turns, but not suspend it.
    #[test]
    fn a_process_that_runs_was_not_suspended() {
        let witness = Witness::start().unwrap();
        thread::sleep(NAP * 10);
        let suspended = |absent: &Absent| absent.cause == Cause::Suspended;
        assert!(!witness.take().iter().any(suspended));
        assert!(witness.0.turned.load(Ordering::Acquire) > 0, "it turns");
    }

    #[test]
    fn memory_is_kept_where_that_is_allowed() {
        let _witness = Witness::start().unwrap();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
        let locked: u64 = locked
            .unwrap()
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .unwrap();
        assert!(locked > 0 || !rustix::process::geteuid().is_root());
    }

    #[test]
    fn an_overdue_witness_is_waited_for() {
        let shared = Arc::new(Shared {
            since: Instant::now().checked_sub(Duration::from_secs(3)).unwrap(),
            turned: AtomicU64::new(0),
            stolen: AtomicU64::new(0),
            found: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let (witness, own) = (Witness(Arc::clone(&shared)), shared);
        assert!(own.is_overdue());
        let turning = thread::spawn(move || {
            thread::sleep(Duration::from_millis(5));
            let absent = Absent {
                seconds: 3.0,
                cause: Cause::Stopped,
            };
            own.found().push(absent);
            own.turned.store(u64::MAX, Ordering::Release);
        });
        assert_eq!(witness.take().len(), 1);
        turning.join().unwrap();
        assert_eq!(witness.take(), []);
    }
}
