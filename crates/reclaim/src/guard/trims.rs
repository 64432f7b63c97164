//! A guard of ext4 or XFS: looks at what is free, and trims what was freed.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pace::trims::{Debt, LITTLE, Moment, runs};
use pace::{Kept, Worth};
use record::units::names::quoted;
use storage::remount::DiscardGuard;

use super::common::{Ages, Common};
use super::look::{Hidden, Looker};
use super::note::Notes;
use super::orders;
use super::start::Candidate;
use super::status::TrimReport;
use super::{GuardError, GuardOptions, Left, TICK};
use crate::ReclaimError;
use crate::event::{Event, Listener};
use crate::throttle::{CanaryFile, Pacing, Summary, nameless_filled};

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

/// An event on what was trimmed comes so often, at most.
const NOTIFY_EVERY: Duration = Duration::from_secs(60);

/// A running guard that trims one file system.
#[derive(Debug)]
pub(super) struct TrimGuard {
    pub(super) common: Common,
    pub(super) options: GuardOptions,
    pub(super) looker: Looker,
    pub(super) debt: Debt,
    hidden: Hidden,
    pub(super) ages: Ages,
    pub(super) worth: Worth,
    notes: Notes,
    /// The canary's file, one for all series: a new one would free its blocks each time.
    _canary: Option<Arc<File>>,
    remounted: Option<DiscardGuard>,
    /// An order to drain is for the debt of that moment.
    pub(super) drained_up_to: Moment,
    pub(super) trimmed: u64,
    /// Of it, what the kernel didn't skip, and in how many discards.
    pub(super) discarded: u64,
    pub(super) discards: u64,
    pub(super) busy: Duration,
    pub(super) windows: u64,
    pub(super) clock: Clocks,
    /// Something changed since the last note.
    pub(super) unnoted: bool,
    reported: Reported,
    /// Why the guard must end.
    failed: Option<String>,
}

/// When something was done last, or is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clocks {
    pub(super) look_at: Instant,
    renewed: Instant,
    noted: Instant,
    reported: Option<Instant>,
}

/// The end of the last event on trims.
#[derive(Debug)]
struct Reported {
    at: Instant,
    first: bool,
    bytes: u64,
    discarded: u64,
    busy: Duration,
}

pub(super) fn now() -> Moment {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |now| Moment::try_from(now.as_millis()).unwrap_or(1))
}

impl TrimGuard {
    /// Takes charge of a file system, after a switch to `nodiscard` if that is true.
    pub(super) fn start(
        found: Candidate,
        (looker, remount): (Looker, bool),
        mut options: GuardOptions,
        listener: &mut Listener<'_>,
    ) -> Result<TrimGuard, GuardError> {
        let common = Common::start(&found.path, &found.name)?;
        let remounted = match remount.then(|| DiscardGuard::off(&found.mount)).transpose() {
            Ok(remounted) => remounted,
            Err(error) => {
                common.close();
                return Err(GuardError::Remount(Box::new(error)));
            }
        };
        if remounted.is_some() {
            listener(Event::Note(&format_args!(
                "{}: remounted with nodiscard until the guard ends",
                quoted(&found.path)
            )));
        }
        let canary = keep_canary(&looker, &mut options.pacing);
        let now = Instant::now();
        let mut guard = TrimGuard {
            common,
            options,
            looker,
            debt: Debt::default(),
            hidden: Hidden::default(),
            ages: Ages::default(),
            worth: Worth::default(),
            notes: Notes::default(),
            _canary: canary,
            remounted,
            drained_up_to: 0,
            trimmed: 0,
            discarded: 0,
            discards: 0,
            busy: Duration::ZERO,
            windows: 0,
            clock: Clocks {
                look_at: now,
                renewed: now,
                noted: now,
                reported: None,
            },
            unnoted: true,
            reported: Reported {
                at: now,
                first: true,
                bytes: 0,
                discarded: 0,
                busy: Duration::ZERO,
            },
            failed: None,
        };
        if let Err(source) = guard.begin(found.uuid.as_deref(), listener) {
            guard.common.close();
            return Err(GuardError::from(ReclaimError::io(
                "list the free extents of",
                found.path,
            )(source)));
        }
        Ok(guard)
    }

