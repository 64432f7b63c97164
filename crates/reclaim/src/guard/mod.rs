//! Frees the space of files that other programs delete, without a stall.
//!
//! A file's space comes free only when its last name is removed. So a guard keeps a second name (a
//! hard link) of each large file below a directory. A program that unlinks or replaces such a file
//! then frees nothing. The guard finds that its own name is the last one, and frees the file in
//! pieces, as the throttle allows.
//!
//! | part | responsibility |
//! |---|---|
//! | [`Guard`] | the loop: take orders, find files without another name, free them, oldest first |
//! | `place` | a guarded directory and the hidden directory in it that holds the second names |
//! | `keep`, `names` | what keeps files: second names in it, or descriptors |
//! | `scan` | the large files below a guarded directory |
//! | `finder` | the thread that finds new files and gives them their second name |
//! | `events` | the changes that the kernel reports, so that new files are found at once |
//! | `free` | one file that has lost all other names |
//! | `control`, `status` | the orders that a running guard takes, and what it reports |
//! | `image_store` | the image stores of container engines, where little may wait |
//! | `inbox`, `socket`, `allowance` | what programs hand over, and the requests that they make |
//! | [`watch`] | what a guard would catch |
//! | [`TrimGuard`] | the other way: trims of what was freed, on a mount without `discard` |
//! | [`BtrfsGuard`] | on btrfs, the rate of the kernel's own trims |
//! | [`Trims`] | either of these two |
//! | [`clear`] | what an ended guard left |
//!
//! The second names are the only state. A name is the inode number of its file, so that a file gets
//! at most one. A crash at any moment leaves nothing to repair: a file with another name is whole,
//! and one without is freed at the next start.

mod allowance;
mod by_btrfs;
mod by_trim;
mod control;
mod dry_run;
mod error;
mod events;
mod finder;
mod free;
mod image_store;
mod inbox;
mod keep;
mod names;
mod place;
mod scan;
mod socket;
mod status;
mod stop;
mod trims;
mod watching;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use pace::{Goal, Policy};
use ssd::Card;

use crate::ReclaimError;
use crate::reclaimer::PacedReclaimer;
use crate::throttle::{Summary, ThrottleOptions};
use pace::Work;

pub use by_btrfs::BtrfsGuard;
pub use by_trim::{Hours, TrimGuard, TrimLeft, TrimOptions, TrimReport, Way, choose};
pub use control::{Order, Request, order};
pub use dry_run::{Deleted, Watched, watch};
pub use error::GuardError;
pub use finder::FoundBy;
pub use keep::Hold;
pub use names::SecondNames;
pub use status::{Freed, Reported, Status, Totals, status};
pub use stop::{Cleared, clear};
pub use trims::Trims;

use finder::Finder;
use free::{Freeing, Outcome};
use names::SecondName;
use place::Place;
use watching::Watching;

/// How often the second names are looked at, and orders are taken.
const TICK: Duration = Duration::from_millis(250);

/// The pause before a file that another process has open is tried once more. It grows with each
/// try.
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// Below this share of free space, files get no second name.
const SHORT: f64 = 0.05;

/// Below this share of free space, files in use lose their second names, and all that waits is
/// freed at once: a full disk is worse than a stall.
const FULL: f64 = 0.01;

/// The slowdown at which space is freed while more waits than is allowed.
const HURRIED: f64 = 0.5;

/// The options of a guard.
#[derive(Debug, Clone)]
pub struct GuardOptions {
    /// Files below this, in allocated bytes, get no second name.
    pub min_bytes: u64,
    /// Also files that don't belong to the owner of the guarded directory.
    pub any_owner: bool,
    /// The pause between two scans where the kernel reports no changes, at least.
    pub scan_every: Duration,
    /// Look for new files by scans alone.
    pub only_scan: bool,
    /// The share of the file system that may wait to be freed. Above it, space is freed faster.
    pub most: f64,
    /// The share of its throughput that other I/O may lose.
    pub goal: Goal,
    /// Keep the second names of files that are in use when the guard ends.
    pub keep_names: bool,
    /// Let programs hand files over by `.trimbench/in` and by a socket.
    pub hand_over: bool,
    /// How files are kept.
    pub hold: Hold,
    /// The throttle's.
    pub throttle: ThrottleOptions,
}

