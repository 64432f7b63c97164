//! A drive in time: commands go in with a time, completions come out with one.
//!
//! There is no clock here. The caller passes the time. A simulation passes the time of the next
//! event, a block device its real clock:
//!
//! ```
//! use ssd::{Command, Drive, Time, profiles};
//!
//! let card = profiles::by_name("crucial-t500-2tb").unwrap();
//! let mut drive = Drive::new(card.figures().clone(), 1 << 40, 7);
//! drive.premap(0..1 << 30);
//! drive.submit(Time::ZERO, Command::Discard(vec![0..1 << 27])).unwrap();
//! drive.submit(Time::ZERO, Command::Read(1 << 29..(1 << 29) + 4096)).unwrap();
//! let mut done = Vec::new();
//! while let Some(next) = drive.next_event() {
//!     drive.advance(next, &mut done);
//! }
//! // The read came after the discard, and the drive does nothing beside one.
//! assert!(matches!(done[0].command, Command::Discard(_)));
//! assert_eq!(done[1].started, done[0].completed);
//! ```
//!
//! A stall is nothing that this model knows of. It has queues, and rules for which command may
//! start ([`Queue`](crate::Queue)). These rules alone give a reader with 8 reads in flight 8 reads
//! for each of several back-to-back discards.

mod command;
mod dispatch;
mod map;

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Range;
use std::time::Duration;

use crate::extents::Extents;

pub use command::{Command, Completion, Id, Refused, Stats};

use crate::card::Figures;
use crate::flash::{Flash, FlashStats};
use crate::rng::Rng;
use crate::time::Time;

use command::{Lane, Link, Waiting};
use dispatch::Kind;
use map::Map;

/// The model of one drive.
#[derive(Debug, Clone)]
pub struct Drive {
    figures: Figures,
    map: Map,
    flash: Option<Flash>,
    rng: Rng,
    /// The latest time that a caller passed.
    now: Time,
    next_id: u64,
    reads: Lane,
    writes: Lane,
    flushes: Lane,
    discards: Lane,
    /// The way of what is read.
    out: Link,
    /// The way of what is written.
    into: Link,
    /// How much earlier a command counts as having come.
    ahead: Duration,
    /// When something that may hold others last began, ended, or let them go on: a discard, a flush
    /// that runs alone, other figures.
    let_go: Time,
    /// Writes that are not completed, waiting or under way: flushes wait for them.
    unwritten: BTreeSet<Id>,
    /// Until then no read, write or flush starts.
    blocked_until: Time,
    /// Until then it works in the background, and reads are slower.
    folding_until: Time,
    events: BinaryHeap<Reverse<Event>>,
    /// The completions of the commands under way, by the place that their events name, and places
    /// that are empty. The heap moves its events often, so they are small.
    under_way: Vec<Option<UnderWay>>,
    empty: Vec<u32>,
    /// Completed, but not yet returned.
    done: Vec<Completion>,
    stats: Stats,
}

/// Something that will happen inside.
#[derive(Debug, Clone, Copy)]
struct Event {
    at: Time,
    /// Which command's; decides between events at the same time.
    id: Id,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// A discard lets the others go on, though it isn't done.
    Unblock,
    /// The command at this place is done.
    Complete(u32),
}

/// A command under way.
#[derive(Debug, Clone)]
struct UnderWay {
    completion: Completion,
    /// When its place is free for another one: at its completion, or earlier if it came so late
    /// that its time was over then.
    ends: Time,
}

impl Drive {
    /// A drive of so many bytes, with nothing mapped. The same commands at the
    /// same times with the same seed give the same completions.
    pub fn new(figures: Figures, capacity: u64, seed: u64) -> Drive {
        Drive {
            flash: figures.flash.map(|geometry| Flash::new(geometry, capacity)),
            figures,
            map: Map::new(capacity),
            rng: Rng::new(seed),
            now: Time::ZERO,
            next_id: 0,
            reads: Lane::default(),
            writes: Lane::default(),
            flushes: Lane::default(),
            discards: Lane::default(),
            out: Link::default(),
            into: Link::default(),
            ahead: Duration::ZERO,
            let_go: Time::ZERO,
            unwritten: BTreeSet::new(),
            blocked_until: Time::ZERO,
            folding_until: Time::ZERO,
            events: BinaryHeap::new(),
            under_way: Vec::new(),
            empty: Vec::new(),
            done: Vec::new(),
            stats: Stats::default(),
        }
    }

