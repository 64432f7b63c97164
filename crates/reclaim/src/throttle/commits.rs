//! Commits: they make a file system send the discards of what was freed.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use ssd::Time;
use storage::Commit;

use super::Throttle;
use super::canary::nameless;
use crate::event::Listener;
use crate::{Result, directory};

/// If no discards of unlinked files have come for this long, another commit is forced; then after
/// twice as long, and so on.
const FIRST_REPEAT: Duration = Duration::from_millis(2);

/// The longest time between two of these commits.
const LAST_REPEAT: Duration = Duration::from_millis(500);

/// Which commits a file system needs, and which it got.
#[derive(Debug)]
pub(super) struct Commits {
    kind: Commit,
    /// The space of unlinked files is freed after the call, in the background.
    frees_in_background: bool,
    /// An own file by which the journal's commit is forced.
    anchor: Option<Arc<File>>,
    /// Something was freed since the last commit; and a part of it by unlinking.
    uncommitted: bool,
    unlinked: bool,
    /// How often the pacer asked for a commit.
    pub(super) forced: u64,
    /// How many were made, for whatever reason.
    pub(super) made: u64,
    repeated: Option<RepeatedCommit>,
    /// When the first commit began that sends the discards of what was freed last; `None` where they
    /// are sent within the call that frees.
    pub(super) sent_since: Option<Time>,
}

/// A commit that is repeated until the debt is paid.
#[derive(Debug)]
struct RepeatedCommit {
    wait: Duration,
    at: Instant,
}

impl Commits {
    pub(super) fn new(
        kind: Commit,
        frees_in_background: bool,
        anchor: Option<Arc<File>>,
    ) -> Commits {
        Commits {
            kind,
            frees_in_background,
            anchor,
            uncommitted: false,
            unlinked: false,
            forced: 0,
            made: 0,
            repeated: None,
            sent_since: None,
        }
    }

    /// Something was freed, by unlinking or otherwise.
    pub(super) fn freed(&mut self, unlinked: bool) {
        self.uncommitted = true;
        self.unlinked |= unlinked;
    }
}

impl Throttle {
    /// Returns whether something was freed since the last commit.
    #[cfg(test)]
    pub(crate) fn is_uncommitted(&self) -> bool {
        self.commits.uncommitted
    }

    /// Forces a commit that the pacer asked for.
    pub(super) fn force(&mut self, listener: &mut Listener<'_>) -> Result<()> {
        self.commits.forced += 1;
        self.sync(listener)
    }

    /// Makes the file system send the discards of all that was freed since the last commit. It
    /// commits the journal or the whole file system, or does nothing where the call that frees also
    /// sends them. XFS frees unlinked files in the background, so there it repeats the commit until
    /// the debt is paid.
    ///
    /// # Errors
    /// [`crate::ReclaimError::Interrupted`] if `listener` ends it, or
    /// [`crate::ReclaimError::Io`] if the commit fails.
    pub fn commit_freed(&mut self, listener: &mut Listener<'_>) -> Result<()> {
        if !std::mem::take(&mut self.commits.uncommitted) {
            return Ok(());
        }
        if self.commits.kind != Commit::Within {
            // A commit of the file system's own may have sent some before.
            self.observe()?;
            self.commits.sent_since = Some(self.now());
        }
        match (self.commits.kind, self.commits.anchor.clone()) {
            (Commit::Within, _) => Ok(()),
            (Commit::File, Some(anchor)) => {
                let unlinked = std::mem::take(&mut self.commits.unlinked);
                let in_background = unlinked && self.commits.frees_in_background;
                if in_background {
                    // XFS waits a tick of the kernel's clock (4 ms at 250 Hz) before it frees, but
                    // starts at once for a `statfs` (Linux 5.14 to 6.18 `xfs_inodegc_push`).
                    let _ = rustix::fs::fstatvfs(&self.on);
                }
                self.commit(&anchor, listener)?;
                if in_background {
                    // From now on the journal is committed repeatedly until the debt is paid.
                    self.commits.repeated = Some(RepeatedCommit {
                        wait: FIRST_REPEAT,
                        at: Instant::now() + FIRST_REPEAT,
                    });
                }
                Ok(())
            }
            (Commit::Whole | Commit::File, _) => self.sync(listener),
        }
    }

