//! Readers and discards beside one or more drives, in virtual time.
//!
//! The smallest experiment that shows a stall: a closed or an open loop of 4-KiB reads, and for
//! each drive an issuer of discards, one in flight. A [`DiscardSource`] decides when the next
//! discard starts. It sees the reads that have completed, so that a controller can be tried on
//! every profile in seconds. For such trials the readers may come and go, a canary reads beside
//! them, several may discard on one drive, and a drive may change.

mod outcome;
mod source;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::time::Duration;

pub use outcome::{Interval, Outcome, Sample, Stall};
pub use source::{Counters, DiscardSource, Next, Pace, Pieces, Seen};

use ssd::Rng;
use ssd::Time;
use ssd::card::Figures;
use ssd::drive::{Command, Completion, Drive, Id, Refused};

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
/// use testkit::harness::{Harness, Pace, Pieces, Readers};
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
    drives: Vec<Member>,
    issuers: Vec<Issuer<'s>>,
    /// When the readers read; always, if empty.
    reading: Vec<Range<Time>>,
    /// The time between two of the canary's reads.
    canary: Option<Duration>,
    /// Later figures of the drives.
    changes: Vec<(usize, Figures)>,
    /// The host's next acts, with their times.
    agenda: BinaryHeap<Reverse<(Time, u64, Act)>>,
    acts: u64,
    /// Until then the readers' thread is busy.
    host_busy_until: Time,
    /// How long it goes on when the first source is done; to its end, if `None`.
    lingers: Option<Duration>,
    /// When it ends.
    end: Time,
    outcome: Outcome,
}

/// A drive.
#[derive(Debug)]
struct Member {
    drive: Drive,
    /// When each read in flight was meant to start, and whose it is.
    intended: HashMap<Id, (Time, Reader)>,
    /// Whose each discard or flush in flight is.
    issued: HashMap<Id, usize>,
    counters: Counters,
}

/// The readers' kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    Foreground,
    Canary,
}

/// A source of discards on a drive.
struct Issuer<'s> {
    drive: usize,
    source: Box<dyn DiscardSource + 's>,
    last_discard: Option<Sample>,
    /// Of the outcome's reads, those that the source has seen.
    seen: usize,
    seen_canary: usize,
}

impl std::fmt::Debug for Issuer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issuer")
            .field("drive", &self.drive)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    /// Issue a read.
    Read,
    /// Issue the canary's read.
    Canary,
    /// Ask a source what to discard.
    Ask(usize),
    /// A drive changes.
    Change(usize),
}

