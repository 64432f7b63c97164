//! Trims what programs free, all the time, as the throttle allows.
//!
//! The file system runs without `discard`, so that freeing space costs nothing then. The guard
//! looks at the free extents, and trims those that were freed since, oldest and longest first.
//!
//! | part | responsibility |
//! |---|---|
//! | [`TrimGuard`] | the loop: take orders, look, trim |
//! | `start` | which mounts can be guarded, and the switch to `nodiscard` |
//! | `debt` | what is free and not certainly trimmed: pure |
//! | `look` | the kernel's list of free extents, and the sign that it was incomplete |
//! | `due` | which debt is due, and how fast it is trimmed |
//! | `pick` | the order of trims, and their windows: pure |
//! | `note` | the debt on the disk |
//! | `batch` | one throttled series of trims |
//! | `ages` | how late trims come |
//! | `hours` | the hours of a day in which trims run |

mod ages;
mod batch;
mod debt;
mod due;
mod hours;
mod look;
mod note;
mod pick;
mod start;

use std::fs::File;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pace::{Goal, Policy, Worth};
use ssd::Card;
use storage::remount::DiscardGuard;

pub(super) use ages::Ages;
pub use ages::TrimReport;
pub use hours::Hours;
pub(super) use start::kernels_own;
pub use start::{Way, choose};

use super::place::Place;
use super::status::Reported;
use super::{Event, TICK, Tell};
use crate::throttle::{Summary, ThrottleOptions};
use debt::{Debt, Moment};
use due::Due;
use look::{Hidden, Looker};
use note::Notes;
use pick::runs;

/// The pause between two looks, at least; and in times of the last look's length.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_SHARE: u32 = 20;

/// Where the looks may have missed something, all is trimmed after this time, as a weekly fstrim
/// does. The same happens once this share of the file system may have been used unseen.
const RENEW_EVERY: Duration = Duration::from_secs(7 * 86_400);
const RENEW_SHARE: f64 = 0.01;

/// The debt is noted so often, at most.
const NOTE_EVERY: Duration = Duration::from_secs(5);

/// The status is written so often, at most.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// A sentence on what was trimmed comes so often, at most.
const TELL_EVERY: Duration = Duration::from_secs(60);

/// The options of a guard that trims.
#[derive(Debug, Clone)]
pub struct TrimOptions {
    /// The share of its throughput that other I/O may lose.
    pub goal: Goal,
    /// Above this share of the file system, debt is trimmed faster.
    pub most: f64,
    /// Debt that is older is trimmed faster.
    pub max_age: Duration,
    /// Runs of fewer bytes wait up to half of `max_age`; `None`: as long as their trims would cost
    /// more than they save ([`Worth`]).
    pub min_run: Option<u64>,
    /// The hours in which it trims; `None`: always.
    pub between: Option<Hours>,
    /// Switch a mount to `nodiscard`, and back at the end.
    pub remount: bool,
    /// Let programs hand files over by `.trimbench/in` and by a socket.
    pub hand_over: bool,
    /// The throttle's.
    pub throttle: ThrottleOptions,
}

/// A running guard that trims one file system.
#[derive(Debug)]
pub struct TrimGuard<'a> {
    place: Place,
    options: TrimOptions,
    card: Option<&'a Card>,
    looker: Looker,
    debt: Debt,
    hidden: Hidden,
    ages: Ages,
    worth: Worth,
    notes: Notes,
    /// The canary's file, one for all series: a new one would free its blocks each time.
    _canary: Option<std::sync::Arc<File>>,
    remounted: Option<DiscardGuard>,
    /// An order to drain is for the debt of that moment.
    drained_up_to: Moment,
    trimmed: u64,
    windows: u64,
    clock: Clocks,
    /// Something changed since the last note.
    unnoted: bool,
    told: Told,
}

/// When something was done last, or is due.
#[derive(Debug, Clone, Copy)]
struct Clocks {
    look_at: Instant,
    renewed: Instant,
    noted: Instant,
    reported: Option<Instant>,
}