    /// Commits the journal by an own file: earlier changes go along, and no data of a file that
    /// is about to be freed are written.
    pub(crate) fn commit(&mut self, anchor: &Arc<File>, listener: &mut Listener<'_>) -> Result<()> {
        let anchor = Arc::clone(anchor);
        self.flush(listener, move || {
            touch(&anchor)?;
            anchor.sync_all()
        })
    }

    /// Has an own flush done, which counts as none of others'.
    pub(crate) fn flush(
        &mut self,
        listener: &mut Listener<'_>,
        job: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<()> {
        self.commits.made += 1;
        self.call(listener, job)?
            .map_err(|source| self.failed("commit the file system of", source))
    }

    pub(super) fn commit_if_due(&mut self, listener: &mut Listener<'_>) -> Result<bool> {
        let (Some(repeated), Some(anchor)) = (&mut self.commits.repeated, &self.commits.anchor)
        else {
            return Ok(false);
        };
        if self.pacer.state().debt == 0 {
            self.commits.repeated = None;
            return Ok(false);
        }
        let now = Instant::now();
        if now < repeated.at {
            return Ok(false);
        }
        repeated.wait = (repeated.wait * 2).min(LAST_REPEAT);
        repeated.at = now + repeated.wait;
        let anchor = Arc::clone(anchor);
        self.commit(&anchor, listener)?;
        Ok(true)
    }

    /// Returns a pause of this length, or a shorter one until a commit is due.
    pub(super) fn until_commit(&self, length: Duration) -> Duration {
        let due = self.commits.repeated.as_ref().map(|repeated| repeated.at);
        due.map_or(length, |at| {
            length.min(at.saturating_duration_since(Instant::now()))
        })
    }

    /// Commits the whole file system. btrfs's cleaner thread is woken, so that its work comes
    /// with the next such commit and not half a minute later.
    pub(crate) fn sync(&mut self, listener: &mut Listener<'_>) -> Result<()> {
        self.commits.made += 1;
        // It may be open as a path alone, and a directory that may be written to but not read
        // takes a file.
        let on = directory::reopen(&self.on)
            .map_err(io::Error::from)
            .or_else(|_| nameless(self.on.as_fd()).map(OwnedFd::from));
        let on = on.map_err(|source| self.failed("sync the file system of", source))?;
        self.call(listener, move || match linux::btrfs::sync_and_clean(&on) {
            Ok(()) => Ok(()),
            // It is no btrfs, as a rule; any other error shows here, too.
            Err(_) => rustix::fs::syncfs(&on).map_err(io::Error::from),
        })?
        .map_err(|source| self.failed("sync the file system of", source))?;
        self.ledger.committed_whole();
        Ok(())
    }
}

/// Changes a file's times, so that the running transaction contains it.
fn touch(file: &File) -> io::Result<()> {
    let now = rustix::fs::Timespec {
        tv_sec: 0,
        tv_nsec: rustix::fs::UTIME_NOW,
    };
    let times = rustix::fs::Timestamps {
        last_access: now,
        last_modification: now,
    };
    rustix::fs::futimens(file, &times).map_err(io::Error::from)
}

// Keeps account of the bytes freed so far, and of those whose discards were waited for.

/// Bytes of one deletion.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ledger {
    /// Bytes to be freed in all.
    pub(super) total: u64,
    /// Bytes freed so far.
    pub(super) freed: u64,
    /// Of them, bytes for which no discard comes.
    pub(super) exempt: u64,
    settles: bool,
    /// All that was freed was committed, and its discards were waited for.
    pub(super) settled: bool,
}