/// A report of a running guard.
#[derive(Debug)]
pub enum Event<'a> {
    /// A sentence for the user.
    Note(String),
    /// A batch of files was freed.
    Freed {
        /// The guarded directory.
        directory: &'a std::path::Path,
        /// The files of this batch.
        freed: Freed,
        /// The throttle's figures; `None` where it was interrupted.
        summary: Option<&'a Summary>,
    },
    /// Free space was trimmed.
    Trimmed {
        /// Where the file system is mounted.
        directory: &'a std::path::Path,
        /// Bytes trimmed since the last such event.
        bytes: u64,
        /// How long that took, in seconds.
        seconds: f64,
        /// The throttle's figures of the last series of trims.
        summary: Option<&'a Summary>,
    },
}

/// Receives the events. Two threads call it.
pub type Tell<'a> = &'a (dyn Fn(Event<'_>) + Sync);

/// A running guard.
#[derive(Debug)]
pub struct Guard<'a> {
    places: Vec<Place>,
    options: GuardOptions,
    card: Option<&'a Card>,
    retries: HashMap<(usize, u64), Retry>,
}

/// When a file that another process has open is tried again.
#[derive(Debug, Clone, Copy)]
struct Retry {
    at: Instant,
    wait: Duration,
}

/// Second names that a guard left at its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// The guarded directory.
    pub directory: std::path::PathBuf,
    /// The second names that are still there.
    pub names: SecondNames,
}

impl<'a> Guard<'a> {
    /// Takes charge of directories. Nothing is linked yet. Returns notes for the user.
    ///
    /// # Errors
    /// If one can't be guarded: another guard works there, above or below it, its file system has
    /// no hard links or can't be written to, or it is no directory.
    pub fn start(
        directories: &[std::path::PathBuf],
        options: GuardOptions,
        card: Option<&'a Card>,
    ) -> Result<(Guard<'a>, Vec<String>), GuardError> {
        let mut guard = Guard {
            places: Vec::new(),
            options,
            card,
            retries: HashMap::new(),
        };
        let mut notes = Vec::new();
        for directory in directories {
            let (goal, throttle) = (guard.options.goal, guard.options.throttle.clone());
            let hand_over = guard.options.hand_over;
            let hold = guard.options.hold;
            let allowed = image_store::refuse(directory, guard.options.most);
            let opened = allowed.and_then(|()| Place::open(directory, &mut notes));
            let opened = opened.and_then(|mut place| {
                if hold == Hold::Descriptor {
                    place.hold_descriptors();
                }
                match hand_over.then(|| place.open_inbox(goal, &throttle)) {
                    Some(Err(error)) => {
                        place.close();
                        Err(error)
                    }
                    _ => Ok(place),
                }
            });
            match opened {
                Ok(place) => guard.places.push(place),
                Err(error) => {
                    guard.places.into_iter().for_each(Place::close);
                    return Err(error);
                }
            }
        }
        Ok((guard, notes))
    }

    /// Guards until `stop` is set or an order ends it. Returns what is left there.
    ///
    /// # Errors
    /// If the thread that finds files can't be started.
    pub fn run(mut self, stop: &AtomicBool, tell: Tell<'_>) -> Result<Vec<Left>, GuardError> {
        let ended = AtomicBool::new(false);
        let finders: Vec<Finder> = (self.places.iter())
            .map(|place| Finder::new(place, &self.options, tell))
            .collect::<Result<_, _>>()?;
        for (place, finder) in self.places.iter_mut().zip(&finders) {
            place.found_by = Some(finder.found_by());
        }
        let services: Vec<_> = self.places.iter().filter_map(Place::service).collect();
        std::thread::scope(|threads| {
            for service in services {
                let ended = &ended;
                threads.spawn(move || service.run(ended));
            }
            for finder in finders {
                let ended = &ended;
                threads.spawn(move || finder.run(ended, tell));
            }
            while !stop.load(Ordering::Relaxed) && !self.is_stopped() {
                if !self.round(stop, tell) {
                    std::thread::sleep(TICK);
                }
            }
            ended.store(true, Ordering::Relaxed);
        });
        Ok(self.end(stop, tell))
    }