impl<'s> Harness<'s> {
    /// An experiment without drives yet; the seed decides where and (in an open
    /// loop) when reads go.
    pub fn new(readers: Readers, seed: u64) -> Harness<'s> {
        Harness {
            readers,
            rng: Rng::new(seed),
            drives: Vec::new(),
            issuers: Vec::new(),
            reading: Vec::new(),
            canary: None,
            changes: Vec::new(),
            agenda: BinaryHeap::new(),
            acts: 0,
            host_busy_until: Time::ZERO,
            lingers: None,
            end: Time::ZERO,
            outcome: Outcome::default(),
        }
    }

    /// Adds a drive, and who discards on it. With several, each read goes to a
    /// random one, as on a RAID 0.
    #[must_use]
    pub fn drive(mut self, drive: Drive, source: impl DiscardSource + 's) -> Harness<'s> {
        self.drives.push(Member {
            drive,
            intended: HashMap::new(),
            issued: HashMap::new(),
            counters: Counters::default(),
        });
        self.beside(source)
    }

    /// Another source of discards on the drive that was added last; on none, nothing.
    #[must_use]
    pub fn beside(mut self, source: impl DiscardSource + 's) -> Harness<'s> {
        if let Some(drive) = self.drives.len().checked_sub(1) {
            self.issuers.push(Issuer {
                drive,
                source: Box::new(source),
                last_discard: None,
                seen: 0,
                seen_canary: 0,
            });
        }
        self
    }

    /// Readers in a closed loop read only during these times, which are in order.
    #[must_use]
    pub fn reading(mut self, during: Vec<Range<Time>>) -> Harness<'s> {
        self.reading = during;
        self
    }

    /// Adds a canary: a read at every multiple of `period` (above 0), however
    /// the last one went. Its reads are kept apart from the foreground's.
    #[must_use]
    pub fn canary(mut self, period: Duration) -> Harness<'s> {
        self.canary = Some(period.max(INSTANT));
        self
    }

    /// From then on the drive that was added last costs that.
    #[must_use]
    pub fn change(mut self, at: Time, figures: Figures) -> Harness<'s> {
        if let Some(drive) = self.drives.len().checked_sub(1) {
            self.plan(at, Act::Change(self.changes.len()));
            self.changes.push((drive, figures));
        }
        self
    }

    /// Ends so long after the source that was added first is done, if that is earlier than its
    /// length.
    #[must_use]
    pub fn lingering(mut self, lingers: Duration) -> Harness<'s> {
        self.lingers = Some(lingers);
        self
    }

    /// Runs for so long; what is in flight at the end is left out.
    ///
    /// # Errors
    /// If a source issues a discard that its drive refuses.
    pub fn run(mut self, length: Duration) -> Result<Outcome, Refused> {
        self.end = Time::ZERO + length;
        for issuer in 0..self.issuers.len() {
            self.plan(Time::ZERO, Act::Ask(issuer));
        }
        self.first_reads();
        if self.canary.is_some() {
            self.plan(Time::ZERO, Act::Canary);
        }
        let mut completed = Vec::new();
        while let Some(now) = self.next_time().filter(|&now| now <= self.end) {
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
                    Act::Read => {
                        self.next_arrival(now);
                        self.read(now, Reader::Foreground)?;
                    }
                    Act::Canary => {
                        self.plan(now + self.canary.unwrap_or(INSTANT), Act::Canary);
                        self.read(now, Reader::Canary)?;
                    }
                    Act::Ask(issuer) => self.ask(now, issuer)?,
                    Act::Change(change) => {
                        let (drive, figures) = self.changes[change].clone();
                        self.drives[drive].drive.set_figures(now, figures);
                    }
                }
            }
        }
        self.outcome.length = self.end.since(Time::ZERO);
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
            let at = self.host_busy_until;
            if self.reading.is_empty() {
                self.plan(at, Act::Read);
            } else if let Some(during) = self.reading.iter().find(|r| at < r.end) {
                self.plan(at.max(during.start), Act::Read);
            }
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

    fn read(&mut self, now: Time, reader: Reader) -> Result<(), Refused> {
        let which = self.rng.below(self.drives.len() as u64) as usize;
        let blocks = |member: &Member| member.drive.capacity() / READ_BYTES;
        let block = self.drives.get(which).map_or(0, blocks);
        let start = self.rng.below(block) * READ_BYTES;
        if let Some(member) = self.drives.get_mut(which) {
            let read = Command::Read(start..start + READ_BYTES);
            let id = member.drive.submit(now, read)?;
            member.intended.insert(id, (now, reader));
        }
        Ok(())
    }

    fn ask(&mut self, now: Time, index: usize) -> Result<(), Refused> {
        let issuer = &mut self.issuers[index];
        let member = &mut self.drives[issuer.drive];
        let seen = Seen {
            last_discard: issuer.last_discard.as_ref(),
            reads: &self.outcome.reads[issuer.seen..],
            reads_so_far: self.outcome.reads.len() as u64,
            canary: &self.outcome.canary[issuer.seen_canary..],
            counters: member.counters,
        };
        let next = issuer.source.next(now, &seen);
        issuer.seen = self.outcome.reads.len();
        issuer.seen_canary = self.outcome.canary.len();
        match next {
            Next::Discard(ranges) => {
                let id = member.drive.submit(now, Command::Discard(ranges))?;
                member.issued.insert(id, index);
            }
            Next::Flush => {
                let id = member.drive.submit(now, Command::Flush)?;
                member.issued.insert(id, index);
            }
            // Asking again at once would never let time pass.
            Next::At(time) => self.plan(time.max(now + INSTANT), Act::Ask(index)),
            Next::Done => {
                if let (0, Some(lingers)) = (index, self.lingers) {
                    self.end = self.end.min(now + lingers);
                }
            }
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
                member.counters.add(&sample);
                self.outcome.discards.push(sample);
                if let Some(issuer) = member.issued.remove(&completion.id) {
                    self.issuers[issuer].last_discard = Some(sample);
                    self.plan(after(&sample), Act::Ask(issuer));
                }
            }
            Command::Read(_) => {
                let intended = member.intended.remove(&completion.id);
                let (intended, reader) =
                    intended.unwrap_or((completion.submitted, Reader::Foreground));
                let sample = Sample {
                    drive: index,
                    intended,
                    completed: completion.completed,
                    bytes: READ_BYTES,
                };
                match reader {
                    Reader::Canary => self.outcome.canary.push(sample),
                    Reader::Foreground => {
                        self.outcome.reads.push(sample);
                        self.read_again(after(&sample));
                    }
                }
            }
            Command::Flush => {
                member.counters.flushing += completion.completed - completion.submitted;
                if let Some(issuer) = member.issued.remove(&completion.id) {
                    let again = completion.completed.max(completion.submitted + INSTANT);
                    self.plan(again, Act::Ask(issuer));
                }
            }
            Command::Write(_) => {}
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
