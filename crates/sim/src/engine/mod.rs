//! A run in virtual time: events in order, until the workload is done.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use ssd::flash::Flash;
use ssd::{Refused, Rng, Time};

use crate::outcome::Outcome;
use crate::policy::{Nature, Policy};
use crate::recorder::{FreeSpace, Recorder};
use crate::setup::Setup;
use crate::stack::{Done, Limits, Owner, Stack};
use crate::volume::{NoSpace, Volume};
use crate::workload::Workload;

mod actors;
mod job;
mod policy_calls;

pub(crate) use actors::Actor;
use job::Job;
use policy_calls::Commits;

/// Why a run could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The files don't fit on the volume.
    #[error(
        "the files of the workload don't fit on a volume of {}: give a larger `volume`, or a smaller \
         `size` or `fill`",
        record::units::bytes(*volume)
    )]
    TooSmall {
        /// The volume's size in bytes.
        volume: u64,
    },
    /// The drive refused a command: a defect of the policy.
    #[error("the drive refused a command of the policy: {0}")]
    Refused(#[from] Refused),
    /// A policy would have discarded data: a defect of the policy.
    #[error("the policy would have discarded bytes {start} to {end}, which a file uses")]
    LiveData {
        /// First byte of the range.
        start: u64,
        /// The byte after the last.
        end: u64,
    },
    /// A run with nothing to end it, or one that would record too much.
    #[error("{0}")]
    TooLong(String),
}

/// An act of the host, which has a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    /// An actor's next I/O.
    Issue(u16),
    /// A discard that a policy ordered goes to the drive.
    Send(u32),
    /// A policy wakes.
    Wake,
    /// The workload goes on.
    Job,
    /// The file system's timer.
    CommitTimer,
    /// A commit's own time is over.
    Committed,
    /// A row of the record.
    Tick,
}

/// A run in the making.
struct Run<'s> {
    setup: &'s Setup,
    now: Time,
    stack: Stack,
    limits: Option<Limits>,
    volume: Volume,
    flash: Option<Flash>,
    policy: Box<dyn Policy>,
    nature: Nature,
    actors: Vec<Actor>,
    /// The number of the canary, if there is one.
    canary: Option<u16>,
    /// Whether it reads, and whether its next read is planned.
    canary_reads: bool,
    canary_is_planned: bool,
    seen: SeenSoFar,
    commits: Commits,
    job: Job,
    rng: Rng,
    agenda: BinaryHeap<Reverse<(Time, u64, Act)>>,
    acts: u64,
    /// Discards that were ordered and are not sent, by number.
    to_send: VecDeque<(u64, Vec<Range<u64>>)>,
    sent: u32,
    kernel_busy_until: Time,
    /// Discards in flight, by tag.
    in_flight: Vec<(u64, Vec<Range<u64>>)>,
    recorder: Recorder,
    tally: Tally,
    /// Bytes that are free and can't be allocated before they are discarded.
    held: u64,
    events: u64,
    ended: bool,
}

/// Counters for the policy.
#[derive(Debug, Default)]
struct SeenSoFar {
    reads: crate::stack::Count,
    ordered_commits: u64,
    last_foreground: Time,
    canary: Vec<pace::Canary>,
}

/// Counters beside the record.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) commands: u64,
    pub(crate) ranges: u64,
    pub(crate) discarded_bytes: u64,
    pub(crate) first_removal: Option<Time>,
    pub(crate) last_call: Option<Time>,
    pub(crate) last_discard: Option<Time>,
    pub(crate) removed_bytes: u64,
    pub(crate) removed_files: u64,
    /// Most bytes that were free and could not be allocated.
    pub(crate) held_max: u64,
    /// Allocations that had to wait for a discard, and how long in all.
    pub(crate) waits: u64,
    pub(crate) waited: Duration,
    pub(crate) is_full: bool,
    pub(crate) gave_up: bool,
    pub(crate) cancelled: u64,
}

/// Runs a setup to its end.
///
/// # Errors
/// If its files don't fit, or a policy asks for what must not be.
pub fn run(setup: &Setup) -> Result<Outcome, SimError> {
    Run::new(setup)?.go()
}