    fn is_stopped(&self) -> bool {
        self.places.iter().any(|place| place.orders.stop)
    }

    /// Looks at all places once. Returns whether anything was freed.
    fn round(&mut self, stop: &AtomicBool, tell: Tell<'_>) -> bool {
        let mut freed = false;
        for index in 0..self.places.len() {
            let place = &mut self.places[index];
            place.take_orders(&mut self.options.goal, tell);
            place.take_in(true, tell);
            let names = place.names();
            if names.orphans.is_empty() && place.orders.drain {
                place.drained();
            }
            place.report(&names, &self.options);
            if place.free_share() < FULL {
                place.forget_live();
                place.tell_once(
                    tell,
                    format!(
                        "{}: less than 1 % of the file system is free: files in use lose their second \
                         names, and what waits is freed at once",
                        units::names::quoted(place.path())
                    ),
                );
            }
            let due = self.due(index, names.orphans);
            if !due.is_empty() && !stop.load(Ordering::Relaxed) {
                freed |= self.free(index, &due, stop, tell);
            }
        }
        freed
    }

    /// Of files that have lost their other names, those to be tried now, oldest first.
    fn due(&mut self, index: usize, mut orphans: Vec<SecondName>) -> Vec<SecondName> {
        let now = Instant::now();
        self.retries
            .retain(|(of, inode), _| *of != index || orphans.iter().any(|o| o.inode == *inode));
        let waits = |retry: &Retry| retry.at > now;
        orphans.retain(|o| !self.retries.get(&(index, o.inode)).is_some_and(waits));
        orphans.sort_by_key(|orphan| orphan.since);
        orphans
    }

    /// How the files of a place are freed now.
    fn policy(&self, index: usize) -> (Policy, bool) {
        let goal = self.options.goal;
        let place = &self.places[index];
        if place.orders.drain || place.free_share() < FULL {
            return (Policy::Burst, false);
        }
        let held = place.names().waiting_bytes();
        if !place.is_over(held, self.options.most) {
            return (Policy::Adaptive(goal), false);
        }
        let hurried = Goal {
            slowdown: goal.slowdown.max(HURRIED),
            max_latency: None,
            deadline: goal.deadline,
        };
        (Policy::Adaptive(hurried), true)
    }

    /// Frees these files. Returns whether any was freed.
    fn free(
        &mut self,
        index: usize,
        orphans: &[SecondName],
        stop: &AtomicBool,
        tell: Tell<'_>,
    ) -> bool {
        let began = Instant::now();
        let (policy, hurried) = self.policy(index);
        if hurried {
            self.places[index].note_hurry(self.options.most, tell);
        }
        let mut batch = Freed::default();
        let outcome = self.batch(index, orphans, policy, hurried, &mut batch, stop, tell);
        batch.seconds = began.elapsed().as_secs_f64();
        let place = &mut self.places[index];
        place.freed.add(&batch);
        let summary = match outcome {
            Ok(summary) => summary,
            Err(ReclaimError::Interrupted) => None,
            Err(error) => {
                place.tell_once(tell, error.to_string());
                // Nothing is gained by trying at once again.
                std::thread::sleep(TICK);
                None
            }
        };
        if let Some(summary) = &summary {
            place.freed.judge(summary);
        }
        if batch.files > 0 {
            tell(Event::Freed {
                directory: place.path(),
                freed: batch,
                summary: summary.as_ref(),
            });
        }
        batch.files > 0
    }

