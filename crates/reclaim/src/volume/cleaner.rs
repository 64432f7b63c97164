//! Waits for btrfs' cleaner, which frees deleted subvolumes at its own pace.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use linux::subvolume::{Subvolume, accounts_quotas, cleaners, pending};
use linux::tasks::{Thread, threads};
use pace::GROUP;
use record::units::names::quoted;

use super::{LARGE, Volume};
use crate::event::{Event, Listener};
use crate::throttle::shown;
use crate::{ReclaimError, Result};

/// The time between two looks at the cleaner.
const LOOK: Duration = Duration::from_millis(20);

/// A cleaner that sleeps for so long doesn't free a subvolume: a process has a file of it open.
const ASLEEP: Duration = Duration::from_secs(3);

/// A subvolume that frees so many bytes is freed alone.
const ALONE: u64 = 128 << 20;

/// More are freed together as long as that lowers the time for one to this share.
const CHEAPER: f64 = 0.8;

/// The work of the kernel's cleaner on the subvolumes that were deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cleaned {
    /// Subvolumes deleted.
    pub subvolumes: u64,
    /// Subvolumes that other programs had deleted, and that it freed meanwhile. Nothing tells their
    /// bytes from ours.
    pub others: u64,
    /// How long the cleaner took to free them, with their discards, in all.
    pub took: Duration,
    /// How much of it went into the accounting of quotas, by looks at the kernel's stacks. `None`
    /// where quotas are off.
    pub quotas: Option<Duration>,
}

/// Watches the cleaner.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    pub(super) done: Cleaned,
    /// Bytes that came free meanwhile.
    freed: u64,
    /// The numbers and paths of subvolumes that were deleted since.
    deleted: Vec<(u64, PathBuf)>,
    /// The numbers of all that were deleted.
    own: HashSet<u64>,
    /// The subvolumes of others that are still to be freed.
    others: Vec<u64>,
    /// How many small ones may be freed together.
    together: usize,
    /// The last one deleted is freed alone.
    alone: bool,
    /// The time that one of those took that were freed last.
    each: Option<Duration>,
    /// The cleaners of all file systems.
    threads: Vec<Thread>,
    /// When the last look found none of them asleep.
    awake: Option<Instant>,
    sampled: Option<Instant>,
}

impl Cleaner {
    /// Returns how many bytes a subvolume has freed on average; `None` before the first.
    fn usual(&self) -> Option<u64> {
        self.freed
            .checked_div(self.done.subvolumes + self.done.others)
            .filter(|_| self.done.subvolumes > 0)
    }

    /// Whether those deleted so far are freed before one that frees so many bytes is deleted.
    fn is_due(&mut self, bytes: u64) -> bool {
        let alone = bytes >= ALONE;
        let after_large = std::mem::replace(&mut self.alone, alone);
        let waiting = self.deleted.len();
        waiting == 0 || waiting >= self.together || alone || after_large
    }

    /// Takes the time in which so many were freed together.
    fn learn(&mut self, freed: usize, took: Duration) {
        let each = took.div_f64(freed as f64);
        let before = self.each.replace(each);
        if before.is_none_or(|before| each < before.mul_f64(CHEAPER)) {
            self.together = self.together.max(2 * freed);
        }
    }

