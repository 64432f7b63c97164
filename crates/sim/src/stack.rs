//! One drive, or several as a RAID 0.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use ssd::drive::{Command, Completion};
use ssd::{Card, Drive, Refused, Time};

/// The largest discard that Linux sends in one piece: a bio's size has 32 bits, in whole sectors.
const LARGEST_BIO: u64 = (1 << 32) - 512;

/// The kinds of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Flush,
    Discard,
}

/// The part of the run that waits for an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// A foreground actor.
    Actor(u16),
    /// The workload.
    Job,
    /// The file system's commit.
    Commit,
    /// The policy: a discard with this tag.
    Policy(u64),
}

/// An I/O that is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub(crate) owner: Owner,
    pub(crate) kind: Kind,
    pub(crate) bytes: u64,
    /// When it was meant to start, when it was submitted, when it completed.
    pub(crate) intended: Time,
    pub(crate) submitted: Time,
    pub(crate) completed: Time,
}

/// One drive's work, as the kernel's statistics count it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) reads: Count,
    pub(crate) writes: Count,
    pub(crate) flushes: Count,
    pub(crate) discards: Count,
}

/// I/Os of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) ops: u64,
    pub(crate) bytes: u64,
    /// The sum of their times from submission to completion.
    pub(crate) busy: Duration,
}

impl Count {
    fn add(&mut self, bytes: u64, busy: Duration) {
        self.ops += 1;
        self.bytes += bytes;
        self.busy += busy;
    }
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    owner: Owner,
    kind: Kind,
    /// Parts of it that are not done.
    parts: u32,
    bytes: u64,
    intended: Time,
    submitted: Time,
}

#[derive(Debug)]
struct Member {
    drive: Drive,
    /// The flight of each command from number `first` on; `DONE` of one that completed.
    flights: VecDeque<u32>,
    first: u64,
    counters: Counters,
    /// Discards in flight, and those that wait before the drive.
    discarding: usize,
    waiting: VecDeque<(u32, Command)>,
}

const DONE: u32 = u32::MAX;

impl Member {
    fn send(&mut self, now: Time, flight: u32, command: Command) -> Result<(), Refused> {
        self.discarding += usize::from(matches!(command, Command::Discard(_)));
        self.drive.submit(now, command)?;
        self.flights.push_back(flight);
        Ok(())
    }

    fn send_waiting(&mut self, now: Time, depth: usize) -> Result<(), Refused> {
        while self.discarding < depth
            && let Some((flight, command)) = self.waiting.pop_front()
        {
            self.send(now, flight, command)?;
        }
        Ok(())
    }
}

/// The limits of a discard on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes in a command, all ranges together.
    pub max_bytes: u64,
    /// Ranges in a command.
    pub max_ranges: usize,
}

/// Drives of one size in stripes; mostly one.
#[derive(Debug)]
pub(crate) struct Stack {
    members: Vec<Member>,
    chunk: u64,
    /// Most discards in flight on each drive.
    depth: usize,
    flights: Vec<Flight>,
    free: Vec<u32>,
    completed: Vec<Completion>,
}

impl Stack {
    /// Drives by their cards; `capacity` is the whole stack's, in bytes.
    pub(crate) fn new(cards: &[Card], capacity: u64, chunk: u64, seed: u64) -> Stack {
        let each = capacity / cards.len().max(1) as u64;
        let members = cards.iter().zip(seed..).map(|(card, seed)| Member {
            drive: Drive::new(card.figures().clone(), each, seed),
            flights: VecDeque::new(),
            first: 0,
            counters: Counters::default(),
            discarding: 0,
            waiting: VecDeque::new(),
        });
        Stack {
            members: members.collect(),
            chunk: chunk.max(4096),
            depth: usize::MAX,
            flights: Vec::new(),
            free: Vec::new(),
            completed: Vec::new(),
        }
    }

    /// The limits of a discard; `None` if a drive takes none.
    pub(crate) fn limits(&self) -> Option<Limits> {
        let count = self.members.len() as u64;
        let each = self.members.iter().map(|member| {
            let discard = member.drive.figures().discard.as_ref()?;
            Some((discard.max_bytes, discard.max_ranges))
        });
        let each: Vec<(u64, u32)> = each.collect::<Option<_>>()?;
        let bytes = each.iter().map(|&(bytes, _)| bytes).min()?;
        let ranges = each.iter().map(|&(_, ranges)| ranges).min()?;
        let whole = |bytes: u64| bytes - bytes % 4096;
        Some(Limits {
            max_bytes: whole(bytes.saturating_mul(count).min(LARGEST_BIO)).max(4096),
            max_ranges: ranges as usize,
        })
    }

