//! Whether a thread of ours ran when it wanted to: readings, without an opinion, and a thread
//! that takes them all the time. [`record::absence`] draws the conclusions.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use record::absence::{Absent, Nap, Readings, absence};
use rustix::mm::MlockAllFlags;

use crate::SysRoot;
use crate::clock::suspended;

/// How long one thread waits for a processor: its `schedstat`, kept open. Any thread can read it.
#[derive(Debug)]
pub struct RunQueue(File);

impl RunQueue {
    /// That of the thread which calls this.
    ///
    /// # Errors
    /// Without /proc, or where the kernel was built without `CONFIG_SCHED_INFO`.
    pub fn own() -> io::Result<RunQueue> {
        File::open("/proc/thread-self/schedstat").map(RunQueue)
    }

    /// That of another thread of this process, by its id.
    ///
    /// # Errors
    /// The same, and if there is no such thread.
    pub fn of_thread(id: u32) -> io::Result<RunQueue> {
        File::open(format!("/proc/self/task/{id}/schedstat")).map(RunQueue)
    }

    /// How long it was ready to run and did not, since it began: also while its control group had
    /// used up its time. `None` if it has ended.
    pub fn waited(&self) -> Option<Duration> {
        let mut text = [0; 128];
        let length = self.0.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(&text[..length]).ok()?;
        // Time on a processor, time in the queue, both in ns, and turns (proc(5)).
        let waited = text.split_ascii_whitespace().nth(1)?;
        waited.parse().ok().map(Duration::from_nanos)
    }
}

/// How long the hypervisor kept processors from this machine: `/proc/stat`, kept open.
#[derive(Debug)]
pub struct Stolen {
    file: File,
    ticks_per_s: f64,
}

impl Stolen {
    /// Opens it.
    ///
    /// # Errors
    /// Without /proc.
    pub fn open(sys: &SysRoot) -> io::Result<Stolen> {
        let ticks_per_s = rustix::param::clock_ticks_per_second() as f64;
        let file = File::open(sys.path("/proc/stat"))?;
        Ok(Stolen { file, ticks_per_s })
    }

    /// Seconds since the machine started, added up over all processors; `None` if the kernel
    /// doesn't say.
    pub fn seconds(&self) -> Option<f64> {
        // The first line has the sums.
        let mut text = [0; 256];
        let length = self.file.read_at(&mut text, 0).ok()?;
        let text = String::from_utf8_lossy(&text[..length]);
        stolen_ticks(&text).map(|ticks| ticks as f64 / self.ticks_per_s)
    }
}

/// The eighth figure of the first line (proc_stat(5)).
fn stolen_ticks(text: &str) -> Option<u64> {
    let figures = text.strip_prefix("cpu ")?.lines().next()?;
    figures.split_ascii_whitespace().nth(7)?.parse().ok()
}

/// How often this thread waited for its own memory to be read from a disk.
pub fn major_faults() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: it is writable and has the size; all bytes zero is a valid value should it fail.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    u64::try_from(usage.ru_majflt).unwrap_or(0)
}

// A thread that does nothing but nap, so that it knows when this process was away.
//
// Every other thread may be in a call that takes as long as a drive likes. This one does nothing
// that could take long, so that each of its turns takes as long as its nap, unless the process
// doesn't run.

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
        thread.spawn(move || Turns::new(own.since).go_on(&own))?;
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
    /// The first turn begins at `since`: where others have the processors, the thread may not run
    /// for long after it.
    fn new(since: Instant) -> Turns {
        let stolen = Stolen::open(&SysRoot::host()).ok();
        let mut turns = Turns {
            queue: RunQueue::own().ok(),
            stolen_s: stolen.as_ref().and_then(Stolen::seconds).unwrap_or(0.0),
            stolen,
            looked: Instant::now(),
            last: since,
            before: Readings::default(),
        };
        turns.before = Readings {
            waited_s: 0.0,
            ..turns.read()
        };
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

    #[test]
    fn stolen_time_is_the_eighth_figure() {
        let text = "cpu  140853 25088 37921 206837 40420 0 917 443 5 6\ncpu0 1 2 3\nintr 7\n";
        assert_eq!(stolen_ticks(text), Some(443));
        // Before Linux 2.6.11.
        assert_eq!(stolen_ticks("cpu  1 2 3 4\n"), None);
        assert_eq!(stolen_ticks("intr 7\n"), None);
    }

    #[test]
    fn this_machine_tells() {
        assert!(Stolen::open(&SysRoot::host()).unwrap().seconds().is_some());
        let own = RunQueue::own().unwrap();
        let before = own.waited();
        assert!(before.is_some());
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        let same = RunQueue::of_thread(id as u32).unwrap();
        // It may wait between two looks.
        assert!(same.waited() >= before);
        assert!(RunQueue::of_thread(u32::MAX).is_err());
    }

    #[test]
    fn what_another_thread_waited_is_told_while_it_lives() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(RunQueue::own().unwrap()).unwrap();
            let _ = ended.recv();
        });
        let queue = told.recv().unwrap();
        assert!(queue.waited().is_some());
        end.send(()).unwrap();
        thread.join().unwrap();
        // The kernel may take a moment to bury it.
        while queue.waited().is_some() {
            std::thread::yield_now();
        }
    }

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
    fn an_absence_before_its_first_turn_is_found() {
        let long = Duration::from_secs(3600);
        let mut turns = Turns::new(Instant::now().checked_sub(long).unwrap());
        let found = turns.turn().unwrap();
        assert!(
            found.seconds >= 3599.0 && found.cause == Cause::Stopped,
            "{found:?}"
        );
        assert_eq!(turns.turn(), None);
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