impl<'s> Run<'s> {
    fn new(setup: &'s Setup) -> Result<Run<'s>, SimError> {
        let bytes = setup.volume_bytes();
        let mut rng = Rng::new(setup.seed);
        let mut volume = Volume::new(setup.allocator(), bytes);
        let mut workload = setup.workload.build();
        let too_small = |_: NoSpace| SimError::TooSmall { volume: bytes };
        prepare(setup, &mut volume, workload.as_mut(), &mut rng).map_err(too_small)?;
        let mut stack = Stack::new(&setup.drives.cards, bytes, setup.drives.chunk, setup.seed);
        for range in volume.live_ranges() {
            stack.premap(&range);
        }
        let limits = stack.limits();
        let policy_limits = limits.unwrap_or(policy_calls::NO_LIMITS);
        let policy = setup.policy.build(&setup.parameters, bytes, policy_limits);
        let nature = policy.nature();
        let mut actors = actors::all(setup, &mut volume, nature).map_err(too_small)?;
        let flash = setup.flash.map(|geometry| {
            let mut flash = Flash::new(geometry, bytes);
            volume.live_ranges().for_each(|range| flash.write(&range));
            flash
        });
        let canary = actors.iter().position(Actor::is_canary);
        let recorder = Recorder::new(
            setup,
            &actors::infos(actors::foreground(&mut actors)),
            &stack,
        )?;
        Ok(Run {
            setup,
            now: Time::ZERO,
            limits,
            stack,
            volume,
            flash,
            policy,
            nature,
            actors,
            canary: canary.map(|at| at as u16),
            canary_reads: false,
            canary_is_planned: false,
            seen: SeenSoFar::default(),
            commits: Commits::default(),
            job: Job::new(workload),
            rng,
            agenda: BinaryHeap::new(),
            acts: 0,
            to_send: VecDeque::new(),
            sent: 0,
            kernel_busy_until: Time::ZERO,
            in_flight: Vec::new(),
            recorder,
            tally: Tally::default(),
            held: 0,
            events: 0,
            ended: false,
        })
    }

    fn go(mut self) -> Result<Outcome, SimError> {
        self.plan(Time::ZERO, Act::Job);
        self.plan(Time::ZERO + self.setup.interval, Act::Tick);
        self.start_actors();
        let mut done: Vec<Done> = Vec::new();
        while !self.ended {
            let drive = self.stack.next_event();
            let host = self.agenda.peek().map(|Reverse((at, _, _))| *at);
            let Some(next) = drive.into_iter().chain(host).min() else {
                break;
            };
            self.now = next;
            if drive.is_some_and(|at| at <= next) {
                self.stack.advance(next, &mut done)?;
                for done in done.drain(..) {
                    self.events += 1;
                    self.done(&done)?;
                }
            }
            while let Some(&Reverse((at, _, act))) = self.agenda.peek()
                && at <= next
            {
                self.agenda.pop();
                self.events += 1;
                self.act(act)?;
            }
            // All that is over at this moment counts to what was before.
            self.recorder
                .recover(self.now, &self.stack, actors::foreground(&mut self.actors));
        }
        self.finish()
    }

    fn plan(&mut self, at: Time, act: Act) {
        self.acts += 1;
        self.agenda.push(Reverse((at, self.acts, act)));
    }

    fn act(&mut self, act: Act) -> Result<(), SimError> {
        match act {
            Act::Issue(actor) => self.issue(actor),
            Act::Send(number) => self.send_discard(number),
            Act::Wake => self.with_policy(|policy, desk| policy.woken(desk)),
            Act::Job => self.job_goes_on(),
            Act::CommitTimer => self.commit_timer(),
            Act::Committed => self.committed(),
            Act::Tick => self.tick(),
        }
    }

    fn done(&mut self, done: &Done) -> Result<(), SimError> {
        match done.owner {
            Owner::Actor(actor) => self.actor_done(actor, done),
            Owner::Job => self.job_io_done(),
            Owner::Commit => self.commit_flushed(),
            Owner::Policy(tag) => self.discard_done(tag, done.completed),
        }
    }

    fn tick(&mut self) -> Result<(), SimError> {
        let mapped = self.stack.mapped();
        let free = FreeSpace {
            at_s: self.now.as_secs_f64(),
            known_bytes: self.volume.bytes().saturating_sub(mapped),
            debt_bytes: mapped.saturating_sub(self.volume.live_bytes()),
        };
        self.recorder.interval(
            self.now,
            actors::foreground(&mut self.actors),
            &self.stack,
            free,
        );
        let next = self.now + self.setup.interval;
        self.plan(next, Act::Tick);
        Ok(())
    }

    fn finish(mut self) -> Result<Outcome, SimError> {
        self.tally.cancelled = self.policy.cancelled_bytes();
        let record = self.recorder.finish(
            self.now,
            actors::foreground(&mut self.actors),
            &self.stack,
            &self.tally,
        );
        Ok(Outcome::new(
            self.setup,
            record,
            &self.tally,
            self.flash.as_ref(),
            self.events,
        ))
    }
}

/// Lays out the workload's files, and others beside them.
fn prepare(
    setup: &Setup,
    volume: &mut Volume,
    workload: &mut dyn Workload,
    rng: &mut Rng,
) -> Result<(), NoSpace> {
    workload.prepare(setup, volume, rng)?;
    let fill = (volume.bytes() as f64 * setup.fill) as u64 / 4096 * 4096;
    if fill > 0 {
        let file = volume.create();
        volume.grow(file, fill)?;
    }
    Ok(())
}