    /// Marks a range as written long ago.
    pub(crate) fn premap(&mut self, range: &Range<u64>) {
        for at in 0..self.members.len() {
            let part = self.part(at, range);
            self.members[at].drive.premap(part);
        }
    }

    /// Bytes that the drives hold data for, as far as they know.
    pub(crate) fn mapped(&self) -> u64 {
        let each = self.members.iter().map(|m| m.drive.mapped().covered());
        each.sum()
    }

    /// The part of a range that lies on one drive: in stripes it is one range there too.
    fn part(&self, at: usize, range: &Range<u64>) -> Range<u64> {
        if self.members.len() == 1 {
            return range.clone();
        }
        let stripe = self.chunk * self.members.len() as u64;
        let before = at as u64 * self.chunk;
        let below = |x: u64| {
            (x / stripe) * self.chunk + (x % stripe).saturating_sub(before).min(self.chunk)
        };
        below(range.start)..below(range.end)
    }

    /// Hands an I/O to the drives. Ranges are in bytes.
    ///
    /// # Errors
    /// If a drive refuses it.
    pub(crate) fn submit(
        &mut self,
        now: Time,
        intended: Time,
        owner: Owner,
        command: Command,
    ) -> Result<(), Refused> {
        let (kind, bytes) = match &command {
            Command::Read(range) => (Kind::Read, range.end - range.start),
            Command::Write(range) => (Kind::Write, range.end - range.start),
            Command::Flush => (Kind::Flush, 0),
            Command::Discard(ranges) => {
                (Kind::Discard, ranges.iter().map(|r| r.end - r.start).sum())
            }
        };
        let flight = self.flight(Flight {
            owner,
            kind,
            parts: 0,
            bytes,
            intended,
            submitted: now,
        });
        if self.members.len() == 1 {
            return self.send(0, now, flight, command);
        }
        for at in 0..self.members.len() {
            let part = |range: &Range<u64>| Some(self.part(at, range)).filter(|r| !r.is_empty());
            let command = match &command {
                Command::Read(range) => part(range).map(Command::Read),
                Command::Write(range) => part(range).map(Command::Write),
                Command::Flush => Some(Command::Flush),
                Command::Discard(ranges) => {
                    let parts: Vec<_> = ranges.iter().filter_map(part).collect();
                    (!parts.is_empty()).then_some(Command::Discard(parts))
                }
            };
            if let Some(command) = command {
                self.send(at, now, flight, command)?;
            }
        }
        Ok(())
    }

    fn flight(&mut self, flight: Flight) -> u32 {
        match self.free.pop() {
            Some(slot) => {
                self.flights[slot as usize] = flight;
                slot
            }
            None => {
                self.flights.push(flight);
                (self.flights.len() - 1) as u32
            }
        }
    }

    fn send(&mut self, at: usize, now: Time, flight: u32, command: Command) -> Result<(), Refused> {
        self.flights[flight as usize].parts += 1;
        let member = &mut self.members[at];
        if matches!(command, Command::Discard(_)) && member.discarding >= self.depth {
            member.waiting.push_back((flight, command));
            return Ok(());
        }
        member.send(now, flight, command)
    }

    /// From now on at most so many discards are in flight on each drive.
    ///
    /// # Errors
    /// If a drive refuses one that waited.
    pub(crate) fn throttle(&mut self, now: Time, depth: usize) -> Result<(), Refused> {
        self.depth = depth.max(1);
        let depth = self.depth;
        self.members
            .iter_mut()
            .try_for_each(|member| member.send_waiting(now, depth))
    }

    /// When to call [`Stack::advance`] next.
    pub(crate) fn next_event(&self) -> Option<Time> {
        self.members
            .iter()
            .filter_map(|m| m.drive.next_event())
            .min()
    }