impl Ledger {
    /// Begins a deletion of `total` bytes. `settles`: a commit of the whole file system returns
    /// when the discards of all that was freed are done.
    pub(super) fn new(total: u64, settles: bool) -> Ledger {
        Ledger {
            total,
            settles,
            ..Ledger::default()
        }
    }

    /// Adds freed bytes and bytes for which no discard comes.
    pub(super) fn add(&mut self, freed: u64, exempt: u64) {
        self.freed += freed;
        self.exempt += exempt;
        self.settled &= freed == 0;
        assert!(
            self.freed >= self.exempt,
            "more was exempt from discards than was freed: {self:?}"
        );
    }

    /// The whole file system was committed.
    pub(super) fn committed_whole(&mut self) {
        self.settled = self.settles;
    }

    /// Returns the freed bytes for which discards come.
    pub(super) fn due(&self) -> u64 {
        self.freed - self.exempt
    }
}

// Calls that can block for long: a truncation on a file system that discards within the call, or a
// commit, takes as long as the device likes. Each runs on a thread of its own, so that the caller can
// report progress and be stopped meanwhile.

type Job = Box<dyn FnOnce() -> io::Result<()> + Send>;

/// A thread that makes one call after the other. If it is dropped while a call
/// is under way, that call ends by itself.
#[derive(Debug)]
pub(super) struct Worker {
    jobs: Sender<Job>,
    done: Receiver<io::Result<()>>,
}

impl Worker {
    pub(super) fn start() -> io::Result<Worker> {
        let (jobs, todo) = channel::<Job>();
        let (tell, done) = channel();
        thread::Builder::new()
            .name("reclaimer".to_owned())
            .spawn(move || {
                for job in todo {
                    if tell.send(job()).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Worker { jobs, done })
    }

    /// Makes a call and waits for it; `meanwhile` is called every so often, and
    /// its error ends the waiting, not the call. The inner result is the call's.
    pub(super) fn call<E>(
        &self,
        job: impl FnOnce() -> io::Result<()> + Send + 'static,
        every: Duration,
        mut meanwhile: impl FnMut() -> Result<(), E>,
    ) -> Result<io::Result<()>, E> {
        let gone = || Ok(Err(io::Error::other("the thread that frees has ended")));
        if self.jobs.send(Box::new(job)).is_err() {
            return gone();
        }
        loop {
            match self.done.recv_timeout(every) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => meanwhile()?,
                Err(RecvTimeoutError::Disconnected) => return gone(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freeing_ends_what_a_commit_settled() {
        let mut ledger = Ledger::new(100, true);
        ledger.add(40, 10);
        assert_eq!((ledger.due(), ledger.settled), (30, false));
        ledger.committed_whole();
        ledger.add(0, 5);
        assert!(ledger.settled, "nothing more was freed");
        ledger.add(1, 0);
        assert!(!ledger.settled);
    }

    #[test]
    #[should_panic(expected = "more was exempt")]
    fn more_exempt_bytes_than_freed_ones_are_a_fault() {
        Ledger::new(100, true).add(4, 5);
    }

    #[test]
    fn whoever_waits_hears_of_it_and_can_stop() {
        let worker = Worker::start().unwrap();
        let mut heard = 0;
        let (end, ended) = channel::<()>();
        let slow = move || {
            let _ = ended.recv();
            Ok(())
        };
        let every = Duration::from_millis(1);
        let outcome = worker.call(slow, every, || {
            heard += 1;
            if heard == 3 {
                let _ = end.send(());
            }
            Ok::<(), ()>(())
        });
        assert!(outcome.unwrap().is_ok() && heard >= 3);
        let failed = worker.call(|| Err(io::Error::other("no")), every, || Ok::<(), ()>(()));
        assert_eq!(failed.unwrap().unwrap_err().to_string(), "no");
        let (_end, never) = channel::<()>();
        let forever = move || {
            let _ = never.recv();
            Ok(())
        };
        let stopped = worker.call(forever, every, || Err("stop"));
        assert_eq!(stopped.unwrap_err(), "stop");
    }
}
