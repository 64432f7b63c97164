//! The throttle: a pacer of [`pace`] driven by the kernel, for any deleter.
//!
//! A deleter frees space; the throttle decides when and how much. It reads what the devices have
//! discarded from their statistics, reads a small file of its own (the canary) to observe what
//! reads wait, and gives both to the pacer.
//!
//! | part | responsibility |
//! |---|---|
//! | [`Stack`] | what the storage stack does with freed space, and where its discards are counted |
//! | [`Setup`], [`Throttle`] | the loop: ask, wait, free, commit, wait for the discards |
//! | `setup` | the choices, and the start: canary, counters, and the foreground before anything is freed |
//! | `monitor` | what the devices and the canary did since the last look, with `counters` and `canary`; how full the file system is |
//! | `commits` | what was freed and committed so far; commits that make a file system send its discards |
//! | `ending` | waits for the last discards, and a last look at others |
//! | [`Decisions`], [`Summary`] | what the pacer decided, and what the deletion came to |
//!
//! A deleter of files uses a [`Volume`](crate::Volume), which knows how to cut a file into
//! pieces. A deleter that frees space in its own way uses the throttle itself:
//!
//! ```no_run
//! use std::fs::File;
//! use std::os::fd::AsFd;
//!
//! use pace::{Goal, Policy, Work};
//! use reclaim::throttle::{Pacing, Purpose, Setup, Stack, Throttle};
//! use reclaim::{ReclaimError, silent};
//!
//! fn free_at_most(_bytes: u64) -> u64 { 0 }
//!
//! let mut left = 1 << 30;
//! let on = File::open("/srv")?;
//! let stack = Stack::at(on.as_fd())?;
//! let mut throttle = Throttle::start(&Setup {
//!     on: on.as_fd(),
//!     stack: &stack,
//!     purpose: Purpose::Delete,
//!     work: &stack.shape(&Work::new(left, 8)),
//!     pacing: &Pacing::new(Policy::Adaptive(Goal::slowdown(0.1))),
//! }, &mut silent)?;
//! while left > 0 {
//!     let advice = throttle.grant(left, &mut silent)?; // waits
//!     let bytes = free_at_most(advice.allow);
//!     throttle.freed(bytes, 0);
//!     throttle.commit_freed(&mut silent)?; // the file system sends the discards
//!     left -= bytes.min(left);
//! }
//! let summary = throttle.finish(&mut silent)?; // waits for the last discards
//! println!("{:?}", summary.goals);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod canary;
mod commits;
mod counters;
mod decisions;
mod ending;
mod monitor;
mod setup;
mod stack;

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use linux::stats::{Counters, DeviceStats};
use pace::{Account, Advice, Discards, Feedback, Goal, Pacer, State, Why};
use ssd::Time;

pub use decisions::{Decision, Decisions, Summary};
pub use monitor::Protected;
pub use setup::{CanaryFile, Pacing, Purpose, Setup};
pub use stack::Stack;
pub(crate) use stack::{UNSEEN, Unpaced};

pub(crate) use canary::{nameless, nameless_filled};
pub(crate) use counters::DeviceCounters;
pub(crate) use setup::{EarlyObservation, Observation};

use crate::event::{Listener, Progress, Reporter, report};
use crate::{ReclaimError, Result};
use commits::{Commits, Ledger, Worker};
use monitor::{Monitor, SpaceWatch};

/// The pacer is asked at least this often, however much it allowed.
pub(crate) const LONGEST_GRANT: Duration = Duration::from_millis(100);

/// The foreground is observed for so long before anything is freed: for [`BASELINE`] if it
/// reads, because its later loss is measured against that.
const WARM_UP: Duration = Duration::from_millis(50);
const BASELINE: Duration = Duration::from_millis(300);

/// The same for a protected group, whose waits come in bursts, and beside work that goes on in pauses.
const LONG_BASELINE: Duration = Duration::from_secs(3);

/// So many reads within [`WARM_UP`] mean that a foreground reads.
const FOREGROUND_READS: f64 = 10.0;

/// A pause shorter than this is not worth a sleep.
const SHORTEST_PAUSE: Duration = Duration::from_micros(50);

