//! From a device card: piece, rate, time and what it will cost others, before
//! anything is freed.

use std::time::Duration;

use ssd::{Card, Discard};
use units::MIB;

use crate::goal::Goal;
use crate::refusal::Refusal;
use crate::work::Work;

/// The largest loss by one piece, in seconds: three points of a second are what
/// the window of a goal leaves, and one of them is kept for chance.
pub(crate) const PIECE_LOSS: f64 = 0.020;

/// The share that cutting an extent may add to what it costs.
pub(crate) const CUTTING: f64 = 0.08;

/// What will be done and what it will cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plan {
    /// Bytes in each piece.
    pub piece: u64,
    /// How many discards that makes.
    pub discards: u64,
    /// Bytes for each second; infinite where nothing is paced.
    pub bytes_per_s: f64,
    /// How long it takes.
    pub time: Duration,
    /// How long plain deletion takes on an otherwise idle drive, and how much of
    /// the others' time it costs.
    pub plain: Plain,
    /// The others' time that is lost in all: φ·(n·a + b·B).
    pub lost: Duration,
    /// The longest that a read can be held up, by one discard: φ·S with its
    /// jitter.
    pub worst_wait: Duration,
    /// The 99.9th percentile of what is added to an open-loop reader's latency,
    /// while it lasts: t where D(1 − t/S) = 0.1 %, for D the share of the time in
    /// which the device holds the others up and S for how long.
    pub p999_added: Duration,
}

/// What plain deletion costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Plain {
    /// How long it takes the drive.
    pub time: Duration,
    /// The others' time that is lost.
    pub lost: Duration,
    /// How many discards it makes.
    pub discards: u64,
}

/// What will be done to free this at this goal, and what it will cost.
///
/// Time and losses are those of the drive; what the file system needs to free
/// and to commit comes on top.
///
/// # Errors
/// If the goal can't be met, with what can be.
pub fn plan(card: &Card, work: &Work, goal: &Goal) -> Result<Plan, Refusal> {
    let Some(discard) = &card.figures().discard else {
        return Ok(Plan::unpaced(work));
    };
    let share = goal.share();
    let law = Law::new(discard, card.figures().read.latency.as_secs_f64());
    let whole = work.whole().min(discard.max_bytes);
    let plain_discards = work.bytes.div_ceil(whole.max(1)).max(work.extents);
    let plain_time = law.all(plain_discards, work.bytes);

    let largest = match goal.max_latency {
        None => u64::MAX,
        Some(asked) => law.largest_within(asked, work.smallest())?,
    };
    let cuts = law.cuts(whole, largest);
    let piece = whole.div_ceil(cuts).max(work.smallest().min(whole));
    let discards = if cuts > 1 {
        plain_discards.saturating_mul(cuts)
    } else {
        plain_discards
    };
    let lost = law.phi * law.all(discards, work.bytes);
    let drive = law.all(discards, work.bytes);
    let time = drive.max(lost / share);
    if let Some(asked) = goal.deadline
        && time > asked.as_secs_f64()
    {
        let needed = lost / asked.as_secs_f64().max(1e-9);
        let possible = drive <= asked.as_secs_f64();
        return Err(Refusal::Deadline {
            asked,
            slowdown: share,
            least: Duration::from_secs_f64(time.ceil().min(1e15)),
            needed: if possible {
                (needed * 100.0).ceil() / 100.0
            } else {
                f64::INFINITY
            },
        });
    }
    let held = law.phi * law.one(piece);
    let duty = if time > 0.0 { lost / time } else { 0.0 };
    Ok(Plan {
        piece,
        discards,
        bytes_per_s: if time > 0.0 {
            work.bytes as f64 / time
        } else {
            f64::INFINITY
        },
        time: seconds(time),
        plain: Plain {
            time: seconds(plain_time),
            lost: seconds(law.phi * plain_time),
            discards: plain_discards,
        },
        lost: seconds(lost),
        worst_wait: seconds(held * law.worst),
        p999_added: seconds(p999(held, duty)),
    })
}

