//! Whether a thread of ours ran when it wanted to: readings, without an opinion, and a thread
//! that takes them all the time. [`record::absence`] draws the conclusions.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::SysRoot;

mod witness;

pub use witness::Witness;

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

#[cfg(test)]
mod tests {
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
        assert!(own.waited().is_some());
        let id = rustix::thread::gettid().as_raw_nonzero().get();
        let same = RunQueue::of_thread(id as u32).unwrap();
        assert!(same.waited() >= own.waited());
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
}