/// Asks a pacer, waits as it advises, and gives it feedback from the devices.
#[derive(Debug)]
pub struct Throttle {
    /// A directory of the file system.
    on: OwnedFd,
    pacer: Pacer,
    goal: Option<Goal>,
    /// Measures the foreground's loss; `None` where no discards are sent, so that nothing is paced.
    account: Option<Account>,
    monitor: Monitor,
    ledger: Ledger,
    space: SpaceWatch,
    /// The loop device that the file system lies on, and its counters at the beginning.
    loop_device: Option<(DeviceStats, Counters)>,
    commits: Commits,
    decisions: Decisions,
    worker: Worker,
    /// The zero of the pacer's time.
    observed_since: Instant,
    /// When the work was known.
    began: Instant,
    reporter: Reporter,
    /// Free space ran low, so that the goal was relaxed.
    urgent: bool,
}

impl Throttle {
    /// Returns whether discards are sent, so that freeing is paced.
    pub fn is_paced(&self) -> bool {
        self.account.is_some()
    }

    /// Returns what the pacer knows.
    pub fn state(&self) -> State {
        self.pacer.state()
    }

    /// Announces that what is freed next lies in extents of so many bytes on average.
    pub fn expect_extents(&mut self, bytes: u64) {
        self.pacer.expect_extents(bytes);
    }

    /// Returns the bytes that are still to be freed.
    pub(crate) fn left(&self) -> u64 {
        self.ledger.total.saturating_sub(self.ledger.freed)
    }

    /// Returns the bytes freed so far.
    pub fn freed_bytes(&self) -> u64 {
        self.ledger.freed
    }

    /// Reports that so many bytes were freed. No discard comes for `exempt` of them.
    ///
    /// # Panics
    /// If more bytes are exempt than were freed so far.
    pub fn freed(&mut self, bytes: u64, exempt: u64) {
        self.count(bytes, exempt);
        if bytes > 0 {
            self.needs_commit();
        }
    }

    /// Reports that so many bytes were freed by unlinking files. No discard comes for `exempt` of
    /// them.
    ///
    /// # Panics
    /// If more bytes are exempt than were freed so far.
    pub fn unlinked(&mut self, bytes: u64, exempt: u64) {
        self.count(bytes, exempt);
        if bytes > 0 {
            self.commits.freed(true);
        }
    }

    /// Reports that the file system frees so many bytes by itself, and whether a commit of all of it
    /// has sent their discards.
    pub(crate) fn frees_itself(&mut self, bytes: u64, committed: bool) {
        self.count(bytes, 0);
        if committed {
            self.ledger.committed_whole();
        }
    }

    /// Notes that what is deleted next is freed in the pauses, too.
    pub(crate) fn works_in_pauses(&mut self) {
        self.account.as_mut().map(Account::works_in_pauses);
    }

    /// Reports that something was changed that a commit must bring to the disk.
    pub(crate) fn needs_commit(&mut self) {
        self.commits.freed(false);
    }

    fn count(&mut self, bytes: u64, exempt: u64) {
        self.ledger.add(bytes, exempt);
        if self.space.matters && bytes > 0 {
            self.pacer.commit_to_goal();
        }
    }

    /// Returns the discards since the beginning, as the throttle last read them.
    pub fn discards(&self) -> Discards {
        self.monitor.discards()
    }

    /// Reads what the devices did in a call that took so long and waited for all its discards.
    /// Discards in flight at the same time count no longer than the call.
    pub(crate) fn read_within(&mut self, took: Duration) -> Result<Discards> {
        self.monitor
            .counters
            .read_within(took)
            .map_err(counters_failed)?;
        Ok(self.monitor.counters.discards())
    }

