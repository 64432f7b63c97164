//! The foreground: readers, writers, syncers, and the canary.

use std::ops::Range;
use std::time::Duration;

use hdrhistogram::Histogram;
use record::{ActorInfo, LoopKind, latency_histogram};
use ssd::{Command, Time};

use super::{Act, Run, SimError};
use crate::policy::Nature;
use crate::setup::Setup;
use crate::stack::{Done, Kind, Owner};
use crate::volume::{NoSpace, Volume};

/// Bytes in each I/O.
const IO_BYTES: u64 = 4096;

/// The canary's reads each second, as `reclaim`'s.
const CANARY_PER_S: f64 = 40.0;

/// Its name.
const CANARY: &str = "canary";

/// Bytes that writers and syncers overwrite.
const WRITTEN_BYTES: u64 = 1 << 30;

/// One source of foreground I/O.
#[derive(Debug)]
pub(crate) struct Actor {
    name: String,
    does: Does,
    arrival: Arrival,
    /// Where it writes.
    region: Vec<Range<u64>>,
    busy_until: Time,
    /// Latencies of the present interval, in nanoseconds, and of the present phase.
    pub(crate) interval: Histogram<u64>,
    pub(crate) phase: Histogram<u64>,
    pub(crate) bytes: u64,
    /// Syncers: when the operation under way was meant to start.
    began: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Read,
    Write,
    /// Writes, then flushes, then waits for the commit.
    Sync,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Arrival {
    Closed { depth: u32, per_io: Duration },
    Poisson { per_s: f64 },
}

impl Actor {
    fn new(name: impl Into<String>, does: Does, arrival: Arrival) -> Actor {
        Actor {
            name: name.into(),
            does,
            arrival,
            region: Vec::new(),
            busy_until: Time::ZERO,
            interval: latency_histogram(),
            phase: latency_histogram(),
            bytes: 0,
            began: Time::ZERO,
        }
    }

    pub(crate) fn is_canary(&self) -> bool {
        self.name == CANARY
    }

    fn info(&self) -> ActorInfo {
        let loop_kind = match self.arrival {
            Arrival::Closed { depth, .. } => LoopKind::Closed { depth },
            Arrival::Poisson { per_s } => LoopKind::Open {
                rate_per_s: per_s,
                poisson: true,
                depth: u32::MAX,
            },
        };
        let op = match self.does {
            Does::Read => "read",
            Does::Write => "write",
            Does::Sync => "fsync",
        };
        ActorInfo {
            name: self.name.clone(),
            op: op.to_owned(),
            loop_kind,
            block_bytes: IO_BYTES,
            pattern: Some("random".to_owned()),
            direct: Some(true),
            engine: "simulated".to_owned(),
        }
    }
}

/// Those of the foreground, which the record has: all but the policy's canary, the last one.
pub(super) fn foreground(actors: &mut [Actor]) -> &mut [Actor] {
    let canary = usize::from(actors.last().is_some_and(Actor::is_canary));
    let count = actors.len() - canary;
    &mut actors[..count]
}

/// Their descriptions for the record's head.
pub(super) fn infos(actors: &[Actor]) -> Vec<ActorInfo> {
    actors.iter().map(Actor::info).collect()
}

/// The actors of a setup. A writer gets a file for it.
pub(super) fn all(
    setup: &Setup,
    volume: &mut Volume,
    nature: Nature,
) -> Result<Vec<Actor>, NoSpace> {
    let closed = |depth| Arrival::Closed {
        depth,
        per_io: setup.per_io,
    };
    let mut actors = Vec::new();
    if setup.readers > 0 {
        actors.push(Actor::new("reader", Does::Read, closed(setup.readers)));
    }
    if setup.reads_per_s > 0.0 {
        let per_s = setup.reads_per_s;
        actors.push(Actor::new(
            "open-reader",
            Does::Read,
            Arrival::Poisson { per_s },
        ));
    }
    let writes = setup.writers > 0 || setup.syncers > 0;
    let region = match writes {
        true => {
            let file = volume.create();
            volume.grow(file, WRITTEN_BYTES)?;
            volume.file(file).to_vec()
        }
        false => Vec::new(),
    };
    for (name, does, count) in [
        ("writer", Does::Write, setup.writers),
        ("syncer", Does::Sync, setup.syncers),
    ] {
        if count > 0 {
            // Each syncer is a program of its own, so it has one operation under way.
            let (copies, depth) = match does {
                Does::Sync => (count, 1),
                _ => (1, count),
            };
            for copy in 1..=copies {
                let name = match copy {
                    1 => name.to_owned(),
                    _ => format!("{name}-{copy}"),
                };
                let mut actor = Actor::new(name, does, closed(depth));
                actor.region = region.clone();
                actors.push(actor);
            }
        }
    }
    if nature.canary {
        let per_s = CANARY_PER_S;
        actors.push(Actor::new(CANARY, Does::Read, Arrival::Poisson { per_s }));
    }
    Ok(actors)
}

impl Run<'_> {
    pub(super) fn start_actors(&mut self) {
        for at in 0..self.actors.len() {
            let number = at as u16;
            match self.actors[at].arrival {
                Arrival::Closed { depth, .. } => {
                    (0..depth).for_each(|_| self.again(number, Time::ZERO));
                }
                // The canary waits for an order.
                Arrival::Poisson { .. } if Some(number) == self.canary => {}
                Arrival::Poisson { .. } => self.next_arrival(number, Time::ZERO),
            }
        }
    }

