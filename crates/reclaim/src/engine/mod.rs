//! What freeing a file and trimming a file system have in common: a pacer, fed
//! with what the devices have done and what others wait.
//!
//! What the devices have discarded is read from the leaves' statistics (a partition's
//! where the file system lies on one), and what others read and write from those of
//! their drives. Our own canary's reads are taken out of that.

mod absences;
mod canary;
mod commits;
mod counters;
mod decisions;
mod felt;
mod options;
mod unseen;
mod worker;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linux::SysRoot;
use pace::{
    Account, Advice, Discards, Feedback, Goal, Others, Pacer, Policy, Space, State, Why, Work,
};
use ssd::{Card, Time};
use storage::counter::Source;

pub use decisions::{Decision, Decisions};
pub use felt::Felt;
pub use options::{CanaryFile, FreerOptions};

pub(crate) use canary::nameless;

use crate::error::ReclaimError;
use crate::watch::{Progress, Watch};
use absences::Absences;
use canary::Canary;
use commits::Again;
use counters::{Leaves, Own};
use decisions::Sight;
use felt::Waits;
use unseen::Unseen;
use worker::Worker;

/// So long the others are watched before anything is freed; and for so long if somebody
/// reads, for what they lose later is measured against that.
const WARM_UP: Duration = Duration::from_millis(60);
const BASELINE: Duration = Duration::from_millis(300);

/// So many reads in the first of these are somebody's.
const SOMEBODY: f64 = 10.0;

/// The watcher gets a report at least this often.
const TELL: Duration = Duration::from_millis(50);

/// How often it is asked how full the file system is.
const SPACE_EVERY: Duration = Duration::from_millis(250);

/// How often it is looked whether discards are done, and after how long without
/// any they are.
const SETTLE: Duration = Duration::from_micros(500);
const SILENT: Duration = Duration::from_millis(50);

/// How long a discard may take, in seconds, before any was seen.
const UNKNOWN: f64 = 0.05;

/// The longest that discards are waited for: others may discard all the time.
const LONGEST_LAST: Duration = Duration::from_secs(4);

/// A pause shorter than this isn't one.
const SHORTEST_PAUSE: Duration = Duration::from_micros(50);

/// What an engine drives.
pub(crate) struct Setup<'a> {
    /// Any directory of the file system.
    pub(crate) on: BorrowedFd<'a>,
    /// Whether discards are sent at all. Where they aren't, nothing is looked at.
    pub(crate) paced: bool,
    /// The devices whose statistics count.
    pub(crate) leaves: &'a [Source],
    /// The devices' counters are off, so that their discards aren't seen.
    pub(crate) unseen: bool,
    /// All that will be freed, as the file system and its devices shape it.
    pub(crate) work: &'a Work,
    /// How it is paced.
    pub(crate) policy: Policy,
    /// Whether a commit of the whole file system returns when its discards are done.
    pub(crate) settles: bool,
    /// Whether names go and the file system has more space for it. Too little space then relaxes
    /// the goal, and once something is freed, no latency is refused.
    pub(crate) gives_space: bool,
    /// What is known about the drive.
    pub(crate) card: Option<&'a Card>,
    /// The canary.
    pub(crate) options: &'a FreerOptions,
}

/// Asks a pacer, waits as it says, and shows it what goes on.
#[derive(Debug)]
pub(crate) struct Engine {
    on: OwnedFd,
    paced: bool,
    /// Bytes to be freed in all.
    total: u64,
    pacer: Pacer,
    /// What others lose, as it is measured; `None` where nothing is paced.
    account: Option<Account>,
    goal: Option<Goal>,
    decisions: Decisions,
    /// What others had done when it was last looked.
    others: Option<Others>,
    /// Where the devices' counters are off.
    unseen: Option<Unseen>,
    leaves: Leaves,
    canary: Option<Canary>,
    worker: Worker,
    absences: Absences,
    since: Instant,
    freed: u64,
    exempt: u64,
    commits: u64,
    waits: Waits,
    gives_space: bool,
    space: Option<Space>,
    space_at: Option<Instant>,
    told: Instant,
    /// Space ran low, so that the goal was lifted.
    urgent: bool,
    again: Option<Again>,
    settles: bool,
    /// All that was freed was committed, and what is discarded of it was.
    settled: bool,
}

