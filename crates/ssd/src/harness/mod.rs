//! Readers and discards beside one or more drives, in virtual time.
//!
//! The smallest experiment that shows a stall: a closed or an open loop of 4-KiB
//! reads, and for each drive somebody who issues discards, one in flight. What
//! decides when the next discard goes out is a [`DiscardSource`]; it sees the
//! reads that have completed, so that a controller can be tried on every
//! profile in seconds.

mod outcome;
mod source;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::time::Duration;

pub use outcome::{Interval, Outcome, Sample, Stall};
pub use source::{DiscardSource, Next, Pace, Pieces, Seen};

use crate::drive::{Command, Completion, Drive, Id, Refused};
use crate::rng::Rng;
use crate::time::Time;

/// The size of every read, in bytes.
pub const READ_BYTES: u64 = 4096;

/// The shortest time there is.
const INSTANT: Duration = Duration::from_nanos(1);

/// The foreground: 4-KiB reads, uniformly random over the drives.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Readers {
    /// Nobody reads.
    None,
    /// Each of `depth` reads is issued again when it has completed. One thread
    /// does so for all of them and needs `per_io` for each: after a discard,
    /// when all complete at once, they queue for it.
    Closed {
        /// Reads in flight.
        depth: u32,
        /// The host's time for each.
        per_io: Duration,
    },
    /// Reads at random times (a Poisson process) that don't depend on how the
    /// others go.
    Open {
        /// Mean rate; nobody reads if it isn't above 0.
        per_s: f64,
    },
}

/// An experiment in virtual time.
///
/// ```
/// use std::time::Duration;
/// use ssd::harness::{Harness, Pace, Pieces, Readers};
/// use ssd::{Drive, Time, profiles};
///
/// let card = profiles::by_name("crucial-t500-2tb").unwrap();
/// let mut drive = Drive::new(card.figures().clone(), 1 << 41, 1);
/// drive.premap(0..1 << 40);
/// let readers = Readers::Closed { depth: 8, per_io: Duration::from_micros(10) };
/// let discards = Pieces::new(0..64 << 30, 128 << 20, Pace::Gap(Duration::ZERO));
/// let outcome = Harness::new(readers, 1)
///     .drive(drive, discards.from(Time::from_secs_f64(0.5)))
///     .run(Duration::from_secs(2))
///     .unwrap();
/// let per_discard = outcome.reads_while_discarding() as f64 / outcome.discards.len() as f64;
/// assert!((7.9..8.1).contains(&per_discard));
/// ```
#[derive(Debug)]
pub struct Harness<'s> {
    readers: Readers,
    rng: Rng,
    drives: Vec<Member<'s>>,
    /// What the host will do, and when.
    agenda: BinaryHeap<Reverse<(Time, u64, Act)>>,
    acts: u64,
    /// Until then the readers' thread is busy.
    host_busy_until: Time,
    outcome: Outcome,
}

/// A drive, and who discards on it.
struct Member<'s> {
    drive: Drive,
    source: Box<dyn DiscardSource + 's>,
    /// When each read in flight was meant to start.
    intended: HashMap<Id, Time>,
    last_discard: Option<Sample>,
    /// Of the outcome's reads, those that the source has seen.
    seen: usize,
}

impl std::fmt::Debug for Member<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Member")
            .field("drive", &self.drive)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    /// Issue a read.
    Read,
    /// Ask a drive's source what to discard.
    Ask(usize),
}