/// t where D(1 − t/S) = 0.1 %.
fn p999(held: f64, duty: f64) -> f64 {
    if duty <= 0.001 {
        0.0
    } else {
        held * (1.0 - 0.001 / duty)
    }
}

fn seconds(s: f64) -> Duration {
    Duration::from_secs_f64(s.clamp(0.0, 1e15))
}

impl Plan {
    /// Nothing is discarded: nobody is held up.
    fn unpaced(work: &Work) -> Plan {
        Plan {
            piece: work.bytes.max(1),
            discards: 0,
            bytes_per_s: f64::INFINITY,
            time: Duration::ZERO,
            plain: Plain {
                time: Duration::ZERO,
                lost: Duration::ZERO,
                discards: 0,
            },
            lost: Duration::ZERO,
            worst_wait: Duration::ZERO,
            p999_added: Duration::ZERO,
        }
    }
}

/// S = a + b·L of a card, in seconds and bytes.
struct Law {
    a: f64,
    b: f64,
    phi: f64,
    /// How much longer than the mean a discard can take, as a factor.
    worst: f64,
    /// What the drive needs for a read, which is also what draining it takes.
    read: f64,
}

impl Law {
    fn new(discard: &Discard, read: f64) -> Law {
        let a = discard.a + discard.per_range;
        Law {
            a: a.as_secs_f64(),
            b: discard.b.as_nanos() / 1e9 / MIB as f64,
            phi: discard.phi(),
            worst: 1.0 + 2.0 * discard.jitter,
            read,
        }
    }

    fn one(&self, bytes: u64) -> f64 {
        self.a + self.b * bytes as f64
    }

    fn all(&self, discards: u64, bytes: u64) -> f64 {
        self.a * discards as f64 + self.b * bytes as f64
    }

    /// How long a discard of this size holds a read up at worst.
    fn held(&self, bytes: u64) -> f64 {
        if self.phi <= 0.0 {
            return 0.0;
        }
        self.phi * self.one(bytes) * self.worst + self.read
    }

    /// The largest discard that holds nobody up for longer: (L_max − a)/b.
    fn largest_within(&self, asked: Duration, smallest: u64) -> Result<u64, Refusal> {
        let limit = asked.as_secs_f64();
        let least = self.held(smallest);
        if least > limit {
            // Rounded up to two digits, so that it is met when asked for.
            let step = 10_f64.powf((least * 1e9).log10().floor() - 1.0);
            let least_ns = ((least * 1e9 / step).ceil() * step).round();
            return Err(Refusal::Latency {
                asked,
                smallest: seconds(least),
                least: Duration::from_nanos(least_ns as u64),
            });
        }
        let slope = self.phi * self.b * self.worst;
        if slope <= 0.0 {
            return Ok(u64::MAX);
        }
        let bytes = smallest as f64 + (limit - least) / slope;
        Ok(bytes as u64)
    }

    /// Into how many pieces an extent is cut: as few as the latency allows, and
    /// as many as keep a piece's loss small where that costs little.
    fn cuts(&self, whole: u64, largest: u64) -> u64 {
        let must = whole.div_ceil(largest.max(1));
        must.max(cuts(self.a, self.b, self.phi, whole as f64))
    }
}

/// Into how many pieces an extent of so many bytes is cut so that each costs
/// others little, where cutting costs little.
pub(crate) fn cuts(a: f64, b: f64, phi: f64, whole: f64) -> u64 {
    let one = a + b * whole;
    if phi * one <= PIECE_LOSS {
        return 1;
    }
    let room = PIECE_LOSS / phi - a;
    let wanted = if room > 0.0 {
        (b * whole / room).ceil()
    } else {
        f64::INFINITY
    };
    let cheap = if a > 0.0 {
        1.0 + (CUTTING * one / a).floor()
    } else {
        f64::INFINITY
    };
    wanted.min(cheap).clamp(1.0, 1e9) as u64
}