/// An engine, the canary's own file if one was made, and what deserves saying.
pub(crate) type Started = (Engine, Option<Arc<File>>, Vec<String>);

impl Engine {
    /// # Errors
    /// [`ReclaimError::Refused`] if a card says that the goal can't be met;
    /// else if the devices can't be watched.
    pub(crate) fn start(setup: &Setup<'_>) -> Result<Started, ReclaimError> {
        let failed = |action| {
            move |source: io::Error| ReclaimError::Io {
                action,
                path: shown(setup.on),
                source,
            }
        };
        let pacer = Pacer::new(setup.policy, setup.work, setup.card)?;
        let sources: &[Source] = if setup.paced { setup.leaves } else { &[] };
        let leaves = Leaves::open(&SysRoot::host(), sources).map_err(counters_failed)?;
        let mut notes = Vec::new();
        let mut made = None;
        let mut canary = None;
        if setup.paced {
            let started = match &setup.options.canary {
                CanaryFile::Without => None,
                CanaryFile::Given(file) => Some(Canary::start(Arc::clone(file), setup.options)),
                CanaryFile::Made => Some(canary::make(setup.on).and_then(|file| {
                    let file = Arc::new(file);
                    made = Some(Arc::clone(&file));
                    Canary::start(file, setup.options)
                })),
            };
            match started.transpose() {
                Ok(started) => canary = started,
                Err(error) => notes.push(format!(
                    "there is no canary ({error}): what a read waits is not measured"
                )),
            }
        }
        let file = match &setup.options.canary {
            CanaryFile::Given(file) => Some(file),
            _ => made.as_ref(),
        };
        let unseen = file.filter(|_| setup.paced && setup.unseen);
        let unseen = unseen.and_then(|file| Unseen::new(Arc::clone(file)).ok());
        let goal = match setup.policy {
            Policy::Adaptive(goal) => Some(goal),
            _ => None,
        };
        let on = setup.on.try_clone_to_owned();
        let mut engine = Engine {
            on: on.map_err(failed("keep open the directory"))?,
            paced: setup.paced,
            total: setup.work.bytes,
            pacer,
            account: setup
                .paced
                .then(|| Account::new(goal.as_ref(), setup.work.again)),
            goal,
            decisions: Decisions::default(),
            others: None,
            unseen,
            leaves,
            canary,
            worker: Worker::start().map_err(failed("start a thread for"))?,
            absences: match setup.paced {
                true => Absences::watch(),
                false => Absences::default(),
            },
            since: Instant::now(),
            freed: 0,
            exempt: 0,
            commits: 0,
            waits: Waits::default(),
            gives_space: setup.gives_space,
            space: None,
            space_at: None,
            told: Instant::now(),
            urgent: false,
            again: None,
            settles: setup.settles,
            settled: false,
        };
        engine.observe()?;
        Ok((engine, made, notes))
    }

    pub(crate) fn is_paced(&self) -> bool {
        self.paced
    }

    pub(crate) fn state(&self) -> State {
        self.pacer.state()
    }

    /// What is freed next lies in extents of so many bytes on average.
    pub(crate) fn expect_extents(&mut self, bytes: u64) {
        self.pacer.expect_extents(bytes);
    }

    /// Bytes freed so far.
    pub(crate) fn freed_bytes(&self) -> u64 {
        self.freed
    }

    /// So many bytes were freed, of them `exempt` for which no discard comes.
    pub(crate) fn freed(&mut self, bytes: u64, exempt: u64) {
        self.freed += bytes;
        self.exempt += exempt;
        self.settled &= bytes == 0;
        if self.gives_space && bytes > 0 {
            self.pacer.commit_to_goal();
        }
    }