impl<'s> Harness<'s> {
    /// An experiment without drives yet; the seed decides where and (in an open
    /// loop) when reads go.
    pub fn new(readers: Readers, seed: u64) -> Harness<'s> {
        Harness {
            readers,
            rng: Rng::new(seed),
            drives: Vec::new(),
            agenda: BinaryHeap::new(),
            acts: 0,
            host_busy_until: Time::ZERO,
            outcome: Outcome::default(),
        }
    }

    /// Adds a drive, and who discards on it. With several, each read goes to a
    /// random one, as on a RAID 0.
    #[must_use]
    pub fn drive(mut self, drive: Drive, source: impl DiscardSource + 's) -> Harness<'s> {
        self.drives.push(Member {
            drive,
            source: Box::new(source),
            intended: HashMap::new(),
            last_discard: None,
            seen: 0,
        });
        self
    }

    /// Runs for so long; what is in flight at the end is left out.
    ///
    /// # Errors
    /// If a source issues a discard that its drive refuses.
    pub fn run(mut self, length: Duration) -> Result<Outcome, Refused> {
        let end = Time::ZERO + length;
        for member in 0..self.drives.len() {
            self.plan(Time::ZERO, Act::Ask(member));
        }
        self.first_reads();
        let mut completed = Vec::new();
        while let Some(now) = self.next_time().filter(|&now| now <= end) {
            for member in 0..self.drives.len() {
                self.drives[member].drive.advance(now, &mut completed);
                for completion in completed.drain(..) {
                    self.completed(member, &completion);
                }
            }
            while let Some(&Reverse((at, _, act))) = self.agenda.peek()
                && at <= now
            {
                self.agenda.pop();
                match act {
                    Act::Read => self.read(now)?,
                    Act::Ask(member) => self.ask(now, member)?,
                }
            }
        }
        self.outcome.length = length;
        self.outcome.drives = self.drives.into_iter().map(|m| m.drive).collect();
        Ok(self.outcome)
    }

    fn next_time(&self) -> Option<Time> {
        let drives = self.drives.iter().filter_map(|m| m.drive.next_event());
        let host = self.agenda.peek().map(|Reverse((at, _, _))| *at);
        drives.chain(host).min()
    }

    fn plan(&mut self, at: Time, act: Act) {
        self.acts += 1;
        self.agenda.push(Reverse((at, self.acts, act)));
    }

    fn first_reads(&mut self) {
        match self.readers {
            Readers::None => {}
            Readers::Closed { depth, .. } => (0..depth).for_each(|_| self.read_again(Time::ZERO)),
            Readers::Open { .. } => self.next_arrival(Time::ZERO),
        }
    }

    /// In a closed loop: the next read, when the host's thread comes to it.
    fn read_again(&mut self, now: Time) {
        if let Readers::Closed { per_io, .. } = self.readers {
            self.host_busy_until = self.host_busy_until.max(now) + per_io;
            self.plan(self.host_busy_until, Act::Read);
        }
    }

    /// In an open loop: the next read, whatever becomes of this one.
    fn next_arrival(&mut self, now: Time) {
        if let Readers::Open { per_s } = self.readers
            && per_s > 0.0
        {
            let gap = Duration::from_nanos((self.rng.exponential() * 1e9 / per_s).round() as u64);
            self.plan(now + gap, Act::Read);
        }
    }

    fn read(&mut self, now: Time) -> Result<(), Refused> {
        self.next_arrival(now);
        let which = self.rng.below(self.drives.len() as u64) as usize;
        let blocks = |member: &Member<'_>| member.drive.capacity() / READ_BYTES;
        let block = self.drives.get(which).map_or(0, blocks);
        let start = self.rng.below(block) * READ_BYTES;
        if let Some(member) = self.drives.get_mut(which) {
            let read = Command::Read(start..start + READ_BYTES);
            let id = member.drive.submit(now, read)?;
            member.intended.insert(id, now);
        }
        Ok(())
    }

    fn ask(&mut self, now: Time, index: usize) -> Result<(), Refused> {
        let member = &mut self.drives[index];
        let seen = Seen {
            last_discard: member.last_discard.as_ref(),
            reads: &self.outcome.reads[member.seen..],
        };
        let next = member.source.next(now, &seen);
        member.seen = self.outcome.reads.len();
        match next {
            Next::Discard(ranges) => {
                member.drive.submit(now, Command::Discard(ranges))?;
            }
            // Asking again at once would never let time pass.
            Next::At(time) => self.plan(time.max(now + INSTANT), Act::Ask(index)),
            Next::Done => {}
        }
        Ok(())
    }

    fn completed(&mut self, index: usize, completion: &Completion) {
        let member = &mut self.drives[index];
        match &completion.command {
            Command::Discard(ranges) => {
                let sample = Sample {
                    drive: index,
                    intended: completion.submitted,
                    completed: completion.completed,
                    bytes: length(ranges),
                };
                member.last_discard = Some(sample);
                self.outcome.discards.push(sample);
                self.plan(after(&sample), Act::Ask(index));
            }
            Command::Read(_) => {
                let intended = member.intended.remove(&completion.id);
                let sample = Sample {
                    drive: index,
                    intended: intended.unwrap_or(completion.submitted),
                    completed: completion.completed,
                    bytes: READ_BYTES,
                };
                self.outcome.reads.push(sample);
                self.read_again(after(&sample));
            }
            Command::Write(_) | Command::Flush => {}
        }
    }
}

/// When the host can go on: at its completion, but not in the instant at which
/// it was issued, or time would never pass beside a drive that takes none.
fn after(sample: &Sample) -> Time {
    sample.completed.max(sample.intended + INSTANT)
}

fn length(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|r| r.end - r.start).sum()
}
