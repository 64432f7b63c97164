//! Measures the waits of the canary's reads, and finds the cause in service meanwhile.

use serde::Serialize;
use std::collections::VecDeque;
use std::time::Duration;

use ssd::Time;

use crate::account::readers::Measured;
use crate::feedback::Canary;
use crate::meter::Tick;
use crate::quantity::Seconds;

/// How long looks are remembered, and how many at most: longer than any read takes.
const MEMORY: Duration = Duration::from_secs(10);

const MOST_LOOKS: usize = 20_000;

/// The slowest reads that are kept: one in a thousand of a million.
const SLOWEST: usize = 1024;

/// Discards explain a read's wait if they took at least this share of it.
const EXPLAINS: f64 = 0.5;

/// A discard may be counted so long after its end.
const LATE: Seconds = Seconds(0.002);

/// The fewest reads from which a share of them is reported.
const ENOUGH: u64 = 20;

/// The commands in service while a read waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Our discards.
    OurDiscards,
    /// Discards of others.
    OthersDiscards,
    /// Flushes, of our commits or of others.
    Flushes,
    /// None of these: other I/O, or a machine that was busy.
    Nothing,
}

/// Reads that were late, by what was in service meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LateReads {
    /// Beside our discards.
    pub our_discards: u64,
    /// Beside discards of others.
    pub others_discards: u64,
    /// Beside flushes, of our commits or of others.
    pub flushes: u64,
    /// Beside none of these: other I/O, or a machine that was busy.
    pub nothing: u64,
}

impl LateReads {
    /// All of them.
    pub fn all(&self) -> u64 {
        self.our_discards + self.others_discards + self.flushes + self.nothing
    }

    fn add(&mut self, beside: Beside) {
        *match beside {
            Beside::OurDiscards => &mut self.our_discards,
            Beside::OthersDiscards => &mut self.others_discards,
            Beside::Flushes => &mut self.flushes,
            Beside::Nothing => &mut self.nothing,
        } += 1;
    }
}

/// A slow read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Slow {
    pub(super) at_s: f64,
    pub(super) added: Duration,
    pub(super) beside: Beside,
}

/// The waits of the canary's reads, from the first byte freed to the end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CanaryWaits {
    /// Reads.
    pub reads: u64,
    /// The usual latency, beside no discards.
    pub usual: Duration,
    /// The 99.9th percentile of the wait on top of that, whatever caused it. Of fewer than
    /// a thousand reads the most.
    pub p999_added: Duration,
    /// The most on top.
    pub max_added: Duration,
    /// The same percentile, of waits beside our own discards alone.
    pub p999_own: Duration,
    /// The most on top, beside our own discards.
    pub max_own: Duration,
    /// When the slowest of those was meant to start, in seconds after the first byte was freed.
    pub worst_own_s: Option<f64>,
    /// Reads that waited much longer than usual, by what was in service.
    pub held: LateReads,
    /// Reads that waited longer than the goal's latency, by what was in service; `None`
    /// without such a goal.
    pub over: Option<LateReads>,
    /// When the first of these beside our own discards was meant to start, in seconds after the
    /// first byte was freed.
    pub first_over_s: Option<f64>,
    /// The share of reads that our discards kept waiting, while another process used the drive.
    /// `None`: too few reads.
    pub held_share: Option<Measured>,
}

/// One look at the device: from when to when, since the clock's start, and what was in service for
/// how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    from: Seconds,
    to: Seconds,
    own: Seconds,
    others: Seconds,
    flushes: Seconds,
}