    /// Of what was freed, so much more turned out to be exempt.
    pub(crate) fn exempt(&mut self, bytes: u64) {
        self.exempt += bytes;
    }

    /// Discards since the beginning, as they were last read.
    pub(crate) fn discards(&self) -> Discards {
        match &self.unseen {
            Some(unseen) => unseen.last(),
            None => self.leaves.discards(),
        }
    }

    /// Reads what the devices did in a call that took so long and sent all its
    /// discards within: those in flight beside each other took no longer than it.
    pub(crate) fn read_within(&mut self, took: Duration) -> Result<Discards, ReclaimError> {
        self.leaves.read_within(took).map_err(counters_failed)?;
        Ok(self.leaves.discards())
    }

    /// Waits until the discards are done that were sent and not waited for. Whether they are:
    /// beside others who write all the time that can't be told.
    pub(crate) fn settle(&mut self, watch: &mut dyn Watch) -> Result<bool, ReclaimError> {
        let usual = self.pacer.state().service_s.unwrap_or(UNKNOWN) * 8.0;
        let silent = SILENT.max(Duration::from_secs_f64(usual.clamp(0.0, 2.0)));
        let mut before = self.leaves.discards().commands;
        let began = Instant::now();
        let mut changed = began;
        let mut quiet = 0;
        // Others may write all the time: then that none was done for long must do.
        while quiet < 2 && changed.elapsed() < silent && began.elapsed() < LONGEST_LAST {
            self.pause(SETTLE, watch)?;
            self.leaves.read().map_err(counters_failed)?;
            let now = self.leaves.discards().commands;
            if now != before {
                (before, changed) = (now, Instant::now());
            }
            quiet = match self.leaves.writes_in_flight() {
                Some(0) => quiet + 1,
                _ => 0,
            };
        }
        Ok(quiet >= 2)
    }

    /// Waits until something may be freed. `left`: bytes still to be freed.
    pub(crate) fn grant(
        &mut self,
        left: u64,
        watch: &mut dyn Watch,
    ) -> Result<Advice, ReclaimError> {
        self.warm_up(watch)?;
        loop {
            let advice = self.ask(left.max(1))?;
            self.tell(watch, false)?;
            if advice.why == Why::Refused {
                return Err(match self.pacer.refusal() {
                    Some(refusal) => ReclaimError::Refused(*refusal),
                    None => ReclaimError::Interrupted,
                });
            }
            if advice.commit {
                self.force(watch)?;
            } else if advice.allow > 0 {
                self.note(&advice);
                return Ok(advice);
            } else if !self.commit_if_due(watch)? {
                self.pause(self.until_commit(advice.ask_again), watch)?;
            }
        }
    }

    /// Watches the others before anything is freed.
    fn warm_up(&mut self, watch: &mut dyn Watch) -> Result<(), ReclaimError> {
        if self.waits.has_begun() {
            return Ok(());
        }
        let is_alone = |account: &Account| account.reads_before() < SOMEBODY;
        loop {
            let elapsed = self.since.elapsed();
            let alone = self.account.as_ref().is_none_or(is_alone);
            if elapsed >= BASELINE || elapsed >= WARM_UP && alone {
                self.waits.begin();
                return Ok(());
            }
            self.pause(WARM_UP / 6, watch)?;
            self.observe()?;
        }
    }

    /// Waits until the debt is paid or written off, and says what others felt.
    pub(crate) fn finish(mut self, watch: &mut dyn Watch) -> Result<Felt, ReclaimError> {
        self.pay(watch)?;
        self.tell(watch, true)?;
        Ok(self.end())
    }

