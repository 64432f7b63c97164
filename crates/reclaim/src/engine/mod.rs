//! What freeing a file and trimming a file system have in common: a pacer, fed
//! with what the devices have done and what others wait.
//!
//! What the devices have discarded is read from the leaves' statistics (a partition's
//! where the file system lies on one), and what others read and write from those of
//! their drives. Our own canary's reads are taken out of that.

mod canary;
mod counters;
mod felt;
mod options;
mod worker;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linux::SysRoot;
use pace::{Advice, Discards, Feedback, Pacer, Policy, Space, State, Why, Work};
use ssd::{Card, Time};

pub use felt::{CanaryFelt, Felt};
pub use options::{CanaryFile, FreerOptions};

pub(crate) use canary::nameless;

use crate::error::ReclaimError;
use crate::watch::{Progress, Watch};
use canary::Canary;
use counters::{Leaves, Own};
use felt::Waits;
use worker::Worker;

/// So long the others are watched before anything is freed.
const WARM_UP: Duration = Duration::from_millis(60);

/// Whoever watches is told at least this often.
const TELL: Duration = Duration::from_millis(50);

/// How often it is asked how full the file system is.
const SPACE_EVERY: Duration = Duration::from_millis(250);

/// A debt that unlinks made and nothing has paid for so long is worth another
/// commit; then for twice as long, and so on.
const FIRST_AGAIN: Duration = Duration::from_millis(10);

/// The longest.
const LAST_AGAIN: Duration = Duration::from_millis(500);

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
    /// Names of the devices whose statistics count.
    pub(crate) leaves: &'a [String],
    /// How many bytes are discarded, over all leaves, for each byte freed.
    pub(crate) copies: f64,
    /// All that will be freed, as the file system and its devices shape it.
    pub(crate) work: &'a Work,
    /// How it is paced.
    pub(crate) policy: Policy,
    /// Whether a commit of the whole file system returns when its discards are done.
    pub(crate) settles: bool,
    /// Whether the file system has more space for it: then what little it has hurries it.
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
    leaves: Leaves,
    canary: Option<Canary>,
    worker: Worker,
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

/// A commit that is made again until the debt is paid.
#[derive(Debug)]
struct Again {
    anchor: Arc<File>,
    wait: Duration,
    at: Instant,
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
        let names: &[String] = if setup.paced { setup.leaves } else { &[] };
        let leaves =
            Leaves::open(&SysRoot::host(), names, setup.copies).map_err(counters_failed)?;
        let mut notes = Vec::new();
        let mut made = None;
        let mut canary = None;
        if setup.paced && matches!(setup.policy, Policy::Adaptive(_)) {
            let group = setup.options.canary_group.as_ref();
            let started = match &setup.options.canary {
                CanaryFile::Without => None,
                CanaryFile::Given(file) => Some(Canary::start(Arc::clone(file), group)),
                CanaryFile::Made => Some(canary::make(setup.on).and_then(|file| {
                    let file = Arc::new(file);
                    made = Some(Arc::clone(&file));
                    Canary::start(file, group)
                })),
            };
            match started.transpose() {
                Ok(started) => canary = started,
                Err(error) => notes.push(format!(
                    "there is no canary ({error}): what others wait is told by the devices' statistics alone"
                )),
            }
        }
        let on = setup.on.try_clone_to_owned();
        let mut engine = Engine {
            on: on.map_err(failed("keep open the directory"))?,
            paced: setup.paced,
            total: setup.work.bytes,
            pacer,
            leaves,
            canary,
            worker: Worker::start().map_err(failed("start a thread for"))?,
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
    }

    /// Of what was freed, so much more turned out to be exempt.
    pub(crate) fn exempt(&mut self, bytes: u64) {
        self.exempt += bytes;
    }

