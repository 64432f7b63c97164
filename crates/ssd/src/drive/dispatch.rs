//! All rules of the queue: which command may start now, and how long it takes.

use std::cmp::Reverse;
use std::ops::Range;
use std::time::Duration;

use super::command::{Command, Completion, INCLUDED, Id, Lane};
use super::{Drive, Event, UnderWay, What};
use crate::card::{Discard, Queue, Transfer};
use crate::time::Time;

/// The four kinds of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Flush,
    Discard,
}

impl Kind {
    pub(super) fn of(command: &Command) -> Kind {
        match command {
            Command::Read(_) => Kind::Read,
            Command::Write(_) => Kind::Write,
            Command::Flush => Kind::Flush,
            Command::Discard(_) => Kind::Discard,
        }
    }
}

const KINDS: [Kind; 4] = [Kind::Read, Kind::Write, Kind::Flush, Kind::Discard];

/// How long a command takes, and for how much of it nothing else may start.
struct Service {
    time: Duration,
    blocks: Duration,
}

impl Service {
    fn free(time: Duration) -> Service {
        Service {
            time,
            blocks: Duration::ZERO,
        }
    }
}

impl Drive {
    /// Starts everything that may start now, the oldest first.
    pub(super) fn dispatch(&mut self) {
        while let Some((_, kind)) = KINDS
            .iter()
            .filter_map(|&kind| Some((self.lane(kind).head()?, kind)))
            .filter(|&(id, kind)| self.may_start(id, kind))
            .min_by_key(|&(id, _)| id)
        {
            self.start(kind);
        }
    }

    fn lane(&self, kind: Kind) -> &Lane {
        match kind {
            Kind::Read => &self.reads,
            Kind::Write => &self.writes,
            Kind::Flush => &self.flushes,
            Kind::Discard => &self.discards,
        }
    }

    fn lane_mut(&mut self, kind: Kind) -> &mut Lane {
        match kind {
            Kind::Read => &mut self.reads,
            Kind::Write => &mut self.writes,
            Kind::Flush => &mut self.flushes,
            Kind::Discard => &mut self.discards,
        }
    }

    fn queue(&self) -> Option<Queue> {
        self.figures.discard.as_ref().map(|d| d.queue)
    }

    /// Whether the head of a lane may start.
    fn may_start(&self, id: Id, kind: Kind) -> bool {
        match kind {
            Kind::Read => self.has_slot(&self.reads, &self.figures.read) && !self.is_held(id),
            Kind::Write => self.has_slot(&self.writes, &self.figures.write) && !self.is_held(id),
            Kind::Flush => {
                let written = self.unwritten.first().is_none_or(|&oldest| oldest > id);
                written && !self.is_held(id) && self.may_start_alone(id)
            }
            Kind::Discard => self.discard_may_start(id),
        }
    }

    fn has_slot(&self, lane: &Lane, cost: &Transfer) -> bool {
        lane.active < cost.parallelism
    }

    /// Whether a discard keeps a read, write or flush from starting.
    fn is_held(&self, id: Id) -> bool {
        let blocked = self.now < self.blocked_until;
        blocked
            || match self.queue() {
                // In order of arrival, but a discard that waits for another
                // discard holds nobody: else φ < 1 would mean nothing.
                Some(Queue::Exclusive { .. }) => {
                    self.discards.active == 0 && self.discards.has_before(id)
                }
                Some(Queue::NonNcqDrain) => {
                    self.discards.active + self.flushes.active > 0
                        || self.discards.has_before(id)
                        || self.flushes.has_before(id)
                }
                Some(Queue::Parallel { .. }) | None => false,
            }
    }

    /// Whether commands of this kind may keep reads and writes from starting.
    pub(super) fn holds(&self, kind: Kind) -> bool {
        match kind {
            Kind::Discard => true,
            Kind::Flush => self.queue() == Some(Queue::NonNcqDrain),
            Kind::Read | Kind::Write => false,
        }
    }

    fn discard_may_start(&self, id: Id) -> bool {
        match self.queue() {
            // Those before it must have been begun, not completed.
            Some(Queue::Exclusive { .. }) => self.discards.active == 0 && !self.waits_before(id),
            Some(Queue::NonNcqDrain) => self.may_start_alone(id),
            Some(Queue::Parallel { k, .. }) => self.discards.active < k,
            // The drive was told to take none while this one waited.
            None => true,
        }
    }

    /// Where commands that aren't NCQ run alone: whether one can.
    fn may_start_alone(&self, id: Id) -> bool {
        if self.queue() != Some(Queue::NonNcqDrain) {
            return true;
        }
        let active: u32 = KINDS.iter().map(|&kind| self.lane(kind).active).sum();
        active == 0 && !self.waits_before(id)
    }

    fn waits_before(&self, id: Id) -> bool {
        KINDS.iter().any(|&kind| self.lane(kind).has_before(id))
    }