    /// Marks a range as mapped, as if it had been written long ago. The part beyond the drive's end
    /// is left out.
    pub fn premap(&mut self, range: Range<u64>) {
        let end = range.end.min(self.map.capacity());
        self.map.write(range.start..end, self.figures.granule);
    }

    /// Wears the drive in: this share of its space was filled, overwritten at random until each page
    /// had been written three times on average, and never discarded. Without flash only that space
    /// is mapped.
    pub fn age(&mut self, share: f64) {
        self.premap(0..(self.capacity() as f64 * share.clamp(0.0, 1.0)) as u64);
        let Some(flash) = &mut self.flash else { return };
        let pages = (f64::from(flash.host_pages()) * share.clamp(0.0, 1.0)) as u32;
        (0..pages).for_each(|page| flash.write_page(page));
        for _ in 0..2 * u64::from(pages) {
            flash.write_page(self.rng.below(pages.into()) as u32);
        }
    }

    /// The work of its flash, with that of wearing in; `None` without flash.
    pub fn flash(&self) -> Option<FlashStats> {
        self.flash.as_ref().map(Flash::stats)
    }

    /// Which bytes are mapped. Reads of others return what
    /// [`ReadAfterTrim`](crate::ReadAfterTrim) says.
    pub fn mapped(&self) -> &Extents {
        self.map.mapped()
    }

    /// The drive's size in bytes.
    pub fn capacity(&self) -> u64 {
        self.map.capacity()
    }

    /// The costs of all commands.
    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Changes what everything costs, for commands that start after `now`. The flash stays as it
    /// is.
    pub fn set_figures(&mut self, now: Time, figures: Figures) {
        self.run_to(now);
        self.figures = figures;
        self.let_go = self.now;
        self.dispatch();
    }

    /// Lets reads, writes and flushes that start from now on count as having come earlier than they
    /// did, for a drive whose answers take a way of their own.
    ///
    /// A block device in software has a round trip to its model: the command has to get there, and
    /// the answer back. A reader sees both. If a command counts as one that came earlier by that
    /// round trip, it takes as long as the card says. A place among those worked at that was idle
    /// meanwhile is used in arrears, so commands that arrive in bursts cost the drive none of its
    /// rate. Each place still does one command after the other, so the drive's highest rate stays the
    /// card's.
    pub fn set_head_start(&mut self, ahead: Duration) {
        self.ahead = ahead;
    }

    /// Loses what is in flight, as when the power is cut: it never completes, and
    /// changes nothing that it hasn't changed by then.
    pub fn lose_all(&mut self, now: Time) {
        self.run_to(now);
        for lane in [
            &mut self.reads,
            &mut self.writes,
            &mut self.flushes,
            &mut self.discards,
        ] {
            *lane = Lane::default();
        }
        (self.out, self.into) = (Link::default(), Link::default());
        self.unwritten.clear();
        self.events.clear();
        self.under_way.clear();
        self.empty.clear();
        self.done.clear();
        self.blocked_until = self.now;
    }

    /// The drive's work so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Commands submitted and not completed.
    pub fn in_flight(&self) -> usize {
        [&self.reads, &self.writes, &self.flushes, &self.discards]
            .iter()
            .map(|lane| lane.waiting() + lane.active as usize)
            .sum()
    }

    /// Hands a command to the drive. A time before an earlier call's counts as that one: time never
    /// goes backwards here.
    ///
    /// # Errors
    /// If the drive doesn't take such a command; then nothing has happened.
    pub fn submit(&mut self, now: Time, command: Command) -> Result<Id, Refused> {
        self.check(&command)?;
        self.run_to(now);
        let id = Id(self.next_id);
        self.next_id += 1;
        let lane = match command {
            Command::Read(_) => &mut self.reads,
            Command::Write(_) => {
                self.unwritten.insert(id);
                &mut self.writes
            }
            Command::Flush => &mut self.flushes,
            Command::Discard(_) => &mut self.discards,
        };
        lane.push(Waiting {
            id,
            command,
            submitted: self.now,
        });
        self.dispatch();
        Ok(id)
    }

    /// When to call [`Drive::advance`] next; `None` if nothing is in flight.
    /// Not every event is a completion.
    pub fn next_event(&self) -> Option<Time> {
        if let Some(first) = self.done.first() {
            return Some(first.completed);
        }
        self.events.peek().map(|Reverse(event)| event.at)
    }

    /// Lets time pass until `now`, and appends what was completed by then, in
    /// the order of completion.
    pub fn advance(&mut self, now: Time, completed: &mut Vec<Completion>) {
        self.run_to(now);
        completed.append(&mut self.done);
    }