    /// Discards since the beginning, as they were last read.
    pub(crate) fn discards(&self) -> Discards {
        self.leaves.discards()
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
        if !self.waits.has_begun() {
            while self.since.elapsed() < WARM_UP {
                self.pause(WARM_UP / 6, watch)?;
                self.observe()?;
            }
            self.waits.begin();
        }
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
                return Ok(advice);
            } else if !self.commit_if_due(watch)? {
                self.pause(advice.ask_again, watch)?;
            }
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
                _ => self.pause(advice.ask_again, watch)?,
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
        let discards = self.leaves.discards();
        let felt = Felt {
            elapsed: self.since.elapsed(),
            freed: self.freed,
            exempt: self.exempt,
            discarded: discards.bytes,
            discards: discards.commands,
            again: state.again,
            written_off: state.written_off,
            answered: state.answered,
            lost: Duration::from_secs_f64(state.lost_s.clamp(0.0, 1e15)),
            rest: Duration::from_secs_f64(state.rest_s.clamp(0.0, 1e15)),
            canary: self.waits.felt(),
        };
        if let Some(canary) = self.canary.take() {
            canary.end();
        }
        felt
    }

    /// A commit that the pacer asked for.
    fn force(&mut self, watch: &mut dyn Watch) -> Result<(), ReclaimError> {
        self.commits += 1;
        self.sync(watch)
    }

    /// Commits the journal by a file of ours: what came before it goes along, and
    /// no data of a file that is about to go are written.
    pub(crate) fn commit(
        &mut self,
        anchor: &Arc<File>,
        watch: &mut dyn Watch,
    ) -> Result<(), ReclaimError> {
        let anchor = Arc::clone(anchor);
        let job = move || {
            touch(&anchor)?;
            anchor.sync_all()
        };
        self.call(watch, job)?
            .map_err(|source| self.failed("commit the file system of", source))
    }

    /// From now on the journal is committed again and again until the debt is paid:
    /// what was unlinked is freed in the background, after the commit that followed.
    pub(crate) fn commit_again(&mut self, anchor: &Arc<File>) {
        self.again = Some(Again {
            anchor: Arc::clone(anchor),
            wait: FIRST_AGAIN,
            at: Instant::now() + FIRST_AGAIN,
        });
    }

    fn commit_if_due(&mut self, watch: &mut dyn Watch) -> Result<bool, ReclaimError> {
        let Some(again) = &mut self.again else {
            return Ok(false);
        };
        if self.pacer.state().debt == 0 {
            self.again = None;
            return Ok(false);
        }
        let now = Instant::now();
        if now < again.at {
            return Ok(false);
        }
        again.wait = (again.wait * 2).min(LAST_AGAIN);
        again.at = now + again.wait;
        let anchor = Arc::clone(&again.anchor);
        self.commit(&anchor, watch)?;
        Ok(true)
    }

    /// Commits the whole file system, and what its cleaner thread has to do comes with the
    /// next such commit, not half a minute later.
    pub(crate) fn sync(&mut self, watch: &mut dyn Watch) -> Result<(), ReclaimError> {
        let clone = self.on.try_clone();
        let on = clone.map_err(|source| self.failed("sync the file system of", source))?;
        self.call(watch, move || match linux::btrfs::sync_and_clean(&on) {
            Ok(()) => Ok(()),
            // No btrfs, as a rule; and what else is wrong this tells again.
            Err(_) => rustix::fs::syncfs(&on).map_err(io::Error::from),
        })?
        .map_err(|source| self.failed("sync the file system of", source))?;
        self.settled = self.settles;
        Ok(())
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
        self.worker.call(job, TELL, || {
            *told = Instant::now();
            tick(watch, &progress)
        })
    }

    /// Shows the pacer what goes on, and asks for nothing.
    fn observe(&mut self) -> Result<(), ReclaimError> {
        self.ask(0).map(drop)
    }

    fn ask(&mut self, left: u64) -> Result<Advice, ReclaimError> {
        self.leaves.read().map_err(counters_failed)?;
        self.look_at_space();
        let now = self.now();
        let (canary, own) = match &mut self.canary {
            Some(canary) => {
                let (reads, own) = canary.hear(now, &mut self.waits);
                (reads, own)
            }
            None => (&[][..], Own::default()),
        };
        let feedback = Feedback {
            now,
            freed: self.freed,
            exempt: self.exempt,
            left: Some(left),
            settled: self.settled,
            commits: self.commits,
            discards: self.leaves.discards(),
            flushes: self.leaves.flushes(),
            canary,
            others: self.paced.then(|| self.leaves.others(own)),
            space: self.space,
        };
        let advice = self.pacer.advise(&feedback);
        self.urgent |= advice.why == Why::Urgent;
        Ok(advice)
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

fn tick(watch: &mut dyn Watch, progress: &Progress) -> Result<(), ReclaimError> {
    match watch.tick(progress) {
        std::ops::ControlFlow::Continue(()) => Ok(()),
        std::ops::ControlFlow::Break(()) => Err(ReclaimError::Interrupted),
    }
}

/// Changes a file's times, so that the running transaction has something of it.
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