    /// The first look, joined with what an earlier guard noted on this mount.
    fn begin(&mut self, uuid: Option<&str>, listener: &mut Listener<'_>) -> std::io::Result<()> {
        let look = self.looker.look()?;
        self.notes.mount = self.looker.mount(uuid);
        let noted = self.notes.read(self.common.state());
        let path = quoted(self.common.path());
        let Some((debt, hidden)) = noted.filter(|_| look.freed_blocks.is_some()) else {
            self.hidden.saw(0, look.freed_blocks, self.looker.block);
            self.debt = Debt::all(look.free);
            let bytes = record::units::bytes(self.debt.bytes());
            let remembered = match self.looker.is_remembered() {
                true => ", but for the block groups that the kernel knows to be trimmed",
                false => "",
            };
            listener(Event::Note(&format_args!(
                "{path}: {bytes} are free and may never have been trimmed: they are trimmed \
                 now{remembered}"
            )));
            return Ok(());
        };
        (self.debt, self.hidden) = (debt, hidden);
        let seen = self.debt.look(look.free, now());
        let block = self.looker.block;
        self.hidden.saw(seen.freed, look.freed_blocks, block);
        if self.hidden.bytes() > 0 {
            let unseen = record::units::bytes(self.hidden.bytes());
            self.renew();
            listener(Event::Note(&format_args!(
                "{path}: up to {unseen} were used and freed unseen while no guard ran: all that is \
                 free is trimmed again"
            )));
        }
        Ok(())
    }

    /// Guards until `listener` or an order ends it. Returns what is left.
    pub(super) fn run(mut self, listener: &mut Listener<'_>) -> Left {
        while self.common.goes_on(listener) && self.failed.is_none() {
            if !self.round(listener) {
                std::thread::sleep(TICK);
            }
        }
        self.end(listener)
    }

    /// Looks once, and trims what is due. Returns whether anything was trimmed.
    fn round(&mut self, listener: &mut Listener<'_>) -> bool {
        let drained = self.common.orders.drain;
        let (common, goal) = (&mut self.common, &mut self.options.goal);
        if common.take_orders(goal, listener) {
            self.report(true);
            orders::accept(self.common.state());
        }
        if self.common.orders.drain && !drained {
            // What may have been used unseen is pending, too.
            self.clock.look_at = Instant::now();
            self.look(listener);
            self.renew();
            self.drained_up_to = now();
        }
        if Instant::now() >= self.clock.look_at {
            self.look(listener);
        }
        if self.common.orders.drain && !self.debt.has_since(self.drained_up_to) {
            self.report(true);
            self.common.drained();
        }
        self.report(false);
        self.note(false, listener);
        let Some(due) = self.due() else {
            return false;
        };
        if due.hurried {
            self.common.note_hurry(&self.options, listener);
        }
        self.series(&due, listener)
    }

