//! Waits for btrfs' cleaner, which frees deleted subvolumes at its own pace.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use linux::subvolume::{Subvolume, pending};
use linux::tasks::{Thread, processes, threads};
use pace::GROUP;

use super::Volume;
use crate::event::{Event, Listener, Progress, report};
use crate::throttle::shown;
use crate::{ReclaimError, Result};

/// The time between two looks at the cleaner.
const LOOK: Duration = Duration::from_millis(20);

/// A cleaner that sleeps for so long doesn't free a subvolume: a process has a file of it open.
const ASLEEP: Duration = Duration::from_secs(3);

/// The work of the kernel's cleaner on the subvolumes that were deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cleaned {
    /// Subvolumes deleted.
    pub subvolumes: u64,
    /// The time from each deletion until the cleaner had freed the subvolume and its discards were
    /// done, in all.
    pub took: Duration,
    /// How much longer discards slowed others down in that time than the goal allows.
    pub beyond: Duration,
    /// How much of it went into the accounting of quotas, by looks at the kernel's stacks. `None`
    /// where quotas are off.
    pub quotas: Option<Duration>,
}

/// Watches the cleaner.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    pub(super) done: Cleaned,
    /// The cleaners of all file systems.
    threads: Vec<Thread>,
    /// When the last look found none of them asleep.
    awake: Option<Instant>,
    sampled: Option<Instant>,
}

impl Cleaner {
    /// Waits until the cleaner has freed a subvolume, where nothing is paced. Returns false if
    /// that waits for a process.
    pub(crate) fn wait(
        mut self,
        on: impl AsFd,
        subvolume: &Subvolume,
        listener: &mut Listener<'_>,
    ) -> Result<bool> {
        let on = on.as_fd();
        let failed = |source| ReclaimError::io("commit the file system of", shown(on))(source);
        self.begin();
        linux::btrfs::sync_and_clean(on).map_err(failed)?;
        while self.is_busy(on, subvolume)? {
            if self.is_asleep() {
                return Ok(false);
            }
            report(listener, Progress::default())?;
            std::thread::sleep(LOOK);
        }
        Ok(true)
    }

    /// Returns whether a subvolume is still to be freed.
    fn is_busy(&self, on: BorrowedFd<'_>, subvolume: &Subvolume) -> Result<bool> {
        let failed = |source| ReclaimError::io("see what is deleted on", shown(on))(source);
        let pending = pending(on).map_err(failed)?;
        Ok(pending.contains(&subvolume.id))
    }

    /// Begins to wait.
    fn begin(&mut self) {
        if self.threads.is_empty() {
            let all = processes().into_iter();
            let all = all.map(|pid| Thread { pid, tid: pid });
            let is_cleaner = |stat: linux::tasks::Stat| stat.comm == "btrfs-cleaner";
            self.threads = all
                .filter(|one| one.stat().is_some_and(is_cleaner))
                .collect();
        }
        let now = Some(Instant::now());
        (self.sampled, self.awake) = (now, now);
    }

    /// Returns whether all cleaners have slept for some time.
    fn is_asleep(&mut self) -> bool {
        // One of a file system that was unmounted meanwhile has ended.
        let sleeps = |one: &Thread| match one.wait_channel() {
            Some(function) => function == "cleaner_kthread",
            None => one.stat().is_none(),
        };
        let awake = self.awake.get_or_insert_with(Instant::now);
        if !self.threads.iter().all(sleeps) {
            *awake = Instant::now();
        }
        awake.elapsed() >= ASLEEP
    }

    /// Adds the time since the last look to that of quotas, if the cleaner or a commit of ours is
    /// accounting them.
    fn sample(&mut self) {
        let Some(quotas) = &mut self.done.quotas else {
            return;
        };
        let since = self.sampled.replace(Instant::now());
        let own = threads(std::process::id());
        let accounts = |one: &Thread| {
            let stack = one.stack().unwrap_or_default();
            stack.iter().any(|frame| frame.contains("qgroup"))
        };
        if self.threads.iter().chain(&own).any(accounts) {
            *quotas += since.map_or(Duration::ZERO, |since| since.elapsed());
        }
    }
}

impl Volume {
    /// Deletes a subvolume when the pacer allows it. The inner result is the kernel's.
    ///
    /// # Errors
    /// As those of a grant.
    pub(crate) fn delete_subvolume(
        &mut self,
        subvolume: &Subvolume,
        listener: &mut Listener<'_>,
    ) -> Result<std::io::Result<()>> {
        self.grant(GROUP, listener)?;
        let (on, subvolume) = (self.throttle.directory()?, *subvolume);
        self.throttle.call(listener, move || subvolume.delete(on))
    }

    /// Waits until the cleaner has freed a subvolume and its discards are done. Returns false if
    /// that waits for a process.
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`], or if the file system can't be examined.
    pub(crate) fn wait_for_cleaner(
        &mut self,
        subvolume: &Subvolume,
        listener: &mut Listener<'_>,
    ) -> Result<bool> {
        let mut cleaner = std::mem::take(&mut self.cleaner);
        if self.stack.quotas {
            cleaner.done.quotas.get_or_insert_default();
        }
        let (began, busy) = (Instant::now(), self.throttle.discards().busy);
        cleaner.begin();
        let ended = self.watch(&mut cleaner, subvolume, listener);
        cleaner.done.subvolumes += 1;
        let took = began.elapsed();
        cleaner.done.took += took;
        let since = self.throttle.discards().busy.zip(busy);
        let discarding = since.map_or(Duration::ZERO, |(now, then)| now.saturating_sub(then));
        let lost = discarding.mul_f64(self.throttle.state().phi.clamp(0.0, 1.0));
        let allowed = took.mul_f64(self.share.clamp(0.0, 1.0));
        cleaner.done.beyond += lost.saturating_sub(allowed);
        self.cleaner = cleaner;
        ended
    }

    fn watch(
        &mut self,
        cleaner: &mut Cleaner,
        subvolume: &Subvolume,
        listener: &mut Listener<'_>,
    ) -> Result<bool> {
        let on = self.throttle.directory()?;
        let mut free = self.throttle.free_bytes();
        let freed = loop {
            // The commit wakes the cleaner; a later one brings the discards of what it freed.
            self.throttle.sync(&mut sampling(cleaner, listener))?;
            self.look_at_growth(&mut free)?;
            let until = Instant::now() + Duration::from_secs(1);
            let mut busy = true;
            while busy && Instant::now() < until {
                self.throttle
                    .pause(LOOK, &mut sampling(cleaner, listener))?;
                self.look_at_growth(&mut free)?;
                busy = cleaner.is_busy(on.as_fd(), subvolume)?;
            }
            if !busy || cleaner.is_asleep() {
                break !busy;
            }
        };
        self.throttle.sync(&mut sampling(cleaner, listener))?;
        self.look_at_growth(&mut free)?;
        self.throttle.pay(listener)?;
        Ok(freed)
    }

    /// Looks at the devices, after the growth of the free space was reported as freed: the discards
    /// of a commit pay what it freed. `free`: the most bytes that were free so far.
    fn look_at_growth(&mut self, free: &mut u64) -> Result<()> {
        let now = self.throttle.free_bytes();
        self.throttle.freed(now.saturating_sub(*free), 0);
        *free = now.max(*free);
        self.throttle.look()
    }
}

/// Returns a listener that looks at the cleaner with each event.
fn sampling<'a>(
    cleaner: &'a mut Cleaner,
    listener: &'a mut Listener<'_>,
) -> impl FnMut(Event<'_>) -> crate::Reply + 'a {
    move |event| {
        cleaner.sample();
        listener(event)
    }
}