    /// Lets time pass, and appends what was completed by then.
    ///
    /// # Errors
    /// If a drive refuses a discard that waited for another one.
    pub(crate) fn advance(&mut self, now: Time, done: &mut Vec<Done>) -> Result<(), Refused> {
        let mut completed = std::mem::take(&mut self.completed);
        for at in 0..self.members.len() {
            self.members[at].drive.advance(now, &mut completed);
            for completion in completed.drain(..) {
                self.completed(at, &completion, done)?;
            }
        }
        self.completed = completed;
        Ok(())
    }

    fn completed(
        &mut self,
        at: usize,
        completion: &Completion,
        done: &mut Vec<Done>,
    ) -> Result<(), Refused> {
        let member = &mut self.members[at];
        let busy = completion.completed - completion.submitted;
        let bytes = |range: &Range<u64>| range.end - range.start;
        match &completion.command {
            Command::Read(range) => member.counters.reads.add(bytes(range), busy),
            Command::Write(range) => member.counters.writes.add(bytes(range), busy),
            Command::Flush => member.counters.flushes.add(0, busy),
            Command::Discard(ranges) => {
                let bytes = ranges.iter().map(bytes).sum();
                member.counters.discards.add(bytes, busy);
                member.discarding -= 1;
                member.send_waiting(completion.completed, self.depth)?;
            }
        }
        let place = (completion.id.number() - member.first) as usize;
        let slot = std::mem::replace(&mut member.flights[place], DONE);
        while member.flights.front() == Some(&DONE) {
            member.flights.pop_front();
            member.first += 1;
        }
        let flight = &mut self.flights[slot as usize];
        flight.parts -= 1;
        if flight.parts == 0 {
            done.push(Done {
                owner: flight.owner,
                kind: flight.kind,
                bytes: flight.bytes,
                intended: flight.intended,
                submitted: flight.submitted,
                completed: completion.completed,
            });
            self.free.push(slot);
        }
        Ok(())
    }

    /// The intended start of the oldest I/O in flight of these actors.
    pub(crate) fn oldest(&self, is_meant: impl Fn(u16) -> bool) -> Option<Time> {
        let meant = |flight: &&Flight| {
            flight.parts > 0 && matches!(flight.owner, Owner::Actor(actor) if is_meant(actor))
        };
        self.flights.iter().filter(meant).map(|f| f.intended).min()
    }

    /// Each drive's counters.
    pub(crate) fn counters(&self) -> impl Iterator<Item = Counters> {
        self.members.iter().map(|m| m.counters)
    }

    /// Each drive.
    pub(crate) fn drives(&self) -> impl Iterator<Item = &Drive> {
        self.members.iter().map(|m| &m.drive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two() -> Stack {
        let card = ssd::profiles::by_name("crucial-t500-2tb").unwrap().clone();
        Stack::new(&[card.clone(), card], 1 << 40, 512 << 10, 1)
    }

    #[test]
    fn a_range_over_many_stripes_is_one_range_on_each_drive() {
        let stack = two();
        assert_eq!(stack.part(0, &(0..4 << 30)), 0..2 << 30);
        assert_eq!(stack.part(1, &(0..4 << 30)), 0..2 << 30);
        // Chunks 1 and 2: the first of the second drive, the second of the first.
        let range = 512 << 10..1536 << 10;
        assert_eq!(stack.part(0, &range), 512 << 10..1 << 20);
        assert_eq!(stack.part(1, &range), 0..512 << 10);
        assert!(stack.part(1, &(4096..8192)).is_empty());
    }

    #[test]
    fn an_io_on_both_drives_is_done_when_both_are() {
        let mut stack = two();
        stack.premap(&(0..4 << 20));
        assert_eq!(stack.mapped(), 4 << 20);
        let discard = Command::Discard(vec![0..2 << 20, 3 << 20..4 << 20]);
        let owner = Owner::Policy(7);
        stack
            .submit(Time::ZERO, Time::ZERO, owner, discard)
            .unwrap();
        let mut done = Vec::new();
        while let Some(next) = stack.next_event() {
            stack.advance(next, &mut done).unwrap();
        }
        assert_eq!(done.len(), 1);
        assert_eq!((done[0].owner, done[0].bytes), (owner, 3 << 20));
        assert_eq!(stack.mapped(), 1 << 20);
        assert!(stack.counters().all(|c| c.discards.ops == 1));
    }
}