/// The trims since the last sentence on them.
#[derive(Debug, Default)]
struct Told {
    at: Option<Instant>,
    bytes: u64,
    seconds: f64,
}

/// The debt that a guard left at its end.
#[derive(Debug)]
pub struct TrimLeft {
    /// Where the file system is mounted.
    pub directory: PathBuf,
    /// Bytes that were freed and not trimmed.
    pub debt_bytes: u64,
    /// Why the mount's option isn't as it was.
    pub not_restored: Option<storage::remount::RemountError>,
}

/// Removes the notes of an ended guard: the next one trims all that is free.
pub(super) fn forget_notes(hidden: std::os::fd::BorrowedFd<'_>) {
    Notes::remove(hidden);
}

fn now() -> Moment {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |now| Moment::try_from(now.as_millis()).unwrap_or(1))
}

impl TrimGuard<'_> {
    /// Guards until `stop` is set or an order ends it. Returns what is left.
    pub fn run(mut self, stop: &AtomicBool, tell: Tell<'_>) -> TrimLeft {
        let ended = AtomicBool::new(false);
        let service = self.place.service();
        std::thread::scope(|threads| {
            if let Some(service) = &service {
                threads.spawn(|| service.run(&ended));
            }
            while !stop.load(Ordering::Relaxed) && !self.place.orders.stop {
                if !self.round(stop, tell) {
                    std::thread::sleep(TICK);
                }
            }
            ended.store(true, Ordering::Relaxed);
        });
        if self.place.orders.remove && !stop.load(Ordering::Relaxed) {
            self.trim_all(stop, tell);
        }
        self.end(tell)
    }

    /// Looks once, and trims what is due. Returns whether anything was trimmed.
    fn round(&mut self, stop: &AtomicBool, tell: Tell<'_>) -> bool {
        let drained = self.place.orders.drain;
        self.place.take_orders(&mut self.options.goal, tell);
        self.place.take_in(false, tell);
        if self.place.orders.drain && !drained {
            // What may have been used unseen is owed, too.
            self.clock.look_at = Instant::now();
            self.look(tell);
            self.renew();
            self.drained_up_to = now();
        }
        if Instant::now() >= self.clock.look_at {
            self.look(tell);
        }
        if self.place.orders.drain && !self.debt.has_since(self.drained_up_to) {
            self.report(true);
            self.place.drained();
        }
        self.report(false);
        self.note(false, tell);
        let Some(due) = self.due() else {
            return false;
        };
        if due.hurried {
            let why = format!(
                "more than {} of the file system, or debt older than {}, waits to be trimmed",
                units::percent(self.options.most),
                units::duration_exact(self.options.max_age)
            );
            self.place.note_hurry_because(&why, tell);
        }
        self.series(&due, stop, tell)
    }

    /// Reads what is free.
    fn look(&mut self, tell: Tell<'_>) {
        let began = Instant::now();
        match self.looker.look() {
            Ok(look) => {
                let seen = self.debt.look(look.free, now());
                let (blocks, block) = (look.freed_blocks, self.looker.block);
                self.hidden.saw(seen.freed, blocks, block);
                self.unnoted |= seen.freed + seen.used > 0;
            }
            Err(error) => {
                let path = units::names::quoted(self.place.path());
                let why = crate::words::of_io(&error);
                self.place
                    .tell_once(tell, format!("{path}: what is free can't be read: {why}"));
            }
        }
        self.clock.look_at = Instant::now() + LOOK_EVERY.max(began.elapsed() * LOOK_SHARE);
        let share = self.hidden.bytes() as f64 / self.looker.size.max(1) as f64;
        let doubtful = self.looker.is_remembered() || self.hidden.bytes() > 0;
        if share > RENEW_SHARE || doubtful && self.clock.renewed.elapsed() > RENEW_EVERY {
            self.renew();
        }
    }

    /// Nothing is certainly trimmed any more.
    fn renew(&mut self) {
        self.debt.owe_all();
        self.hidden.settle();
        self.clock.renewed = Instant::now();
        self.unnoted = true;
    }

    /// Before the end: trims all debt, within the goal.
    fn trim_all(&mut self, stop: &AtomicBool, tell: Tell<'_>) {
        self.look(tell);
        self.renew();
        let now = now();
        let due = Due::up_to(now, Policy::Adaptive(self.options.goal));
        while self.debt.has_since(now) && !stop.load(Ordering::Relaxed) {
            if !self.series(&due, stop, tell) {
                return;
            }
        }
    }

    fn end(mut self, tell: Tell<'_>) -> TrimLeft {
        self.look(tell);
        if !self.place.orders.remove {
            self.note(true, tell);
        }
        let not_restored = self.remounted.take().and_then(|held| held.restore().err());
        let left = TrimLeft {
            directory: self.place.path().to_owned(),
            debt_bytes: self.debt.bytes(),
            not_restored,
        };
        self.place.finish_orders();
        self.place.close();
        left
    }

    /// Writes the debt down, if it is time or `at_once`.
    fn note(&mut self, at_once: bool, tell: Tell<'_>) {
        let due = at_once || self.unnoted && self.clock.noted.elapsed() >= NOTE_EVERY;
        let Some(mount) = self.looker.mount().filter(|_| due) else {
            return;
        };
        let hidden = self.place.hidden();
        if let Err(error) = self.notes.write(hidden, &mount, &self.debt, self.hidden) {
            let path = units::names::quoted(self.place.path());
            let why = crate::words::of_io(&error);
            let text = format!(
                "{path}: the debt can't be noted ({why}): after a restart all that is free is trimmed again"
            );
            self.place.tell_once(tell, text);
        }
        self.unnoted = false;
        self.clock.noted = Instant::now();
    }

    /// Writes how it stands, for `status`.
    fn report(&mut self, at_once: bool) {
        let due = |at: Instant| at.elapsed() >= REPORT_EVERY;
        if !at_once && !self.clock.reported.is_none_or(due) {
            return;
        }
        self.clock.reported = Some(Instant::now());
        let age = |at: Moment| now().saturating_sub(at) / 1000;
        let min_run_bytes = self.least_run();
        let short = runs(&self.debt, min_run_bytes).filter(|(_, short)| *short);
        let report = TrimReport {
            debt_bytes: self.debt.known_bytes(),
            unknown_bytes: self.debt.unknown_bytes(),
            unseen_bytes: self.hidden.bytes(),
            extents: self.debt.len() as u64,
            oldest_s: self.debt.oldest().map(age),
            age_p50_s: self.ages.at_most(0.5),
            age_p99_s: self.ages.at_most(0.99),
            trimmed_bytes: self.trimmed,
            windows: self.windows,
            min_run_bytes,
            short_bytes: short.map(|(owed, _)| owed.bytes()).sum(),
        };
        let goal = self.options.goal;
        self.place.report_as(Reported {
            pid: std::process::id(),
            min_bytes: 0,
            slowdown: goal.slowdown,
            max_latency_ms: goal.max_latency.map(|max| max.as_secs_f64() * 1e3),
            most: self.options.most,
            found_by: None,
            freed: self.place.freed,
            held: None,
            trim: Some(report),
        });
    }

    /// Reports what was trimmed, now and then.
    fn tell_trimmed(
        &mut self,
        bytes: u64,
        seconds: f64,
        summary: Option<&Summary>,
        tell: Tell<'_>,
    ) {
        self.told.bytes += bytes;
        self.told.seconds += seconds;
        let due = self.told.at.is_none_or(|at| at.elapsed() >= TELL_EVERY);
        if due && self.told.bytes > 0 {
            tell(Event::Trimmed {
                directory: self.place.path(),
                bytes: self.told.bytes,
                seconds: self.told.seconds,
                summary,
            });
            self.told = Told {
                at: Some(Instant::now()),
                ..Told::default()
            };
        }
    }
}