impl Look {
    pub(super) fn new(now: Time, tick: &Tick, own: f64) -> Look {
        let to = Seconds(now.as_secs_f64());
        // What is counted now began before this look did, if it took longer.
        let busy = tick.busy.max(tick.flushing);
        Look {
            from: to - tick.length.max(busy) - LATE,
            to,
            own: tick.busy * own,
            others: tick.busy * (1.0 - own),
            flushes: tick.flushing,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Waits {
    limit: Option<Duration>,
    usual: UsualLatency,
    looks: VecDeque<Look>,
    /// Reads that wait for the look after theirs: their discard may not be counted yet.
    pending: Vec<(Canary, bool)>,
    began: Option<Time>,
    reads: u64,
    /// Reads while another process used the drive, and those of them beside our discards.
    watched: (u64, u64),
    held: LateReads,
    over: LateReads,
    first_over: Option<f64>,
    slowest: Vec<Slow>,
}

impl Waits {
    pub(super) fn new(limit: Option<Duration>) -> Waits {
        Waits {
            limit,
            usual: UsualLatency::default(),
            looks: VecDeque::new(),
            pending: Vec::new(),
            began: None,
            reads: 0,
            watched: (0, 0),
            held: LateReads::default(),
            over: LateReads::default(),
            first_over: None,
            slowest: Vec::new(),
        }
    }

    pub(super) fn observe(
        &mut self,
        look: Look,
        canary: &[Canary],
        quiet: bool,
        begun: bool,
        idle: bool,
    ) {
        let now = Time::from_secs_f64(look.to.0);
        self.looks.push_back(look);
        let old = look.to - Seconds::from(MEMORY);
        while self.looks.len() > MOST_LOOKS || self.looks.front().is_some_and(|l| l.to < old) {
            self.looks.pop_front();
        }
        let pending = std::mem::take(&mut self.pending);
        for (read, idle) in pending {
            self.count(read, idle);
        }
        if begun {
            self.began.get_or_insert(now);
        }
        for read in canary {
            match begun {
                true => self.pending.push((*read, idle)),
                false => {
                    self.usual.observe(read.latency, quiet);
                }
            }
        }
    }

    fn count(&mut self, read: Canary, idle: bool) {
        let beside = self.beside(&read);
        let is_held = self.usual.observe(read.latency, beside == Beside::Nothing);
        let added = self.usual.added(read.latency);
        let at_s = self.at(&read);
        self.reads += 1;
        let own = is_held && beside == Beside::OurDiscards;
        if !idle {
            self.watched = (self.watched.0 + 1, self.watched.1 + u64::from(own));
        }
        if is_held {
            self.held.add(beside);
        }
        if self.limit.is_some_and(|limit| added > limit) {
            self.over.add(beside);
            if beside == Beside::OurDiscards {
                self.first_over.get_or_insert(at_s);
            }
        }
        let slow = Slow {
            at_s,
            added,
            beside,
        };
        self.slowest.push(slow);
        if self.slowest.len() > 2 * SLOWEST {
            self.slowest
                .sort_by_key(|slow| std::cmp::Reverse(slow.added));
            self.slowest.truncate(SLOWEST);
        }
    }

    fn at(&self, read: &Canary) -> f64 {
        let began = self.began.map_or(0.0, Time::as_secs_f64);
        (read.intended.as_secs_f64() - began).max(0.0)
    }

    /// Returns the commands in service for at least half of the time that a read waited longer.
    fn beside(&self, read: &Canary) -> Beside {
        let from = Seconds(read.intended.as_secs_f64());
        let to = from + Seconds::from(read.latency);
        let least = EXPLAINS * Seconds::from(self.usual.added(read.latency));
        let looks = self.looks.iter().rev();
        let near = looks
            .take_while(|look| look.to >= from)
            .filter(|look| look.from <= to);
        let [mut own, mut others, mut flushes] = [Seconds::ZERO; 3];
        for look in near {
            own += look.own;
            others += look.others;
            flushes += look.flushes;
        }
        match () {
            () if own + others > Seconds::ZERO && own + others >= least => match own >= others {
                true => Beside::OurDiscards,
                false => Beside::OthersDiscards,
            },
            () if flushes > Seconds::ZERO && own + others + flushes >= least => Beside::Flushes,
            () => Beside::Nothing,
        }
    }

    /// Returns the waits so far; `None` without any read.
    pub(super) fn result(&self) -> Option<CanaryWaits> {
        let mut all = self.clone();
        for (read, idle) in std::mem::take(&mut all.pending) {
            all.count(read, idle);
        }
        (all.reads > 0).then(|| all.summed())
    }

    fn summed(mut self) -> CanaryWaits {
        self.slowest
            .sort_by_key(|slow| std::cmp::Reverse(slow.added));
        let rank = (self.reads / 1000) as usize;
        let added = |slow: &Slow| slow.added;
        let own = || {
            let slowest = self.slowest.iter();
            slowest.filter(|slow| slow.beside == Beside::OurDiscards)
        };
        let last = self.slowest.len() - 1;
        CanaryWaits {
            reads: self.reads,
            usual: self.usual.latency(),
            p999_added: added(&self.slowest[rank.min(last)]),
            max_added: added(&self.slowest[0]),
            p999_own: own().nth(rank).map_or(Duration::ZERO, added),
            max_own: own().next().map_or(Duration::ZERO, added),
            worst_own_s: own().next().map(|slow| slow.at_s),
            held: self.held,
            over: self.limit.map(|_| self.over),
            first_over_s: self.first_over,
            held_share: share(self.watched),
        }
    }
}

/// A share of reads with Wilson's interval; `None` of too few.
fn share((reads, held): (u64, u64)) -> Option<Measured> {
    const Z: f64 = 1.96;
    if reads < ENOUGH {
        return None;
    }
    let n = reads as f64;
    let value = held as f64 / n;
    let middle = (value + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let spread = (value * (1.0 - value) / n + Z * Z / (4.0 * n * n)).sqrt();
    let half = Z * spread / (1.0 + Z * Z / n);
    Some(Measured {
        value,
        low: (middle - half).max(0.0),
        high: (middle + half).min(1.0),
    })
}

// How long a canary's read usually takes.

/// How much one read counts.
const WEIGHT: f64 = 0.05;

/// A read of so many times the usual latency counts as no more than that.
const MOST: f64 = 3.0;

/// A read counts as slow if it takes longer than this many times the usual latency and this much
/// more.
const HELD: f64 = 2.0;

const HELD_MORE: Seconds = Seconds(100e-6);

/// The usual latency of a canary's reads, learned from reads that met no discard.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UsualLatency(Option<Seconds>);

impl UsualLatency {
    /// Takes in one read; `quiet`: it met no discard. Returns whether it was slow.
    pub(crate) fn observe(&mut self, latency: Duration, quiet: bool) -> bool {
        let latency = Seconds::from(latency);
        let usual = *self.0.get_or_insert(latency);
        if quiet || latency < usual {
            let step = latency.min(usual * MOST) - usual;
            self.0 = Some(usual + WEIGHT * step);
        }
        latency > usual * HELD + HELD_MORE
    }

    /// Returns how much longer than usual a read took.
    pub(crate) fn added(&self, latency: Duration) -> Duration {
        latency.saturating_sub(self.latency())
    }

    /// Returns the usual latency; 0 before the first read.
    pub(crate) fn latency(&self) -> Duration {
        self.0.unwrap_or_default().duration()
    }
}