    /// Reads what is free.
    pub(super) fn look(&mut self, listener: &mut Listener<'_>) {
        let began = Instant::now();
        match self.looker.look() {
            Ok(look) => {
                let seen = self.debt.look(look.free, now());
                let (blocks, block) = (look.freed_blocks, self.looker.block);
                self.hidden.saw(seen.freed, blocks, block);
                self.unnoted |= seen.freed + seen.used > 0;
            }
            Err(error) => {
                let what = "what is free can't be read";
                self.common.note_failure(listener, what, &error);
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
        self.debt.make_all_pending();
        self.hidden.settle();
        self.clock.renewed = Instant::now();
        self.unnoted = true;
    }

    fn end(mut self, listener: &mut Listener<'_>) -> Left {
        self.look(listener);
        self.note(true, listener);
        self.notify_rest(None, listener);
        let left = Left {
            mount: self.common.path().to_owned(),
            debt_bytes: self.worth_trimming(),
            failed: self.failed,
            not_restored: self.remounted.take().and_then(|held| held.restore().err()),
        };
        self.common.close();
        left
    }

    /// The debt, unless it is so little that guard would let it wait.
    fn worth_trimming(&self) -> u64 {
        let all = runs(&self.debt, self.least_run());
        let bytes = all
            .filter(|(_, short)| !short)
            .map(|(pending, _)| pending.bytes())
            .sum();
        if bytes < LITTLE { 0 } else { bytes }
    }

    /// Writes the debt down, if it is time or `at_once`.
    pub(super) fn note(&mut self, at_once: bool, listener: &mut Listener<'_>) {
        let due = at_once || self.unnoted && self.clock.noted.elapsed() >= NOTE_EVERY;
        if !due || self.notes.mount.is_none() {
            return;
        }
        let state = self.common.state();
        if let Err(error) = self.notes.write(state, &self.debt, self.hidden) {
            let what = "after a restart all that is free is trimmed again, because the debt can't be noted";
            self.common.note_failure(listener, what, &error);
        }
        self.unnoted = false;
        self.clock.noted = Instant::now();
    }

    /// Writes how it stands, for `status`.
    pub(super) fn report(&mut self, at_once: bool) {
        let due = |at: Instant| at.elapsed() >= REPORT_EVERY;
        if !at_once && !self.clock.reported.is_none_or(due) {
            return;
        }
        self.clock.reported = Some(Instant::now());
        let age = |at: Moment| now().saturating_sub(at) as f64 / 1e3;
        let report = TrimReport {
            debt_bytes: self.debt.known_bytes(),
            unknown_bytes: self.debt.unknown_bytes(),
            unseen_bytes: self.hidden.bytes(),
            extents: self.debt.len() as u64,
            oldest_s: self.debt.oldest().map(age),
            age_p50_s: self.ages.at_most(0.5),
            age_p99_s: self.ages.at_most(0.99),
            trimmed_bytes: self.trimmed,
            discarded_bytes: self.discarded,
            discards: self.discards,
            busy_s: self.busy.as_secs_f64(),
            windows: self.windows,
            min_run_bytes: self.least_run(),
            waits: Some(self.waits()),
            discards_per_s: None,
        };
        let must_end = self.common.report(&self.options, report);
        self.failed = self.failed.take().or(must_end);
    }

    /// Reports what was trimmed: now and then, and whenever a goal was missed.
    pub(super) fn notify_trimmed(
        &mut self,
        summary: Option<&Summary>,
        listener: &mut Listener<'_>,
    ) {
        let goals = summary.map_or(&[][..], |summary| &summary.goals);
        let missed = goals.iter().any(|goal| goal.kept == Kept::Missed);
        let due = self.reported.first || missed || self.reported.at.elapsed() >= NOTIFY_EVERY;
        if due {
            self.notify_rest(summary, listener);
        }
    }

    /// Reports what was trimmed since the last report.
    fn notify_rest(&mut self, summary: Option<&Summary>, listener: &mut Listener<'_>) {
        let bytes = self.trimmed - self.reported.bytes;
        if bytes > 0 {
            listener(Event::Trimmed {
                mount: self.common.path(),
                bytes,
                discarded: self.discarded - self.reported.discarded,
                within_s: self.reported.at.elapsed().as_secs_f64(),
                busy_s: (self.busy - self.reported.busy).as_secs_f64(),
                summary,
            });
            self.reported = Reported {
                at: Instant::now(),
                first: false,
                bytes: self.trimmed,
                discarded: self.discarded,
                busy: self.busy,
            };
        }
    }
}

/// One file for all canaries of this guard.
fn keep_canary(looker: &Looker, pacing: &mut Pacing) -> Option<Arc<File>> {
    if !matches!(pacing.canary, CanaryFile::Made) {
        return None;
    }
    let file = Arc::new(nameless_filled(looker.directory().as_fd()).ok()?);
    pacing.canary = CanaryFile::Given(Arc::clone(&file));
    Some(file)
}