    /// Begins to wait.
    fn begin(&mut self) {
        if self.threads.is_empty() {
            self.threads = cleaners();
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

    /// Takes the subvolumes that are still to be freed, and counts those of others that were freed
    /// since the last look.
    fn look_at(&mut self, pending: Vec<u64>) {
        self.deleted.retain(|(id, _)| pending.contains(id));
        let freed = self.others.iter().filter(|id| !pending.contains(id));
        self.done.others += freed.count() as u64;
        self.others = pending;
        self.others.retain(|id| !self.own.contains(id));
    }

    /// Adds the time since the last look to that of quotas, if the cleaner or a commit of ours is
    /// accounting them.
    fn sample(&mut self) {
        let Some(quotas) = &mut self.done.quotas else {
            return;
        };
        let now = Instant::now();
        let since = self.sampled.replace(now);
        let own = threads(std::process::id());
        let accounts = |one: &Thread| {
            let stack = one.stack().unwrap_or_default();
            accounts_quotas(stack.iter().map(String::as_str))
        };
        if self.threads.iter().chain(&own).any(accounts) {
            *quotas += since.map_or(Duration::ZERO, |since| now - since);
        }
    }
}

impl Volume {
    /// Deletes a subvolume when the pacer allows it. Small ones share commits, which discard what each
    /// of them replaced itself. `exclusive`: the bytes that only it has, if that is known. The inner result is
    /// the kernel's.
    ///
    /// # Errors
    /// As those of a grant.
    pub(crate) fn delete_subvolume(
        &mut self,
        subvolume: &Subvolume,
        path: &Path,
        exclusive: Option<u64>,
        listener: &mut Listener<'_>,
    ) -> Result<std::io::Result<()>> {
        let bytes = exclusive.or(self.cleaner.usual()).unwrap_or(GROUP);
        if self.cleaner.is_due(bytes) {
            self.clean(listener)?;
            self.throttle.works_in_pauses();
            self.grant(bytes.max(LARGE), listener)?;
        }
        let (on, subvolume) = (self.throttle.directory()?, *subvolume);
        let done = self.throttle.call(listener, move || subvolume.delete(on))?;
        if done.is_ok() {
            self.cleaner.deleted.push((subvolume.id, path.to_owned()));
            self.cleaner.own.insert(subvolume.id);
        }
        Ok(done)
    }

    /// Waits until the cleaner has freed what was deleted and its discards are done. Notes which
    /// subvolumes wait for a process. No file is freed meanwhile, or it would count twice.
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`](crate::ReclaimError), or if the file system can't be examined.
    pub(super) fn clean(&mut self, listener: &mut Listener<'_>) -> Result<()> {
        if self.cleaner.deleted.is_empty() {
            return Ok(());
        }
        let mut cleaner = std::mem::take(&mut self.cleaner);
        if self.stack.quotas {
            cleaner.done.quotas.get_or_insert_default();
        }
        let began = Instant::now();
        let together = cleaner.deleted.len();
        cleaner.done.subvolumes += together as u64;
        cleaner.begin();
        self.watch(&mut cleaner, listener)?;
        let took = began.elapsed();
        cleaner.done.took += took;
        cleaner.learn(together, took);
        for (_, path) in cleaner.deleted.drain(..) {
            let name = quoted(path);
            listener(Event::Note(&format_args!(
                "{name} is deleted, and its space comes free when no process has a file of it open"
            )));
        }
        self.cleaner = cleaner;
        Ok(())
    }

    /// Waits, and leaves those subvolumes as deleted that wait for a process.
    fn watch(&mut self, cleaner: &mut Cleaner, listener: &mut Listener<'_>) -> Result<()> {
        let on = self.throttle.directory()?;
        let pending =
            || pending(&on).map_err(ReclaimError::io("see what is deleted on", shown(&on)));
        // What was freed of others before doesn't count.
        cleaner.others.clear();
        let mut free = self.throttle.free_bytes();
        cleaner.look_at(pending()?);
        while !cleaner.deleted.is_empty() && !cleaner.is_asleep() {
            // The commit wakes the cleaner; a later one brings the discards of what it freed.
            self.throttle.sync(&mut sampling(cleaner, listener))?;
            let until = Instant::now() + Duration::from_secs(1);
            while !cleaner.deleted.is_empty() && Instant::now() < until {
                self.look_at_growth(cleaner, &mut free, false)?;
                self.throttle
                    .pause(LOOK, &mut sampling(cleaner, listener))?;
                cleaner.look_at(pending()?);
            }
        }
        self.throttle.sync(&mut sampling(cleaner, listener))?;
        self.look_at_growth(cleaner, &mut free, true)?;
        self.throttle.pay(listener)
    }

    /// Looks at the devices, after the growth of the free space was reported as freed: the discards
    /// of a commit pay what it freed. `free`: the most bytes that were free so far.
    fn look_at_growth(
        &mut self,
        cleaner: &mut Cleaner,
        free: &mut u64,
        committed: bool,
    ) -> Result<()> {
        let now = self.throttle.free_bytes();
        let growth = now.saturating_sub(*free);
        *free += growth;
        cleaner.freed += growth;
        self.throttle.frees_itself(growth, committed);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_one_is_freed_alone() {
        let mut cleaner = Cleaner {
            together: 4,
            ..Cleaner::default()
        };
        let mut due = |mib: u64| {
            let is_due = cleaner.is_due(mib << 20);
            if is_due {
                cleaner.deleted.clear();
            }
            cleaner.deleted.push((257, PathBuf::new()));
            is_due
        };
        let sizes = [1, 1, 200, 1, 1, 1, 1, 1, 564, 564];
        let all = sizes.map(&mut due);
        assert_eq!(
            all,
            [
                true, false, true, true, false, false, false, true, true, true
            ]
        );
    }

    #[test]
    fn more_are_freed_together_while_that_is_cheaper() {
        let mut cleaner = Cleaner::default();
        let mut learn = |freed: usize, ms| {
            cleaner.learn(freed, Duration::from_millis(ms));
            cleaner.together
        };
        // 900 ms for each group, and 100 ms for each subvolume.
        let sizes = [1000, 1100, 1300, 1700, 2500].into_iter().zip(0..);
        let grown: Vec<usize> = sizes.map(|(ms, n)| learn(1 << n, ms)).collect();
        assert_eq!(grown, [2, 4, 8, 16, 32]);
        assert_eq!(learn(32, 4900), 32);
        // The last ones are fewer.
        assert_eq!(learn(3, 1200), 32);
    }

    #[test]
    fn subvolumes_that_others_deleted_are_counted_when_they_are_freed() {
        let mut cleaner = Cleaner {
            deleted: vec![(260, "own".into()), (261, "open".into())],
            own: HashSet::from([260, 261]),
            ..Cleaner::default()
        };
        for pending in [
            vec![257, 258, 260, 261],
            vec![258, 260, 261],
            vec![258, 261],
        ] {
            cleaner.look_at(pending);
        }
        assert_eq!(cleaner.done.others, 1);
        assert_eq!(cleaner.others, [258]);
        assert_eq!(cleaner.deleted, [(261, "open".into())]);
    }
}