    /// Waits until the debt is paid or written off.
    pub(crate) fn pay(&mut self, watch: &mut dyn Watch) -> Result<(), ReclaimError> {
        loop {
            let advice = self.ask(0)?;
            self.tell(watch, false)?;
            match advice.why {
                Why::Done | Why::Refused => return Ok(()),
                _ if advice.commit => self.force(watch)?,
                _ if self.commit_if_due(watch)? => {}
                _ => self.pause(self.until_commit(advice.ask_again), watch)?,
            }
        }
    }

    /// Waits until no more discards come, where more were counted than was freed: those
    /// of free space beside it, or others', may have come before some of its own.
    pub(crate) fn last_discards(&mut self, watch: &mut dyn Watch) -> Result<(), ReclaimError> {
        let began = Instant::now();
        let mut before = self.leaves.discards();
        let mut changed = began;
        // One that is under way is counted when it is done.
        let usual = self.pacer.state().service_s.unwrap_or(0.0) * 4.0;
        let silent = SILENT.max(Duration::from_secs_f64(usual.clamp(0.0, 1.0)));
        while self.paced
            && before.bytes > self.freed.saturating_sub(self.exempt)
            && changed.elapsed() < silent
            && began.elapsed() < LONGEST_LAST
        {
            self.pause(SETTLE * 8, watch)?;
            self.leaves.read().map_err(counters_failed)?;
            let now = self.leaves.discards();
            if now.commands != before.commands {
                (before, changed) = (now, Instant::now());
            }
        }
        Ok(())
    }

    /// Ends it as it is, and says what others felt.
    pub(crate) fn end(mut self) -> Felt {
        let state = self.pacer.state();
        let discards = self.discards();
        let elapsed = self.since.elapsed();
        let goals = match (&self.account, &self.goal) {
            (Some(account), Some(goal)) => account.judge(goal, elapsed),
            _ => Vec::new(),
        };
        Felt {
            elapsed,
            freed: self.freed,
            exempt: self.exempt,
            discarded: discards.bytes,
            discards: discards.commands,
            again: state.again,
            written_off: state.written_off,
            answered: state.answered,
            counted: self.unseen.is_none(),
            charged: state
                .charged_s
                .map(|lost| Duration::from_secs_f64(lost.clamp(0.0, 1e15))),
            rest: Duration::from_secs_f64(state.rest_s.clamp(0.0, 1e15)),
            observed: self.account.as_ref().map(Account::observed),
            goals,
            decisions: std::mem::take(&mut self.decisions),
            absences: self.absences.take(),
        }
    }