    /// Waits until something may be freed. `left`: bytes still to be freed.
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`] if `listener` ends it, [`ReclaimError::Refused`] if the goal
    /// can't be met, or [`ReclaimError::Io`] if counters or a commit fail.
    pub fn grant(&mut self, left: u64, listener: &mut Listener<'_>) -> Result<Advice> {
        self.warm_up(listener)?;
        let advice = self.wait(left.max(1), listener)?;
        if advice.why == Why::Refused {
            return Err(self.refused());
        }
        self.note(&advice);
        Ok(advice)
    }

    /// Waits until something may be freed, or until nothing can be or has to be waited for any more.
    fn wait(&mut self, left: u64, listener: &mut Listener<'_>) -> Result<Advice> {
        loop {
            let advice = self.ask(left)?;
            self.report(listener, false)?;
            match advice.why {
                Why::Done | Why::Refused => return Ok(advice),
                _ if advice.commit => self.force(listener)?,
                _ if advice.allow > 0 => return Ok(advice),
                _ if self.commit_if_due(listener)? => {}
                _ => self.pause(self.until_commit(advice.ask_again), listener)?,
            }
        }
    }

    fn refused(&self) -> ReclaimError {
        match self.pacer.refusal() {
            Some(refusal) => ReclaimError::Refused(*refusal),
            None => ReclaimError::Interrupted,
        }
    }

    /// Returns what may be freed now; `None`: nothing, ask again after some milliseconds. Never
    /// waits. Something that was freed and isn't committed keeps the rest from being allowed.
    ///
    /// # Errors
    /// [`ReclaimError::Refused`] if the goal can't be met, or [`ReclaimError::Io`] if counters
    /// fail.
    pub fn try_grant(&mut self, left: u64) -> Result<Option<Advice>> {
        self.observe()?;
        if !self.is_warm() {
            return Ok(None);
        }
        let advice = self.ask(left.max(1))?;
        match advice.why {
            Why::Refused => Err(self.refused()),
            _ if advice.commit || advice.allow == 0 => Ok(None),
            _ => {
                self.note(&advice);
                Ok(Some(advice))
            }
        }
    }

    /// Observes the foreground before anything is freed.
    fn warm_up(&mut self, listener: &mut Listener<'_>) -> Result<()> {
        while !self.is_warm() {
            self.pause(WARM_UP / 6, listener)?;
            self.observe()?;
        }
        Ok(())
    }

    /// Whether the foreground was observed for long enough.
    fn is_warm(&mut self) -> bool {
        if self.monitor.waits.has_begun() {
            return true;
        }
        let elapsed = self.observed_since.elapsed();
        let is_alone = |account: &Account| account.reads_before() < FOREGROUND_READS;
        let account = self.account.as_ref();
        let alone = account.is_none_or(is_alone);
        let before_alone = account.is_some_and(Account::is_against_before);
        let warm = match self.goal {
            Some(goal) if goal.max_pressure.is_some() => elapsed >= LONG_BASELINE,
            Some(_) if before_alone && !alone => elapsed >= LONG_BASELINE,
            _ => elapsed >= BASELINE || elapsed >= WARM_UP && alone,
        };
        if warm {
            self.monitor.waits.begin();
            self.account.as_mut().map(Account::begin);
        }
        warm
    }

    /// Ends it at once, and returns the summary so far.
    pub fn end(mut self) -> Summary {
        self.summary()
    }

    fn summary(&mut self) -> Summary {
        let state = self.pacer.state();
        let discards = self.discards();
        let at_loop = self.loop_device.as_ref().and_then(|(stats, before)| {
            let now = stats.read().ok()?;
            Some(now.since(before).discard_bytes)
        });
        let elapsed = self.began.elapsed();
        let goals = match (&self.account, &self.goal) {
            (Some(account), Some(goal)) => account.judge(goal, elapsed),
            _ => Vec::new(),
        };
        Summary {
            mount: None,
            drives: self.monitor.counters.drives(),
            elapsed,
            freed: self.ledger.freed,
            exempt: self.ledger.exempt,
            discarded: discards.bytes,
            discards: discards.commands,
            discarded_twice: state.discarded_twice,
            written_off: state.written_off,
            answered: state.answered,
            counted: !self.is_paced() || self.monitor.counters.has_devices(),
            later: None,
            charged: state
                .charged_s
                .map(|lost| Duration::from_secs_f64(lost.clamp(0.0, 1e15))),
            rest: Duration::from_secs_f64(state.rest_s.clamp(0.0, 1e15)),
            observed: self.account.as_ref().map(Account::observed),
            goals,
            protected: self.monitor.protected(),
            cleaned: None,
            decisions: std::mem::take(&mut self.decisions),
            absences: self.monitor.absences.take(),
        }
        .with_own_discards(at_loop)
    }

    /// Makes a call that can block on a thread of its own, and reports to `listener` meanwhile.
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`] if `listener` ends it; the call then ends by itself. The inner
    /// result is the call's own.
    pub fn call(
        &mut self,
        listener: &mut Listener<'_>,
        job: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<io::Result<()>> {
        self.report(listener, false)?;
        let progress = self.progress();
        let reporter = &mut self.reporter;
        self.worker
            .call(job, Reporter::EVERY, || reporter.report(listener, progress))
    }

    /// Gives the pacer the moment from which everything was observed.
    fn observe_beginning(&mut self) {
        let feedback = Feedback {
            left: Some(0),
            others: self.is_paced().then(Default::default),
            discards: Discards {
                busy: Some(Duration::ZERO),
                ..Discards::default()
            },
            ..Feedback::default()
        };
        self.pacer.advise(&feedback);
        if let Some(account) = &mut self.account {
            account.take_in(&feedback, self.pacer.state().idle);
        }
    }

    /// Returns an open directory of the file system.
    pub(crate) fn directory(&self) -> Result<OwnedFd> {
        self.on
            .try_clone()
            .map_err(|source| self.failed("keep open the directory", source))
    }

    /// Returns the free bytes of the file system; 0 if nobody knows.
    pub(crate) fn free_bytes(&self) -> u64 {
        rustix::fs::fstatvfs(&self.on).map_or(0, |stat| stat.f_bfree.saturating_mul(stat.f_frsize))
    }

    /// Looks at the devices while something else than the caller frees.
    pub(crate) fn look(&mut self) -> Result<()> {
        self.observe()
    }

    /// Gives the pacer feedback without asking for an allowance.
    fn observe(&mut self) -> Result<()> {
        self.ask(0).map(drop)
    }

    fn ask(&mut self, left: u64) -> Result<Advice> {
        self.monitor.counters.read().map_err(counters_failed)?;
        self.space.look(&self.on);
        let now = self.now();
        let paced = self.is_paced();
        let feedback = Feedback {
            freed: self.ledger.freed,
            exempt: self.ledger.exempt,
            left: Some(left),
            settled: self.ledger.settled,
            commits: self.commits.forced,
            sent_since: self.commits.sent_since,
            own_commits: self.commits.made,
            space: self.space.last,
            ..self.monitor.look(now, paced)
        };
        let advice = self.pacer.advise(&feedback);
        if let Some(account) = &mut self.account {
            account.take_in(&feedback, self.pacer.state().idle);
        }
        self.urgent |= advice.why == Why::Urgent;
        Ok(advice)
    }

    /// Returns how long this process has been away so far, in seconds.
    pub(crate) fn away_s(&mut self) -> f64 {
        self.monitor.absences.seconds()
    }

    /// Records a decision and what the throttle knew when the pacer made it.
    fn note(&mut self, advice: &Advice) {
        let state = self.pacer.state();
        self.decisions.add(Decision {
            at_s: self.began.elapsed().as_secs_f64(),
            why: advice.why,
            allow: advice.allow,
            waited_s: 0.0,
            service_s: state.service_s,
            phi: state.phi,
            freed: self.ledger.freed,
            discards: self.discards(),
            flushes: self.monitor.counters.flushes(),
            others: self.monitor.others,
        });
    }

    pub(crate) fn pause(&mut self, length: Duration, listener: &mut Listener<'_>) -> Result<()> {
        let until = Instant::now() + length.max(SHORTEST_PAUSE);
        loop {
            self.report(listener, false)?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Reporter::EVERY));
        }
    }

    /// Reports progress to `listener` if it is time, or at once if `now`.
    ///
    /// # Errors
    /// [`ReclaimError::Interrupted`] if `listener` ends it.
    pub fn report(&mut self, listener: &mut Listener<'_>, now: bool) -> Result<()> {
        match self.reporter.is_due() || now {
            true => report(listener, self.progress()),
            false => Ok(()),
        }
    }

    fn progress(&self) -> Progress {
        Progress {
            total_bytes: self.ledger.total,
            freed_bytes: self.ledger.freed,
            debt_bytes: self.pacer.state().debt,
            added_latency: self.monitor.added_latency(),
            urgent: self.urgent,
            ..Progress::default()
        }
    }

    pub(super) fn now(&self) -> Time {
        let since = self.observed_since.elapsed();
        Time::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Makes an error that names this file system.
    pub(crate) fn failed(&self, action: &'static str, source: io::Error) -> ReclaimError {
        ReclaimError::io(action, shown(&self.on))(source)
    }
}

fn counters_failed(error: linux::stats::StatsError) -> ReclaimError {
    ReclaimError::io("see what is discarded below", "/sys/class/block")(io::Error::other(error))
}

/// Returns the path of an open file or directory, for messages only.
pub(crate) fn shown(open: impl AsFd) -> PathBuf {
    let link = format!("/proc/self/fd/{}", open.as_fd().as_raw_fd());
    std::fs::read_link(&link).unwrap_or_else(|_| PathBuf::from(link))
}

#[cfg(test)]
mod tests;