    fn run_to(&mut self, now: Time) {
        while let Some(Reverse(event)) = self.events.peek()
            && event.at <= now
            && let Some(Reverse(event)) = self.events.pop()
        {
            self.now = self.now.max(event.at);
            match event.what {
                What::Complete(place) => {
                    if let Some(UnderWay { completion, ends }) =
                        self.under_way[place as usize].take()
                    {
                        self.empty.push(place);
                        let kind = Kind::of(&completion.command);
                        self.leave(kind, ends);
                        if self.holds(kind) {
                            self.let_go = self.now;
                        }
                        self.complete(completion);
                    }
                }
                What::Unblock => self.let_go = self.now,
            }
            // All that ends now must have ended before anything new is begun.
            if self
                .events
                .peek()
                .is_none_or(|Reverse(next)| next.at > self.now)
            {
                self.dispatch();
            }
        }
        self.now = self.now.max(now);
    }

    /// Notes a command under way; returns its place.
    fn begin(&mut self, command: UnderWay) -> u32 {
        match self.empty.pop() {
            Some(place) => {
                self.under_way[place as usize] = Some(command);
                place
            }
            None => {
                self.under_way.push(Some(command));
                (self.under_way.len() - 1) as u32
            }
        }
    }

    fn complete(&mut self, mut completion: Completion) {
        match &completion.command {
            Command::Read(_) => {
                self.stats.reads += 1;
            }
            Command::Write(range) => {
                self.map.write(range.clone(), self.figures.granule);
                self.leave_work(range.end - range.start);
                self.unwritten.remove(&completion.id);
                self.stats.writes += 1;
            }
            Command::Flush => {
                self.stats.flushes += 1;
            }
            Command::Discard(ranges) => {
                self.stats.discards += 1;
                completion.trimmed = self.trim(ranges);
            }
        }
        self.done.push(completion);
    }

    /// Work for the background after a write.
    fn leave_work(&mut self, bytes: u64) {
        let fold = &self.figures.fold;
        let work = Duration::from_nanos(fold.per_mib.nanos_for(bytes).round() as u64);
        let until = self.folding_until.max(self.now) + work;
        self.folding_until = until.min(self.now + fold.longest);
    }

    /// Unmaps the part of these ranges that can be, and returns it.
    fn trim(&mut self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        let smallest = self.figures.discard.as_ref().map_or(0, |d| d.smallest);
        let mut trimmed = Vec::with_capacity(ranges.len());
        for range in ranges {
            let bytes = range.end - range.start;
            self.stats.bytes_discarded += bytes;
            match self.map.trimmable(range, self.figures.granule, smallest) {
                None => self.stats.bytes_ignored += bytes,
                Some(whole) => {
                    self.stats.bytes_lost_to_rounding += bytes - (whole.end - whole.start);
                    self.stats.bytes_unmapped += self.map.trim(whole.clone());
                    if !whole.is_empty() {
                        if let Some(flash) = &mut self.flash {
                            flash.trim(&whole);
                        }
                        trimmed.push(whole);
                    }
                }
            }
        }
        trimmed
    }

    fn check(&self, command: &Command) -> Result<(), Refused> {
        match command {
            Command::Flush => Ok(()),
            Command::Read(range) | Command::Write(range) => self.check_range(range),
            Command::Discard(ranges) => {
                let discard = self.figures.discard.as_ref().ok_or(Refused::NoDiscards)?;
                if ranges.len() > discard.max_ranges as usize {
                    return Err(Refused::TooManyRanges {
                        given: ranges.len(),
                        most: discard.max_ranges,
                    });
                }
                ranges
                    .iter()
                    .try_for_each(|range| self.check_range(range))?;
                let lengths = ranges.iter().map(|r| r.end - r.start);
                let given = lengths.fold(0_u64, u64::saturating_add);
                if given > discard.max_bytes {
                    return Err(Refused::TooLarge {
                        given,
                        most: discard.max_bytes,
                    });
                }
                Ok(())
            }
        }
    }

    fn check_range(&self, range: &Range<u64>) -> Result<(), Refused> {
        if range.start <= range.end && range.end <= self.map.capacity() {
            return Ok(());
        }
        Err(Refused::OutOfRange {
            start: range.start,
            end: range.end,
            capacity: self.map.capacity(),
        })
    }
}

impl Event {
    fn rank(&self) -> (Time, Id, bool) {
        (self.at, self.id, matches!(self.what, What::Complete(_)))
    }
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Event) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}