    /// Makes a call that can block, and tells whoever watches meanwhile.
    pub(crate) fn call(
        &mut self,
        watch: &mut dyn Watch,
        job: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<io::Result<()>, ReclaimError> {
        self.tell(watch, false)?;
        let progress = self.progress();
        let told = &mut self.told;
        let ended = self.worker.call(job, TELL, || {
            *told = Instant::now();
            tick(watch, &progress)
        });
        if let Some(unseen) = &mut self.unseen {
            unseen.called();
        }
        ended
    }

    /// Shows the pacer what goes on, and asks for nothing.
    fn observe(&mut self) -> Result<(), ReclaimError> {
        self.ask(0).map(drop)
    }

    fn ask(&mut self, left: u64) -> Result<Advice, ReclaimError> {
        self.leaves.read().map_err(counters_failed)?;
        self.look_at_space();
        let now = self.now();
        let absent = self.absences.spoil_this_look();
        let (canary, own) = match &mut self.canary {
            Some(canary) if absent => (&[][..], canary.leave_out(now)),
            Some(canary) => canary.hear(now, &mut self.waits),
            None => (&[][..], Own::default()),
        };
        let (discards, others) = match &mut self.unseen {
            Some(unseen) => {
                let due = self.freed.saturating_sub(self.exempt);
                (unseen.discards(due), unseen.others(own))
            }
            None => {
                let others = self.paced.then(|| self.leaves.others(own));
                (self.leaves.discards(), others)
            }
        };
        let feedback = Feedback {
            now,
            freed: self.freed,
            exempt: self.exempt,
            left: Some(left),
            settled: self.settled,
            commits: self.commits,
            discards,
            flushes: self.leaves.flushes(),
            canary,
            others,
            space: self.space,
            deleters_beside: self.leaves.deleters_beside(),
            absent,
        };
        let advice = self.pacer.advise(&feedback);
        if let Some(account) = &mut self.account {
            account.take_in(&feedback, self.pacer.state().idle);
        }
        self.others = feedback.others;
        self.urgent |= advice.why == Why::Urgent;
        Ok(advice)
    }

    /// How long this process has been away so far, in seconds.
    pub(crate) fn away_s(&mut self) -> f64 {
        self.absences.seconds()
    }

    /// Keeps a decision and what was seen when it was made.
    fn note(&mut self, advice: &Advice) {
        let sight = Sight {
            at_s: self.since.elapsed().as_secs_f64(),
            freed: self.freed,
            discards: self.discards(),
            flushes: self.leaves.flushes(),
            others: self.others,
        };
        self.decisions.add(advice, &self.pacer.state(), &sight);
    }

    fn look_at_space(&mut self) {
        if !self.gives_space || self.space_at.is_some_and(|at| at.elapsed() < SPACE_EVERY) {
            return;
        }
        self.space_at = Some(Instant::now());
        self.space = rustix::fs::fstatvfs(&self.on).ok().map(|stat| Space {
            free: stat.f_bavail.saturating_mul(stat.f_frsize),
            size: stat.f_blocks.saturating_mul(stat.f_frsize),
        });
    }

    pub(crate) fn pause(
        &mut self,
        length: Duration,
        watch: &mut dyn Watch,
    ) -> Result<(), ReclaimError> {
        let until = Instant::now() + length.max(SHORTEST_PAUSE);
        loop {
            self.tell(watch, false)?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(TELL));
        }
    }

    /// Tells whoever watches, if it is time.
    pub(crate) fn tell(&mut self, watch: &mut dyn Watch, now: bool) -> Result<(), ReclaimError> {
        if !now && self.told.elapsed() < TELL {
            return Ok(());
        }
        self.told = Instant::now();
        tick(watch, &self.progress())
    }

    fn progress(&self) -> Progress {
        Progress {
            total_bytes: self.total,
            freed_bytes: self.freed,
            debt_bytes: self.pacer.state().debt,
            added_latency: self.canary.as_ref().map(|_| self.waits.added_lately()),
            urgent: self.urgent,
            ..Progress::default()
        }
    }

    fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.since.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// What failed, on this file system.
    pub(crate) fn failed(&self, action: &'static str, source: io::Error) -> ReclaimError {
        ReclaimError::Io {
            action,
            path: shown(&self.on),
            source,
        }
    }
}

impl Drop for Engine {
    /// Whatever ended it, the canary keeps no file of the file system open.
    fn drop(&mut self) {
        if let Some(canary) = self.canary.take() {
            canary.end();
        }
    }
}

fn tick(watch: &mut dyn Watch, progress: &Progress) -> Result<(), ReclaimError> {
    match watch.tick(progress) {
        std::ops::ControlFlow::Continue(()) => Ok(()),
        std::ops::ControlFlow::Break(()) => Err(ReclaimError::Interrupted),
    }
}

fn counters_failed(error: linux::stats::StatsError) -> ReclaimError {
    ReclaimError::Io {
        action: "see what is discarded below",
        path: PathBuf::from("/sys/class/block"),
        source: io::Error::other(error),
    }
}

/// The path of what is open, for a message alone.
pub(crate) fn shown(open: impl AsFd) -> PathBuf {
    let link = format!("/proc/self/fd/{}", open.as_fd().as_raw_fd());
    std::fs::read_link(&link).unwrap_or_else(|_| PathBuf::from(link))
}

#[cfg(test)]
mod tests;