    /// In a closed loop: the next one, when the host's thread comes to it.
    fn again(&mut self, number: u16, now: Time) {
        let actor = &mut self.actors[number as usize];
        if let Arrival::Closed { per_io, .. } = actor.arrival {
            actor.busy_until = actor.busy_until.max(now) + per_io;
            let at = actor.busy_until;
            self.plan(at, Act::Issue(number));
        }
    }

    /// In an open loop: the next one, whatever becomes of this one.
    fn next_arrival(&mut self, number: u16, now: Time) {
        let gap = match self.actors[number as usize].arrival {
            Arrival::Closed { .. } => return,
            Arrival::Poisson { per_s } => {
                let nanos = self.rng.exponential() * 1e9 / per_s;
                Duration::from_nanos(nanos.round() as u64)
            }
        };
        self.plan(now + gap, Act::Issue(number));
    }

    /// Lets the canary read from now on, or no longer.
    pub(super) fn set_canary(&mut self, reads: bool) {
        let Some(number) = self.canary else { return };
        let did = std::mem::replace(&mut self.canary_reads, reads);
        if reads && !did && !std::mem::replace(&mut self.canary_is_planned, true) {
            self.next_arrival(number, self.now);
        }
    }

    pub(super) fn issue(&mut self, number: u16) -> Result<(), SimError> {
        let now = self.now;
        if Some(number) == self.canary && !self.canary_reads {
            self.canary_is_planned = false;
            return Ok(());
        }
        self.next_arrival(number, now);
        let actor = &mut self.actors[number as usize];
        let io = match actor.does {
            Does::Read => {
                let block = self.rng.below(self.volume.bytes() / IO_BYTES);
                Command::Read(block * IO_BYTES..(block + 1) * IO_BYTES)
            }
            Does::Write | Does::Sync => {
                actor.began = now;
                let range = random_block(&actor.region, &mut self.rng);
                self.flash.iter_mut().for_each(|flash| flash.write(&range));
                Command::Write(range)
            }
        };
        self.stack.submit(now, now, Owner::Actor(number), io)?;
        Ok(())
    }

    pub(super) fn actor_done(&mut self, number: u16, done: &Done) -> Result<(), SimError> {
        let actor = &mut self.actors[number as usize];
        match (actor.does, done.kind) {
            (Does::Sync, Kind::Write) => {
                let began = actor.began;
                let owner = Owner::Actor(number);
                self.stack.submit(self.now, began, owner, Command::Flush)?;
                return Ok(());
            }
            (Does::Sync, Kind::Flush) => {
                // Its commit has what was deleted, too, and on btrfs the discards.
                if self.nature.commits && !self.commits.freed.is_empty() {
                    self.begin_commit()?;
                }
                if self.sync_waits() {
                    self.commits.waiting.push(number);
                    return Ok(());
                }
                self.sync_returns(number);
                return Ok(());
            }
            _ => {}
        }
        let latency = done.completed - done.intended;
        if Some(number) == self.canary {
            self.seen.canary.push(pace::Canary {
                intended: done.intended,
                latency,
            });
            return Ok(());
        }
        actor.bytes += done.bytes;
        // One that is longer than an hour counts as an hour.
        actor.interval.saturating_record(latency.as_nanos() as u64);
        self.seen.last_foreground = done.completed;
        if done.kind == Kind::Read {
            self.seen.reads.ops += 1;
            self.seen.reads.busy += done.completed - done.submitted;
        }
        self.again(number, done.completed);
        Ok(())
    }

    /// A syncer's operation is done.
    pub(super) fn sync_returns(&mut self, number: u16) {
        let now = self.now;
        let actor = &mut self.actors[number as usize];
        let latency = now - actor.began;
        actor.bytes += IO_BYTES;
        actor.interval.saturating_record(latency.as_nanos() as u64);
        self.seen.last_foreground = now;
        self.again(number, now);
    }
}

fn random_block(region: &[Range<u64>], rng: &mut ssd::Rng) -> Range<u64> {
    let blocks: u64 = region.iter().map(|r| (r.end - r.start) / IO_BYTES).sum();
    let mut at = rng.below(blocks);
    for range in region {
        let here = (range.end - range.start) / IO_BYTES;
        if at < here {
            let start = range.start + at * IO_BYTES;
            return start..start + IO_BYTES;
        }
        at -= here;
    }
    0..IO_BYTES
}