    fn start(&mut self, kind: Kind) {
        let begins = self.begins(kind);
        let Some(waiting) = self.lane_mut(kind).take() else {
            return;
        };
        let service = self.service(&waiting.command, begins);
        if !service.blocks.is_zero() {
            let until = self.now + service.blocks;
            self.blocked_until = self.blocked_until.max(until);
            // Where it blocks to its end, its completion lets the others go on.
            if service.blocks < service.time {
                self.events.push(Reverse(Event {
                    at: until,
                    id: waiting.id,
                    what: What::Unblock,
                }));
            }
        }
        if self.holds(kind) {
            self.let_go = self.now;
        }
        let ends = begins + service.time;
        let completed = ends.max(self.now);
        let completion = Completion {
            id: waiting.id,
            command: waiting.command,
            submitted: waiting.submitted,
            started: begins,
            completed,
            trimmed: Vec::new(),
        };
        let place = self.begin(UnderWay { completion, ends });
        self.events.push(Reverse(Event {
            at: completed,
            id: waiting.id,
            what: What::Complete(place),
        }));
    }

    /// The time at which the head of a lane begins, if it starts now. That is earlier than now where it
    /// counts as having come earlier, had a place then, and nothing held it.
    fn begins(&mut self, kind: Kind) -> Time {
        let places = match kind {
            Kind::Read => self.figures.read.parallelism,
            Kind::Write => self.figures.write.parallelism,
            Kind::Flush => return self.now.before(self.ahead),
            Kind::Discard => return self.now,
        };
        let lane = self.lane_mut(kind);
        let came = lane.head_came();
        let idle_since = lane.take_place(places);
        came.unwrap_or(self.now)
            .before(self.ahead)
            .max(idle_since)
            .max(self.let_go)
            .min(self.now)
    }

    /// A command's place is free for another one since `ends`.
    pub(super) fn leave(&mut self, kind: Kind, ends: Time) {
        let long_ago = self.now.before(self.ahead);
        self.lane_mut(kind).leave(ends, long_ago);
    }

    /// `begins`: when the command begins.
    fn service(&mut self, command: &Command, begins: Time) -> Service {
        match command {
            Command::Read(range) => {
                let mut cost = Cost::of(&self.figures.read, range);
                if self.now < self.folding_until {
                    cost = cost.at(self.figures.fold.read_share);
                }
                let alone = self.jittered(cost.alone, self.figures.read.jitter);
                let shared = self.out.transfer(begins, nanos(cost.shared));
                Service::free(alone.max(shared))
            }
            Command::Write(range) => {
                let cost = Cost::of(&self.figures.write, range);
                let moving = self.moving(range);
                let alone = self.jittered(cost.alone, self.figures.write.jitter) + moving;
                let shared = self.into.transfer(begins, nanos(cost.shared) + moving);
                Service::free(alone.max(shared))
            }
            Command::Flush => Service::free(self.figures.flush),
            Command::Discard(ranges) => {
                let Some(discard) = &self.figures.discard else {
                    return Service::free(Duration::ZERO);
                };
                let (mapped, unmapped) = self.trimmable(discard, ranges);
                let mean = discard.service(mapped, unmapped, ranges.len());
                let (phi, jitter) = (discard.phi(), discard.jitter);
                let time = self.jittered(mean.as_nanos() as f64, jitter);
                Service {
                    time,
                    blocks: time.mul_f64(phi).min(time),
                }
            }
        }
    }

    /// Writes a range into the flash; the time to move pages until there is room for it.
    fn moving(&mut self, range: &Range<u64>) -> Duration {
        let (Some(flash), Some(geometry)) = (&mut self.flash, self.figures.flash) else {
            return Duration::ZERO;
        };
        let before = flash.stats();
        flash.write(range);
        let moved = flash.stats().since(before).moved_pages * geometry.page_bytes;
        nanos(self.figures.write.per_mib.nanos_for(moved))
    }

    /// Of the bytes of these ranges that can be unmapped: those that are mapped, and those that hold
    /// nothing.
    fn trimmable(&self, discard: &Discard, ranges: &[Range<u64>]) -> (u64, u64) {
        let (mut mapped, mut all) = (0, 0);
        for range in ranges {
            let granule = self.figures.granule;
            if let Some(whole) = self.map.trimmable(range, granule, discard.smallest) {
                all += whole.end - whole.start;
                mapped += self.map.mapped().overlap(whole);
            }
        }
        (mapped, all - mapped)
    }

    fn jittered(&mut self, nanos: f64, jitter: f64) -> Duration {
        let factor = if jitter > 0.0 {
            1.0 + jitter * self.rng.bell()
        } else {
            1.0
        };
        // Never negative, for a jitter is below a third and a bell within ±3.
        self::nanos(nanos * factor)
    }
}

/// A float saturates when it becomes an integer.
fn nanos(span: f64) -> Duration {
    Duration::from_nanos(span.round() as u64)
}

/// The times of a read or a write, in nanoseconds.
struct Cost {
    /// On an idle drive.
    alone: f64,
    /// Of it, on the interface that it shares with others.
    shared: f64,
}

impl Cost {
    fn of(figures: &Transfer, range: &Range<u64>) -> Cost {
        let bytes = range.end - range.start;
        let more = figures.per_mib.nanos_for(bytes.saturating_sub(INCLUDED));
        Cost {
            alone: figures.latency.as_nanos() as f64 + more,
            shared: figures.per_mib.nanos_for(bytes),
        }
    }

    /// The same on a drive that has only this share of its speed.
    fn at(self, share: f64) -> Cost {
        Cost {
            alone: self.alone / share,
            shared: self.shared / share,
        }
    }
}