    #[allow(clippy::too_many_arguments, reason = "one call, of its one caller")]
    fn batch(
        &mut self,
        index: usize,
        orphans: &[SecondName],
        policy: Policy,
        hurried: bool,
        batch: &mut Freed,
        stop: &AtomicBool,
        tell: Tell<'_>,
    ) -> Result<Option<Summary>, ReclaimError> {
        let place = &self.places[index];
        let mut freeing = Freeing::of(place);
        // Most that is tried is open elsewhere only for a moment; nothing is set up for it.
        let ready: Vec<&SecondName> = orphans
            .iter()
            .filter(|orphan| {
                let ready = freeing.is_ready(orphan);
                if !ready {
                    let now = Instant::now();
                    let wait = self.retries.get(&(index, orphan.inode));
                    let wait = wait.map_or(FIRST_RETRY, |retry| (retry.wait * 2).min(LAST_RETRY));
                    let at = now + wait;
                    self.retries
                        .insert((index, orphan.inode), Retry { at, wait });
                }
                ready
            })
            .collect();
        if ready.is_empty() {
            return Ok(None);
        }
        let bytes = ready.iter().map(|orphan| orphan.bytes).sum();
        let work = Work::new(bytes, ready.len() as u64);
        let mut reclaimer = PacedReclaimer::new(
            place.hidden(),
            policy,
            self.card,
            &work,
            &self.options.throttle,
        )?;
        let mut watching = Watching {
            place,
            stop,
            hurried,
            at_once: policy == Policy::Burst,
            most: self.options.most,
            looked: Instant::now(),
        };
        freeing.settle(&mut watching)?;
        for orphan in ready {
            let outcome = freeing.free(orphan, &mut reclaimer, &mut watching);
            if outcome.is_err() {
                // A part of it is freed; the rest waits.
                let left = place.keep().stat(orphan.inode);
                let left = left.map_or(0, |stat| names::bytes(&stat));
                batch.bytes += orphan.bytes.saturating_sub(left);
            }
            match outcome? {
                Outcome::Freed => batch.count(orphan.bytes),
                Outcome::Whole(why) => {
                    batch.count(orphan.bytes);
                    place.tell_once(tell, why);
                }
                Outcome::Waits | Outcome::InUse => {}
            }
        }
        reclaimer.finish(&mut watching).map(Some)
    }

    /// Removes the second names of files in use, unless they are to be kept.
    fn end(mut self, stop: &AtomicBool, tell: Tell<'_>) -> Vec<Left> {
        if !stop.load(Ordering::Relaxed) {
            self.remove_at_end(stop, tell);
        }
        let keep = self.options.keep_names;
        let mut left = Vec::new();
        for mut place in self.places {
            if !keep {
                place.forget_live();
            }
            let names = place.names().sums();
            if place.descriptors().is_some() {
                if names.waiting_files > 0 {
                    tell(Event::Note(format!(
                        "{}: {} that waited are freed at once, because no name keeps them",
                        units::names::quoted(place.path()),
                        units::bytes(names.waiting_bytes)
                    )));
                }
            } else if names.waiting_files + names.guarded_files > 0 {
                let directory = place.path().to_owned();
                left.push(Left { directory, names });
            }
            place.finish_orders();
            place.close();
        }
        left
    }

    /// Frees what still waits, where the order to stop asked for it.
    fn remove_at_end(&mut self, stop: &AtomicBool, tell: Tell<'_>) {
        for index in 0..self.places.len() {
            if !self.places[index].orders.remove {
                continue;
            }
            self.options.keep_names = false;
            let deadline = Instant::now() + LAST_RETRY;
            loop {
                let orphans = self.places[index].names().orphans;
                let over = Instant::now() > deadline && self.due(index, orphans.clone()).is_empty();
                if orphans.is_empty() || over || stop.load(Ordering::Relaxed) {
                    break;
                }
                let due = self.due(index, orphans);
                if due.is_empty() || !self.free(index, &due, stop, tell) {
                    std::thread::sleep(TICK);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
